"""The command group: ``probe URL`` runs a load, ``probe diff`` compares two."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

from stabilitykit.cli.probe.diff import diff
from stabilitykit.cli.probe.run import run

__all__ = ["app"]


class _RunByDefault(TyperGroup):
    """Takes what is no command for the arguments of ``run``, so that ``probe URL`` will do."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    help="Load a server with conversations (`probe URL`; `probe run --help`), or compare two loads (`probe diff`).",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("run")(run)
app.command("diff")(diff)

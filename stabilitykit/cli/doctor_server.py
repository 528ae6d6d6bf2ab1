"""``stabilitykit doctor --server URL``: what a server says of itself, and what to set on it."""

from __future__ import annotations

from typing import Annotated

import attrs
import typer

from stabilitykit.cli.output import fail, line, plain, record
from stabilitykit.sources.server_advice import Advice, advise
from stabilitykit.sources.server_facts import ServerFacts, look

__all__ = ["ContextOption", "SharedOption", "SilentOption", "examine_server"]

ContextOption = Annotated[
    int, typer.Option("--context", min=1, metavar="TOKENS", help="With --server: context that a conversation needs.")
]
SharedOption = Annotated[
    int | None,
    typer.Option("--shared-prefix", min=1, metavar="TOKENS", help="With --server: system prompt and tools."),
]
SilentOption = Annotated[
    bool, typer.Option("--no-ask", help="With --server: do not ask for a token to see what a reply carries.")
]


def examine_server(url: str, context: int, shared: int | None, *, ask: bool, is_json: bool) -> None:
    """Print facts and advice; exit 1 with advice."""
    facts = look(url, ask=ask)
    advice = advise(facts, wanted_tokens=context, shared_tokens=shared)
    if is_json:
        record({"server": attrs.asdict(facts), "advice": [attrs.asdict(a) for a in advice]})
    else:
        _show(url, facts, advice)
    if advice:
        fail(1)


def _show(url: str, facts: ServerFacts, advice: list[Advice]) -> None:
    line((plain(url), "bold"), f": {facts.server or 'a server of unknown kind'}")
    for name, value in attrs.asdict(facts).items():
        if name != "server":
            shown = "not known" if value is None else {True: "yes", False: "no"}.get(value, value)
            line(f"  {name:<20} {plain(shown)}")
    for one in advice:
        line((one.about, "yellow"), f": {one.finding}", *([f"; set {one.flag}"] if one.flag else []))
    if not advice:
        line(("nothing to change", "green"))

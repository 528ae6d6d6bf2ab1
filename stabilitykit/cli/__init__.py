"""The command line: one file a command. Needs the extra ``cli`` (typer, rich)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Without the name of the program; ``None``: those of the process.

    Returns
    -------
    int
        0 clean, 1 findings, 2 wrong use or a bad pack or log, 3 an error of ours, 130 interrupted.
    """
    from stabilitykit.errors import MissingExtra

    for module in ("typer", "rich"):
        try:
            __import__(module)
        except ImportError:
            print(f"stabilitykit: {MissingExtra(module, 'cli')}", file=sys.stderr)
            return 2
    try:
        from stabilitykit.cli.app import run
    except KeyboardInterrupt:  # loading takes a moment, and nothing has begun
        print("stabilitykit: interrupted", file=sys.stderr)
        return 130
    return run(list(sys.argv[1:] if arguments is None else arguments))

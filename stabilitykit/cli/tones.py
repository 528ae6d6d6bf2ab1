"""The colour of a state: how bad it is, told from the machine and not from its name."""

from __future__ import annotations

from stabilitykit.rules.pack import SEVERITIES, Node, Pack

__all__ = ["STYLES", "tones"]

STYLES = {"good": "green", "warn": "yellow", "mend": "cyan", "warm": "yellow", "cool": "magenta", "bad": "bold red"}
"""Terminal style of each tone."""
_CRITICAL = SEVERITIES.index("critical")


def tones(pack: Pack) -> dict[str, str]:
    """Give each state its tone.

    The first state is good. Bad are the states from the one on that a critical rule leads to
    (without such a transition: the last one). Those between get colours of their own.
    """
    names = [s.name for s in pack.states]
    bad = [names.index(t.to) for t in pack.transitions if t.when is not None and _is_critical(t.when)]
    first_bad = min((k for k in bad if k > 0), default=len(names) - 1)
    between = ("warn", "mend", "warm", "cool")
    found = {}
    for k, name in enumerate(names):
        found[name] = "good" if k == 0 else "bad" if k >= first_bad else between[(k - 1) % 4]
    return found


def _is_critical(guard: Node) -> bool:
    if guard.op in ("atleast", "and", "or"):
        return (guard.op == "atleast" and guard.value == _CRITICAL) or any(_is_critical(a) for a in guard.args)
    return False

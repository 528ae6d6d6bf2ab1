"""The order of rules: a rule after every rule that it names, otherwise in pack order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["find_cycles", "references", "topological"]

_REFERENCE = re.compile(r"\brule\s*:\s*([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def references(condition: str) -> tuple[str, ...]:
    """Give the ids that a condition's text names with ``rule:``, each once.

    Examples
    --------
    >>> references("rule:slow and not rule:slow or rule: cold-start")
    ('slow', 'cold-start')
    """
    if "rule" not in condition:
        return ()
    return tuple(dict.fromkeys(_REFERENCE.findall(condition)))


def topological(names: Mapping[str, tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """Order ids so that each comes after those it names.

    Parameters
    ----------
    names
        Ids in pack order, with the ids each of them names (unknown ones are left out).

    Returns
    -------
    tuple of two lists
        The order, and the ids that stand in a circle or wait for one.
    """
    waiting = {i: {n for n in named if n in names} for i, named in names.items()}
    named_by: dict[str, list[str]] = {}
    for i, named in waiting.items():
        for n in named:
            named_by.setdefault(n, []).append(i)
    ready = [i for i, named in waiting.items() if not named]
    order: list[str] = []
    while ready:
        order += ready
        freed: list[str] = []
        for i in ready:
            for other in named_by.get(i, ()):
                waiting[other].discard(i)
                if not waiting[other]:
                    freed.append(other)
        ready = freed
    placed = set(order)
    return order, [i for i in names if i not in placed]


def find_cycles(circling: Sequence[str], names: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Give circles that have no id in common, one at least behind every id that ``topological`` could not place.

    Parameters
    ----------
    circling
        Those ids: each of them names another of them.

    Returns
    -------
    list of list
        Each begins and ends with the same id.
    """
    among = frozenset(circling)
    cycles: list[list[str]] = []
    walked: set[str] = set()
    for start in circling:
        way: dict[str, None] = {}
        here = start
        while here not in walked:
            walked.add(here)
            way[here] = None
            here = next(n for n in names[here] if n in among)
        if here in way:  # else the way leads into one that was walked before
            ids = [*way]
            cycles.append([*ids[ids.index(here) :], here])
    return cycles

"""The order of rules: a rule after every rule that it names, otherwise in pack order."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["find_cycle", "references", "topological"]

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


def find_cycle(start: str, names: Mapping[str, tuple[str, ...]], among: frozenset[str]) -> list[str]:
    """Walk from an id in or before a circle until an id comes again; give the circle.

    Parameters
    ----------
    among
        The ids that ``topological`` could not place: each of them names another of them.
    """
    seen: list[str] = []
    here = start
    while here not in seen:
        seen.append(here)
        here = next(n for n in names[here] if n in among)
    return [*seen[seen.index(here) :], here]

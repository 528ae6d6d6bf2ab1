"""Constants of trimming, chosen on one half of the conversations for the other: none is scored on what chose it.

The shipped constants were chosen the same way on all of them, but for MEANING, which was set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stabilitykit.mitigations.context import choosing, identifiers, relevance

Setting = Mapping[str, Any]
"""Constants by name: fields of the policy in small letters, of these modules in capitals."""
MODULES = {
    **dict.fromkeys(("K1", "B", "TURNS", "SENTENCES", "MEANING"), relevance),
    "POWER": choosing,
    "FADING": identifiers,
}

# The first of each is where the choice starts: that of the literature, or none.
WORDS: Mapping[str, Sequence[Any]] = {
    "K1": (1.5, 0.9, 1.2, 2.0),
    "B": (0.75, 0.25, 0.5),
    "TURNS": ((0.5,), (0.5, 0.3), (0.5, 0.3, 0.15)),
    "worth_weight": (0.0, 0.1, 0.2, 0.4),
}
MODEL: Mapping[str, Sequence[Any]] = {"MEANING": ((0.3,), (0.3, 0.15), (0.3, 0.15, 0.1), (0.5, 0.3))}
CHINESE: Mapping[str, Sequence[Any]] = {"SENTENCES": ((0.5,), (0.3,), (0.3, 0.2), (0.5, 0.3))}
VALUES: Mapping[str, Sequence[Any]] = {"POWER": (1.0, 0.5), "FADING": (2.0, 4.0, 8.0), "last_share": (0.0, 0.2, 0.4)}


@contextmanager
def constants(setting: Setting) -> Iterator[dict[str, Any]]:
    """Put constants in place for a while; give those that are fields of the policy."""
    before = {name: getattr(MODULES[name], name) for name in setting if name in MODULES}
    try:
        for name in before:
            setattr(MODULES[name], name, setting[name])
        yield {name: value for name, value in setting.items() if name not in MODULES}
    finally:
        for name, value in before.items():
            setattr(MODULES[name], name, value)


def choose(
    grid: Mapping[str, Sequence[Any]], gain: Callable[[Setting], float], known: Setting | None = None
) -> Setting:
    """Go through the constants once, and take of each what gains most with those before it."""
    found = {**(known or {}), **{name: values[0] for name, values in grid.items()}}
    most = gain(found)
    for name, values in grid.items():
        for value in values[1:]:
            tried = {**found, name: value}
            if (gained := gain(tried)) > most + 1e-9:
                most, found = gained, tried
    return found


def told(setting: Setting) -> str:
    """Write a setting."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())

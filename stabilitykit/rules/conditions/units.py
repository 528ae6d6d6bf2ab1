"""Units: which numbers may meet, and by which whole number one scale becomes the other."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import attrs

__all__ = [
    "PLAIN",
    "TURN_WORDS",
    "UNITS",
    "Unit",
    "exact",
    "is_listed",
    "quotient",
    "scaled",
    "spelt",
    "to_float",
    "unit_of",
]

_BASES = ("time", "tokens", "bytes", "temperature", "nats", "bits", "turns")
Dimension = tuple[int, ...]
_ONE: Dimension = (0,) * len(_BASES)


@attrs.frozen(cache_hash=True)
class Unit:
    """A unit: its dimension (exponents of the bases) and how many of the smallest unit it is.

    ``is_plain`` is True for a number without dimension.
    """

    name: str
    dim: Dimension
    scale: Fraction
    is_plain: bool = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "is_plain", self.dim == _ONE)


def _dim(**exponents: int) -> Dimension:
    return tuple(exponents.get(base, 0) for base in _BASES)


def _unit(name: str, scale: int | Fraction, **exponents: int) -> Unit:
    return Unit(name, _dim(**exponents), Fraction(scale))


_SECOND = Fraction(1, 1_000_000)
UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        _unit("us", 1, time=1),
        _unit("ms", 1_000, time=1),
        _unit("s", 1_000_000, time=1),
        _unit("tokens", 1, tokens=1),
        _unit("bytes", 1, bytes=1),
        _unit("KiB", 1 << 10, bytes=1),
        _unit("MiB", 1 << 20, bytes=1),
        _unit("GiB", 1 << 30, bytes=1),
        _unit("C", 1, temperature=1),
        _unit("nats", 1, nats=1),
        _unit("bits", 1, bits=1),
        _unit("%", Fraction(1, 100)),
        _unit("tokens/s", _SECOND, tokens=1, time=-1),
        _unit("/s", _SECOND, time=-1),
        _unit("turns", 1, turns=1),
    )
}
"""The units of the language by name; ``turn``, ``sample`` and ``samples`` are ``turns`` to arithmetic."""
PLAIN = Unit("ratio", _ONE, Fraction(1))
TURN_WORDS: Mapping[str, str] = {"turn": "turns", "turns": "turns", "sample": "samples", "samples": "samples"}
"""Every word of a count of turns, with its plural."""

_SPELT: Mapping[str, str] = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "micros", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("byte", "b"), "bytes"),
    **dict.fromkeys(("kb", "k"), "KiB"),
    **dict.fromkeys(("mb", "m"), "MiB"),
    **dict.fromkeys(("gb", "g"), "GiB"),
    **dict.fromkeys(("token", "tok"), "tokens"),
    **dict.fromkeys(("percent", "pct"), "%"),
    **dict.fromkeys(("celsius", "degrees"), "C"),
}
"""What people write for a unit that no edit distance finds: `C` is as near to `sec` as `s`."""

_LISTED = frozenset(unit.dim for unit in UNITS.values())
_BY_NAME: Mapping[str, Unit] = {
    **UNITS,
    **dict.fromkeys(TURN_WORDS, UNITS["turns"]),
    **dict.fromkeys(("", "ratio", "count", "number"), PLAIN),
}


def unit_of(name: str) -> Unit | None:
    """Find a unit by name; ``ratio``, ``count`` and "" are plain numbers."""
    return _BY_NAME.get(name)


def spelt(word: str) -> str:
    """Say which unit a word that is none usually means, as a hint; "" when nobody knows."""
    meant = _SPELT.get(word.lower())
    return f"did you mean `{meant}`?" if meant else ""


def is_listed(unit: Unit) -> bool:
    """Say whether the dimension is plain or that of a unit of the language."""
    return unit.dim in _LISTED


@lru_cache(maxsize=512)
def quotient(a: Unit, b: Unit, sign: int) -> Unit:
    """Give the unit of ``a * b`` (sign 1) or ``a / b`` (sign -1)."""
    dim = tuple(x + sign * y for x, y in zip(a.dim, b.dim, strict=True))
    scale = a.scale * b.scale if sign > 0 else a.scale / b.scale
    return Unit(_name(dim, scale), dim, scale)


def _name(dim: Dimension, scale: Fraction) -> str:
    """Name a derived unit after the nearest unit of the list: ``1000 tokens/s`` for tokens per ms."""
    known = [PLAIN] if dim == _ONE else [unit for unit in UNITS.values() if unit.dim == dim]
    for unit in known:
        if unit.scale == scale:
            return unit.name
    return f"{scale / known[0].scale} {known[0].name}" if known else "?"


def to_float(exact: Fraction) -> float:
    """Give the float64 nearest to an exact number, infinite when it is too great."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("-inf") if exact < 0 else float("inf")


def exact(number: str) -> Fraction | None:
    """Read a decimal number exactly; None when its exponent is absurd (its float64 is 0 or infinite)."""
    _, _, exponent = number.lower().partition("e")
    if len(number) > 1_000 or len(exponent) > 4:
        return None
    return Fraction(number)


def scaled(number: str, unit: str, target: str) -> float:
    """Give the float64 nearest to ``number unit``, counted in `target`.

    Parameters
    ----------
    number
        A decimal number of the grammar, with or without sign.
    unit, target
        Names of units of one dimension.

    Raises
    ------
    ValueError
        When the dimensions differ or a name is no unit.

    Examples
    --------
    >>> scaled("7", "%", "ratio"), scaled("0.0011", "s", "ms")
    (0.07, 1.1)
    """
    a, b = unit_of(unit), unit_of(target)
    if a is None or b is None or a.dim != b.dim:
        raise ValueError(f"{unit or 'a bare number'} cannot be counted in {target}")
    factor = a.scale / b.scale
    whole = exact(number)
    return float(number) if whole is None else to_float(whole * factor) + 0.0

"""Foreign replies as plain values: dicts, and objects that carry their fields as attributes, such as pydantic's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["fields", "items", "number", "walk"]

_NOTHING: Mapping[str, Any] = {}


def fields(value: object) -> Mapping[str, Any]:
    """Give the fields of a dict or an object, extra ones of pydantic's among them; of anything else none.

    No package is imported for it: pydantic keeps fields in ``__dict__`` and unknown ones in ``model_extra``.
    """
    if type(value) is dict:  # nearly always: the other checks cost more
        return value
    if value is None:
        return _NOTHING
    if isinstance(value, Mapping):
        return value
    known = getattr(value, "__dict__", None)
    if not isinstance(known, dict) or isinstance(value, type):
        return _NOTHING
    extra = getattr(value, "model_extra", None)
    return {**known, **extra} if isinstance(extra, dict) and extra else known


def items(value: object) -> Sequence[Any]:
    """Give the elements of a list or tuple; of anything else none."""
    return value if type(value) is list or isinstance(value, list | tuple) else ()


def number(value: object) -> float | None:
    """Give a finite number, or nothing: true is no number here, nor is "12"."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        given = float(value)
    except OverflowError:
        return None
    return given if math.isfinite(given) else None


def walk(value: object, path: tuple[str, ...]) -> object:
    """Follow field names; ``None`` where one is not there."""
    for name in path:
        value = fields(value).get(name)
        if value is None:
            return None
    return value

"""What a given value is worth: a number, missing, or invalid; and the signals derived from others."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.turn import is_missing

__all__ = ["BASES", "DERIVED", "Known", "UnitMemory", "derive", "fingerprint", "finite", "judge", "moment", "suspect"]

Known = float | list[Any] | None
pack_double = struct.Struct("<d").pack
SMALLEST_NORMAL = 2.2250738585072014e-308


def finite(value: float | None) -> float | None:
    """Turn a result of arithmetic into a value: not finite is unknown, subnormal and -0.0 are 0.0."""
    if value is None or not math.isfinite(value):
        return None
    return 0.0 if abs(value) < SMALLEST_NORMAL else value


def number(value: Any) -> float:
    """Give a telemetry value as a float, or raise TypeError: texts are no numbers."""
    if isinstance(value, str | bytes | bytearray):
        raise TypeError
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise TypeError from error


def array(spec: SignalSpec, value: Any) -> np.ndarray:
    """Give an array signal in its dtype, or raise TypeError."""
    try:
        given = np.asarray(value)
    except (ValueError, OverflowError) as error:  # ragged lists
        raise TypeError from error
    kinds = "biu" if spec.dtype == "int64" else "biuf"
    if given.ndim != 1 or (given.size and given.dtype.kind not in kinds):
        raise TypeError
    with np.errstate(all="ignore"):
        return given.astype(spec.dtype)


def judge(spec: SignalSpec, value: Any) -> tuple[Known, str]:
    """Say what a value is: (value, "") or (None, "missing" | "invalid" | "type_mismatch")."""
    if is_missing(value):
        return None, "missing"
    try:
        if spec.kind == "array":
            return judge_array(array(spec, value))
        if spec.kind == "enum":
            return judge_word(spec, value)
        raw = value if type(value) is float else number(value)
    except TypeError:
        return None, "type_mismatch"
    if not (math.isfinite(raw) and spec.lo <= raw <= spec.hi):
        return None, "invalid"
    return finite(raw), ""


def judge_word(spec: SignalSpec, value: Any) -> tuple[Known, str]:
    """Look a word of an enum up; its index is what rules compare."""
    if not isinstance(value, str):
        raise TypeError
    return (float(spec.values.index(value)), "") if value in spec.values else (None, "invalid")


def judge_array(values: np.ndarray) -> tuple[Known, str]:
    """Refuse arrays with an element that is not finite; an empty one is missing."""
    if values.size == 0:
        return None, "missing"
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return None, "invalid"
    return values.tolist(), ""


def moment(value: Any) -> tuple[float | None, str]:
    """Judge a time in seconds like a signal: (seconds or None, fault or "")."""
    if is_missing(value):
        return None, ""
    try:
        seconds = number(value)
    except TypeError:
        return None, "type_mismatch"
    return (seconds, "") if math.isfinite(seconds) else (None, "invalid")


def fingerprint(spec: SignalSpec, value: Any) -> object:
    """Give what two contents of one turn are compared by: the bits as given, before any check."""
    if is_missing(value):
        return None
    try:
        if spec.kind == "array":
            return array(spec, value).tobytes()
        if spec.kind == "enum":
            return judge_word(spec, value)
        return pack_double(value if type(value) is float else number(value))
    except TypeError:
        return "type_mismatch"


# What each derivable signal is computed from.
BASES: dict[str, tuple[str, ...]] = {
    "kv_hit_ratio": ("cached_tokens", "input_tokens"),
    "session_tokens": ("input_tokens", "output_tokens"),
    "context_usage_ratio": ("input_tokens", "output_tokens", "context_window_tokens"),
    "is_history_truncated": ("sent_tokens", "input_tokens"),
}
DERIVED = tuple(BASES)


def derive(name: str, given: Callable[[str], Any], before: float | None, own_act: bool) -> float | None:
    """Compute a derived signal from its bases.

    Parameters
    ----------
    name
        One of ``DERIVED``.
    given
        Reads a base signal as the host gave it.
    before
        input_tokens of the previous turn, where known.
    own_act
        A receipt of a context action came with this turn.
    """
    known = {base: judge(CATALOGUE[base], given(base)) for base in BASES[name]}
    got: dict[str, Any] = {base: value for base, (value, _) in known.items()}
    tokens = got["input_tokens"]
    if tokens is None:
        return None
    if name == "kv_hit_ratio":
        cached = got["cached_tokens"]
        return cached / tokens if cached is not None and tokens > 0 and cached <= tokens else None
    if name == "session_tokens":
        return tokens + got["output_tokens"] if got["output_tokens"] is not None else None
    if name == "context_usage_ratio":
        window = got["context_window_tokens"]
        output = 0.0 if known["output_tokens"][1] == "missing" else got["output_tokens"]
        return None if output is None or window is None or window <= 0 else (tokens + output) / window
    sent = got["sent_tokens"]
    if sent is not None:
        return 1.0 if tokens < 0.9 * sent else 0.0
    if before is None or own_act:
        return None
    return 1.0 if tokens < 0.5 * before else 0.0


@attrs.define
class UnitMemory:
    """What is remembered of a time signal to notice that its unit changed."""

    usual: float | None = None
    run: int = 0


def suspect(memory: UnitMemory, value: float) -> bool:
    """Take one known value; tell whether milli- and microseconds were probably exchanged."""
    if memory.usual is None:
        memory.usual = value if value > 0 else None
        return False
    ratio = value / memory.usual
    if 300.0 <= ratio <= 3000.0 or 1.0 / 3000.0 <= ratio <= 1.0 / 300.0:
        memory.run += 1
        if memory.run == 5:
            memory.usual, memory.run = value, 0
            return True
        return False
    memory.run = 0
    if value > 0:
        memory.usual += 0.2 * (value - memory.usual)
    return False

"""From a Turn to the input block of the pass: fast where all is well, patient where it is not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stabilitykit.compiled.program import ScalarInput
from stabilitykit.decision import Fault
from stabilitykit.signals import SignalSpec
from stabilitykit.turn import MISSING, is_missing

__all__ = ["HEAD", "MISMATCH", "domain_of", "gather", "make_array_reader", "make_packer", "read_value"]

MISMATCH: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_4241_4421))[0]
INVALID = float("nan")
HEAD = 9
"""Six addresses, flags, skip mask and revision stand before the inputs."""


def words_of(spec: SignalSpec) -> dict[Any, float]:
    """Give the numbers of an enum's words; not given is missing."""
    return {None: MISSING, **{word: float(i) for i, word in enumerate(spec.values)}}


def make_packer(scalars: Sequence[ScalarInput], pack_into: Callable[..., None], buffer: Any) -> Callable[..., None]:
    """Make ``pack(turn, *head)`` that writes into the buffer; it reads exactly the fields this pack reads.

    The function is written once a load, from catalogue names alone, as attrs writes ``__init__``;
    no rule becomes code. It raises whatever a strange value raises: then ``gather`` takes over.
    """
    space: dict[str, Any] = {"M": MISSING, "EMPTY": {}, "into": pack_into, "at": buffer}
    fields = []
    for k, scalar in enumerate(scalars):
        name = scalar.spec.name
        source = f"e({name!r}, M)" if scalar.declared else f"t.{name}"
        if scalar.spec.kind == "enum":
            space[f"w{k}"] = words_of(scalar.spec).get
            source = f"w{k}({source})"
        fields.append(source)
    body = ", ".join(["row, vec, rrow, rvec, drow, dvec, flags, skip, t.revision", *fields])
    extra = "    e = (t.extra or EMPTY).get\n" if any(s.declared for s in scalars) else ""
    head = "def pack(t, row, vec, rrow, rvec, drow, dvec, flags, skip):\n"
    exec(f"{head}{extra}    into(at, 0, {body})\n", space)
    made: Callable[..., None] = space["pack"]
    return made


def make_array_reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Make ``read(turn)`` that gives these fields of a turn, or () when none of them is there."""
    fields, absent = "".join(f"t.{n}, " for n in names), " and ".join(f"t.{n} is None" for n in names)
    found: Callable[[Any], tuple[Any, ...]] = eval(f"lambda t: () if {absent or True} else ({fields})")
    return found


def read_value(spec: SignalSpec, value: Any) -> tuple[float, Fault | None]:
    """Read one value as the host gave it; gives a number, MISSING, or NaN and a fault."""
    if value is None:
        return MISSING, None
    if spec.kind == "enum":
        if isinstance(value, str):
            found = words_of(spec).get(value)
            return (INVALID, None) if found is None else (found, None)
        if is_missing(value):
            return MISSING, None
        return MISMATCH, Fault("type_mismatch", spec.name, f"{type(value).__name__}, not a word")
    try:
        if isinstance(value, (str, bytes, complex)):
            raise TypeError
        return float(value), None
    except Exception:  # a host's own number type may raise anything: it is a bad value, not our failure
        return MISMATCH, Fault("type_mismatch", spec.name, f"{type(value).__name__}, not a number")


def gather(
    turn: Any, scalars: Sequence[ScalarInput], functions: Mapping[str, Callable[[Any], Any]]
) -> tuple[list[float], list[Fault]]:
    """Read every input of a turn one by one, with the faults found on the way."""
    values: list[float] = []
    faults: list[Fault] = []
    extra = turn.extra or {}
    for scalar in scalars:
        name = scalar.spec.name
        value = extra.get(name, MISSING) if scalar.declared else getattr(turn, name)
        if name in functions and (value is None or value is MISSING):
            try:
                value = functions[name](turn)
            except Exception as error:  # the host's function must not kill the host's reply
                faults.append(Fault("signal_function", name, type(error).__name__))
                value = MISSING
        number, fault = read_value(scalar.spec, value)
        values.append(number)
        if fault is not None and scalar.reported:
            faults.append(fault)
    return values, faults


def domain_of(spec: SignalSpec) -> str:
    """Say which values a signal may have."""
    if spec.kind == "enum":
        return f"one of {', '.join(spec.values)}"
    return "true or false" if spec.kind == "bool" else f"{spec.lo:g} to {spec.hi:g}"

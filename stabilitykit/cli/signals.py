"""``stabilitykit signals``: the catalogue of what a host can measure."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from stabilitykit.cli.output import record, table
from stabilitykit.cli.packs import PackOption, pack_of
from stabilitykit.rules.reach import DERIVED
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.sources import PRODUCERS

__all__ = ["signals"]


def signals(
    pack: PackOption = None,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the signals: unit, scope, domain, who produces them. With --pack also those it declares."""
    specs = {**CATALOGUE, **(pack_of(pack).signals if pack else {})}
    if is_json:
        record({"signals": [_as_dict(spec) for spec in specs.values()]})
        return
    rows = [
        (s.name, s.unit, s.scope, _domain(s), ", ".join(_producers(s)) or "host only", _doc(s)) for s in specs.values()
    ]
    table(("signal", "unit", "scope", "domain", "producers", "what it is"), rows)


def _producers(spec: SignalSpec) -> list[str]:
    derived = [f"derived from {' and '.join(DERIVED[spec.name])}"] if spec.name in DERIVED else []
    return [name for name, made in PRODUCERS.items() if spec.name in made] + derived


def _domain(spec: SignalSpec) -> str:
    if spec.kind == "array":
        return f"{spec.dtype}[]"
    if spec.kind == "bool":
        return "true, false"
    return f"{len(spec.values)} words" if spec.kind == "enum" else f"{spec.lo:g} .. {spec.hi:g}"


def _doc(spec: SignalSpec) -> str:
    return spec.doc + (f": {', '.join(spec.values)}" if spec.values else "")


def _as_dict(spec: SignalSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "unit": spec.unit,
        "scope": spec.scope,
        "kind": spec.kind,
        "lo": spec.lo if math.isfinite(spec.lo) else None,
        "hi": spec.hi if math.isfinite(spec.hi) else None,
        "values": list(spec.values),
        "dtype": spec.dtype,
        "producers": _producers(spec),
        "doc": spec.doc,
    }

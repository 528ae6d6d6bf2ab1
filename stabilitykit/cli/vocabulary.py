"""What may stand in a pack: ``stabilitykit rules actions``, ``detectors``, ``params`` and ``codes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from stabilitykit.cli.output import line, record, table
from stabilitykit.cli.packs import PackOption, ParamOption, pack_of
from stabilitykit.decision import ParamSpec
from stabilitykit.detectors import DETECTORS
from stabilitykit.errors import UsageError
from stabilitykit.rules.codes import CODES
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.signals import DetectorSpec, SettingSpec

__all__ = ["actions", "codes", "detectors", "params"]

_JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def actions(pack: PackOption = None, is_json: _JsonOption = False) -> None:
    """List the actions a rule or state may name, with their parameters; those the pack declares too."""
    known = sorted(pack_of(pack).actions.values(), key=lambda a: a.order)
    if is_json:
        found = [{"name": a.name, "params": [_setting(p) for p in a.params], "doc": a.doc} for a in known]
        record({"actions": found})
        return
    rows = [(a.name, ", ".join(f"{p.name}={p.default}" for p in a.params), a.doc) for a in known]
    table(("action", "parameters and defaults", "what it asks for"), rows)


def detectors(
    name: Annotated[str | None, typer.Argument(help="A type, to see its inputs, settings and outputs.")] = None,
    is_json: _JsonOption = False,
) -> None:
    """List the detector types a pack may use, or show one."""
    if name is not None and name not in DETECTORS:
        hint = did_you_mean(name, DETECTORS) or "`stabilitykit rules detectors` lists them"
        raise UsageError(f"no detector type {name!r}; {hint}")
    chosen = [spec for spec in DETECTORS.values() if name in (None, spec.type)]
    if is_json:
        record({"detectors": [_detector(spec) for spec in chosen]})
    elif name is None:
        table(
            ("type", "outputs", "what it sees"), [(s.type, " ".join(o.name for o in s.outputs), s.doc) for s in chosen]
        )
    else:
        _show(chosen[0])


def params(pack: PackOption = None, values: ParamOption = None, is_json: _JsonOption = False) -> None:
    """List the params of a pack: value, unit, range, what it means."""
    found = pack_of(pack, values).params.values()
    if is_json:
        keys = ("name", "value", "unit", "lo", "hi", "doc")
        record({"params": [{key: getattr(p, key) for key in keys} for p in found]})
        return
    table(
        ("param", "value", "unit", "range", "what it means"),
        [(p.name, str(p.value), p.unit, _range(p.lo, p.hi), p.doc) for p in found],
    )


def codes(
    code: Annotated[str | None, typer.Argument(help="One code, as SK301.")] = None, is_json: _JsonOption = False
) -> None:
    """List the error codes of the rule language, or say what one means."""
    found: Mapping[str, str] = CODES
    if code is not None:
        wanted = code.upper()
        if wanted not in CODES:
            raise UsageError(f"no error code {code!r}; {did_you_mean(wanted, CODES) or 'they are like SK301'}")
        found = {wanted: CODES[wanted]}
    if is_json:
        record({"codes": dict(found)})
    else:
        table(("code", "raised when"), list(found.items()))


def _range(lo: float | None, hi: float | None) -> str:
    return (
        "" if lo is None and hi is None else f"{'' if lo is None else f'{lo:g}'} .. {'' if hi is None else f'{hi:g}'}"
    )


def _setting(spec: SettingSpec | ParamSpec) -> dict[str, Any]:
    return {"name": spec.name, "default": spec.default, "unit": spec.unit, "doc": spec.doc}


def _detector(spec: DetectorSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "doc": spec.doc,
        "inputs": dict(spec.inputs),
        "settings": [_setting(s) for s in spec.settings],
        "outputs": [{"name": o.name, "unit": o.unit, "doc": o.doc} for o in spec.outputs],
    }


def _show(spec: DetectorSpec) -> None:
    line((spec.type, "bold"), f"  {spec.doc}")
    rows = [("input", name, default or "(name one)", "") for name, default in spec.inputs.items()]
    rows += [("setting", s.name, str(s.default), s.doc) for s in spec.settings]
    rows += [("output", o.name, o.unit, o.doc) for o in spec.outputs]
    table(("what", "name", "default or unit", "what it is"), rows)

"""Detectors of a pack: type, inputs, settings and scope, checked against their specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import Item
from stabilitykit.rules.files.weights import read_weights
from stabilitykit.rules.pack import DetectorUse
from stabilitykit.rules.values import Values
from stabilitykit.signals import SCOPES, TIME, DetectorSpec, Scope, SignalSpec, scope_rank

__all__ = ["use_detectors"]


def use_detectors(
    findings: Findings,
    items: Mapping[str, Item],
    specs: Mapping[str, DetectorSpec],
    signals: Mapping[str, SignalSpec],
    values: Values,
) -> dict[str, DetectorUse | None]:
    """Check the detectors of a pack.

    Returns
    -------
    dict
        By id; ``None`` for one whose type is unknown or whose inputs are wrong (reported).
    """
    return {name: _use(findings, item, specs, signals, values) for name, item in items.items()}


def _use(
    findings: Findings,
    item: Item,
    specs: Mapping[str, DetectorSpec],
    signals: Mapping[str, SignalSpec],
    values: Values,
) -> DetectorUse | None:
    kind = item.get("type")
    if findings.is_full(item.place) or item.broken or kind is None or kind is BAD:
        return None
    spec = specs.get(kind)
    if spec is None:
        hint = "types: " + ", ".join(sorted(specs))
        findings.add(
            item.at("type"), "SK302", f"unknown detector type {show(kind)}", hint=hint, near=(kind, specs), certain=True
        )
        return None
    _check_keys(findings, item, spec)
    inputs = _inputs(findings, item, spec, signals)
    settings = _settings(findings, item, spec, values)
    if inputs is None or settings is None:
        return None
    if wrong := spec.check(settings):
        findings.add(item.place, "SK322", f"detector `{item.id}`: {wrong}", key=True)
        return None
    read = [signals[s] for s in inputs.values() if s != TIME]
    narrowest = min((s.scope for s in read), key=scope_rank, default=SCOPES[0])
    scope = _scope(findings, item, spec, narrowest)
    typed = _with_units(spec, read[0].unit if read else "")
    memory = _memory(item.id, spec, inputs, settings, scope)
    return DetectorUse(item.id, typed, inputs, settings, scope, scope != narrowest, memory)


def _check_keys(findings: Findings, item: Item, spec: DetectorSpec) -> None:
    known = [*keys.DETECTOR, *spec.inputs, *(s.name for s in spec.settings)]
    for key in item.fields:
        if key not in known:
            hint = "it has " + ", ".join(known[len(keys.DETECTOR) :])
            message = f"a detector of type `{spec.type}` has no setting {show(key)}"
            findings.add(item.at(key), "SK201", message, hint=hint, near=(key, known), key=True)


def _inputs(
    findings: Findings, item: Item, spec: DetectorSpec, signals: Mapping[str, SignalSpec]
) -> dict[str, str] | None:
    chosen: dict[str, str] = {}
    for name, default in spec.inputs.items():
        given = item.get(name, default)
        if given == "":
            findings.add(item.place, "SK202", f"detector `{item.id}` needs `{name}`: the signal it reads", key=True)
        elif type(given) is not str:
            findings.add(item.at(name), "SK203", f"`{name}` must be the name of a signal")
        elif TIME in (given, default):
            if given == default:
                chosen[name] = given
            else:
                findings.add(item.at(name), "SK301", f"`{name}` and `{TIME}`: a time goes with a time only")
        elif given not in signals:
            place, key = (item.at(name), False) if name in item.fields else (item.place, True)
            findings.add(place, "SK301", f"unknown signal {show(given)}", near=(given, signals), key=key)
        elif _fits(findings, item.at(name), signals[given], default, spec, signals):
            chosen[name] = given
    return chosen if len(chosen) == len(spec.inputs) else None


def _fits(
    findings: Findings,
    place: Place,
    signal: SignalSpec,
    default: str,
    spec: DetectorSpec,
    signals: Mapping[str, SignalSpec],
) -> bool:
    """Check kind and unit of an input against those of the default signal, which says what is wanted."""
    wanted = signals.get(default)
    is_array = signal.kind == "array"
    if wanted is None:
        if signal.kind in ("array", "enum"):
            findings.add(place, "SK301", f"`{signal.name}` is an {signal.kind}; `{spec.type}` reads a number")
        return signal.kind not in ("array", "enum")
    if is_array != (wanted.kind == "array") or signal.dtype != wanted.dtype:
        want = f"{wanted.dtype} array" if wanted.kind == "array" else "number"
        findings.add(place, "SK301", f"`{signal.name}` is no {want}; `{spec.type}` reads one like `{default}`")
        return False
    if not is_array and signal.unit != wanted.unit:
        message = f"`{signal.name}` is in {signal.unit}; `{spec.type}` reads {wanted.unit}"
        findings.add(place, "SK410", message)
        return False
    return True


def _with_units(spec: DetectorSpec, unit: str) -> DetectorSpec:
    """Give outputs whose unit is ``input`` the unit of the first input."""
    if not any(o.unit == "input" for o in spec.outputs):
        return spec
    unit = "ratio" if unit == "bool" else unit
    outputs = (attrs.evolve(o, unit=unit) if o.unit == "input" else o for o in spec.outputs)
    return attrs.evolve(spec, outputs=tuple(outputs))


def _settings(findings: Findings, item: Item, spec: DetectorSpec, values: Values) -> dict[str, Any] | None:
    """Read the settings; None when a model file is no good, for then nothing else can be said."""
    chosen: dict[str, Any] = {}
    for setting in spec.settings:
        raw = item.get(setting.name)
        if raw is None or raw is BAD:
            chosen[setting.name] = setting.default
        elif setting.kind == "file":
            chosen[setting.name] = read_weights(item.at(setting.name), raw)
            if isinstance(chosen[setting.name], str):
                findings.add(item.at(setting.name), "SK322", chosen[setting.name])
                return None
        else:
            value = values.typed(item.at(setting.name), raw, setting)
            chosen[setting.name] = setting.default if value is BAD else value
    return chosen


def _scope(findings: Findings, item: Item, spec: DetectorSpec, narrowest: Scope) -> Scope:
    given = item.get("scope")
    if given is None or given is BAD:
        default = spec.default_scope
        return default if default and scope_rank(default) > scope_rank(narrowest) else narrowest
    if scope_rank(given) < scope_rank(narrowest):
        message = f"a detector of {narrowest} signals cannot live in a {given}: `scope` only widens"
        findings.add(item.at("scope"), "SK206", message)
        return narrowest
    chosen: Scope = given
    return chosen


def _memory(name: str, spec: DetectorSpec, inputs: Mapping[str, str], settings: Mapping[str, Any], scope: str) -> str:
    """Name the memory across reloads: what is kept must still mean the same."""
    shaping = [f"{s.name}={settings[s.name]}" for s in spec.settings if s.shapes_memory]
    return "|".join([name, spec.type, scope, *(f"{k}={v}" for k, v in inputs.items()), *sorted(shaping)])

"""The pack file as pydantic models, and the JSON Schema that editors complete from.

``python -m stabilitykit.rules.files.schema > docs/reference/pack.schema.json`` writes the published
schema. The loader itself checks by the tables in ``keys``, with better located messages and
without importing pydantic.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stabilitykit.decision import ACTIONS, ActionSpec
from stabilitykit.rules.files import keys
from stabilitykit.rules.given import Typed
from stabilitykit.signals import CATALOGUE, DetectorSpec

__all__ = ["MODELS", "SCHEMA_ID", "PackModel", "pack_schema"]

SCHEMA_ID = "pack.schema.json"

Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=128)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=128)]
Turns = Annotated[
    str,
    Field(
        pattern=r"^\s*((0|[1-9][0-9]*)\s+(turns?|samples?)|params\s*\.\s*[a-z][a-z0-9_]*)\s*$",
        examples=["3 turns", "5 samples", "params.patience"],
    ),
]
Given = str | int | float | bool
Severity = Literal["info", "warning", "critical"]
ScopeWord = Literal["session", "replica", "device"]
OnMissing = Literal["hold", "skip", "fire"]


class _Model(BaseModel):
    """What all have in common: no unknown keys, real types, words of YAML as keys."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)


class DefaultsModel(_Model):
    """Defaults of every rule of the loaded set."""

    on_missing: OnMissing | None = None
    hold_limit: Turns | None = None


class ParamModel(_Model):
    """A number, flag or word that the host may set at load."""

    default: Given
    min: Given | None = None
    max: Given | None = None
    doc: str | None = None
    override: bool | None = None
    enabled: bool | None = None


class SignalModel(_Model):
    """A signal that the host passes in Turn(extra={...})."""

    unit: str | None = None
    scope: ScopeWord | None = None
    min: Given | None = None
    max: Given | None = None
    values: list[str] | None = None
    doc: str | None = None
    override: bool | None = None
    enabled: bool | None = None


class DetectorModel(_Model):
    """A detector: its type decides about the other keys."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str | None = None
    scope: ScopeWord | None = None
    doc: str | None = None
    override: bool | None = None
    enabled: bool | None = None


class ActionParamModel(_Model):
    """A parameter of an action that the pack declares."""

    default: Given
    min: Given | None = None
    max: Given | None = None
    values: list[str] | None = None
    doc: str | None = None


class ActionModel(_Model):
    """An action that the host carries out, declared by the pack."""

    doc: str | None = None
    params: dict[Name, ActionParamModel] | None = None
    group: Id | None = None
    rank: int | None = None
    many: bool | None = None
    drops: list[str] | None = None
    override: bool | None = None
    enabled: bool | None = None


class DoModel(BaseModel):
    """One action with its parameters."""

    model_config = ConfigDict(extra="allow")


class CountModel(_Model):
    """So many of the last turns."""

    at_least: int | str
    in_: Turns = Field(alias="in")


class RuleModel(_Model):
    """A condition, and what follows from it."""

    rule: Id
    desc: str | None = None
    when: str | None = None
    severity: Severity | None = None
    for_: Turns | None = Field(None, alias="for")
    count: CountModel | None = None
    keep_for: Turns | None = None
    cooldown: Turns | None = None
    on_missing: OnMissing | None = None
    hold_limit: Turns | None = None
    do: list[DoModel] | None = None
    reason: str | None = None
    tags: list[Id] | None = None
    override: bool | None = None
    enabled: bool | None = None


class StateModel(_Model):
    """A state a conversation, replica or device can be in."""

    state: Id
    do: list[DoModel] | None = None
    while_: list[DoModel] | None = Field(None, alias="while")
    was: Id | None = None


class TransitionModel(_Model):
    """A way from one state to another."""

    from_: Id | list[Id] = Field(alias="from")
    to: Id
    when: str | None = None
    after: Turns | None = None


class MachineModel(_Model):
    """The states, and the ways between them."""

    initial: Id | None = None
    states: list[StateModel] | None = None
    transitions: list[TransitionModel] | None = None
    override: bool | None = None


class PackModel(_Model):
    """A rule pack of stabilitykit."""

    stabilitykit: Literal[1]
    pack: Id
    desc: str | None = None
    extends: list[str] | None = None
    params: dict[Name, ParamModel] | None = None
    signals: dict[Name, SignalModel] | None = None
    detectors: dict[Name, DetectorModel] | None = None
    rules: list[RuleModel] | None = None
    machine: MachineModel | None = None
    actions: dict[Name, ActionModel] | None = None
    defaults: DefaultsModel | None = None


MODELS: Mapping[type[BaseModel], keys.Table] = {
    PackModel: keys.PACK,
    DefaultsModel: keys.DEFAULTS,
    ParamModel: keys.PARAM,
    SignalModel: keys.SIGNAL,
    DetectorModel: keys.DETECTOR,
    ActionModel: keys.ACTION,
    ActionParamModel: keys.ACTION_PARAM,
    RuleModel: keys.RULE,
    CountModel: keys.COUNT,
    MachineModel: keys.MACHINE,
    StateModel: keys.STATE,
    TransitionModel: keys.TRANSITION,
}
"""Each model with the table the loader checks by."""


def pack_schema(detectors: Mapping[str, DetectorSpec], actions: Mapping[str, ActionSpec] = ACTIONS) -> dict[str, Any]:
    """Generate the JSON Schema of a pack file.

    Parameters
    ----------
    detectors, actions
        What packs may use: their settings, outputs and parameters become part of the schema.
    """
    schema = PackModel.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for model, table in MODELS.items():
        target = schema if model is PackModel else definitions[model.__name__]
        for key, spec in table.items():
            target["properties"][key]["description"] = spec.doc
    definitions["DetectorModel"] = _detectors(definitions["DetectorModel"], detectors)
    definitions["DoModel"] = _actions(actions)
    outputs = [f"{d.type}: {', '.join(o.name for o in d.outputs)}" for d in detectors.values()]
    when = definitions["RuleModel"]["properties"]["when"]
    when["description"] += "\n\nSignals: " + " ".join(n for n, s in CATALOGUE.items() if s.kind != "array")
    when["description"] += "\n\nOutputs of detectors: " + "; ".join(outputs)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **schema}


def _detectors(base: dict[str, Any], detectors: Mapping[str, DetectorSpec]) -> dict[str, Any]:
    """Let the type of a detector decide about its other keys."""
    base["properties"]["type"] = {"enum": sorted(detectors), "description": keys.DETECTOR["type"].doc}
    base["allOf"] = [
        {
            "if": {"properties": {"type": {"const": spec.type}}, "required": ["type"]},
            "then": {
                "description": f"{spec.doc}. Outputs: {_outputs(spec)}",
                "properties": {**dict.fromkeys(keys.DETECTOR, True), **_settings(spec)},
                "additionalProperties": False,
            },
        }
        for spec in sorted(detectors.values(), key=lambda d: d.type)
    ]
    return base


def _outputs(spec: DetectorSpec) -> str:
    return "; ".join(f"{o.name} ({o.unit}): {o.doc}" for o in spec.outputs)


def _settings(spec: DetectorSpec) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, default in spec.inputs.items():
        wants_array = default in CATALOGUE and CATALOGUE[default].kind == "array"
        fitting = [n for n, s in CATALOGUE.items() if (s.kind == "array") == wants_array]
        properties[name] = {"type": "string", "description": "the signal it reads", "examples": fitting}
        if default:
            properties[name]["default"] = default
    for setting in spec.settings:
        properties[setting.name] = _value(setting, setting.doc, setting.default)
    return properties


def _value(spec: Typed, doc: str, default: Any) -> dict[str, Any]:
    reference = {"type": "string", "pattern": r"^\s*params\s*\."}
    if spec.kind == "bool":
        choices: list[dict[str, Any]] = [{"type": "boolean"}, reference]
    elif spec.kind == "enum":
        choices = [{"enum": list(spec.values)}, reference]
    elif spec.kind in ("word", "file"):
        choices = [{"type": "string"}]
    else:
        # A string holds a number with its unit.
        choices = [{"type": "integer" if spec.kind == "count" else "number"}, {"type": "string"}]
    unit = f" ({spec.unit})" if spec.kind == "number" and spec.unit not in ("count", "") else ""
    return {"anyOf": [*choices, {"type": "null"}], "description": doc + unit, "default": default}


def _actions(actions: Mapping[str, ActionSpec]) -> dict[str, Any]:
    """One action is a mapping with one key; packs may declare more than these."""
    properties = {
        spec.name: {
            "type": "object",
            "description": spec.doc,
            "properties": {p.name: _value(p, p.doc, p.default) for p in spec.params},
            "additionalProperties": False,
        }
        for spec in actions.values()
    }
    return {
        "type": "object",
        "description": "one action with its parameters",
        "properties": properties,
        "additionalProperties": {"type": "object"},
        "minProperties": 1,
        "maxProperties": 1,
    }


def _main() -> None:
    # By name: detectors are siblings, and only this script needs both.
    detectors = importlib.import_module("stabilitykit.detectors").DETECTORS
    json.dump(pack_schema(detectors), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    _main()

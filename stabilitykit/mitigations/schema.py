"""The JSON Schema of every action's parameters: ``python -m stabilitykit.mitigations.schema`` prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from stabilitykit.actions import ACTIONS, ActionSpec, ParamSpec

__all__ = ["actions_schema"]

_KINDS = {"number": "number", "count": "integer", "bool": "boolean", "enum": "string", "word": "string"}


def actions_schema(actions: Mapping[str, ActionSpec] = ACTIONS) -> dict[str, Any]:
    """Describe an action as ``decision.to_dict()`` writes it: its name and its parameters, none left out.

    (A pack's shorter form, ``{throttle: {}}`` with units, is in ``pack.schema.json``.)
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Action",
        "description": "one action of a decision; packs may declare more than these",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in actions],
        "$defs": {name: _action(spec) for name, spec in actions.items()},
    }


def _action(spec: ActionSpec) -> dict[str, Any]:
    params = {
        "type": "object",
        "properties": {p.name: _param(p) for p in spec.params},
        "required": [p.name for p in spec.params],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "description": spec.doc,
        "properties": {"name": {"const": spec.name}, "params": params, "source": {"type": "string"}},
        "required": ["name", "params"],
        "additionalProperties": False,
    }


def _param(spec: ParamSpec) -> dict[str, Any]:
    unit = f" ({spec.unit})" if spec.kind == "number" else ""
    described = {"type": _KINDS[spec.kind], "description": spec.doc + unit, "default": spec.default}
    if spec.values:
        return {**described, "enum": list(spec.values)}
    return described if spec.kind in ("bool", "word") else {**described, "minimum": spec.lo, "maximum": spec.hi}


if __name__ == "__main__":
    json.dump(actions_schema(), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")

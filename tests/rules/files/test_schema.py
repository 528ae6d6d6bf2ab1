from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, ValidationError

from stabilitykit.detectors import DETECTORS
from stabilitykit.errors import PackError
from stabilitykit.rules.files.schema import MODELS, PackModel, pack_schema
from stabilitykit.rules.shipped import shipped_dir, shipped_names
from tests.rules.packs import HEAD, SPECS, load

PUBLISHED = Path(__file__).parents[3] / "docs" / "reference" / "pack.schema.json"
FULL = (
    HEAD
    + """desc: everything
params:
  slow: {default: 80 ms, min: 1 ms, max: 2 s, doc: slow}
signals:
  mood: {values: [calm, angry], doc: mood}
  gadget_ms: {unit: ms, scope: replica, min: 0 ms, max: 10 s}
detectors:
  itl: {type: breaker, input: itl_ms, factor: 30 %, floor: params.slow, cold: false, doc: x}
  wide: {type: spread, input: itl_ms, scope: device}
actions:
  alert: {doc: call, group: people, rank: 1, many: true, drops: [throttle], params: {to: {default: ops, doc: who}}}
defaults: {on_missing: skip, hold_limit: 5 turns}
rules:
  - rule: a
    desc: one
    when: itl.is_over and itl_ms > params.slow
    severity: critical
    count: {at_least: 2, in: 5 turns}
    keep_for: 2 turns
    cooldown: 3 turns
    on_missing: fire
    hold_limit: 4 turns
    do: [{throttle: {max_concurrency: 2}}, {alert: {to: me}}]
    reason: "{{ itl_ms }}"
    tags: [stable]
    enabled: true
machine:
  override: true
  initial: up
  states: [{state: up, do: [{alert: {}}], while: [{repair_mask: {}}], was: healthy}, {state: down}]
  transitions: [{from: [up], to: down, when: any, after: 2 turns}, {from: down, to: up, after: 1 turns}]
"""
)


def is_valid(text: str) -> bool:
    """Judge a pack by the JSON Schema."""
    validator = jsonschema.Draft202012Validator(pack_schema(SPECS))
    return bool(validator.is_valid(yaml.safe_load(text)))


@pytest.mark.capability("issue 2 §3: the JSON Schema is generated, fresh, and accepts every shipped pack")
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_model_and_checker_have_the_same_keys(model: type[BaseModel]):
    """The published schema and the loader's tables name the same keys, words and required keys."""
    table = MODELS[model]
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    assert set(fields) == set(table)
    properties = model.model_json_schema(by_alias=True)["properties"]
    for key, spec in table.items():
        words: list[str] = next((c["enum"] for c in properties[key].get("anyOf", []) if "enum" in c), [])
        assert tuple(words) == spec.values
        # An overriding item may leave out what the item below it has.
        assert not fields[key].is_required() or spec.required


def test_a_pack_with_every_key_is_accepted_by_all(tmp_path):
    """Loader, model and JSON Schema agree about a pack that uses every key there is."""
    load(tmp_path, FULL)
    PackModel.model_validate(yaml.safe_load(FULL))
    assert is_valid(FULL)
    used = json.dumps(yaml.safe_load(FULL))
    for model, table in MODELS.items():
        assert [key for key in table if f'"{key}"' not in used and key not in ("for", "extends")] == [], model


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("desc: everything", "dsc: everything"),
        ("desc: everything", "desc: 5"),
        ("default: 80 ms, ", "defalt: 80 ms, "),
        ("scope: replica", "scope: replca"),
        ("factor: 30 %", "facter: 30 %"),
        ("type: spread", "type: spred"),
        ("group: people", "grup: people"),
        ("{on_missing: skip", "{on_mising: skip"),
        ("severity: critical", "severity: critcal"),
        ("in: 5 turns", "within: 5 turns"),
        ("keep_for: 2 turns", "keep_for: 2"),
        ("max_concurrency: 2", "max_concurency: 2"),
        ("tags: [stable]", "tags: stable"),
        ("enabled: true", "enabled: 'true'"),
        ("{state: down}", "{stat: down}"),
        ("was: healthy", "wass: healthy"),
        ("{from: down,", "{form: down,"),
        ("- rule: a", "- rule: A"),
        ("stabilitykit: 1", "stabilitykit: 2"),
    ],
)
def test_a_shape_error_is_refused_by_all(tmp_path, old, new):
    """What the loader refuses for its shape is red in the editor as well."""
    broken = FULL.replace(old, new, 1)
    assert broken != FULL
    with pytest.raises(PackError):
        load(tmp_path, broken)
    assert not is_valid(broken)
    if "facter" not in new and "spred" not in new and "concurency" not in new:
        with pytest.raises(ValidationError):
            PackModel.model_validate(yaml.safe_load(broken))


@pytest.mark.capability("issue 2 §3: the JSON Schema is generated, fresh, and accepts every shipped pack")
def test_the_published_schema_is_fresh():
    """The file that editors read is what `python -m stabilitykit.rules.files.schema` prints now."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == pack_schema(DETECTORS)


@pytest.mark.capability("issue 2 §3: the JSON Schema is generated, fresh, and accepts every shipped pack")
@pytest.mark.parametrize("name", shipped_names())
def test_shipped_packs_are_valid(name):
    """Every shipped pack fits the published schema, and its first line tells editors where that is."""
    path = shipped_dir() / f"{name}.yaml"
    text = path.read_text(encoding="utf-8")
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))
    header, _, relative = text.splitlines()[0].partition("$schema=")
    assert header == "# yaml-language-server: "
    assert (path.parent / relative).resolve() == PUBLISHED.resolve()


def test_the_schema_tells_an_editor_what_there_is():
    """Settings with docs and defaults, outputs, actions with parameters, and the names of signals."""
    schema: dict[str, Any] = pack_schema(SPECS)
    jsonschema.Draft202012Validator.check_schema(schema)
    definitions = schema["$defs"]
    breaker = next(
        c for c in definitions["DetectorModel"]["allOf"] if c["if"]["properties"]["type"]["const"] == "breaker"
    )
    assert breaker["then"]["properties"]["factor"]["default"] == 0.2
    assert "itl_ms" in breaker["then"]["properties"]["input"]["examples"]
    assert "baseline_ms" in breaker["then"]["description"]
    assert "max_concurrency" in definitions["DoModel"]["properties"]["throttle"]["properties"]
    assert "itl_ms" in definitions["RuleModel"]["properties"]["when"]["description"]

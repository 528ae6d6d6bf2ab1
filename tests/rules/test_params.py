from __future__ import annotations

import numpy as np
import pytest

from stabilitykit.errors import PackError
from stabilitykit.rules.pack import ParamValue
from tests.rules.packs import HEAD, expect_problems, load

PARAMS = HEAD + (
    "params:\n"
    "  slow: {default: 80 ms, min: 1 ms, max: 1 s, doc: slower than people read}\n"
    "  share: {default: 7 %}\n"
    "  plain: {default: 3}\n"
    "  patience: {default: 3 turns}\n"
    "  model: {default: light}\n"
    "  cold: {default: true}\n"
)


def test_a_param_has_the_value_of_its_default(tmp_path):
    """Numbers are in the unit of the default, a percentage is a ratio."""
    params = load(tmp_path, PARAMS).params
    assert params["slow"] == ParamValue("slow", 80.0, "ms", "slower than people read", 1.0, 1000.0)
    assert [(p.value, p.unit) for p in params.values()][1:] == [
        (0.07, "ratio"),
        (3.0, "ratio"),
        (3.0, "turns"),
        ("light", "enum"),
        (True, "bool"),
    ]


@pytest.mark.capability("issue 2 §3: params: defaults, units, overrides by the host")
@pytest.mark.parametrize(
    ("name", "value", "effective"),
    [
        ("slow", 100, 100.0),
        ("slow", 99.5, 99.5),
        ("slow", np.float64(99.5), 99.5),
        ("slow", None, 80.0),
        ("slow", "0.2 s", 200.0),
        ("share", 10, 0.1),
        ("share", "0.2", 0.2),
        ("patience", 5, 5.0),
        ("patience", "5 turns", 5.0),
        ("model", "heavy/v2", "heavy/v2"),
        ("cold", False, False),
    ],
)
def test_the_host_overrides_a_param(tmp_path, name, value, effective):
    """A plain number is in the unit of the default, a string is a literal."""
    assert load(tmp_path, PARAMS, params={name: value}).params[name].value == effective


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("slwo", 1, "SK303"),
        ("slow", 2000, "SK417"),
        ("slow", 0.5, "SK417"),
        ("slow", float("nan"), "SK417"),
        ("slow", "80", "SK411"),
        ("slow", "80 mss", "SK411"),
        ("slow", "80 tokens", "SK417"),
        ("slow", True, "SK417"),
        ("slow", [1], "SK417"),
        ("slow", "fast", "SK417"),
        ("patience", "3 ms", "SK417"),
        ("model", 4, "SK417"),
        ("cold", "true", "SK417"),
    ],
)
def test_a_wrong_override_is_refused(tmp_path, name, value, code):
    """The problem names the file `<params>`, for there is no other."""
    with pytest.raises(PackError) as refusal:
        load(tmp_path, PARAMS, params={name: value})
    assert [(p.file, p.code) for p in refusal.value.problems] == [("<params>", code)]


@pytest.mark.parametrize(
    ("code", "param"),
    [
        ("SK202", "¦{min: 3}"),
        ("SK411", "{default: ¦80 mss}"),
        ("SK417", "{default: ¦params.other}"),
        ("SK417", "{default: ¦5 ms, min: 6 ms}"),
        ("SK417", "{default: ¦5 ms, max: 4 ms}"),
        ("SK417", "{default: 5 ms, min: ¦9 ms, max: 4 ms}"),
        ("SK411", "{default: 5 ms, min: ¦4}"),
        ("SK417", "{default: 5 ms, min: ¦4 tokens}"),
        ("SK417", "{default: 5 ms, min: ¦few}"),
        ("SK411", "{default: 5 ms, max: ¦9 mss}"),
        ("SK203", "{default: 5 ms, max: ¦[9]}"),
        ("SK417", '{default: 5 ms, max: ¦""}'),
        ("SK417", "{default: ¦1e999 ms}"),
        ("SK417", "{default: light, min: ¦1}"),
        ("SK203", "{default: ¦[1]}"),
        ("SK411", "{default: ¦80..5}"),
        ("SK417", "{default: ¦-.5.}"),
        ("SK417", '{default: ¦""}'),
        ("SK201", "{default: 1, ¦step: 2}"),
    ],
)
def test_a_wrong_param_is_located(tmp_path, code, param):
    """Default and range are checked where they stand."""
    expect_problems(tmp_path, HEAD + f"params:\n  p: {param}\n", code)


def test_a_broken_param_is_reported_once(tmp_path):
    """Conditions, durations and guards that name it stay silent."""
    text = (
        "stabilitykit: 1\npack: test\nparams: {p: {default: ¦9 mss}}\nrules:\n"
        "  - {rule: a, when: itl_ms > params.p, for: params.p}\n"
        "machine:\n  initial: x\n  states: [{state: x}, {state: z}]\n"
        "  transitions: [{from: x, to: z, when: any warning for params.p, after: params.p}]\n"
    )
    expect_problems(tmp_path, text, "SK411")

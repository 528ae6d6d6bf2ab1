from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, expect_problems, load


def one(folder, fields: str):
    """Load a pack with one detector."""
    return load(folder, HEAD + f"detectors:\n  d: {{{fields}}}\n").detectors[0]


def test_settings_are_filled_in_and_typed(tmp_path):
    """What is not given has its default; literals are in the setting's unit; params stand for literals."""
    text = HEAD + "params:\n  f: {default: 30 %}\ndetectors:\n  d: {type: breaker, factor: params.f, floor: 0.1 s}\n"
    use = load(tmp_path, text).detectors[0]
    assert use.settings == {"factor": 0.3, "floor": 100.0, "cold": True}
    assert use.inputs == {"input": "itl_ms"}


@pytest.mark.parametrize(
    ("fields", "scope", "widened"),
    [
        ("type: breaker", "session", False),
        ("type: breaker, scope: session", "session", False),
        ("type: breaker, scope: replica", "replica", True),
        ("type: spread, input: itl_ms", "replica", True),
        ("type: spread, input: itl_ms, scope: session", "session", False),
        ("type: spread, input: itl_ms, scope: device", "device", True),
        ("type: spread, input: kv_usage_ratio", "replica", False),
        ("type: spread, input: gpu_temperature_c", "device", False),
    ],
)
def test_scope_is_that_of_the_inputs_or_wider(tmp_path, fields, scope, widened):
    """A widened detector takes every turn; one in the scope of its input takes samples."""
    use = one(tmp_path, fields)
    assert (use.scope, use.widened) == (scope, widened)


def test_an_output_can_have_the_unit_of_the_input(tmp_path):
    """A quantile of milliseconds is in milliseconds."""
    text = HEAD + (
        "detectors:\n  d: {type: spread, input: itl_ms}\n  e: {type: spread, input: kv_usage_ratio}\nrules:\n"
        "  - {rule: a, when: d.p99 > 1 s and d.is_warm}\n  - {rule: b, when: e.p99 > 90 %}\n"
    )
    assert [r.scope for r in load(tmp_path, text).rules] == ["replica", "replica"]


def test_the_memory_keeps_its_name_while_it_means_the_same(tmp_path):
    """A threshold may change; a window, an input, a scope or a type may not."""
    same = one(tmp_path, "type: drift, window: 5").memory
    assert one(tmp_path, "type: drift, method: corrected").memory == same
    others = {
        one(tmp_path, "type: drift, window: 6").memory,
        one(tmp_path, "type: drift, scope: replica").memory,
        one(tmp_path, "type: breaker").memory,
        one(tmp_path, "type: breaker, input: queue_ms").memory,
    }
    assert len(others | {same}) == 5


@pytest.mark.parametrize(
    ("code", "detector"),
    [
        ("SK202", "¦{factor: 0.3}"),
        ("SK302", "{type: ¦braker}"),
        ("SK203", "{type: ¦3}"),
        ("SK201", "{type: breaker, ¦facter: 0.3}"),
        ("SK301", "{type: breaker, input: ¦itl}"),
        ("SK301", "{type: breaker, input: ¦embedding}"),
        ("SK301", "{type: drift, input: ¦itl_ms}"),
        ("SK301", "{type: drift, input: ¦block_ids}"),
        ("SK301", "{type: spread, input: ¦embedding}"),
        ("SK301", "{type: spread, input: ¦error}"),
        ("SK410", "{type: breaker, input: ¦kv_usage_ratio}"),
        ("SK410", "{type: breaker, input: ¦kernel_us}"),
        ("SK203", "{type: breaker, input: ¦5}"),
        ("SK203", "{type: breaker, cold: ¦1}"),
        ("SK203", "{type: breaker, factor: ¦much}"),
        ("SK206", "{type: breaker, factor: ¦150 %}"),
        ("SK411", "{type: breaker, floor: ¦5}"),
        ("SK410", "{type: breaker, floor: ¦5 tokens}"),
        ("SK303", "{type: breaker, floor: ¦params.x}"),
        ("SK206", "{type: drift, window: ¦65}"),
        ("SK410", "{type: drift, window: ¦5 turns}"),
        ("SK416", "{type: drift, method: ¦plian}"),
        ("SK416", "{type: drift, scope: ¦sesion}"),
        ("SK206", "{type: spread, input: kv_usage_ratio, scope: ¦session}"),
    ],
)
def test_a_wrong_detector_is_located(tmp_path, code, detector):
    """Every setting is checked against its specification, every input against the signals."""
    expect_problems(tmp_path, HEAD + f"detectors:\n  d: {detector}\n", code)


def test_a_missing_input_is_named(tmp_path):
    """A detector without a default input says which setting it needs."""
    (problem,) = expect_problems(tmp_path, HEAD + "detectors:\n  ¦d: {type: spread}\n", "SK202")
    assert "`input`" in problem.message


def test_a_broken_detector_is_reported_once(tmp_path):
    """Conditions that read it stay silent, others do not."""
    text = HEAD + (
        "detectors:\n  d: {type: ¦braker}\nrules:\n"
        "  - {rule: a, when: d.is_over and d.nothing > 3}\n  - {rule: b, when: ¦e.is_over}\n"
    )
    expect_problems(tmp_path, text, "SK302", "SK302")

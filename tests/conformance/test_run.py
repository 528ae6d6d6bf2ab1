"""The runner of conformance cases finds every kind of difference."""

from __future__ import annotations

import json

import pytest

from tests.conformance.naive import NaiveAdapter
from tests.conformance.run import load_pack_of, read_cases, run_case
from tests.naive.small import BREAKER, action, over, pack_of, rule_of

PACK = pack_of(
    rule_of("slow", over("itl_ms", 80), severity="critical", do=(action("throttle"),)),
    rule_of("full", over("kv_usage_ratio", 0.5, "ratio")),
    transitions=BREAKER,
)
TURN = {"turn": {"itl_ms": 90, "kv_usage_ratio": {"is": "nan"}}}
RIGHT = {
    "state": "broken",
    "previous": "healthy",
    "matched": ["slow"],
    "fired": ["slow"],
    "actions": [["throttle", {"max_concurrency": 1}]],
    "suppressed": [],
    "faults": ["invalid:kv_usage_ratio"],
    "scopes": {"replica": "healthy"},
}
WRONG = {
    "state": "healthy",
    "previous": "broken",
    "matched": ["slow", "full"],
    "fired": [],
    "actions": [["throttle", {"max_concurrency": 2}]],
    "suppressed": ["throttle"],
    "faults": [],
    "scopes": {},
}


def play(*entries, **case):
    """Run entries on the oracle."""
    return run_case({"name": "n", "entries": entries, **case}, PACK, NaiveAdapter())


def test_right_expectations_give_no_difference():
    """All keys may be checked at once."""
    assert play({**TURN, "expect": RIGHT}) == []


@pytest.mark.parametrize("key", WRONG)
def test_each_wrong_expectation_is_one_difference(key):
    """Each key is compared on its own, and the line names it."""
    (line,) = play({**TURN, "expect": {**RIGHT, key: WRONG[key]}})
    assert line.startswith(f"entry 1: {key}: ")


def test_other_verbs():
    """Samples, peeks, forks, forgetting and misuse can be told and expected."""
    differences = play(
        {"observe": {"kv_usage_ratio": 0.9, "timestamp_s": 1}, "expect": {"matched": ["full"], "state": "healthy"}},
        {"peek": {"itl_ms": 90}, "expect": {"state": "broken"}},
        {"turn": {"itl_ms": 70}, "repeat": 3, "expect": {"state": "healthy", "faults": []}},
        {"fork": {"from": "s", "to": "s2"}},
        {"turn": {"session_id": "s2", "itl_ms": 90, "applied": {"turn_id": 3, "done": ["throttle"]}}},
        {"turn": {"session_id": "s2", "turn_id": 4, "itl_ms": 91}, "expect": {"faults": ["turn_conflict"]}},
        {"forget": {"session_id": "s"}},
        {"fork": {"from": "s", "to": "s3"}, "expect": {"error": "UsageError"}},
        {"turn": {"itl_ms": {"is": "object"}}, "expect": {"faults": ["type_mismatch:itl_ms"]}},
        {"turn": {"extra": {"no_such": 1}}, "expect": {"error": "UnknownSignal"}},
    )
    assert differences == []


def test_shorthand():
    """Columns, marks and states are one session's turns."""
    case = {"columns": {"itl_ms": [90, None, 70]}, "marks": {"slow": "M* M ."}, "states": "broken broken broken"}
    assert run_case({"name": "n", **case}, PACK, NaiveAdapter()) == []
    case["marks"] = {"slow": "M M ."}
    (line,) = run_case({"name": "n", **case}, PACK, NaiveAdapter())
    assert line == "entry 1: marks: expected {'slow': 'M'}, got {'slow': 'M*'}"


def test_unexpected_misuse_is_not_swallowed():
    """A case that did not expect an error fails with it."""
    with pytest.raises(KeyError):
        play({"turn": {"extra": {"no_such": 1}}, "expect": {"state": "healthy"}})


@pytest.mark.parametrize(
    "case",
    [
        {"name": "n", "entrys": []},
        {"name": "n", "entries": [{"turn": {}, "expct": {}}]},
        {"name": "n", "entries": [{"turn": {}, "expect": {"rules": []}}]},
        {"name": "n", "entries": [{"turn": {}, "peek": {}}]},
    ],
)
def test_misspelt_keys_are_refused(case, tmp_path):
    """A check that would never run is an error of the file."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"format": 1, "cases": [case]}))
    with pytest.raises(ValueError, match="n: "):
        read_cases(path)


def test_packs_are_loaded_from_lines_and_paths(tmp_path):
    """A pack stands in the case itself, with its params overridden, or in a file beside it."""
    lines = ["stabilitykit: 1", "pack: p", "params: {slow: {default: 80 ms}}", "rules:"]
    lines += ["  - {rule: slow, when: itl_ms > params.slow}"]
    lines += ["machine:", "  initial: a", "  states: [{state: a}, {state: b}]"]
    lines += ["  transitions: [{from: a, to: b, when: any}]"]
    case = {"name": "n", "pack": lines, "options": {"params": {"slow": "90 ms"}}, "columns": {"itl_ms": [85, 95]}}
    pack = load_pack_of(case, tmp_path, tmp_path)
    assert run_case({**case, "states": "a b"}, pack, NaiveAdapter()) == []
    case |= {"pack": "pack.yaml", "options": {}}
    assert run_case({**case, "states": "b b"}, load_pack_of(case, tmp_path, tmp_path), NaiveAdapter()) == []

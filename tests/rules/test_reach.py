"""Which rules can ever match with the signals that are there."""

from __future__ import annotations

import pytest

from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.reach import blind_rules

HEAD = "stabilitykit: 1\npack: reach\nextends: [base]\ndetectors:\n  itl: {type: baseline, input: itl_ms}\nrules:\n"


def blind(tmp_path, present, *conditions, more=""):
    """Give {rule: is_dead} of rules r0, r1 ... with these conditions."""
    rules = "".join(f"  - rule: r{k}\n    when: {c}\n{more}" for k, c in enumerate(conditions))
    path = tmp_path / "reach.yaml"
    path.write_text(HEAD + rules, encoding="utf-8")
    found = blind_rules(load_pack(str(path), detectors=DETECTORS), present)
    return {b.rule.id: b.is_dead for b in found}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("ttft_ms > 1 s", {}),
        ("itl_ms > 1 ms", {"r0": True}),
        ("itl_ms > 1 ms and ttft_ms > 1 s", {"r0": True}),
        ("itl_ms > 1 ms or ttft_ms > 1 s", {"r0": False}),
        ("not (itl_ms > 1 ms)", {"r0": True}),
        ("not (itl_ms > 1 ms and ttft_ms > 1 s)", {"r0": False}),
        ("itl.mean > 1 ms", {"r0": True}),
        ("mean(itl_ms, 3 turns) > ttft_ms", {"r0": True}),
        ("count(itl_ms > 1 ms, 3 turns) >= 1", {"r0": True}),
        ("context_usage_ratio > 50 %", {}),
        ("kv_hit_ratio < 50 %", {"r0": True}),
    ],
)
def test_conditions(tmp_path, condition, expected):
    """Unknown for ever is neither true nor false; derived signals count as there."""
    assert blind(tmp_path, {"ttft_ms", "input_tokens", "context_window_tokens"}, condition) == expected


def test_rules_that_wait_for_dead_rules(tmp_path):
    """A rule that needs a dead rule is dead as well, though it reads no missing signal."""
    found = blind(tmp_path, {"ttft_ms"}, "itl_ms > 1 ms", "rule:r0 and ttft_ms > 1 s", "ttft_ms > 1 s")
    assert found == {"r0": True, "r1": True}


def test_on_missing_fire(tmp_path):
    """A rule that fires on absence can match without its signal."""
    assert blind(tmp_path, set(), "itl_ms > 1 ms", more="    on_missing: fire\n") == {"r0": False}

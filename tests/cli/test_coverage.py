"""`stabilitykit test --coverage`."""

from __future__ import annotations

import pytest


@pytest.mark.capability(
    "issue 3 §3: `test --coverage`: 100 % of every shipped pack: both sides of comparisons, rules, states, transitions",
)
def test_every_shipped_pack_is_covered(run):
    """No pack has anything of its own that no case shows."""
    ran = run("test", "--coverage", "--json")
    (found,) = ran.records
    assert {p["pack"]: p["coverage"]["gaps"] for p in found["packs"] if p["coverage"]["gaps"]} == {}
    assert ran.code == 0
    assert sum(len(p["coverage"]["comparisons"]) for p in found["packs"]) > 100


@pytest.mark.capability("issue 3 §3: `test --coverage`: every rule fired and silent, every state and transition")
def test_gaps_are_named_and_end_with_1(run, pack):
    """What no case shows is said, and is a finding; without --coverage it is none."""
    cases = pack.with_name("demo.test.yaml")
    cases.write_text(cases.read_text().replace("itl_ms: 70}]", "itl_ms: 50}]"))
    assert run("test", pack).code == 0
    ran = run("test", pack, "--coverage")
    assert ran.code == 1
    assert "coverage 25 %: comparisons 2/8, rules 2/8" in ran.out
    assert "ttft-slow: `ttft_ms > 1000 ms` is never true" in ran.out
    assert "replica-busy: never fires" in ran.out
    assert "itl-slow" not in ran.out


def test_a_pack_without_cases_is_not_covered(run, pack):
    """No case file shows nothing."""
    pack.with_name("demo.test.yaml").unlink()
    ran = run("test", pack, "--coverage")
    assert ran.code == 1
    assert "coverage 0 %" in ran.out


def test_json(run, pack):
    """--json gives each comparison with its sides, and the counts."""
    cases = pack.with_name("demo.test.yaml")
    cases.write_text(cases.read_text().replace("itl_ms: 70}]", "itl_ms: 50}]"))
    (found,) = run("test", pack, "--coverage", "--json").records
    coverage = found["packs"][0]["coverage"]
    assert coverage["comparisons"][0] == {
        "rule": "itl-slow",
        "text": "itl_ms > params.slow_itl",
        "is_true": True,
        "is_false": True,
        "is_unknown": False,
    }
    assert coverage["counts"]["rules"] == {"shown": 2, "of": 8}
    assert coverage["rules"][0] == {"rule": "itl-slow", "fired": True, "silent": True}
    assert 0.0 < coverage["ratio"] < 1.0

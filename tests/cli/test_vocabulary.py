"""`stabilitykit rules actions`, `detectors`, `params` and `codes`."""

from __future__ import annotations

import pytest

from stabilitykit.decision import ACTIONS
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.codes import CODES


@pytest.mark.capability("issue 3 §3: `rules actions`, `rules detectors`, `rules params`, `rules codes`")
def test_actions(run):
    """Every action has a line with its parameters, in output order; a pack's own too."""
    lines = run("rules", "actions").out.splitlines()
    order = [a.name for a in sorted(ACTIONS.values(), key=lambda a: a.order)]
    assert [text.split()[0] for text in lines[1:]] == order
    (found,) = run("rules", "actions", "--json").records
    assert [a["name"] for a in found["actions"]] == order
    assert {"name", "default", "unit", "doc"} == set(found["actions"][0]["params"][0])


@pytest.mark.capability("issue 3 §3: `rules actions`, `rules detectors`, `rules params`, `rules codes`")
def test_detectors(run):
    """Every type has a line; one type is shown with inputs, settings and outputs; a misspelt one has a hint."""
    assert {text.split()[0] for text in run("rules", "detectors").out.splitlines()[1:]} == set(DETECTORS)
    out = run("rules", "detectors", "itl_breaker").out
    for part in ("input", "itl_ms", "drift_factor", "threshold_ms"):
        assert part in out
    (found,) = run("rules", "detectors", "forecast", "--json").records
    assert found["detectors"][0]["inputs"] == {"input": "context_usage_ratio", "time": "timestamp_s"}
    ran = run("rules", "detectors", "forcast")
    assert (ran.code, "did you mean `forecast`" in ran.err) == (2, True)


@pytest.mark.capability("issue 3 §3: `rules actions`, `rules detectors`, `rules params`, `rules codes`")
def test_params(run, pack):
    """Params have value, unit and meaning; --param shows the value it would have."""
    assert "slow_itl  60.0   ms" in run("rules", "params", "--pack", pack).out
    (found,) = run("rules", "params", "--pack", pack, "--param", "slow_itl=75", "--json").records
    assert found["params"][0] == {
        "name": "slow_itl", "value": 75.0, "unit": "ms", "lo": None, "hi": None, "doc": "slower than people read",
    }  # fmt: skip


@pytest.mark.capability("issue 3 §3: `rules actions`, `rules detectors`, `rules params`, `rules codes`")
def test_codes(run):
    """All codes, or one, in either case; an unknown one is wrong use."""
    assert len(run("rules", "codes").out.splitlines()) == len(CODES) + 1
    assert run("rules", "codes", "sk301", "--json").records == [{"codes": {"SK301": CODES["SK301"]}}]
    assert run("rules", "codes", "SK999").code == 2

"""The sampler picks the same turns everywhere, its share of them, and more where a decision asks for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Turn
from stabilitykit.errors import TurnError, UsageError
from stabilitykit.integrations.sampling import DiagnosticSampler
from tests.integrations.decisions import asking, slow


@pytest.mark.capability("issue 5 §6: sample_diagnostics raises the sampling rate of a conversation for its next turns")
def test_a_raised_rate(tmp_path):
    """The conversation's next turns are all picked, another's are not, and after the hold it is as before."""
    sampler = DiagnosticSampler(key=b"secret", rate=0.0, hold_turns=5)
    engine = asking(tmp_path, "{sample_diagnostics: {rate: 1}}", "{sample_diagnostics: {rate: 0.5}}")
    assert sampler.note(slow(engine, "c-1", 10))
    assert [turn for turn in range(8, 20) if sampler.is_picked("c-1", turn)] == [8, 9, 10, 11, 12, 13, 14, 15]
    assert not any(sampler.is_picked("c-2", turn) for turn in range(20))
    assert not sampler.note(engine.evaluate(Turn(session_id="c-3", itl_ms=10.0)))


def test_two_tenants(tmp_path):
    """Sessions of one id in two tenants: a rate raised for one is not raised for the other, and each has its picks."""
    sampler = DiagnosticSampler(key=b"secret", rate=0.0)
    engine = asking(tmp_path, "{sample_diagnostics: {rate: 1}}")
    assert sampler.note(slow(engine, "c-1", 10, "one"))
    assert [sampler.rate("c-1", 11, tenant=tenant) for tenant in ("one", "two", "")] == [1.0, 0.0, 0.0]
    assert [sampler.is_picked("c-1", 11, tenant=tenant) for tenant in ("one", "two", "")] == [True, False, False]
    half = DiagnosticSampler(key=b"secret", rate=0.5)
    one, two, default = ([half.is_picked("c-1", t, tenant=name) for t in range(64)] for name in ("one", "two", ""))
    assert one != two != default != one
    assert default == [half.is_picked("c-1", t) for t in range(64)]


@given(st.text(max_size=20), st.integers(0, 2**62), st.floats(0, 1), st.floats(0, 1))
def test_more_is_a_superset(session, turn, one, other):
    """What a smaller rate picks, a greater one picks too, and two samplers of one key agree."""
    small, great = sorted((one, other))
    few, many = DiagnosticSampler(key=b"k", rate=small), DiagnosticSampler(key=b"k", rate=great)
    assert few.is_picked(session, turn) <= many.is_picked(session, turn)
    assert few.is_picked(session, turn) == DiagnosticSampler(key=b"k", rate=small).is_picked(session, turn)
    assert DiagnosticSampler(key=b"k", rate=1.0).is_picked(session, turn)


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_the_share_is_the_rate(rate):
    """Of 20,000 turns of 200 conversations the share is the rate within four standard deviations."""
    sampler = DiagnosticSampler(key=b"secret", rate=rate)
    picked = sum(sampler.is_picked(f"c-{s}", t) for s in range(200) for t in range(100))
    assert abs(picked - 20_000 * rate) < 4 * (20_000 * rate * (1 - rate)) ** 0.5


def test_memory_is_bounded(tmp_path):
    """Of more conversations than fit the oldest is forgotten."""
    sampler = DiagnosticSampler(key=b"secret", rate=0.0, capacity=2)
    engine = asking(tmp_path, "{sample_diagnostics: {}}")
    for name in ("a", "b", "c"):
        sampler.note(slow(engine, name, 5))
    assert [sampler.rate(name, 5) for name in ("a", "b", "c")] == [0.0, 1.0, 1.0]


def test_misuse():
    """A rate outside [0, 1] and an empty key are the host's mistakes."""
    with pytest.raises(UsageError):
        DiagnosticSampler(key=b"k", rate=1.5)
    with pytest.raises(UsageError):
        DiagnosticSampler(key=b"")


@pytest.mark.parametrize("wrong", [{"key": "text"}, {"hold_turns": -1}, {"capacity": 0}, {"rate": float("nan")}])
def test_settings_that_cannot_be(wrong):
    """They are refused at once, not in the log of every turn."""
    with pytest.raises(UsageError):
        DiagnosticSampler(**{"key": b"secret", **wrong})


@pytest.mark.parametrize("turn_id", [-1, 1 << 63, 1.0, None, True])
def test_what_is_no_turn(turn_id):
    """An id that no turn has is refused as the engine refuses it."""
    with pytest.raises(TurnError, match="turn_id"):
        DiagnosticSampler(key=b"secret").is_picked("c-1", turn_id)

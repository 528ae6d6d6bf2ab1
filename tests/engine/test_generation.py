"""One generation: it compiles what its pack uses, and its buffers never leak into a Decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine import Engine, generation
from stabilitykit.engine.generation import Generation
from stabilitykit.rules.load import load_pack
from stabilitykit.turn import Turn


@pytest.mark.capability("issue 2 §0: a pack pays only for the detectors that it uses", figure="unused_detectors")
def test_only_the_detectors_of_the_pack_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many detectors exist, a generation asks for those of its own pack, in the order of its table."""
    asked: list[Any] = []

    def warm_up(fn: Any, kinds: Any, detectors: list[Any]) -> None:
        asked.extend(detectors)

    monkeypatch.setattr(generation, "warm_up", warm_up)
    program = build_program(load_pack("latency", detectors=DETECTORS))
    assert Generation(program, 1).is_compiled is False
    assert asked == [use.spec.kernel for use in program.detectors]
    assert {use.spec.type for use in program.detectors} < set(DETECTORS)


def test_a_decision_keeps_what_it_saw() -> None:
    """Later turns do not change the values and words of an earlier decision."""
    engine = Engine.load("chat")
    first = engine.evaluate(Turn(session_id="a", itl_ms=30.0, ttft_ms=200.0))
    before = (first.to_dict(), engine._live.values(first).tobytes())
    for k in range(20):
        engine.evaluate(Turn(session_id="a", itl_ms=30.0 + 400.0 * k, ttft_ms=90_000.0))
    assert (first.to_dict(), engine._live.values(first).tobytes()) == before


def test_the_copy_of_the_streaks_is_the_rows() -> None:
    """What the pass shows behind a match is what a copy of the row's words gives."""
    engine = Engine.load("chat")
    seen = 0
    for k in range(60):
        decision = engine.evaluate(Turn(session_id="a", itl_ms=30.0 if k < 20 else 900.0, ttft_ms=90_000.0))
        session = engine.sessions.find(("", "a"))
        assert session is not None
        if decision._memory:
            seen += 1
            assert decision._memory == engine._live.rule_memory(session.row)
        else:
            assert not engine._live.words(decision, 0, 0)
    assert seen > 0


def test_literals_stay() -> None:
    """The pass writes below the literals only."""
    engine = Engine.load("chat")
    live = engine._live
    before = live.x[live.program.live :].copy()
    for k in range(50):
        engine.evaluate(Turn(session_id=f"s{k % 3}", itl_ms=float(k), input_tokens=float(10 * k)))
    np.testing.assert_array_equal(live.x[live.program.live :], before)

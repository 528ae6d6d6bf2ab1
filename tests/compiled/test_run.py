"""The pass: machine code and plain Python give the same bits, in every word, value and row."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from stabilitykit.compiled import header as c
from stabilitykit.compiled.program import build_program
from stabilitykit.engine import Engine
from stabilitykit.turn import Turn
from tests.naive.fakes import FAKES
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import Observation, random_stream

LIMITS = {"row_limit": 1 << 20, "vector_limit": 1 << 20}
TURNS = 5_000
STREAM = 250


def memory(engine: Engine) -> list[bytes]:
    """Give the bytes of every row and vector that an engine holds."""
    held: list[Any] = [*engine.sessions.live.values(), *engine.sessions.kept.values()]
    for shelf in engine._scopes.held[1:]:
        held += shelf.values()
    rows = [(m.key, ctypes.string_at(m.row, m.rows.nbytes), b"" if m.vec is None else m.vec.tobytes()) for m in held]
    return [row + vec for _, row, vec in sorted(rows, key=lambda found: repr(found[0]))]


def feed(engine: Engine, entry: Any) -> tuple[int, bytes, tuple[Any, ...]]:
    """Give everything that a decision was made of."""
    decision = engine.observe(**entry.arguments) if isinstance(entry, Observation) else engine.evaluate(entry)
    return decision._code, decision._snapshot + decision._memory, decision.faults


@pytest.mark.capability("issue 2 §6: compiled and uncompiled give the same bits, 5,000 random turns")
def test_compiled_and_plain_give_the_same_bits() -> None:
    """5,000 random turns on 20 random packs: out words, values, memory behind matches, and all rows."""
    for seed in range(TURNS // STREAM):
        pack = random_pack(seed, detectors=FAKES)
        fast, plain = (Engine(build_program(pack, **LIMITS), compiled=c, ttl_s=None) for c in (None, False))
        assert fast.is_compiled
        assert not plain.is_compiled
        for place, entry in enumerate(random_stream(pack, seed, STREAM).entries):
            assert feed(fast, entry) == feed(plain, entry), (seed, place, entry)
        assert memory(fast) == memory(plain), seed


def test_a_pass_of_comparison_moves_nothing() -> None:
    """Asking whether a turn is the stored one changes no bit of any row."""
    engine = Engine.load("chat")
    turn = Turn(session_id="a", turn_id=1, itl_ms=30.0, input_tokens=900.0)
    decision = engine.evaluate(turn)
    before = memory(engine)
    assert engine.evaluate(turn) is decision
    assert [f.kind for f in engine.evaluate(Turn(session_id="a", turn_id=1, itl_ms=31.0)).faults] == ["turn_conflict"]
    assert memory(engine) == before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_an_invalid_value_is_reported_by_its_bit(value: float) -> None:
    """The pass tells invalid from missing, and says which input it was."""
    engine = Engine.load("chat")
    assert [(f.kind, f.signal) for f in engine.evaluate(Turn(session_id="a", itl_ms=value)).faults] == [
        ("invalid", "itl_ms")
    ]
    assert engine.evaluate(Turn(session_id="a")).faults == ()


def test_the_header_has_a_place_for_everything() -> None:
    """No two fields of the int32 header share a place."""
    fields = [v for k, v in vars(c).items() if k.startswith("G_") and isinstance(v, int)]
    assert sorted(fields) == list(range(3 * c.SCOPE_HEADER, c.HEADER))
    scope = [v for k, v in vars(c).items() if k.startswith("S_") and isinstance(v, int)]
    assert len(set(scope)) == len(scope)
    assert max(scope) < c.SCOPE_HEADER

"""Is this a turn to take in? What `evaluate` answers is in test_engine; here what admission leaves behind."""

from __future__ import annotations

from types import MappingProxyType

import attrs
import pytest

from stabilitykit import Engine, UsageError
from stabilitykit.errors import UnknownSignal
from tests.engines import VECTORS, Turn, breaker, play, vector_engine, words
from tests.naive.small import BREAKER  # noqa: F401 - the machine of these packs


def free(engine):
    """Count the free rows of each scope."""
    return [len(rows._free) for rows in engine._live.rows]


def test_nothing_leaks(tmp_path):
    """Duplicates, conflicts, late turns, misuse, peeks, failed forks and restores take no row for good."""
    engine = vector_engine(tmp_path, snapshots=1)
    turn = Turn(session_id="a", turn_id=5, itl_ms=30.0, replica="r", embedding=[1.0, 0.0, 0.0, 0.0])
    engine.evaluate(turn)
    blob = engine.export("a")
    before = free(engine)
    for _ in range(20):
        engine.evaluate(attrs.evolve(turn))
        engine.evaluate(attrs.evolve(turn, itl_ms=31.0))
        engine.evaluate(attrs.evolve(turn, turn_id=1))
        engine.peek(attrs.evolve(turn, turn_id=6, replica="other"))
        engine.peek(attrs.evolve(turn, session_id="other"))
        for bad in ({"extra": {"nonsense": 1.0}}, {"replica": 3}, {"revision": "x"}):
            with pytest.raises(UsageError):
                engine.evaluate(attrs.evolve(turn, session_id="other", **bad))
        with pytest.raises(UsageError):
            engine.fork("a", "b", at_turn=3)
        with pytest.raises(ValueError, match="damaged"):
            engine.restore(blob[:-1] + bytes([blob[-1] ^ 1]))
        engine.restore(blob)
    assert free(engine) == before


class Raising(dict):
    """A mapping whose `get` must not be trusted."""

    def get(self, *_):
        """Raise."""
        raise RuntimeError("canary")


class Changing(dict):
    """A mapping that says something else each time it is asked."""

    def keys(self):
        """Raise."""
        raise RuntimeError("canary")

    def __iter__(self):
        raise RuntimeError("canary")


@pytest.mark.capability("issue 2 §9: hostile extras are misuse or values, never an accident")
def test_extra_of_any_mapping(tmp_path):
    """Any mapping will do; one that raises when read is misuse and changes nothing."""
    engine = vector_engine(tmp_path)
    for extra in ({"host_score": 0.25}, MappingProxyType({"host_score": 0.25}), Raising(host_score=0.25)):
        assert [m.rule for m in engine.evaluate(Turn(session_id="a", extra=extra)).matches] == ["low-score"]
    before = engine.export("a")
    with pytest.raises(UsageError) as error:
        engine.evaluate(Turn(session_id="a", extra=Changing(host_score=0.25)))
    assert "canary" not in str(error.value)
    for name in ("some text of a user", "x" * 61, 3, b"host_score"):
        with pytest.raises(UnknownSignal, match="no signal of that name"):
            engine.evaluate(Turn(session_id="a", extra={name: 1.0}))
    assert engine.export("a") == before


def test_a_duplicate_survives_a_reload(tmp_path):
    """The pack that decided says whether a turn is the same, also when the new one reads other signals."""
    engine = vector_engine(tmp_path)
    engine.signal("host_score")(lambda turn: turn.itl_ms / 100.0)
    turn = Turn(session_id="a", turn_id=1, itl_ms=30.0, embedding=[1.0, 0.0, 0.0, 0.0])
    stored = engine.evaluate(turn)
    path = tmp_path / "vectors.yaml"
    more = '  - {rule: late, when: "ttft_ms > 900 ms", severity: info}\n  - {rule: full,'
    path.write_text(VECTORS.replace("  - {rule: full,", more), encoding="utf-8")
    engine.reload(str(path))
    assert engine.evaluate(turn) is stored
    assert [f.kind for f in engine.evaluate(attrs.evolve(turn, itl_ms=31.0)).faults] == ["turn_conflict"]
    assert engine.evaluate(attrs.evolve(turn, turn_id=2)).generation == 2


def test_short_and_long_way_agree():
    """A turn that goes the long way (receipt, extra, kept session, equal model) decides what the short way does."""
    values = [30.0, 90.0, 95.0, 10.0, None, 90.0, 10.0, 10.0, 10.0, 10.0]
    short, long = breaker(), breaker()
    for value in values:
        signals = {} if value is None else {"itl_ms": value}
        one = short.evaluate(Turn(session_id="a", model="some-model", **signals))
        two = long.evaluate(Turn(session_id="a", model="".join(["some", "-model"]), extra={}, **signals))
        assert words(one) == words(two)
        with pytest.raises(UsageError):
            long.evaluate(Turn(session_id="a", itl_ms=1.0, extra={"nonsense": 1}))


@pytest.mark.capability("issue 2 §2: tenants never meet, in sessions or replicas")
def test_sessions_of_one_name_in_two_tenants():
    """Tenants never meet: not in state, numbering, forks or exports."""
    engine = breaker()
    play(engine, [90.0, 90.0], tenant="one")
    assert play(engine, [10.0], tenant="two") == ["healthy"]
    with pytest.raises(UsageError):
        engine.export("a")
    with pytest.raises(UsageError):
        engine.fork("a", "b")
    assert not engine.forget("a")
    assert len(engine.sessions) == 2
    assert isinstance(engine, Engine)

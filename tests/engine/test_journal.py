"""The library's log: one event a change, hashed identities, no text, and never in the way."""

from __future__ import annotations

import logging

import pytest
import structlog

from stabilitykit.engine.identity import hashed
from tests.engines import Turn, breaker, play, vector_engine

CANARY = "canary"


def lines(caplog):
    """Give the messages."""
    return [r.getMessage() for r in caplog.records]


@pytest.mark.capability("issue 2 §2: one log event per change of state, identities hashed under a key")
def test_one_event_a_change(caplog):
    """What changed, why, in which generation; nothing on turns that change nothing."""
    caplog.set_level(logging.INFO, "stabilitykit")
    engine = breaker(log_key=b"key")
    play(engine, [10.0, 90.0], session=CANARY)
    assert lines(caplog) == []
    play(engine, [90.0, 90.0], session=CANARY)
    (line,) = lines(caplog)
    assert line.startswith(
        f"state_changed scope=session id={hashed(CANARY, b'key')} turn_id=3 previous=healthy state=broken"
    )
    assert "rules=['slow']" in line
    assert CANARY not in line


def test_hashes_depend_on_the_key(caplog):
    """Without the key nobody can tell which conversation a line is about; engines choose their own."""
    caplog.set_level(logging.INFO, "stabilitykit")
    for _ in range(2):
        play(breaker(), [90.0, 90.0])
    first, second = lines(caplog)
    assert first != second
    assert hashed("a", b"1") != hashed("a", b"2")
    assert hashed("\udc80", b"1") == hashed("\udc80", b"1")


class Broken(logging.Handler):
    """A log pipeline that is down."""

    def emit(self, record):
        """Raise."""
        raise OSError("disk full")


def test_a_broken_pipeline_costs_no_decision():
    """Whatever logging raises, standard or structlog, the host gets its reply."""
    logger, handler = logging.getLogger("stabilitykit"), Broken()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        assert play(breaker(), [90.0, 90.0]) == ["healthy", "broken"]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)

    def fail(*_):
        raise OSError("disk full")

    structlog.configure(processors=[fail])
    try:
        assert play(breaker(), [90.0, 90.0]) == ["healthy", "broken"]
    finally:
        structlog.reset_defaults()


@pytest.mark.capability("issue 2 §9: no text of a message in logs, reasons, exceptions, reports or reprs")
def test_no_text_anywhere(tmp_path, caplog):
    """Canaries in every field that takes text, on every kind of turn: none comes out."""
    caplog.set_level(logging.DEBUG)
    engine = vector_engine(tmp_path)
    engine.signal("link_ms")(lambda turn: (_ for _ in ()).throw(ValueError(CANARY)))
    said = []
    for k in range(6):
        turn = Turn(
            session_id="id",
            turn_id=k // 2,
            model=CANARY,
            finish_reason=CANARY,
            error=CANARY,
            itl_ms=CANARY,
            embedding=[CANARY] * 4,
            top_token_ids=CANARY,
            top_logprobs=[-1.0],
            kv_usage_ratio=CANARY,
            gpu_temperature_c=95.0,
            timestamp_s=CANARY,
            replica_sample_s=CANARY,
            extra={"host_score": CANARY},
        )
        for call in (engine.peek, engine.evaluate):
            decision = call(turn)
            said += [
                repr(decision),
                decision.explain(),
                repr(decision.to_dict()),
                repr(decision.faults),
                repr(decision.reasons),
            ]
            assert decision.faults
    for bad in (
        {"turn_id": CANARY},
        {"revision": CANARY},
        {"applied": CANARY},
        {"extra": CANARY},
        {"extra": {f"a {CANARY}": 1}},
    ):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - every kind of misuse
            engine.evaluate(Turn(session_id="id", **bad))
        said.append(str(error.value))
    said.append(repr(engine.observe(kv_usage_ratio=CANARY, link_ms=CANARY, timestamp_s=CANARY).to_dict()))
    assert "state_changed" in caplog.text
    assert CANARY not in caplog.text + "".join(said)
    assert CANARY.encode() not in engine.export("id").replace(b'"model": "canary", "said_model": "canary"', b"")


def test_reprs_of_turns_show_no_arrays_and_no_extras():
    """A Turn may stand in a log line of the host's."""
    turn = Turn(session_id="id", embedding=[CANARY], extra={CANARY: CANARY}, itl_ms=3.0)
    assert repr(turn) == "Turn(session_id='id', itl_ms=3.0, embedding=..., extra=...)"

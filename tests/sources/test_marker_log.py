"""Markers in order, in the host's structlog."""

from __future__ import annotations

import io
import json

import pytest
import structlog

from stabilitykit import Engine, Turn
from stabilitykit.errors import RecordError, UsageError
from stabilitykit.sources.logs.marked import markers
from stabilitykit.sources.marker_log import MarkerLog
from stabilitykit.sources.markers import Marker, parse_marker


@pytest.mark.capability("issue 4 §4: turn ids must increase strictly; a repeated or late turn is refused, once marked")
def test_turn_ids_increase():
    """A repeated and a lower id are refused and change nothing; another session is not touched."""
    log = MarkerLog()
    log.mark(Turn(session_id="a", turn_id=5, itl_ms=10.0, output_tokens=3))
    for late in (5, 4):
        with pytest.raises(RecordError, match=f"{late} comes after 5"):
            log.mark(Turn(session_id="a", turn_id=late))
    log.mark(Turn(session_id="b", turn_id=1))
    next_one = parse_marker(log.mark(Turn(session_id="a", turn_id=6)))
    assert next_one is not None
    assert next_one.decode_ms_prev == 20.0


def test_two_tenants():
    """Sessions of one id in two tenants: each has its own turn ids and decoding times."""
    log = MarkerLog()
    log.mark(Turn(session_id="a", tenant="one", turn_id=5, itl_ms=10.0, output_tokens=3))
    other = parse_marker(log.mark(Turn(session_id="a", tenant="two", turn_id=1)))
    again = parse_marker(log.mark(Turn(session_id="a", tenant="one", turn_id=6)))
    assert other is not None
    assert again is not None
    assert (other.decode_ms_prev, again.decode_ms_prev) == (None, 20.0)
    with pytest.raises(RecordError, match="1 comes after 1"):
        log.check(other, tenant="two")


def test_memory_is_bounded():
    """Only so many sessions are remembered."""
    log = MarkerLog(limit=2)
    for name in ("a", "b", "c"):
        log.mark(Turn(session_id=name, turn_id=9))
    log.mark(Turn(session_id="a", turn_id=1))
    with pytest.raises(RecordError):
        log.mark(Turn(session_id="c", turn_id=1))


@pytest.mark.capability("issue 4 §4: markers are written by a structlog processor and read back out of the log")
def test_structlog_there_and_back():
    """A real structlog chain writes JSON lines; the log reader gives the turns back, beside other lines."""
    written = io.StringIO()
    engine, log = Engine.load("chat", compiled=False), MarkerLog()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(written), processors=[log.processor(), structlog.processors.JSONRenderer()]
    )
    turns = [Turn(session_id='c"1', turn_id=number, itl_ms=40.0, output_tokens=11) for number in (1, 2)]
    for turn in turns:
        logger.info("answered", turn=turn, decision=engine.evaluate(turn))
    logger.info("answered", turn=turns[-1])
    logger.info("unrelated", turn="not a Turn")
    events = [json.loads(line) for line in written.getvalue().splitlines()]
    assert "2 comes after 2" in events[2]["marker_error"]
    assert events[3]["turn"] == "not a Turn"
    found = list(markers(io.BytesIO(written.getvalue().encode())))
    assert [number for number, _ in found] == [1, 2]
    first, second = (marker for _, marker in found)
    assert isinstance(first, Marker)
    assert isinstance(second, Marker)
    assert (first.session_id, second.decode_ms_prev, second.state) == ('c"1', 400.0, "healthy")


def test_a_bad_marker_does_not_end_the_reading():
    """A bad marker is given as its error, the next one is read."""
    text = b'stabilitykit.marker v1 {"session_id": 3}\nx stabilitykit.marker v1 {"session_id": "a", "turn_id": 2} y\n'
    (_, bad), (line, good) = markers(io.BytesIO(text))
    assert isinstance(bad, RecordError)
    assert isinstance(good, Marker)
    assert (line, good.turn_id) == (2, 2)


def test_the_processor_never_raises():
    """A turn that cannot be marked leaves its reason in the event."""
    event = MarkerLog(strict_ids=True).processor()(None, "info", {"turn": Turn(session_id="c-1", turn_id=1)})
    assert event == {"marker_error": "session_id: not a UUID"}
    assert "marker_error" in MarkerLog().processor()(None, "info", {"turn": Turn(session_id="c-1")})


@pytest.mark.parametrize("tokens", [10**400, None])
def test_tokens_that_are_no_number(tokens):
    """A count that no float64 holds, and none at all, are null, and the decoding time is unknown."""
    log = MarkerLog()
    marker = parse_marker(log.mark(Turn(session_id="a", turn_id=1, itl_ms=10.0, output_tokens=tokens)))
    after = parse_marker(log.mark(Turn(session_id="a", turn_id=2)))
    assert marker is not None
    assert after is not None
    assert (marker.output_tokens, after.decode_ms_prev) == (None, None)


def test_limit():
    """A log that remembers nobody is wrong use."""
    with pytest.raises(UsageError, match="limit"):
        MarkerLog(limit=-1)

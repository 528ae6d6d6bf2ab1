from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.openai.sse import SseDecoder

ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
line = st.one_of(
    st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")),
    st.sampled_from([b"", b"", b"data: x", b"data:y", b"data", b": keep-alive", b"event: message", b'{"done": true}']),
)
streams = st.lists(st.tuples(line, ends), max_size=30).map(lambda parts: b"".join(a + b for a, b in parts))


def decode(pieces, limit=1 << 20):
    """Give every event of a stream that came in pieces, and how many were too long."""
    decoder = SseDecoder(limit)
    found = [event for piece in pieces for event in decoder.feed(piece)]
    return found + decoder.end(), decoder.overlong


@given(streams, st.lists(st.integers(0, 200)), st.sampled_from([4, 20, 1 << 20]))
@pytest.mark.capability("issue 4 §1: a stream of bytes may be cut anywhere, and be of any bytes")
def test_cuts_do_not_matter(stream, cuts, limit):
    """However a stream is cut, its events are those of the whole."""
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert decode(pieces, limit) == decode([stream], limit)


@given(st.binary(max_size=400))
def test_byte_by_byte(stream):
    """Random bytes, one at a time, give the same events too."""
    assert decode([stream[k : k + 1] for k in range(len(stream))], 32) == decode([stream], 32)


def test_events_of_a_real_stream():
    """Comments and other fields are skipped, data lines of one event are joined, the mark of the byte order goes."""
    stream = b"\xef\xbb\xbfdata: one\n\n: ping\nevent: x\nid: 7\ndata: two\ndata: lines\n\ndata:[DONE]\r\n\r\n"
    assert decode([stream]) == ([b"one", b"two\nlines", b"[DONE]"], 0)


def test_json_lines():
    """Ollama's lines are events by themselves, the last one without its line end too."""
    assert decode([b'{"response": "Hi"}\n{"done": ', b"true}"])[0] == [b'{"response": "Hi"}', b'{"done": true}']


def test_an_event_is_there_as_soon_as_its_blank_line():
    """Nothing waits for the byte after a lone carriage return."""
    assert SseDecoder().feed(b"data: x\r\r") == [b"x"]


@pytest.mark.capability("issue 4 §1: no stream makes the recorder hold more than a limit")
def test_overlong_events_are_dropped():
    """A line without end holds at most the limit; what comes after the event is read again."""
    decoder = SseDecoder(limit=1000)
    for _ in range(1000):
        assert decoder.feed(b"data: " + b"x" * 94) == []
        assert len(decoder._line) + sum(map(len, decoder._data)) <= 1000
    assert decoder.feed(b"\n\ndata: fine\n\n") == [b"fine"]
    assert decoder.overlong == 1
    assert decode([b'{"a": "' + b"x" * 2000 + b'"}\n{"b": 1}\n'], 1000) == ([b'{"b": 1}'], 1)


def test_many_short_lines_of_one_event():
    """Lines that are short but too many are dropped together."""
    assert decode([b"data: 12345678\n" * 200 + b"\ndata: fine\n\n"], 1000) == ([b"fine"], 1)


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3), max_size=5))
def test_json_survives(values):
    """What a server framed comes out as it was."""
    stream = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)
    assert [json.loads(event) for event in decode([stream])[0]] == values

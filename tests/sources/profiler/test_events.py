from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import RecordError
from stabilitykit.sources.profiler import events
from stabilitykit.sources.profiler.events import read_events

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)
traces = st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=12)


def read(text):
    """Give the events of a text."""
    return list(read_events(io.StringIO(text), "trace.json"))


@given(traces, st.integers(1, 90), st.sampled_from([None, 2]))
def test_is_json_in_windows_of_any_size(items, chunk, indent):
    """Events are those of json.loads, wherever the window ends; each has the line that it begins on."""
    text = json.dumps({"before": 12345, "traceEvents": items, "after": [1]}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "_CHUNK", chunk)
        found = read(text)
    assert [event for _, event in found] == json.loads(text)["traceEvents"]
    lines = text.split("\n")
    assert all(lines[line - 1].lstrip()[:1] in ("{", '"') for line, _ in found)


def test_a_bare_array_is_a_trace():
    """The short form has no object around it."""
    assert read('[{"ph": "X"},\n{"ph": "M"}]') == [(1, {"ph": "X"}), (2, {"ph": "M"})]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "1:1", "the file ends here"),
        ("12", "1:1", "an object or an array"),
        ('{"a": 1}', "1:8", "no `traceEvents`"),
        ('{"traceEvents": 3}', "1:17", "is an array"),
        ('{"traceEvents": [3]}', "1:19", "an event is an object"),
        ('{"traceEvents": [\n{"a": 1}\n{"b": 2}]}', "3:1", "`,` is missing"),
        ('{"traceEvents": [\n{"a": 1},\n{"b": }]}', "3:1", "no JSON"),
        ('{"traceEvents": [\n{"a": 1},\n {"b": "x', "3:2", "no JSON"),
        ('{"traceEvents": [{"a": 1}', "1:26", "the file ends here"),
        ('{"x": ' + "[" * 100_000, "1:7", "no JSON"),
    ],
)
def test_damage_is_located(text, place, reason):
    """Every kind of damage is an error with line and column, and never shows what stood there."""
    with pytest.raises(RecordError) as caught:
        read(text)
    assert str(caught.value).startswith(f"trace.json:{place}: ")
    assert reason in str(caught.value)


def test_a_value_without_end_is_not_read_to_the_end(monkeypatch):
    """An event that never ends is given up after a MiB, not when memory is full."""

    class Endless:
        """A file of one unfinished text."""

        read_characters = 0

        def read(self, size):
            """Give more of it."""
            text = '[{"a": "' if not self.read_characters else "x" * size
            self.read_characters += len(text)
            return text

    stream = Endless()
    with pytest.raises(RecordError, match="more than 1 MiB"):
        list(read_events(stream, "trace.json"))  # type: ignore[arg-type]
    assert stream.read_characters < 2 * events.MAX_VALUE

"""Marker v1: seventeen fields, there and back."""

from __future__ import annotations

import contextlib
import json
import math
import uuid

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Engine, Turn
from stabilitykit.errors import RecordError, UsageError
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.markers import FIELDS, LAYOUT, Marker, format_marker, marker_of, parse_marker, render
from stabilitykit.turn import is_missing

ORDER = (
    "session_id turn_id input_tokens context_usage_ratio is_history_truncated decode_ms_prev kv_hit_ratio "
    "intent_drift_score timestamp_s model output_tokens ttft_ms itl_ms kl_shift_nats finish_reason state "
    "pack_fingerprint"
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBER = st.floats(-1e12, 1e12) | st.just(math.nan) | st.just(math.inf)
VALUES = {
    "text": TEXT, "turn": st.integers(-(2**64), 2**64), "count": st.integers(0, 2**60), "bool": st.booleans(),
    "decimal": NUMBER, "score": NUMBER,
}  # fmt: skip
MARKERS = st.builds(
    Marker,
    **{
        name: VALUES[kind] if name in ("session_id", "turn_id") else st.none() | VALUES[kind]
        for name, kind in LAYOUT.items()
    },
)


def test_the_list_of_signals_is_what_markers_give():
    """The turn of a full marker has the signals that are listed, and no other."""
    kinds = {"text": "x", "turn": 7, "count": 3, "bool": True, "decimal": 0.5, "score": 0.5}
    marker = Marker(**{name: kinds[kind] for name, kind in LAYOUT.items()} | {"finish_reason": "stop"})  # type: ignore[arg-type]
    turn = read_back(format_marker(marker)).turn
    given = {name for name in turn.__slots__ if name != "__weakref__" and not is_missing(getattr(turn, name))}
    assert given & set(CATALOGUE) == set(PRODUCERS["markers"])


def read_back(line, **options):
    """Read a line that holds a marker."""
    marker = parse_marker(line, **options)
    assert marker is not None
    return marker


def rounded(name, value):
    """Say by Python's own format what a field should be after the way there and back."""
    kind = LAYOUT[name]
    if value is None or kind not in ("decimal", "score"):
        return value
    if not math.isfinite(value):
        return None
    value = min(1.0, max(-1.0, value)) if kind == "score" else value
    return float(f"{value:.3f}") + 0.0


@pytest.mark.capability("issue 4 §4: marker v1 has seventeen fields in the order asked for, unknown is null")
def test_fields_and_their_order():
    """The line holds exactly the fields asked for, in their order; what is unknown is null."""
    assert " ".join(FIELDS) == ORDER
    line = format_marker(Marker(session_id="c-1", turn_id=1))
    record = json.loads(line.partition(" v1 ")[2])
    assert list(record) == ORDER.split()
    assert len(record) == 17
    assert [name for name, value in record.items() if value is not None] == ["session_id", "turn_id"]


@pytest.mark.capability("issue 4 §4: markers survive the way into a line and back, whatever their values")
@given(MARKERS)
def test_round_trip(marker):
    """Reading gives what was written, decimals rounded as Python rounds them; writing again gives the same line."""
    line = format_marker(marker)
    read = read_back(line)
    assert line.isprintable()
    assert attrs.asdict(read) == {name: rounded(name, value) for name, value in attrs.asdict(marker).items()}
    assert format_marker(read) == line


@pytest.mark.capability("issue 4 §4: three decimals, rounded as Python's format does; NaN and infinities are null")
@pytest.mark.parametrize("value", [0.0005, 0.9995, 0.0015, 2.675, -0.0004, 0.0625, 1e9 + 0.0005, -1.5])
def test_three_decimals(value):
    """The decimal text is that of Python's format, but for a zero's sign."""
    assert render("ttft_ms", value) == f"{value:.3f}".replace("-0.000", "0.000")


def test_what_json_does_not_have():
    """NaN and infinities are null, a great turn id is text, a score stays within -1 and 1."""
    assert {render("itl_ms", v) for v in (math.nan, math.inf, -math.inf, None)} == {"null"}
    assert render("turn_id", 2**53 - 1) == "9007199254740991"
    assert render("turn_id", 2**53) == '"9007199254740992"'
    assert read_back(format_marker(Marker(session_id="a", turn_id=2**64 - 1))).turn_id == 2**64 - 1
    assert (render("intent_drift_score", 1.7), render("intent_drift_score", -9.0)) == ("1.000", "-1.000")


@pytest.mark.capability("issue 4 §4: a marker cannot be forged or broken by what an id or a model name holds")
@given(TEXT, TEXT)
def test_injection(session_id, model):
    """Whatever stands in the texts, the line is one line, and the first marker in it is ours."""
    hostile = f'{session_id}"}} \n stabilitykit.marker v1 {{"session_id": "b", "turn_id": 9}} {{{{ state }}}}\u2028'
    marker = Marker(session_id=hostile, turn_id=1, model=model, state="healthy")
    for line in (format_marker(marker), format_marker(marker, "{{ session_id }} {{ model }} {{ turn_id }}")):
        assert len(line.splitlines()) == 1
    assert parse_marker(format_marker(marker)) == marker


@pytest.mark.capability("issue 4 §4: a template grammar of {{ field }} writes markers in the host's own form")
def test_template():
    """Fields appear as JSON where the template names them."""
    marker = Marker(session_id="c-1", turn_id=7, ttft_ms=412.0)
    assert format_marker(marker, "turn {{turn_id}} of {{ session_id }}: {{ ttft_ms }} {{ model }}") == (
        'turn 7 of "c-1": 412.000 null'
    )


@pytest.mark.parametrize("template", ["{{ password }}", "{{ session_id.upper }}", "{% if x %}", "a\nb", "{{ ttft_ms"])
def test_other_templates_are_refused(template):
    """No other name, no expression, no statement, no line break."""
    with pytest.raises(UsageError):
        format_marker(Marker(session_id="c-1", turn_id=1), template)


@pytest.mark.capability("issue 4 §4: session ids are checked to be UUIDs of version 4 where that is wanted")
def test_strict_ids():
    """Version 4 in its usual form passes; another version, a brace form and no UUID do not, and are not shown."""
    good = str(uuid.UUID(int=0x1234, version=4))
    assert read_back(format_marker(Marker(session_id=good, turn_id=1)), strict_ids=True).session_id == good
    for bad in ("c-1", str(uuid.UUID(int=7, version=1)), "{" + good + "}", good.replace("-", "")):
        with pytest.raises(RecordError) as found:
            parse_marker(format_marker(Marker(session_id=bad, turn_id=1)), strict_ids=True)
        assert bad not in str(found.value)


@pytest.mark.capability("issue 4 §4: a reader of a later version reads v1, and v1 reads what a later one has kept")
def test_versions():
    """A line of another version with more and with fewer fields is read as far as it is known."""
    line = 'x stabilitykit.marker v2 {"session_id": "c-1", "turn_id": 4, "new": [1], "itl_ms": 3} tail'
    assert parse_marker(line) == Marker(session_id="c-1", turn_id=4, itl_ms=3.0)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "JSON"), ('{"turn_id": 1}', "session_id"), ('{"session_id": "a"}', "turn_id"),
        ('{"session_id": "a", "turn_id": true}', "turn_id"), ('{"session_id": "a", "turn_id": "x"}', "turn_id"),
        ('{"session_id": "a", "turn_id": 1, "itl_ms": "3"}', "itl_ms"),
        ('{"session_id": "a", "turn_id": 1, "itl_ms": 1' + "0" * 400 + "}", "itl_ms"),
        ('{"session_id": "a", "turn_id": 1, "is_history_truncated": 1}', "is_history_truncated"),
    ],
)  # fmt: skip
def test_bad_markers(body, says):
    """A marker that is none is an error that names the field."""
    with pytest.raises(RecordError, match=says):
        parse_marker("stabilitykit.marker v1 " + body)


@given(st.binary(max_size=200))
def test_any_bytes(noise):
    """Other bytes are no marker, or an error; never another exception."""
    assert parse_marker(noise) is None
    with contextlib.suppress(RecordError):
        parse_marker(b"stabilitykit.marker v1 {" + noise)


@pytest.mark.capability("issue 4 §4: a marker is made of a turn and its decision, and gives the turn back")
def test_from_turn_and_decision():
    """State, pack and measured scores come from the decision, the rest from the turn; the turn comes back."""
    engine = Engine.load("chat", compiled=False)
    turns = [
        Turn(
            session_id="c-1", turn_id=number, itl_ms=38.25, input_tokens=5120, embedding=vector + [0.0] * 382,
            context_usage_ratio=0.5, is_history_truncated=False, finish_reason="stop", timestamp_s=8.5 + number / 4,
        )
        for number, vector in enumerate([[1.0, 0.0], [0.9, 0.1], [1.0, 0.1], [0.0, 1.0]], 1)
    ]  # fmt: skip
    turn, decision = turns[-1], [engine.evaluate(turn) for turn in turns][-1]
    marker = marker_of(turn, decision)
    assert (marker.state, marker.pack_fingerprint) == (decision.state, decision.fingerprint)
    assert marker.intent_drift_score is not None
    assert -1.0 <= marker.intent_drift_score <= 1.0
    assert marker.kl_shift_nats is None
    back = read_back(format_marker(marker)).turn
    assert (back.session_id, back.turn_id, back.itl_ms, back.input_tokens) == ("c-1", 4, 38.25, 5120)
    assert (back.finish_reason, back.is_history_truncated, back.timestamp_s) == ("stop", False, 9.5)
    assert marker_of(turn, values={"kl_shift_nats": math.inf}).kl_shift_nats is None


def test_a_turn_without_id():
    """Without a turn id there is no marker."""
    with pytest.raises(UsageError, match="turn id"):
        marker_of(Turn(session_id="c-1"))


def test_braces_before_a_wrapped_marker():
    """A JSON logger's object is found behind other braces of the line."""
    marker = Marker(session_id="c-1", turn_id=1)
    assert parse_marker("app{pod=7} {x} " + json.dumps({"event": format_marker(marker)})) == marker


def test_last_marker_counts():
    """What a user said before the real marker does not take its place: plain, broken, escaped, or in another field."""
    real = Marker(session_id="c-1", turn_id=1)
    forged = format_marker(Marker(session_id="evil", turn_id=9))
    for said in (
        forged,
        forged[:60],
        json.dumps(forged),
        json.dumps({"event": forged}),
        forged.partition("{")[0] + "{",
    ):
        assert parse_marker(f"said {said} {format_marker(real)}") == real
    assert parse_marker(json.dumps({"said": forged, "event": format_marker(real)})) == real
    assert parse_marker(f"{forged} " + json.dumps({"event": format_marker(real)})) == real


@pytest.mark.parametrize(("session_id", "turn_id"), [("c-1", 2**70), ("c-1", True), ("x" * 9_000, 1)])
def test_what_could_not_be_read_is_not_written(session_id, turn_id):
    """An id that `parse_marker` refuses is refused at writing."""
    with pytest.raises(RecordError):
        format_marker(Marker(session_id=session_id, turn_id=turn_id))


def test_counts_beyond_every_float():
    """A count that no float64 holds is null at writing and an error at reading."""
    assert render("output_tokens", 10**400) == "null"
    with pytest.raises(RecordError, match="output_tokens"):
        parse_marker('stabilitykit.marker v1 {"session_id": "a", "turn_id": 1, "output_tokens": 1' + "0" * 400 + "}")

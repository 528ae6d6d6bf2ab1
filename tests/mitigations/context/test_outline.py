from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.context.outline import outline_of
from tests.mitigations.context.conversations import is_part

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.text('{}[],:"\\ …')
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
STYLES = st.sampled_from(({}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}))


def closed(outline, draw):
    """Give a set of pieces whose parents are in it, too."""
    kept = set()
    for k, piece in enumerate(outline.pieces):
        if (piece.parent < 0 or piece.parent in kept) and (draw(st.booleans()) or (outline.is_json and k == 0)):
            kept.add(k)
    return kept


@given(VALUES.filter(lambda v: isinstance(v, dict | list) and v), STYLES, st.data())
def test_json_stays_json(value, style, data):
    """Whatever members stay, they are JSON and stand where they stood, with the values they had."""
    outline = outline_of(json.dumps(value, **style))
    assert outline.is_json
    left = json.loads(outline.write(closed(outline, data.draw)))
    assert type(left) is type(value)
    assert is_part(left, value)


@given(VALUES.filter(lambda v: isinstance(v, dict | list) and v), STYLES)
def test_every_member_is_a_piece(value, style):
    """With all of them nothing is lost."""
    outline = outline_of(json.dumps(value, **style))
    assert len(outline.pieces) == size(value)
    whole = json.dumps(json.loads(outline.write(range(len(outline.pieces)))))
    assert whole == json.dumps(value) or "…" in json.dumps(value, ensure_ascii=False)


def size(value):
    """Count a value and all in it."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(size, inside))


def test_what_stays_is_not_written_anew():
    """Numbers, escapes and keys stay character by character."""
    text = '{"a": 1.50, "b": 1e400, "c": "\\u00e9", "c": 12345678901234567890.10, "d": [1, 2]}'
    assert outline_of(text).write({0, 1, 2, 3, 4}) == text.replace('"d": [1, 2]', '"…": "…"')


def test_a_shortened_one_is_shortened_again():
    """Marks do not pile up."""
    once = outline_of('{"a": [1, 2, 3], "b": 2, "c": 3}').write({0, 1, 2, 6})
    assert once == '{"a": [1, "…"], "…": "…", "c": 3}'
    again = outline_of(once)
    assert again.write(set(range(len(again.pieces))) - {2}) == '{"a": ["…"], "…": "…", "c": 3}'
    assert again.write({0}) == '{"…": "…"}'


@pytest.mark.parametrize("text", ["", " ", "{", "[1,", "{'a': 1}", "12", '"a. b"', "[]", "{}", "[" * 100_000, "NaN"])
def test_what_is_no_object_or_list(text):
    """It is a text like others, whatever it looks like."""
    outline = outline_of(text)
    assert not outline.is_json
    assert "".join(p.text for p in outline.pieces) == text
    assert outline.write(set()) == "…"


def test_lines_of_a_table():
    """A result that is no JSON goes line by line."""
    outline = outline_of("id,price\nHAT1,10\nHAT2,20\nHAT3,30\n")
    assert outline.write({0, 2}) == "id,price\n … HAT2,20\n …"

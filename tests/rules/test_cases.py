from __future__ import annotations

import math

import pytest

from stabilitykit.errors import PackError
from stabilitykit.rules.cases import CaseFile, read_cases
from stabilitykit.rules.pack import Pack
from tests.rules.packs import HEAD, MARK, load

PACK = HEAD + (
    "signals:\n  mood: {values: [calm, angry]}\nrules:\n  - {rule: slow, when: itl_ms > 80 ms}\n"
    "  - {rule: full, when: kv_usage_ratio > 90 %}\n"
)
CASES = """cases:
  - name: three slow turns
    turns:
      - {itl_ms: 40, repeat: 30}
      - {itl_ms: 0.12 s, mood: angry, error: timeout, is_history_truncated: true, model: big,
         gap: 2, applied: [throttle]}
      - {observe: {replica: r1, timestamp_s: 3, kv_usage_ratio: 91 %}, repeat: 2}
      - {itl_ms: invalid, rt_ms: missing, error: invalid, embedding: [0.5, 1], block_ids: [3, 4], replica: r1}
    expect:
      - {turn: 30, state: healthy, rules: [], fired: []}
      - {turn: last, rules: [slow], actions: [throttle, emit_metric], faults: [invalid: itl_ms, turn_gap],
         scopes: {replica: warning}}
  - name: one turn
    turns: [{}]
    expect: {state: healthy}
"""


@pytest.fixture
def pack(tmp_path) -> Pack:
    """Give the pack that the cases are about."""
    return load(tmp_path, PACK)


def cases(text: str, pack: Pack) -> CaseFile:
    """Read cases from text."""
    return read_cases(text.encode(), "test.test.yaml", pack)


def test_a_file_of_cases_is_read(pack):
    """Values are in their units, steps keep their repeats, expectations are exact sets."""
    first, second = cases(CASES, pack).cases
    calm, slow, sample, odd = first.steps
    assert (calm.values, calm.repeat, calm.is_sample) == ({"itl_ms": 40.0}, 30, False)
    assert slow.values == {"itl_ms": 120.0, "mood": "angry", "error": "timeout", "is_history_truncated": True}
    assert (slow.fields, slow.gap, slow.applied, slow.line) == ({"model": "big"}, 2, ("throttle",), 5)
    assert (sample.is_sample, sample.repeat, sample.values) == (True, 2, {"kv_usage_ratio": 0.91})
    assert sample.fields == {"replica": "r1", "timestamp_s": 3}
    assert math.isnan(odd.values.pop("itl_ms"))  # type: ignore[attr-defined]
    assert odd.values == {"error": "invalid", "embedding": (0.5, 1), "block_ids": (3, 4)}
    assert (first.turns, first.expect[0].turn, first.expect[1].turn) == (32, 30, 0)
    assert first.expect[0].rules == frozenset()
    assert first.expect[0].actions is None
    assert first.expect[1].faults == frozenset({("invalid", "itl_ms"), ("turn_gap", "")})
    assert first.expect[1].scopes == {"replica": "warning"}
    assert (second.name, second.steps[0].values, second.line) == ("one turn", {}, 13)


ONE = "cases:\n  - name: a\n    turns: [{0}]\n    expect: {1}\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SK202", "¦pack: x\n"),
        ("SK203", "¦- a\n"),
        ("SK203", "cases: ¦{}\n"),
        ("SK203", "cases:\n  - ¦a\n"),
        ("SK202", "cases:\n  - ¦name: a\n    turns: [{}]\n"),
        ("SK202", "cases:\n  - name: a\n    turns: ¦[]\n    expect: {state: healthy}\n"),
        ("SK309", CASES + "  - {name: ¦one turn, turns: [{}], expect: {state: healthy}}\n"),
        ("SK301", ONE.format("{¦itl: 3}", "{state: healthy}")),
        ("SK203", ONE.format("¦3", "{state: healthy}")),
        ("SK203", ONE.format("{itl_ms: ¦slow}", "{state: healthy}")),
        ("SK203", ONE.format("{itl_ms: ¦[3]}", "{state: healthy}")),
        ("SK203", ONE.format("{itl_ms: ¦true}", "{state: healthy}")),
        ("SK410", ONE.format("{itl_ms: ¦3 tokens}", "{state: healthy}")),
        ("SK411", ONE.format("{itl_ms: ¦3 mss}", "{state: healthy}")),
        ("SK416", ONE.format("{error: ¦timeot}", "{state: healthy}")),
        ("SK416", ONE.format("{error: ¦3}", "{state: healthy}")),
        ("SK203", ONE.format("{embedding: ¦0.5}", "{state: healthy}")),
        ("SK203", ONE.format("{embedding: ¦invalid}", "{state: healthy}")),
        ("SK203", ONE.format("{block_ids: ¦[0.5]}", "{state: healthy}")),
        ("SK206", ONE.format("{repeat: ¦0}", "{state: healthy}")),
        ("SK203", ONE.format("{repeat: ¦many}", "{state: healthy}")),
        ("SK206", ONE.format("{gap: ¦-1}", "{state: healthy}")),
        ("SK304", ONE.format("{applied: [¦throtle]}", "{state: healthy}")),
        ("SK203", ONE.format("{model: ¦3}", "{state: healthy}")),
        ("SK203", ONE.format("{observe: ¦3}", "{state: healthy}")),
        ("SK203", ONE.format("{¦observe: }", "{state: healthy}")),
        ("SK201", ONE.format("{observe: {}, ¦itl_ms: 3}", "{state: healthy}")),
        ("SK301", ONE.format("{observe: {¦itl_ms: 3}}", "{state: healthy}")),
        ("SK301", ONE.format("{observe: {¦nope: 3}}", "{state: healthy}")),
        ("SK202", ONE.format("{}", "¦[]")),
        ("SK202", ONE.format("{}", "¦{turn: last}")),
        ("SK203", ONE.format("{}", "¦healthy")),
        ("SK201", ONE.format("{}", "{state: healthy, ¦stat: healthy}")),
        ("SK501", ONE.format("{}", "{state: ¦helthy}")),
        ("SK305", ONE.format("{}", "{rules: [¦fast]}")),
        ("SK305", ONE.format("{}", "{fired: [¦fast]}")),
        ("SK304", ONE.format("{}", "{actions: [¦throtle]}")),
        ("SK416", ONE.format("{}", "{faults: [¦invald]}")),
        ("SK301", ONE.format("{}", "{faults: [{invalid: ¦itl}]}")),
        ("SK416", ONE.format("{}", "{scopes: {¦replca: healthy}}")),
        ("SK501", ONE.format("{}", "{scopes: {replica: ¦helthy}}")),
        ("SK203", ONE.format("{}", "{turn: ¦first, state: healthy}")),
        ("SK206", ONE.format("{repeat: 3}", "{turn: ¦4, state: healthy}")),
    ],
)
def test_a_wrong_case_is_located(pack, code, text):
    """Cases are checked against their pack: a misspelt rule cannot make a case pass."""
    before, _, after = text.partition(MARK)
    with pytest.raises(PackError) as error:
        cases(before + after, pack)
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert [(p.code, (p.line, p.col)) for p in error.value.problems if p.code != "SK201" or "pack" not in text] == [
        (code, place)
    ]

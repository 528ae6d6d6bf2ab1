"""What the report says of trials whose truth is known, and of files that are no record."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stabilitykit.errors import RecordError
from stabilitykit.rollout import CONTROL, TREATMENT, read_report
from stabilitykit.rollout.compare import holm

HEAD = {"kind": "rollout", "mode": "ab", "share": 0.5, "packs": {}}
OUTCOME = (
    '{"kind": "outcome", "session": "a", "turn": 1, "arm": "control", "applied": [], "ok": true, "tags": {"d": %s}}\n'
)


def write(path, *entries):
    """Write a record."""
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def trial(seed, sessions, rates, depths=(8.0, 8.0), turns=6):
    """Give outcomes of conversations that are bad as a whole or good as a whole: turns of one are alike."""
    rng = np.random.default_rng(seed)
    yield HEAD
    for arm, rate, depth in zip((CONTROL, TREATMENT), rates, depths, strict=True):
        for k in range(sessions):
            bad = bool(rng.random() < rate)
            deep = float(rng.poisson(depth))
            for turn in range(turns):
                tags = {"reference_error": bad, "depth": deep, "out_of_memory": bool(rng.random() < 0.001)}
                identity = {"session": f"{arm}-{k}", "turn": turn, "arm": arm}
                yield {"kind": "outcome", **identity, "applied": [], "ok": not bad, "tags": tags}


def without_depth(entry):
    """Leave out the number: its permutations would take the test's time."""
    return {**entry, "tags": {k: v for k, v in entry["tags"].items() if k != "depth"}} if "tags" in entry else entry


@pytest.mark.capability("issue 5 §6: rollout report: verdict, and tags such as reference errors, depth, out of memory")
@pytest.mark.parametrize(("rates", "verdict"), [((0.25, 0.08), "better"), ((0.08, 0.25), "worse"), ((0.1, 0.1), None)])
def test_a_known_difference(tmp_path, rates, verdict):
    """A difference that is there is found in its direction, with its depth; one that is not there is not."""
    depths = (8.0, 10.4) if verdict else (8.0, 8.0)
    report = read_report(write(tmp_path / "r.jsonl", *trial(1, 300, rates, depths)))
    assert report.verdict == (verdict or "no difference shown")
    named = {c.name: c for c in report.comparisons}
    assert next(iter(named)) == "not ok"
    assert set(named) == {"not ok", "reference_error", "depth", "out_of_memory"}
    assert (named["depth"].corrected_p < 0.05) == bool(verdict)
    assert named["not ok"].sessions == (300, 300)
    assert [c.corrected_p for c in report.comparisons] == holm([c.difference.p for c in report.comparisons])
    if verdict:
        assert named["not ok"].sessions_needed < 300
        assert named["depth"].difference.low < 2.4 < named["depth"].difference.high


def test_equal_arms_are_rarely_told_apart(tmp_path):
    """Of 200 trials of two equal arms whose turns are alike at most 5 % (and three deviations) end with a verdict."""
    told = 0
    for seed in range(200):
        file = write(tmp_path / "r.jsonl", *(without_depth(e) for e in trial(seed, 60, (0.3, 0.3), turns=3)))
        told += read_report(file).verdict != "no difference shown"
    assert told <= 19


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no rollout"),
        ("[1]\n", ":1: no JSON object"),
        ("{]\n", ":1: no JSON"),
        *((OUTCOME % tag, ":1: no line of a rollout") for tag in ('"x"', "NaN", "1e101", "-Infinity", "null", "[1]")),
        ('{"kind": "turn"}\n', ":1: no line of a rollout"),
        (json.dumps(HEAD) + "\n" + json.dumps({**HEAD, "mode": "shadow"}) + "\n", ":2: a shadow rollout after"),
        (json.dumps(HEAD) + '\n{"kind": "outcome", "arm": "third"}\n', ":2: no line of a rollout"),
    ],
)
def test_no_record(tmp_path, text, what):
    """What no rollout wrote is refused with its place."""
    path = tmp_path / "r.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=what):
        read_report(path)
    with pytest.raises(RecordError, match="No such file"):
        read_report(tmp_path / "nothing")


def test_a_line_cut_off(tmp_path):
    """What a crash cut off at the end is left out; without outcomes there is no verdict."""
    path = write(tmp_path / "r.jsonl", HEAD)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"kind": "tu')
    assert read_report(path).verdict == "no outcomes"


def test_what_was_carried_out(tmp_path):
    """Each arm's receipts are counted; a number of the host's that is called like the verdict does not make it."""
    outcome = {"kind": "outcome", "session": "c-1", "turn": 1, "arm": CONTROL, "ok": None, "tags": {"not ok": 3.0}}
    entries = [
        {**outcome, "applied": ["trim_context"]},
        {**outcome, "turn": 2, "applied": ["trim_context", "throttle"]},
    ]
    entries.append({**outcome, "arm": TREATMENT, "applied": []})
    report = read_report(write(tmp_path / "r.jsonl", HEAD, *entries))
    assert [dict(report.arms[arm].applied) for arm in (CONTROL, TREATMENT)] == [{"trim_context": 2, "throttle": 1}, {}]
    assert report.verdict == "no outcomes"


def test_one_conversation_an_arm(tmp_path):
    """Too little to compare means gives no verdict and no number that is not one."""
    report = read_report(write(tmp_path / "r.jsonl", *trial(3, 1, (0.0, 0.0))))
    assert report.verdict == "no difference shown"
    assert {c.difference.p for c in report.comparisons} == {1.0}


def test_a_line_without_an_end(tmp_path):
    """A file that is one endless line is refused at a bound."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"kind": "' + b"x" * (1 << 21))
    with pytest.raises(RecordError, match=":1: a line of more than 1 MiB"):
        read_report(path)

from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, load

TEXT = HEAD + (
    "params:\n  slow: {default: 80 ms}\ndetectors:\n  itl: {type: breaker, factor: 0.3}\n"
    "actions:\n  alert: {doc: call}\nsignals:\n  mood: {values: [calm, angry]}\nrules:\n"
    "  - rule: a\n    desc: slow\n    when: itl.is_over and itl_ms > params.slow\n    for: 2 turns\n"
    "    do: [{throttle: {max_concurrency: 2}}]\n    reason: slow\n    tags: [stable]\n"
)


def test_what_decides_nothing_does_not_count(tmp_path):
    """Comments, blanks, descriptions, lines and the name of the file leave the fingerprint alone."""
    print_ = load(tmp_path, TEXT).fingerprint
    assert len(print_) == 64
    changed = TEXT.replace("desc: slow", "desc: very slow").replace("itl_ms > params", "itl_ms  >  params")
    assert load(tmp_path, "# a comment\n" + changed.replace("doc: call", "doc: shout")).fingerprint == print_


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("80 ms", "81 ms"),
        ("factor: 0.3", "factor: 0.4"),
        ("[calm, angry]", "[calm, cross]"),
        ("itl_ms > params", "itl_ms >= params"),
        ("for: 2", "for: 3"),
        ("max_concurrency: 2", "max_concurrency: 3"),
        ("reason: slow", "reason: slower"),
        ("tags: [stable]", "tags: [sandbox]"),
        ("alert: {", "alert: {many: true, "),
    ],
)
def test_what_decides_counts(tmp_path, old, new):
    """Every field that a decision depends on changes the fingerprint."""
    assert load(tmp_path, TEXT.replace(old, new)).fingerprint != load(tmp_path, TEXT).fingerprint


def test_an_overridden_param_counts(tmp_path):
    """The same file with another param is another pack; with the same value it is the same."""
    assert load(tmp_path, TEXT, params={"slow": 90}).fingerprint != load(tmp_path, TEXT).fingerprint
    assert load(tmp_path, TEXT, params={"slow": "0.08 s"}).fingerprint == load(tmp_path, TEXT).fingerprint

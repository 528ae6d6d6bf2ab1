from __future__ import annotations

import pytest

from tests.rules.packs import HEAD, expect_problems, load

RULE = "rules:\n  - rule: a\n    when: itl_ms > 80 ms\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SK204", "¦pack: test\nextends: [base]\n"),
        ("SK204", "stabilitykit: ¦2\npack: Whatever this version\nnew: key\n"),
        ("SK204", "stabilitykit: ¦true\npack: test\n"),
        ("SK204", "stabilitykit: ¦'1'\npack: test\n"),
        ("SK202", "¦stabilitykit: 1\nextends: [base]\n"),
        ("SK205", "stabilitykit: 1\npack: ¦Test_Pack\nextends: [base]\n"),
        ("SK203", HEAD + "rules: ¦{}\n"),
        ("SK203", HEAD + "params: ¦[]\n"),
        ("SK203", HEAD + "desc: ¦5\n"),
        ("SK201", HEAD + "¦ruls: []\n"),
        ("SK201", HEAD + RULE + "    ¦sevrity: info\n"),
        ("SK416", HEAD + RULE + "    severity: ¦critcal\n"),
        ("SK416", HEAD + RULE + "    on_missing: ¦wait\n"),
        ("SK203", HEAD + RULE + "    tags: ¦stable\n"),
        ("SK203", HEAD + RULE + "    tags: [¦1]\n"),
        ("SK205", HEAD + RULE + "    tags: [¦Stable]\n"),
        ("SK203", HEAD + RULE + "    enabled: ¦'false'\n"),
        ("SK203", HEAD + "rules:\n  - ¦itl\n"),
        ("SK202", HEAD + "rules:\n  - ¦when: itl_ms > 80 ms\n"),
        ("SK202", HEAD + "rules:\n  - ¦rule: a\n"),
        ("SK422", HEAD + "rules:\n  - rule: a\n    when: ¦true\n"),
        ("SK402", HEAD + "rules:\n  - rule: a\n    when: ¦3\n"),
        ("SK203", HEAD + "rules:\n  - rule: a\n    when: ¦[itl_ms]\n"),
        ("SK205", HEAD + "rules:\n  - rule: ¦a_b\n    when: itl_ms > 80 ms\n"),
        ("SK309", HEAD + RULE + "  - rule: ¦a\n    when: rt_ms > 80 ms\n"),
        ("SK205", HEAD + "params:\n  ¦mean: {default: 1}\n"),
        ("SK205", HEAD + "params:\n  ¦Slow: {default: 1}\n"),
        ("SK205", HEAD + "detectors:\n  ¦my-itl: {type: breaker}\n"),
        ("SK203", HEAD + "params:\n  slow: ¦80 ms\n"),
        ("SK203", HEAD + "detectors:\n  itl: ¦breaker\n"),
        ("SK201", HEAD + "defaults: {¦hold: 3 turns}\n"),
    ],
)
def test_a_shape_error_is_located(tmp_path, code, text):
    """One wrong key, type or id gives one problem with this code at this place."""
    expect_problems(tmp_path, text, code)


def test_hints_name_the_nearest_key_word_and_id(tmp_path):
    """A misspelt key, word or id comes with what was probably meant."""
    text = HEAD + RULE + "    ¦sevrity: info\n    severity: ¦critcal\n  - rule: ¦My Rule\n    when: itl_ms > 3 ms\n"
    found = expect_problems(tmp_path, text, "SK201", "SK416", "SK205")
    assert [p.hint for p in found] == ["did you mean `severity`?", "did you mean `critical`?", "`my-rule`"]


@pytest.mark.capability("issue 3 §3: `extends: chat` suggests `[chat]`, `sec` suggests `s`, `=>` suggests `>=`")
def test_a_text_for_a_list_is_shown_as_one(tmp_path):
    """What newcomers write first comes with the way it is written."""
    head = "stabilitykit: 1\npack: mine\nextends: ¦chat\n"
    assert [p.hint for p in expect_problems(tmp_path, head, "SK203")] == ["write `[chat]`"]
    text = HEAD + "rules:\n  - rule: a\n    when: ttft_ms > 3 ¦sec\n  - rule: b\n    when: ttft_ms ¦=> 3 s\n"
    text += "  - rule: c\n    when: ttft_ms > 3 s\n    for: ¦3 sec\n"
    hints = [p.hint for p in expect_problems(tmp_path, text, "SK411", "SK401", "SK411")]
    assert hints == ["did you mean `s`?", "did you mean `>=`?", "did you mean `s`?"]


def test_an_empty_section_is_no_section(tmp_path):
    """Keys without a value, as left behind by commenting items out, mean the default."""
    pack = load(tmp_path, HEAD + "rules:\nparams:\ndesc: ~\n")
    assert pack.rules == ()
    assert pack.desc == ""


def test_a_long_id_is_refused(tmp_path):
    """Ids are bounded, so that messages and tables are."""
    load(tmp_path, HEAD + f"rules:\n  - rule: {'a' * 128}\n    when: itl_ms > 80 ms\n")
    expect_problems(tmp_path, HEAD + f"rules:\n  - rule: ¦{'a' * 129}\n    when: itl_ms > 80 ms\n", "SK205")


def test_a_file_that_is_no_mapping_is_refused(tmp_path):
    """A list at the top is one problem, not one for every key that it lacks."""
    expect_problems(tmp_path, "¦- a\n- b\n", "SK203")

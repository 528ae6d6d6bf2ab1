"""Template files: every mistake is located, every pattern is linear."""

from __future__ import annotations

import time

import pytest

from stabilitykit.errors import PackError
from stabilitykit.sources.logs import Matcher

GOOD = "  - {template: a, desc: d, pattern: 'slow by {wait_ms:number s} seconds', required: [wait_ms], prior: 0.8}\n"


@pytest.mark.capability("issue 4 §3: a mistake in a template is shown with file, line and column")
@pytest.mark.parametrize(
    ("old", "new", "code", "spot"),
    [
        ("template: a", "template: A", "SK205", "A, desc"),
        ("desc: d, ", "", "SK202", "{template"),
        ("prior: 0.8", "prior: 3", "SK206", "3}"),
        ("prior:", "priorr:", "SK201", "priorr"),
        ("[wait_ms]", "[wait]", "SK303", "wait]"),
        ("number s}", "numbr s}", "SK605", "{wait_ms"),
        ("number s}", "number q}", "SK605", "{wait_ms"),
        ("{wait_ms", "{wait", "SK605", "{wait"),
        ("slow by", "(?=slow by)", "SK605", "(?="),
        ("slow by", "(slow) by", "SK605", "(slow)"),
        ("slow by", "slow|by", "SK605", "|by"),
        ("slow by", "slow by(?:a{2000})", "SK605", "{2000}"),
        ("slow by", "slow by [[:nope:]]", "SK605", "[:nope"),
        (" seconds", r" (?:a\1)", "SK605", r"\1"),
        ("slow by {wait_ms:number s} seconds', required: [wait_ms]", "s.*d'", "SK605", "s.*"),
        ("slow by", "zu langsam \u00fcber", "SK605", "\u00fcber"),
        ("prior: 0.8", "behaviours: {oom: latancy}", "SK416", "latancy"),
        ("prior: 0.8", "behaviours: {oops: latency}", "SK416", "oops"),
        ("prior: 0.8", "signals: [wait_ms]", "SK301", "wait_ms]}"),
        ("prior: 0.8", "literal: fast", "SK605", "slow by"),
    ],
)
def test_mistakes_are_located(templates, old, new, code, spot):
    """Each mistake has its code, and stands where the file has it."""
    text = GOOD.replace(old, new)
    with pytest.raises(PackError) as found:
        templates(text)
    (problem,) = found.value.problems
    assert (problem.code, problem.line, problem.col) == (code, 4, text.index(spot) + 1)


def test_two_of_one_name(templates):
    """An id stands once in a set."""
    with pytest.raises(PackError, match="twice"):
        templates(GOOD + GOOD)


def test_a_status_line_has_no_behaviour(templates):
    """A periodic template with a behaviour is refused."""
    with pytest.raises(PackError, match="the series decides"):
        templates(GOOD.replace("prior: 0.8", "periodic: true, behaviours: {hang: latency}"))


@pytest.mark.capability("issue 4 §3: no pattern can take more than linear time")
@pytest.mark.parametrize(
    "pattern", ["slow(?:a+)+$", "slow(?:a|a)*b", "slow(?:a*)*c", "slow.*.*.*.*x{wait_ms:number s}"]
)
def test_catastrophic_patterns_are_harmless(templates, pattern):
    """What keeps a backtracking engine busy for hours is done at once."""
    matcher = Matcher(
        templates(GOOD.replace("slow by {wait_ms:number s} seconds', required: [wait_ms]", pattern + "'"))
    )
    start = time.process_time()
    matcher.match(b"slow" + b"a" * 8_000 + b"!")
    assert time.process_time() - start < 1.0


def test_a_pattern_too_big(templates):
    """A pattern that would become a great automaton is refused where it stands."""
    with pytest.raises(PackError, match=r"re2 does not take it|too big"):
        templates(GOOD.replace("slow by", "slow by(?:(?:(?:a{90}){90}){90})"))

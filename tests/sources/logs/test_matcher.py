"""Lines to finds: confidence, order, fused and wrapped lines."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.logs import Block, Matcher, shipped_templates

TWO = """\
  - {template: whole, desc: d, pattern: 'disk {name:word} is full(?: at {used_ratio:number %}%)?', prior: 0.9,
     required: [name, used_ratio], behaviours: {oom: saturation}}
  - {template: part, desc: d, pattern: 'disk {name:word} is', behaviours: {hang: latency}}
  - {template: loud, desc: d, pattern: ' is full', priority: 1, behaviours: {crash: failure_rate}}
  - {template: last, desc: d, pattern: 'disk', priority: -1, behaviours: {pause: latency}}
"""
STATS = (
    b"(APIServer pid=1671) INFO 09-04 01:13:14 [loggers.py:123] Engine 000: Avg prompt throughput: 4464.8 tokens/s, "
    b"Avg generation throughput: 1210.7 tokens/s, Running: 65 reqs, Waiting: 7 reqs, GPU KV cache usage: 78.5%, "
    b"Prefix cache hit rate: 43.8%"
)
CUT = b'time=2026-04-22T11:21:47Z level=WARN msg="truncating input prompt" limit=2048 prompt=5065 keep=5 new=2048'


@cache
def shipped_matcher() -> Matcher:
    """Build the matcher of the shipped templates, once: examples of hypothesis share it."""
    return Matcher(shipped_templates())


@pytest.mark.capability("issue 4 §3: confidence is filled required fields / required fields x prior")
def test_confidence(matcher):
    """A line that lost its tail counts for the fields it has left."""
    whole, cut = matcher.match(STATS)[0], matcher.match(STATS[:170])[0]
    assert whole.confidence == 0.99
    assert set(cut.template.required) - set(cut.fields) == {"waiting_requests", "kv_usage_ratio"}
    assert cut.confidence == pytest.approx(0.99 * 3 / 5)


@pytest.mark.capability("issue 4 §3: of two templates in one place priority decides, then specificity, then id")
def test_order(templates):
    """Priority before specificity before id; what overlaps gives way; a negative priority speaks only alone."""
    found = templates(TWO)
    matcher = Matcher(found)
    assert [t.id for t in matcher.templates] == ["loud", "whole", "part", "last"]
    assert [f.template.id for f in matcher.match(b"disk a is full at 91%")] == ["loud"]
    matcher = Matcher([t for t in found if t.id != "loud"])
    (best,) = matcher.match(b"disk a is full at 91%")
    assert (best.template.id, best.fields, best.confidence) == ("whole", {"name": "a", "used_ratio": 0.91}, 0.9)
    assert [f.template.id for f in matcher.match(b"disk")] == ["last"]
    assert matcher.match(b"tape a is full") == ()


@given(st.permutations(range(4)))
def test_the_order_of_the_file_does_not_matter(order):
    """Ties are settled by rank, not by where a template stands."""
    some = [t for t in shipped_templates() if t.family == "driver"][:4]
    shuffled = Matcher([some[k] for k in order])
    assert [t.id for t in shuffled.templates] == [t.id for t in Matcher(some).templates]


@pytest.mark.capability("issue 4 §3: fused lines give a find for each of the lines in them")
def test_fused_lines(matcher):
    """Two records without a line feed between them are both found, in one line."""
    (line,) = matcher.scan(Block(1, STATS + STATS.replace(b"65 reqs", b"66 reqs") + CUT))
    assert [f.template.id for f in line.found] == ["vllm-stats", "vllm-stats", "ollama-cut-prompt"]
    assert [f.fields.get("running_requests") for f in line.found] == [65.0, 66.0, None]
    assert line.behaviours == {"context_truncation": "correctness"}


@pytest.mark.capability("issue 4 §3: lines that a terminal has wrapped are put together")
@given(st.integers(60, 230), st.integers(0, 3))
def test_wrapped_lines(width, before):
    """Wherever the terminal broke a line, it is found whole, once, with the number of its first part."""
    matcher = shipped_matcher()
    pieces = [STATS[k : k + width] for k in range(0, len(STATS), width)]
    text = b"\n".join([b"INFO ready"] * before + pieces + [b"INFO done", CUT])
    lines = list(matcher.scan(Block(1, text)))
    assert [line.found[0].template.id for line in lines] == ["vllm-stats", "ollama-cut-prompt"]
    if STATS.index(b"Prefix cache") > width * (len(pieces) - 1):
        assert lines[0].is_whole
    assert lines[0].confidence == 0.99
    assert lines[1].number == before + len(pieces) + 2


def test_neighbours_are_not_joined(matcher):
    """Two whole lines stay two lines, and a find is not counted for its neighbour as well."""
    noise = b"0.05.616.260 D slot handle_last_: id  1 | task 34 | truncating nothing at all in this long line 0"
    lines = list(matcher.scan(Block(1, b"\n".join([noise, CUT, noise, CUT, noise]))))
    assert [(line.number, line.joined) for line in lines] == [(2, 1), (4, 1)]


def test_prefixes(matcher):
    """Stamps of journald, Docker, Compose and processes before a line change nothing."""
    for head in (b"", b"Jun 10 21:22:18 host-a ollama[159]: ", b"ollama-1  | ", b"(Worker pid=3) ", b"[rank1]: "):
        assert matcher.match(head + CUT)[0].fields["prompt_tokens"] == 5065.0

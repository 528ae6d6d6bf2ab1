"""Log lines per second: the shipped templates as one google-re2 set, against one alternation of the same in ``re``."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

from benchmarks.measure import Figure, significant, times
from stabilitykit.sources.logs import Block, Matcher, shipped_templates

LOG = Path(__file__).resolve().parents[1] / "tests" / "data" / "logs" / "ordinary_llamacpp.log.xz"
LINES, EVERY = 4_000, 10
TROUBLE = (
    "WARNING 05-09 00:49:33 scheduler.py:1057 Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because "
    "there is not enough KV cache space. total_num_cumulative_preemption=51",
    "[2026-01-07 21:49:33 TP1] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.1",
    'time=2026-04-22T11:21:47.546Z level=WARN msg="truncating input prompt" limit=2048 prompt=5065',
    "INFO 09-04 01:39:31 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
    "6241.3 tokens/s, Running: 256 reqs, Waiting: 238 reqs, GPU KV cache usage: 96.4%, Prefix cache hit rate: 47.2%",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB",
    'INFO:     127.0.0.1:58048 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
)


def lines() -> list[bytes]:
    """Take the log of a real server, and let every tenth line be one that a template knows."""
    with lzma.open(LOG) as log:
        told = [log.readline().rstrip(b"\n") for _ in range(LINES)]
    for k in range(0, LINES, EVERY):
        told[k] = TROUBLE[k // EVERY % len(TROUBLE)].encode()
    return told


def alternation() -> re.Pattern[bytes]:
    """Give the same templates to ``re``, with their groups named apart."""
    templates = shipped_templates()
    parts = []
    for k, template in enumerate(templates):
        folded = b"(?i:%s)" if template.ignore_case else b"(?:%s)"
        plain = template.regex.removeprefix(b"(?i)")
        parts.append(folded % plain.replace(b"(?P<", b"(?P<t%d_" % k))
    return re.compile(b"|".join(parts))


def run() -> list[Figure]:
    told = lines()
    block, matcher, rival = Block(1, b"\n".join(told)), Matcher(shipped_templates()), alternation()
    known = {k for k, line in enumerate(told, 1) if rival.search(line)}
    assert {line.number for line in matcher.scan(block) if line.joined == 1} >= known

    def one_set() -> int:
        return sum(1 for line in told if matcher.match(line))

    def filtered() -> int:
        return sum(1 for _ in matcher.scan(block))

    def by_re() -> int:
        return sum(1 for line in told if rival.search(line))

    each, quick, slow = times([one_set, filtered, by_re], 5)
    note = f"{len(matcher.templates)} templates; {LINES / slow * 1e6:.0f} thousand lines a second with re"
    return [
        Figure(
            "log_lines_set", "log lines: one re2 set with fields / re alternation", significant(each / slow), 0.25,
            f"{LINES / each * 1e6:.0f} thousand lines a second; {note}",
        ),
        Figure(
            "log_lines_prefilter", "log lines: re2 set behind a prefilter / re alternation", significant(quick / slow),
            0.167,
            f"{LINES / quick * 1e6:.0f} thousand lines a second; {note}",
        ),
    ]  # fmt: skip

"""The shipped templates on real lines, and on a hundred thousand ordinary ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.subjects import logs
from stabilitykit import Engine
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.logs import BEHAVIOURS, Counts, Line, Series, blocks, open_log, shipped_templates
from stabilitykit.sources.logs.vocabulary import SERIES, count_signal

DATA = Path(__file__).resolve().parents[2] / "data" / "logs"
FAMILIES = {
    "request timeout with endpoint": (b"[ERROR] timeout after 830ms on /v1/chat", ["request_timeout"], "endpoint"),
    "GC pause": (b"[WARN] GC pause >520ms", ["pause", "memory_pressure"], "pause_ms"),
    "allocator pause": (b"7 pytorch allocator cache flushes since last step.", ["pause", "memory_pressure"],
                        "flushes_count"),
    "preemption": (
        b"Sequence group 3 is preempted by PreemptionMode.SWAP mode because there is not enough KV cache space.",
        ["preemption"], "mode"),
    "retraction": (b"KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.9 -> 1.0",
                   ["preemption"], "retracted_count"),
    "context shift": (b"slot context shift, n_keep = 1, n_left = 4094, n_discard = 2047", ["context_shift"],
                      "dropped_tokens"),
    "context overflow": (b"request (8800 tokens) exceeds the available context size (8192 tokens), try increasing it",
                         ["context_overflow"], "prompt_tokens"),
    "out of memory": (b"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0", ["oom"], "wanted_bytes"),
    "watchdog": (b"Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", ["hang"], "limit_ms"),
    "collective timeout": (
        b"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=GATHER, NumelIn=2, NumelOut=0, "
        b"Timeout(ms)=600000) ran for 600027 milliseconds before timing out.", ["collective_timeout"], "elapsed_ms"),
}  # fmt: skip


@pytest.mark.capability("issue 4 §3: shipped templates cover time-outs, pauses, preemption, shifts, memory, watchdogs")
@pytest.mark.parametrize("family", FAMILIES)
def test_families(matcher, family):
    """Each family of the issue is found, with its behaviours, its dimensions and its field."""
    line, behaviours, field = FAMILIES[family]
    best = matcher.match(line)[0]
    assert list(best.behaviours) == behaviours
    assert field in best.fields
    assert best.confidence == best.template.prior


@pytest.mark.capability("issue 4 §3: a status line yields signals, never a behaviour by itself; the series decides")
def test_the_series_decides(matcher):
    """One line of a full cache with a queue is no behaviour; the second in a row makes the rule fire."""
    text = (
        b"Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 1055.3 tokens/s, Running: 18 reqs, "
        b"Waiting: 43 reqs, GPU KV cache usage: 95.9%, Prefix cache hit rate: 12.5%"
    )
    engine, series = Engine.load("logs", compiled=False), Series("r1")
    line = Line(1, text, matcher.match(text))
    samples = [sample for _ in range(3) if (sample := series.take(line))]
    sample = samples[0]
    assert line.behaviours == {}
    assert {n: sample.signals[n] for n in ("kv_usage_ratio", "waiting_requests", "prefix_hit_ratio")} == {
        "kv_usage_ratio": 0.959, "waiting_requests": 43.0, "prefix_hit_ratio": 0.125,
    }  # fmt: skip
    fired = [engine.observe(replica="r1", **later.signals).fired for later in samples[1:]]
    assert fired == [(), ("series-kv-pressure",)]


@pytest.mark.capability("issue 4 §3: 100,000 ordinary lines of a real server: no behaviour")
def test_ordinary_lines(matcher):
    """The log of a healthy llama.cpp server gives status lines, not one behaviour, and no rule of a series fires."""
    counts, found, fired = Counts(), Counter[str](), Counter[str]()
    engine, series = Engine.load("logs"), Series("r1")
    with open_log(DATA / "ordinary_llamacpp.log.xz") as stream:
        for block in blocks(stream, counts):
            for line in matcher.scan(block):
                found.update(list(line.behaviours))
                sample = series.take(line)
                if sample is not None:
                    decision = engine.observe(replica="r1", timestamp_s=sample.timestamp_s, **sample.signals)
                    fired.update(rule for rule in decision.fired if rule.startswith(("log-", "series-")))
    assert (counts.lines, found, fired) == (100_000, Counter(), Counter())


def test_evidence_is_a_verdict_on_every_line():
    """158 lines have a verdict and a reason, no text; at least 110 of them are evidence."""
    rows = [json.loads(line) for line in (DATA / "evidence.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == 158
    assert sum(row["is_evidence"] for row in rows) >= 110
    assert all(row["reason"] and set(row) <= {"id", "is_evidence", "kind", "reason"} for row in rows)


@pytest.mark.slow
@pytest.mark.capability("issue 4 §3: leave-one-thread-out on real lines: precision .97, recall .85")
def test_threads_left_out(shared_data):
    """The targets of the accuracy subject are met, also on behaviours alone, and permuted labels are at chance."""
    report = logs.run(shared_data)
    assert [target.what for target in report.targets if not target.is_met] == []
    assert all(line.intervals.keys() == line.figures.keys() for line in report.lines)


def test_status_lines_of_real_runs(matcher, shared_data):
    """Every line of a file of vLLM statistics is read whole, or lost its tail in the file."""
    with open_log(shared_data / "logs" / "vllm_stats_series.log") as stream:
        lines = [line for block in blocks(stream) for line in matcher.scan(block)]
    told = (shared_data / "logs" / "vllm_stats_series.log").read_bytes().splitlines()
    numbered = [k for k, text in enumerate(told, 1) if b"tokens/s" in text]  # others lost their numbers in the file
    assert [line.number for line in lines] == numbered
    assert len(numbered) > 0.95 * len(told)
    assert all(line.is_whole for line in lines)
    assert not any(line.behaviours for line in lines)


def test_start_up_logs_hold_no_fault(matcher, shared_data):
    """Whole start-up logs of vLLM that came up, one with colours, two wrapped: no line of them is a behaviour."""
    for path in sorted((shared_data / "logs").glob("raw_vllm-*.txt")):
        with open_log(path) as stream:
            lines = [line for block in blocks(stream) for line in matcher.scan(block)]
        assert not {b for line in lines for b in line.behaviours}, path.name


def test_every_template_says_where_it_comes_from():
    """A template cites the server's source or a thread; only what is heard last of all may be nobody's words."""
    assert [t.id for t in shipped_templates() if t.priority >= 0 and not t.sources and not t.threads] == []


def test_pack_and_sources_know_the_same_signals():
    """The pack declares exactly the signals that a log gives beyond the catalogue; the others are in PRODUCERS."""
    pack = load_pack("logs", detectors=DETECTORS)
    assert set(pack.signals) - set(CATALOGUE) == set(SERIES) | {count_signal(name) for name in BEHAVIOURS}
    used = {name for template in shipped_templates() for name in template.signals}
    assert used & set(CATALOGUE) == set(PRODUCERS["logs"])
    tags = {rule.tags[2].replace("-", "_") for rule in pack.rules if "logs" in rule.tags}
    assert tags == set(BEHAVIOURS)

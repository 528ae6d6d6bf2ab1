"""`stabilitykit replay`."""

from __future__ import annotations

import gzip
import json

import pytest

from stabilitykit.sources.recording import shipped_recording


@pytest.mark.capability(
    "issue 2 §7: a recorded run replays from the command line: timeline, summary, JSON, HTML report"
)
def test_timeline(run, pack, log):
    """Quiet turns share a line; a change names rule, value, threshold, streak and actions."""
    ran = run("replay", log, "--pack", pack)
    assert ran.code == 0
    assert "c-1          turn 3        warning → broken" in ran.out
    assert "* itl-slow: itl_ms = 80 ms > 60 ms, margin 20 ms, 2/2" in ran.out
    assert "do switch_model(to=light), throttle(max_concurrency=1)" in ran.out
    assert "fault invalid ttft_ms" in ran.out
    assert "5 turns of 2 sessions, 1 sample" in ran.out
    assert "itl-slow: 1 time fired, matched 2" not in ran.out
    assert "columns that are no signals: note" in ran.err


def test_all_prints_every_turn(run, pack, log):
    """--all leaves no turn out, --quiet all of them."""
    every = run("replay", log, "--pack", pack, "--all").out
    assert every.count("\nc-1 ") + every.startswith("c-1 ") == 4
    assert "turn 3" not in run("replay", log, "--pack", pack, "-q").out


@pytest.mark.capability("issue 2 §7: `replay --json`: decisions and summary on stdout, nothing else")
def test_json_lines(run, pack, log):
    """--json gives each decision and then the summary, and nothing else on stdout."""
    *decisions, summary = run("replay", log, "--pack", pack, "--json").records
    assert [d["type"] for d in decisions] == ["turn", "sample", "turn", "turn", "turn", "turn"]
    assert decisions[4]["state"] == "broken"
    assert decisions[4]["reasons"][0]["value"] == 80.0
    assert summary["type"] == "summary"
    assert summary["turns"] == 5
    assert summary["states"]["session"]["broken"] == 2
    assert summary["faults"] == [{"kind": "invalid", "signal": "ttft_ms", "count": 1}]


@pytest.mark.capability("issue 2 §7: exit codes 0, 1, 2 and 3")
def test_fail_on(run, pack, log):
    """A state that was reached ends with 1 only when it was asked for."""
    assert run("replay", log, "--pack", pack, "--fail-on", "broken").code == 1
    assert run("replay", log, "--pack", pack, "--fail-on", "recovering").code == 0
    wrong = run("replay", log, "--pack", pack, "--fail-on", "brokn")
    assert wrong.code == 2
    assert "did you mean `broken`" in wrong.err


def test_params(run, pack, log):
    """--param sets a param in the unit of its default."""
    out = run("replay", log, "--pack", pack, "--param", "slow_itl=90").out
    assert "broken" not in out
    assert run("replay", log, "--pack", pack, "--param", "slow_itl=nine").code == 2
    assert run("replay", log, "--pack", pack, "--param", "nosuch=1").code == 2


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "column 2"),
        ("[1]", "a record is an object, not list"),
        ('{"turn_id": 1}', "no session"),
        ('{"session_id": "c-1", "itl_ms": "fast"}', "itl_ms: not a number: text of 4 characters"),
        ('{"session_id": "c-1", "turn_id": "x"}', "turn_id: not a whole number"),
        ('{"session_id": "c-1", "embedding": {"a": 1}}', "embedding: not an array"),
        ("[" * 100_000, "RecursionError"),
    ],
)
def test_bad_lines_are_located(run, pack, log, bad, reason):
    """A bad line ends with 2, its place and the reason; --keep-going counts it and goes on."""
    with log.open("a", encoding="utf-8") as file:
        file.write(bad + "\n")
    ran = run("replay", log, "--pack", pack)
    assert ran.code == 2
    assert f"{log}:7: " in ran.err
    assert reason in ran.err or "column" in ran.err
    assert "fast" not in ran.err
    going = run("replay", log, "--pack", pack, "--keep-going", "--json")
    assert going.code == 0
    assert going.records[-1]["bad_lines"] == 1
    assert "1 bad line left out" in going.err


def test_not_utf8_and_cut_gzip(run, pack, log, tmp_path):
    """Bytes that are no text and a file that was cut are located too."""
    log.write_bytes(log.read_bytes() + b'{"session_id": "\xff"}\n')
    assert ":7: not UTF-8" in run("replay", log, "--pack", pack).err
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(log.read_bytes())[:-20])
    ran = run("replay", cut, "--pack", pack)
    assert ran.code == 2
    assert "damaged from here on" in ran.err


def test_files_that_are_not_there(run, pack, tmp_path):
    """A missing log, an unknown ending and a missing directory are wrong use."""
    assert "No such file" in run("replay", tmp_path / "none.jsonl", "--pack", pack).err
    (tmp_path / "x.dat").write_text("")
    assert "format" in run("replay", tmp_path / "x.dat", "--pack", pack).err
    ran = run("replay", "--pack", pack, "--report", tmp_path / "no" / "r.html")
    assert ran.code == 2
    assert "no directory" in ran.err


def test_shipped_recording_is_the_default(run, pack):
    """Without a file the recording that comes with the library is replayed, embeddings attached."""
    summary = run("replay", "--pack", "chat", "--json", "-q").records[-1]
    assert summary["turns"] == 90
    assert summary["sessions"] == 4
    assert summary["pack"] == "chat"


def test_several_files_are_merged_on_time(run, pack, tmp_path):
    """Turns and samples of two files come in the order of their timestamps."""
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text("".join(json.dumps({"session_id": "c", "timestamp_s": t, "itl_ms": 1.0}) + "\n" for t in (1, 3)))
    b.write_text(json.dumps({"observe": {"replica": "r", "timestamp_s": 2, "waiting_requests": 1}}) + "\n")
    records = run("replay", a, b, "--pack", pack, "--json").records
    assert [r["type"] for r in records] == ["turn", "sample", "turn", "summary"]


def test_report(run, pack, log, tmp_path):
    """--report writes a page and says where on stderr."""
    out = tmp_path / "r.html"
    ran = run("replay", log, "--pack", pack, "--report", out)
    assert f"report: {out}" in ran.err
    assert "<svg" in out.read_text(encoding="utf-8")


@pytest.mark.capability("issue 2 §7: a real vLLM run replays from three files on one clock: requests, engine, GPU")
def test_real_run_from_three_files(run, pack, shared_data):
    """Requests become turns, engine and GPU lines become samples, in the order of time."""
    mappings = shipped_recording().parent.parent / "mappings"
    arguments: list[object] = []
    for part in ("requests", "engine", "gpu"):
        log = shared_data / "traces" / f"burstgpt_vllm_scale100_{part}.csv"
        arguments += [log, "--map", mappings / f"burstgpt_{part}.yaml"]
    *decisions, summary = run("replay", *arguments, "--pack", pack, "--json").records
    assert (summary["turns"], summary["samples"]) == (500, 538 + 839)
    assert [d["scope"] for d in decisions[:2]] == ["replica", "session"]
    assert summary["faults"] == []


def test_real_endpoints(run, shared_data):
    """Every hosted endpoint is a conversation of its own."""
    mapping = shipped_recording().parent.parent / "mappings" / "llmperf_individual.yaml"
    log = shared_data / "traces" / "llmperf_individual.jsonl"
    summary = run("replay", log, "--map", mapping, "--json", "-q").records[-1]
    assert (summary["turns"], summary["sessions"], summary["bad_lines"]) == (1950, 13, 0)

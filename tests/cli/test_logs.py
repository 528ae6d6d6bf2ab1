"""`stabilitykit logs explain`: the mapping table of a log."""

from __future__ import annotations

import gzip
import lzma
import random

import pytest

LOG = (
    "INFO 09-04 01:13:14 Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 1055.3 tokens/s, "
    "Running: 18 reqs, Waiting: 43 reqs, GPU KV cache usage: 95.9%\n"
    "nothing to see here\n"
    "INFO 09-04 01:13:24 Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 1226.3 tokens/s, "
    "Running: 18 reqs, Waiting: 42 reqs, GPU KV cache usage: 95.5%\n"
    "[ERROR] timeout after 830ms on /v1/chat\n"
)


@pytest.mark.capability("issue 4 §3: `stabilitykit logs explain` prints line, template, fields, behaviours, confidence")
def test_table(run, tmp_path):
    """Each line that says something is shown with what it says, the rules that fire, and a summary at the end."""
    path = tmp_path / "server.log"
    path.write_text(LOG, encoding="utf-8")
    ran = run("logs", "explain", path)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("1  INFO 09-04 01:13:14")
    assert lines[1].startswith("  vllm-stats  no behaviour by itself  0.99  log_prompt_tokens_per_s=0")
    assert "kv_usage_ratio=0.959" in lines[1]
    assert "  -> series-kv-pressure  KV usage 95.5 % with 42 waiting, tolerated 85.0 %" in lines
    assert "  request-timeout  request_timeout (failure_rate)  0.95  elapsed_ms=830 endpoint=/v1/chat" in lines
    assert "nothing to see here" not in ran.out
    assert ran.err == "4 lines; behaviours: request_timeout 1\n"


def test_json_of_a_packed_log(run, tmp_path):
    """JSON lines hold the same; a log may be packed, and cut lines are counted."""
    path = tmp_path / "server.log.xz"
    path.write_bytes(lzma.compress(LOG.encode() + b"x" * 9_000 + b"\n"))
    *found, summary = run("logs", "explain", path, "--json").records
    assert [record["line"] for record in found] == [1, 3, 4]
    assert found[2]["found"][0]["fields"] == {"elapsed_ms": 830.0, "endpoint": "/v1/chat"}
    assert found[1]["fired"][0]["rule"] == "series-kv-pressure"
    assert summary == {"summary": {"lines": 5, "cut": 1, "behaviours": {"request_timeout": 1}}}


def test_own_templates(run, tmp_path):
    """Templates of one's own come beside the shipped ones; a bad one is shown with its place."""
    log, mine = tmp_path / "a.log", tmp_path / "mine.yaml"
    log.write_text("worker 7 is tired\n", encoding="utf-8")
    text = (
        "log_templates: 1\nfamily: mine\ntemplates:\n"
        "  - {template: tired, desc: d, pattern: 'worker {worker:int} is tired', behaviours: {pause: latency}}\n"
    )
    mine.write_text(text, encoding="utf-8")
    assert "tired  pause (latency)  0.95  worker=7" in run("logs", "explain", log, "-t", mine).out
    mine.write_text(text.replace("pause:", "pose:"), encoding="utf-8")
    ran = run("logs", "explain", log, "-t", mine)
    assert ran.code == 2
    assert "mine.yaml:4:" in ran.err
    assert "did you mean `pause`?" in ran.err


@pytest.mark.parametrize(("name", "pack"), [("a.log.gz", gzip.compress), ("a.log.xz", lzma.compress)])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_log(run, tmp_path, name, pack, damage):
    """A packed log that breaks off or is damaged is named as that, for `health` as for `logs`; nobody interrupted."""
    packed = bytearray(pack(random.Random(1).randbytes(20_000) + LOG.encode()))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2 : len(packed) // 2 + 400] = bytes(400)
    (path := tmp_path / name).write_bytes(packed)
    for command in (("logs", "explain"), ("health",)):
        ran = run(*command, path)
        assert (ran.code, name in ran.err, "interrupted" in ran.err) == (2, True, False)


def test_no_such_log(run, tmp_path):
    """A log that is not there is wrong use."""
    ran = run("logs", "explain", tmp_path / "gone.log")
    assert (ran.code, "gone.log" in ran.err) == (2, True)


def test_number_beyond_every_float(run, tmp_path):
    """A field of 400 digits is absent, as text and as JSON, and the line is still shown."""
    path = tmp_path / "server.log"
    path.write_text(f"[ERROR] timeout after {'9' * 400}ms on /v1/chat\n", encoding="utf-8")
    shown = run("logs", "explain", path)
    assert (shown.code, "elapsed_ms" in shown.out) == (0, False)
    found, _ = run("logs", "explain", path, "--json").records
    assert found["found"][0]["fields"] == {"endpoint": "/v1/chat"}


@pytest.mark.parametrize("name", ["fake.gz", "fake.xz"])
def test_archive_that_is_none(run, tmp_path, name):
    """Random bytes under the name of an archive are wrong use, not an error of ours."""
    path = tmp_path / name
    path.write_bytes(bytes(range(256)))
    ran = run("logs", "explain", path)
    assert ran.code == 2
    assert name in ran.err

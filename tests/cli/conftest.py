"""A small pack, a log for it, and a way to call the command line."""

from __future__ import annotations

import json

import attrs
import pytest

from stabilitykit.cli import main

PACK = """\
stabilitykit: 1
pack: demo
extends: [base]
params:
  slow_itl: {default: 60 ms, doc: slower than people read}
rules:
  - rule: itl-slow
    desc: tokens come slower than people read
    when: itl_ms > params.slow_itl
    for: 2 turns
    severity: critical
    do: [{throttle: {}}]
    reason: "ITL {{ itl_ms }} ms"
  - rule: ttft-slow
    when: ttft_ms > 1 s
    do: [{emit_metric: {name: slow_start}}]
  - rule: recall-poor
    when: recall_ratio < 50 %
  - rule: replica-busy
    when: waiting_requests > 3
    severity: info
"""
CASES = """\
cases:
  - name: two slow turns break it
    turns: [{itl_ms: 70, repeat: 2}]
    expect: {state: broken, rules: [itl-slow]}
  - name: one slow turn does not
    turns: [{itl_ms: 70}]
    expect: {state: healthy, rules: []}
"""
LOG = [
    {"session_id": "c-1", "turn_id": 1, "itl_ms": 40.0, "ttft_ms": 300.0},
    {"observe": {"replica": "r1", "timestamp_s": 1.0, "waiting_requests": 5}},
    {"session_id": "c-1", "turn_id": 2, "itl_ms": 70.0, "ttft_ms": 1500.0, "note": "not a signal"},
    {"session_id": "c-2", "turn_id": 1, "itl_ms": 30.0, "error": "none"},
    {"session_id": "c-1", "turn_id": 3, "itl_ms": 80.0, "ttft_ms": -4.0},
    {"session_id": "c-1", "turn_id": 4, "itl_ms": 30.0, "ttft_ms": 300.0},
]


@attrs.frozen
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def records(self):
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys, monkeypatch):
    """Call the command line in this process."""
    monkeypatch.delenv("NO_COLOR", raising=False)

    def call(*arguments):
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def pack(tmp_path):
    """Write the pack and its cases."""
    (tmp_path / "demo.test.yaml").write_text(CASES, encoding="utf-8")
    path = tmp_path / "demo.yaml"
    path.write_text(PACK, encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path):
    """Write the log."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LOG), encoding="utf-8")
    return path

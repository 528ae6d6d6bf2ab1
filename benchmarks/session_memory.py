"""What one conversation of the pack `chat` takes: its row, and everything by resident memory."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from benchmarks.measure import Figure, significant
from stabilitykit import Engine, Turn

COUNT = int(os.environ.get("BENCH_SESSIONS", "1000000"))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run() -> list[Figure]:
    engine = Engine.load("chat", capacity=2 * COUNT, ttl_s=None)
    row = engine._live.program.rows[0].nbytes
    for k in range(1000):
        engine.evaluate(Turn(session_id=f"warm-{k}", itl_ms=30.0))
    gc.collect()
    before = resident()
    for k in range(COUNT):
        engine.evaluate(
            Turn(session_id=f"c-{k:07d}", itl_ms=30.0, ttft_ms=200.0, input_tokens=900.0, output_tokens=50.0)
        )
    each = (resident() - before) / COUNT
    return [
        Figure("session_row", "row of one session of chat, KB", significant(row / 1024), 3),
        Figure("session_memory", f"everything, KB by RSS over {COUNT:,} sessions", significant(each / 1024), 3.9),
    ]

"""What a turn costs in columnar replay against ``evaluate``, on the ``chat`` pack."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figure, over, significant, times
from stabilitykit import Engine, Turn

TURNS, SESSIONS = 10_000, 100


def columns():
    rng = np.random.default_rng(7)
    return {
        "itl_ms": rng.lognormal(3.4, 0.2, TURNS),
        "ttft_ms": rng.lognormal(6.0, 0.4, TURNS),
        "input_tokens": rng.integers(200, 3000, TURNS).astype(np.float64),
        "output_tokens": rng.integers(10, 400, TURNS).astype(np.float64),
        "context_window_tokens": np.full(TURNS, 8192.0),
        "waiting_requests": rng.integers(0, 4, TURNS).astype(np.float64),
        "kv_usage_ratio": rng.random(TURNS) * 0.6,
    }


def run() -> list[Figure]:
    by_columns, by_turns = Engine.load("chat"), Engine.load("chat")
    given = columns()
    names = [f"s{k % SESSIONS}" for k in range(TURNS)]
    listed = {name: values.tolist() for name, values in given.items()}
    turns = [Turn(session_id=names[k], **{n: v[k] for n, v in listed.items()}) for k in range(TURNS)]
    batch = over(turns, by_turns.evaluate)
    a, b = times([batch, lambda: by_columns.replay(given, session=names)], 9)
    note = f"{b / TURNS / 1e3:.2f} us against {a / TURNS / 1e3:.2f} us a turn, factoring session names included"
    return [Figure("columnar", "columnar replay / evaluate, per turn", significant(b / a), 0.25, note)]

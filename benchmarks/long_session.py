"""What turn 1,000 of a conversation costs against turn 10."""

from __future__ import annotations

from benchmarks.measure import Figure, over, significant, times
from stabilitykit import Engine, Turn


def run() -> list[Figure]:
    engine = Engine.load("chat")
    young, old = ([f"{kind}{k}" for k in range(200)] for kind in "yo")

    def turns(names):
        return [Turn(session_id=n, itl_ms=30.0, ttft_ms=200.0, input_tokens=900.0, output_tokens=50.0) for n in names]

    for _ in range(990):
        for turn in turns(old):
            engine.evaluate(turn)
    for _ in range(6):
        for turn in turns(young):
            engine.evaluate(turn)
    # Eight rounds: the young pass through turns 7 to 14, the old through 991 to 998.
    a, b = times([over(turns(young), engine.evaluate), over(turns(old), engine.evaluate)], 7)
    return [
        Figure(
            "long_session",
            "turn 1,000 / turn 10",
            significant(b / a),
            1.1,
            f"{b / 2e5:.2f} us against {a / 2e5:.2f} us",
        )
    ]

"""Building a Turn with 12 of its signals against a pydantic model of the whole catalogue."""

from __future__ import annotations

from typing import Any

import pydantic

from benchmarks.measure import Figure, over, significant, times
from stabilitykit import Turn
from stabilitykit.signals import CATALOGUE

GIVEN = (
    "session_id='s', ttft_ms=412.0, itl_ms=31.0, rt_ms=900.0, queue_ms=3.0, prefill_ms=120.0, input_tokens=900, "
    "output_tokens=88, cached_tokens=512, context_window_tokens=8192, finish_reason='stop', kv_usage_ratio=0.4, "
    "running_requests=9"
)


def run() -> list[Figure]:
    fields: dict[str, Any] = {"session_id": (str, ...), "turn_id": (int | None, None), "tenant": (str, "")}
    for spec in CATALOGUE.values():
        fields[spec.name] = ({"enum": str, "array": Any}.get(spec.kind, float) | None, None)
    model = pydantic.create_model("Model", **fields)
    ours, theirs = (eval(f"lambda _: X({GIVEN})", {"X": kind}) for kind in (Turn, model))
    a, b = times([over(range(5000), ours), over(range(5000), theirs)])
    return [
        Figure(
            "turn_build",
            "a Turn of 12 signals / a pydantic model",
            significant(a / b),
            0.35,
            f"{a / 5e6:.2f} us against {b / 5e6:.2f} us",
        )
    ]

from __future__ import annotations

import math

import pytest

from stabilitykit import Turn
from stabilitykit.cli.bands import INDICATORS, Seen, watch
from stabilitykit.sample import Sample

BY_TITLE = {indicator.title: indicator for indicator in INDICATORS}
BOUNDS = [
    (
        "KV fragmentation",
        [(0.0, "healthy"), (0.1499, "healthy"), (0.15, "warning"), (0.40, "warning"), (0.4001, "risk")],
    ),
    ("prefill", [(119.9, "healthy"), (120.0, "warning"), (350.0, "warning"), (350.1, "risk")]),
    ("KV usage", [(0.909, "healthy"), (0.91, "warning"), (0.96, "warning"), (0.97, "risk")]),
    ("preemptions", [(0.0, "healthy"), (1.0, "warning"), (1e9, "warning")]),
    ("waiting / running", [(0.0, "healthy"), (0.01, "warning"), (0.10, "warning"), (0.11, "risk")]),
    ("prefix hits", [(0.0, "warning"), (0.49, "warning"), (0.5, "healthy"), (1.0, "healthy")]),
]


@pytest.mark.capability("issue 4 §5: health: the bands of A1.2, half-open: fragmentation and mean prefill")
@pytest.mark.parametrize(("title", "bounds"), BOUNDS)
def test_bounds(title, bounds):
    """Each side of each bound; nothing known is unknown."""
    for value, band in bounds:
        assert BY_TITLE[title].band(value) == band
    assert BY_TITLE[title].band(None) == "unknown"


def test_every_indicator_has_its_bounds_tested():
    """No band is left out."""
    assert [title for title, _ in BOUNDS] == list(BY_TITLE)


def test_the_mean_decides_and_forgets():
    """One slow prefill among many does not make a risk; a hundred make one."""
    seen: Seen = {}
    for value in [100.0] * 40 + [5000.0]:
        watch(seen, Turn(session_id="c", prefill_ms=value))
    held = seen[""]["prefill"]
    assert (held.count, held.greatest) == (41, 5000.0)
    assert held.value(BY_TITLE["prefill"]) == pytest.approx(100 + 0.05 * 4900)
    for _ in range(100):
        watch(seen, Turn(session_id="c", prefill_ms=400.0))
    assert BY_TITLE["prefill"].band(held.value(BY_TITLE["prefill"])) == "risk"


def test_what_is_not_measured_is_not_seen():
    """Missing, not a number, below nothing, and a queue without the requests that run."""
    seen: Seen = {}
    watch(seen, Turn(session_id="c", replica="a", prefill_ms=math.nan))
    watch(seen, Sample(replica="a", signals={"kv_usage_ratio": -1.0, "waiting_requests": 4.0}))
    assert seen == {"a": {}}


def test_growth_hits_and_queue():
    """Preemptions are compared with the first sample, hits derived from tokens, a queue with one request at least."""
    seen: Seen = {}
    for count in (7.0, 7.0, 9.0):
        watch(seen, Sample(signals={"preemptions_count": count, "running_requests": 0.0, "waiting_requests": 3.0}))
    watch(seen, Turn(session_id="c", input_tokens=200, cached_tokens=50))
    held = seen[""]
    assert held["preemptions"].value(BY_TITLE["preemptions"]) == 2.0
    assert held["waiting / running"].mean == 3.0
    assert held["prefix hits"].mean == 0.25

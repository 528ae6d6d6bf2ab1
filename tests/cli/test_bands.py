from __future__ import annotations

import math

import pytest

from stabilitykit import Turn
from stabilitykit.cli.bands import INDICATORS, PACKS, Seen, watch
from stabilitykit.cli.packs import pack_of
from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.trace import trace
from stabilitykit.sample import Sample

BY_TITLE = {indicator.title: indicator for indicator in INDICATORS}
PARAMS = pack_of(PACKS).params
RULES = {
    "KV fragmentation": ("limits", "fragmentation-raised", "fragmentation-risk"),
    "prefill": ("limits", "prefill-raised", "prefill-risk"),
    "KV usage": ("vllm", None, "kv-full"),
    "preemptions": ("latency", "replica-preempting", None),
    "waiting / running": ("latency", None, "replica-saturated"),
    "prefix hits": ("kv-cache", "kv-hit-collapse", None),
}
"""The pack, and the rules whose conditions name the bounds of a warning and a risk."""


@pytest.mark.capability("issue 4 §5: health: the bands of A1.2, half-open: fragmentation and mean prefill")
@pytest.mark.parametrize("indicator", INDICATORS, ids=lambda indicator: indicator.title)
def test_bounds(indicator):
    """Each side of each bound; nothing known is unknown, nothing at all healthy unless less is worse."""
    warning, risk = indicator.bounds(PARAMS)
    if indicator.kind == "floor":
        told = {math.nextafter(warning, 0): "warning", warning: "healthy", 1.0: "healthy", 0.0: "warning"}
    else:
        told = {0.0: "healthy", math.nextafter(warning, math.inf): "warning"}
        told |= {warning: "warning", math.nextafter(warning, -math.inf): "healthy"} if warning > 0 else {}
    if math.isfinite(risk):
        told |= {risk: "warning", math.nextafter(risk, math.inf): "risk"}
    for value, band in told.items():
        assert indicator.band(value, PARAMS) == band
    assert indicator.band(None, PARAMS) == "unknown"


@pytest.mark.parametrize("indicator", INDICATORS, ids=lambda indicator: indicator.title)
def test_a_bound_is_that_of_the_rule(indicator):
    """The param is the one that the rule of the shipped pack compares the same thing with, and it says its source."""
    pack, *names = RULES[indicator.title]
    rules = {rule.id: rule.source for rule in pack_of([pack]).rules}
    for bound, rule in zip((indicator.warning, indicator.risk), names, strict=True):
        if isinstance(bound, str):
            assert rule is not None
            assert f"params.{bound}" in rules[rule]
            assert PARAMS[bound].doc in indicator.source(PARAMS)


def test_the_mean_decides_and_forgets():
    """One slow prefill among many does not make a risk; a hundred make one."""
    seen: Seen = {}
    for value in [100.0] * 40 + [5000.0]:
        watch(seen, Turn(session_id="c", prefill_ms=value))
    held = seen[""]["prefill"]
    assert (held.count, held.greatest) == (41, 5000.0)
    told = trace(BASELINE, [100.0] * 40 + [5000.0, None])
    assert held.value(BY_TITLE["prefill"]) == told[-1]["mean"]
    for _ in range(100):
        watch(seen, Turn(session_id="c", prefill_ms=400.0))
    assert BY_TITLE["prefill"].band(held.value(BY_TITLE["prefill"]), PARAMS) == "risk"


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

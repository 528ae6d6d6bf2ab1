from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.cli.probe.objectives import read_objective
from stabilitykit.errors import UsageError


@pytest.mark.capability("issue 4 §5: probe --slo: signal.statistic op number, units as in rules, located errors")
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("ttft_ms.p99 < 800", 800.0),
        ("ttft_ms.p99<0.8 s", 800.0),
        ("itl_ms.mean <= 500 us", 0.5),
        ("kv_usage_ratio.max < 95 %", 0.95),
        ("kv_hit_ratio.mean > 0.5", 0.5),
        ("waiting_requests.mean < 0.5", 0.5),
        ("decode_tokens_per_s.min >= 3 tokens/s", 3.0),
        ("decode_tokens_per_s.p10 > 3", 3.0),
        ("ttft_ms.p999 < 1 s", 1000.0),
    ],
)
def test_read(text, limit):
    """A bare number is in the signal's unit, another scale is converted."""
    assert read_objective(text).limit == limit


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("ttft.p99 < 800", 1, "no signal 'ttft'"),
        ("tttf_ms.p99 < 800", 1, "did you mean `ttft_ms`"),
        ("ttft_ms < 800", 1, "signal.statistic"),
        ("ttft_ms.p9x < 800", 9, "no statistic 'p9x'"),
        ("ttft_ms.p100 < 800", 9, "no statistic 'p100'"),
        ("ttft_ms.p00 < 800", 9, "no statistic 'p00'"),
        ("ttft_ms.p99 == 800", 13, "one of < <= > >="),
        ("ttft_ms.p99 < 800 C", 15, "not in ms"),
        ("ttft_ms.p99 < fast", 15, "a number"),
        ("ttft_ms.p99 < 800 and", 19, "nothing more"),
        ("ttft_ms.p99 < 800 tokens/s", 15, "not in ms"),
        ("ttft_ms.p99 ! 800", 13, "has no meaning"),
        ("finish_reason.p99 < 1", 1, "is a number"),
        ("", 1, "signal.statistic"),
        ("ttft_ms.p99", 12, "one of"),
    ],
)
def test_mistakes(text, column, words):
    """What is wrong, and where: a caret stands under the column."""
    with pytest.raises(UsageError) as found:
        read_objective(text)
    head, shown, caret = str(found.value).splitlines()[:3]
    assert f"column {column}:" in head
    assert words in str(found.value)
    assert caret.index("^") == 4 + column - 1
    assert shown[4:] == text


@given(st.text(max_size=60))
def test_any_text(text):
    """Whatever is typed, that is no objective, is a UsageError with a place."""
    with pytest.raises(UsageError, match=r"--slo, column \d+: "):
        read_objective(text)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.sampled_from([1, 10, 50, 90, 99]))
def test_quantiles_are_numpys(values, percent):
    """The nearest rank is numpy's ``inverted_cdf``."""
    wanted = np.percentile(values, percent, method="inverted_cdf")
    assert read_objective(f"ttft_ms.p{percent:02d} < 1").value(values) == wanted

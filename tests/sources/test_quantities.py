"""Numbers with their unit attached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.quantities import byte_count, milliseconds


@pytest.mark.capability(
    "issue 4 §3: durations and sizes of logs are read in one unit, whatever unit they are written in"
)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [("184.26µs", 0.18426), ("61.1ms", 61.1), ("2.4s", 2400.0), ("1h24m39s", 5079000.0), ("12ns", 1.2e-5),
     ("3m0.5s", 180500.0), ("491.544us", 0.491544), ("1402.6725676059723s", 1402672.5676059723)],
)  # fmt: skip
def test_durations(text, wanted):
    """Each is the float nearest to the exact value."""
    assert milliseconds(text) == wanted


@given(st.integers(0, 10**9), st.sampled_from(["h", "m", "s", "ms", "us", "ns"]))
def test_whole_durations(number, unit):
    """A whole number of any unit is that many of it."""
    factor = {"h": 3.6e6, "m": 6e4, "s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}[unit]
    assert milliseconds(f"{number}{unit}") == pytest.approx(number * factor, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "wanted"), [("2.00 GiB", 2 * 2.0**30), ("512B", 512), ("8 kB", 8000), ("1.5MB", 1.5e6)]
)
def test_sizes(text, wanted):
    """With an i in powers of 1,024, without in powers of 1,000."""
    assert byte_count(text) == wanted


@pytest.mark.parametrize("text", ["", "12", "s", "1h24", "5 parsecs", "-3s"])
def test_no_duration(text):
    """Anything else is refused."""
    with pytest.raises(ValueError, match="duration"):
        milliseconds(text)
    with pytest.raises(ValueError, match="size"):
        byte_count(text)

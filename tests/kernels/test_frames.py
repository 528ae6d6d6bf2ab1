from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.frames import frame_of_seconds, frame_of_us


@pytest.mark.capability("issue 3 §1: frames of 10,000 summed tenths of a second, where int() is wrong 2,403 times")
def test_summed_tenths_land_in_their_frame():
    """The sum of k tenths is in frame k; the source's int(ts * 10) is wrong for 2,403 of 10,000."""
    total, wrong, cut = 0.0, 0, 0
    for k in range(10_000):
        wrong += frame_of_seconds(total, 10.0) != k
        cut += int(total * 10) != k
        total += 0.1
    assert (wrong, cut) == (0, 2403)


def test_hundredths_written_as_floats():
    """Cutting k / 100 * 100 loses 573 of 10,000, raising it first none."""
    assert sum(int(k / 100 * 100) != k for k in range(10_000)) == 573
    assert all(frame_of_seconds(k / 100, 100.0) == k for k in range(10_000))


@given(st.integers(-(10**12), 10**12), st.sampled_from([1, 20_000, 100_000]))
def test_both_clocks_agree(time_us, frame_us):
    """Microseconds as they are and as seconds in a float give the same frame."""
    assert frame_of_us(time_us, frame_us) * frame_us <= time_us < (frame_of_us(time_us, frame_us) + 1) * frame_us
    if abs(time_us) < 10**10 and frame_us > 1:
        assert frame_of_seconds(time_us / 1e6, 1e6 / frame_us) == frame_of_us(time_us, frame_us)

"""The frame of a point in time, by whole numbers: 0.1 s steps summed in floats land in the wrong frame.

``int(ts * 10)`` gives a wrong frame for 2,403 of 10,000 sums of 0.1 (formulas B4.4). A float time is therefore raised
by a millionth of a frame before it is cut, and a time in microseconds needs no float at all.
"""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel

__all__ = ["frame_of_seconds", "frame_of_us"]

_SLACK = 1e-6


@kernel
def frame_of_us(time_us: int, frame_us: int) -> int:
    """Give the frame of a time in whole microseconds, frames being ``frame_us`` long."""
    return time_us // frame_us


@kernel
def frame_of_seconds(time_s: float, frames_per_s: float) -> int:
    """Give the frame of a finite time in seconds.

    Examples
    --------
    >>> late = 0.7999999999999999  # eight times 0.1, added up
    >>> int(late * 10), frame_of_seconds(late, 10.0)
    (7, 8)
    """
    return math.floor(time_s * frames_per_s + _SLACK)

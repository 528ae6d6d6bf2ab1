"""Whether the tokens of speech, video or code stand in the frames in which they were said.

When a streamed input is cut or resampled, tokens and frames come apart: the model reads a word where another is heard.

Inputs
------
frames
    The frame each token was put into (``token_frames``).
times
    The time of each token in the input, in whole microseconds (``token_times_us``): the expected frame is the time over
    the length of a frame, rounded down. For code, a line or a file may be the frame and its number the time.

Settings
--------
frame
    Length of a frame in microseconds; 100,000 (default) is ten frames a second.

Outputs
-------
drift
    Actual minus expected frame of the token where they differ most (the first such one).
max_drift
    The same without its sign.
index
    Which token; unknown where none drifts.
backwards_count
    Tokens with an earlier frame than the token before: frames never run backwards.
excess_count
    Frames minus times: what has no partner is not compared, and not passed over in silence either.

Notes
-----
Times are whole microseconds: of 10,000 sums of 0.1 s in floats a quarter lands in the wrong frame with the source's
``int(ts * 10)``. With times alone or frames alone only ``excess_count`` (and of frames ``backwards_count``) is known.

When not to use it
------------------
For text. Where several tokens share a time by design (byte pieces of one word), give them the same time: a shared frame
is no step backwards.

References
----------
Formulas B4.4.

Examples
--------
The two rows of the source: "for" belongs into frame 12 and stands in 15, "(" into 13 and stands in 14:

>>> from stabilitykit.detectors.token_frames import TOKEN_FRAMES
>>> from stabilitykit.detectors.trace import trace
>>> (out,) = trace(TOKEN_FRAMES, [{"times": [1_200_000, 1_300_000], "frames": [15, 14]}])
>>> out["drift"], out["index"], out["backwards_count"], out["excess_count"]
(3.0, 0.0, 1.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.frames import frame_of_us
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["TOKEN_FRAMES", "token_frames_kernel"]


@kernel
def steps_back(frames: Block, count: int) -> int:
    """Count the elements that are less than the one before."""
    back = 0
    for j in range(1, count):
        back += 1 if frames[j] < frames[j - 1] else 0
    return back


@kernel
def greatest_drift(frames: Block, times: Block, count: int, frame_us: int) -> tuple[float, float]:
    """Give the difference of frames where it is greatest, and where that is; 0 and unknown where there is none."""
    drift, index = 0.0, math.nan
    for j in range(count):
        apart = float(frames[j]) - float(frame_of_us(times[j], frame_us))
        if abs(apart) > abs(drift):
            drift, index = apart, float(j)
    return drift, index


@kernel
def token_frames_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare frames with times; c is ``frame``."""
    frames, times, out = n[io[0]], n[io[1]], io[2]
    for k in range(5):
        x[out + k] = math.nan
    if frames > 0 and times > 0:
        drift, index = greatest_drift(ids[io[0]], ids[io[1]], min(frames, times), int(c[0]))
        x[out] = drift
        x[out + 1] = abs(drift)
        x[out + 2] = index
    if frames > 0:
        x[out + 3] = float(steps_back(ids[io[0]], frames))
    if frames + times > 0:
        x[out + 4] = float(frames - times)
    return 0


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (float(settings["frame"]),)


TOKEN_FRAMES = DetectorSpec(
    type="token_frames",
    doc="tokens of speech or code that stand in another frame than the one they belong into",
    inputs={"frames": "token_frames", "times": "token_times_us"},
    settings=(SettingSpec("frame", 100_000, "length of a frame in microseconds", kind="count", lo=1, hi=2**53),),
    outputs=(
        OutputSpec("drift", "count", "actual minus expected frame where they differ most"),
        OutputSpec("max_drift", "count", "the same without its sign", lo=0.0),
        OutputSpec("index", "count", "which token", "count", lo=0.0),
        OutputSpec("backwards_count", "count", "tokens in an earlier frame than the one before", "count", lo=0.0),
        OutputSpec("excess_count", "count", "frames minus times"),
    ),
    kernel=token_frames_kernel,
    layout=lambda settings: Layout(),
    config=_config,
)
"""See the module."""

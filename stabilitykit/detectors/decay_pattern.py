"""A speed that ramps down, settles low, or comes back: an automaton over the mean relative change.

One slow turn is noise; a run of turns each slower than the last is a pattern. Its states are INIT (0: the
usual level), RAMPING_DOWN (1) and STABILIZING (2: the fall has ended, the level is still low).

Inputs
------
input
    Any positive number: a rate with ``direction: down``, a latency with ``direction: up``.

Settings
--------
window
    Changes in the mean. What one value's noise does to the mean falls as 1/window.
ramp, flat
    The mean change per turn below which a fall begins, and above which it has ended; in the band between
    them the state stays (hysteresis). For a latency the sign is flipped.
recovery
    Share of the level before the ramp at which it is over, by the mean of the last ``window`` values.
settle
    Turns in STABILIZING after which the low level is the usual one.

Outputs
-------
state
    0, 1 or 2.
slope
    Mean relative change per turn over the window, in the sign of the input.
is_ramping, is_stuck
    State 1, state 2; unknown on a turn without a change.

Notes
-----
The change of a turn is ``(x_i - x_{i-1}) / x_{i-1}``, unknown after a value that is not positive. The level
before the ramp is the exponentially weighted mean (A4.4's weight) of the values that had left the window when
the ramp began. The state moves at most one step a turn:

=============  ================  ==========================  ==================
state          slope below ramp  between                     slope above flat
=============  ================  ==========================  ==================
INIT           RAMPING_DOWN      INIT                        INIT
RAMPING_DOWN   RAMPING_DOWN      RAMPING_DOWN                STABILIZING
STABILIZING    RAMPING_DOWN      INIT if back or settled     INIT if back or settled
=============  ================  ==========================  ==================

The source's automaton never leaves STABILIZING and lets an unknown change fall through; this one is as above.

When not to use it
------------------
A sudden drop is a matter for ``throughput_cliff`` and ``itl_breaker``. Averages of relative changes lean
upward when values are noisy (from 1 to 2 is +1, back is -0.5), so a noisy latency wants a longer window.

References
----------
Formulas A3.2.

Examples
--------
A rate falls by a fifth on each of five turns, stays low, and comes back:

>>> from stabilitykit.detectors.decay_pattern import DECAY_PATTERN
>>> from stabilitykit.detectors.trace import trace
>>> rates = [80.0] * 6 + [64.0, 51.0, 41.0, 33.0, 26.0] + [26.0] * 6 + [80.0] * 6
>>> states = [out["state"] for out in trace(DECAY_PATTERN, rates, {"window": 4})]
>>> [int(s) for s in states[4:]]
[0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0, 0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.ewma import COUNT, LIMIT, MEAN, ewma_update
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["DECAY_PATTERN", "decay_pattern_kernel", "next_state"]

INIT, RAMPING_DOWN, STABILIZING = 0, 1, 2
LAST, CHANGES, PLACE, STATE, WAITED, RING = 3, 4, 5, 6, 7, 8
"""Places in f behind the mean; at RING the window's changes, then its values."""
ALPHA = 0.05
DIRECTIONS = ("down", "up")


@kernel
def next_state(state: int, fall: float, ramp: float, flat: float, is_over: bool) -> int:
    """Give the state after a mean change ``fall`` (negative: worse); ``is_over``: back at the level, or settled."""
    if fall < ramp:
        return 1
    if state == 1:
        return 2 if fall > flat else 1
    return 2 if state == 2 and not is_over else 0


@kernel
def mean_of_ring(f: Block, start: int, first: int, window: int) -> float:
    """Give the mean of a full ring, summed from its oldest value."""
    total = 0.0
    for k in range(start + first, start + window):
        total += float(f[k])
    for k in range(start, start + first):
        total += float(f[k])
    return total / window


@kernel
def take_change(f: Block, window: int, value: float) -> bool:
    """Put a value into the window; tells whether it brought a change."""
    last = float(f[LAST])
    change = (value - last) / last if last > 0.0 else math.nan
    f[LAST] = value
    if not abs(change) <= LIMIT:
        return False
    place = int(f[PLACE])
    if int(f[STATE]) == 0:
        if int(f[CHANGES]) >= window:
            ewma_update(f, float(f[RING + window + place]), ALPHA)
        elif float(f[COUNT]) == 0.0:
            ewma_update(f, last, ALPHA)
    f[RING + place] = change
    f[RING + window + place] = value
    f[PLACE] = float(place + 1 if place + 1 < window else 0)
    f[CHANGES] = min(float(f[CHANGES]) + 1.0, float(window))
    return True


@kernel
def is_back(f: Block, c: Block, level: float) -> bool:
    """Tell whether the level is that before the ramp, or has been low for so long that it is the usual one."""
    usual = float(f[MEAN])
    reached = level >= float(c[4]) * usual if float(c[1]) > 0.0 else level * float(c[4]) <= usual
    return reached or float(f[WAITED]) >= float(c[5])


@kernel
def step(f: Block, c: Block, slope: float, level: float) -> int:
    """Move the automaton by one turn; gives 0."""
    state = int(f[STATE])
    over = is_back(f, c, level)
    after = next_state(state, slope * float(c[1]), float(c[2]), float(c[3]), over)
    if after == 0 and state == 2 and float(f[WAITED]) >= float(c[5]):
        f[COUNT] = 0.0
        f[MEAN] = 0.0
        ewma_update(f, level, ALPHA)
    f[WAITED] = float(f[WAITED]) + 1.0 if after == 2 else 0.0
    f[STATE] = float(after)
    return 0


@kernel
def decay_pattern_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take a value, move the automaton.

    c is ``window, sign, ramp, flat, recovery, settle``; f is ``count, mean, variance`` of the usual level, last
    value, changes in the window, next place, state, turns in STABILIZING, changes, values.
    """
    value, out, window = float(x[io[0]]), io[1], int(c[0])
    slope = math.nan
    if abs(value) <= LIMIT and take_change(f, window, value) and int(f[CHANGES]) == window:
        slope = mean_of_ring(f, RING, int(f[PLACE]), window)
        step(f, c, slope, mean_of_ring(f, RING + window, int(f[PLACE]), window))
    known = not math.isnan(slope)
    state = float(f[STATE])
    x[out] = state if int(f[CHANGES]) == window else math.nan
    x[out + 1] = slope
    x[out + 2] = (1.0 if state == 1.0 else 0.0) if known else math.nan
    x[out + 3] = (1.0 if state == 2.0 else 0.0) if known else math.nan
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=RING + 2 * int(settings["window"]))


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    sign = 1.0 if settings["direction"] == "down" else -1.0
    return (
        float(settings["window"]),
        sign,
        -float(settings["ramp"]),
        -float(settings["flat"]),
        float(settings["recovery"]),
        float(settings["settle"]),
    )


DECAY_PATTERN = DetectorSpec(
    type="decay_pattern",
    doc="a rate that falls turn after turn, settles low, or comes back (a latency that rises, likewise)",
    inputs={"input": ""},
    settings=(
        SettingSpec(
            "direction",
            "down",
            "which way is worse: down for a rate, up for a latency",
            "enum",
            "enum",
            values=DIRECTIONS,
        ),
        SettingSpec(
            "window",
            8,
            "changes in the mean; on 11 hosted endpoints noise made six ramping turns in a row with 5, three with 8 "
            "(benchmarks/subjects/trends.py)",
            kind="count",
            lo=1,
            hi=32,
            shapes_memory=True,
        ),
        SettingSpec(
            "ramp", 0.05, "mean fall per turn that begins a ramp; the source's (A3.2)", "ratio", lo=0.0, hi=1.0
        ),
        SettingSpec(
            "flat", 0.01, "mean fall per turn below which it has ended; the source's (A3.2)", "ratio", lo=0.0, hi=1.0
        ),
        SettingSpec(
            "recovery", 0.95, "share of the level before the ramp that ends it (A3.2)", "ratio", lo=0.0, hi=1.0
        ),
        SettingSpec(
            "settle",
            50,
            "turns after which the low level is the usual one; as the breaker's longest freeze (A4.4)",
            kind="count",
            lo=1,
            hi=65535,
        ),
    ),
    outputs=(
        OutputSpec("state", "count", "0 INIT, 1 RAMPING_DOWN, 2 STABILIZING", "count", lo=0.0, hi=2.0),
        OutputSpec("slope", "ratio", "mean relative change per turn", lo=-LIMIT, hi=LIMIT),
        OutputSpec("is_ramping", "bool", "it gets worse turn after turn", kind="bool", lo=0.0, hi=1.0),
        OutputSpec("is_stuck", "bool", "the fall has ended, the level is still low", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=decay_pattern_kernel,
    layout=_layout,
    config=_config,
    model_bound=True,
    on_applied={"reset_context": "rebase", "trim_context": "rebase", "rollback_snapshot": "rebase"},
)
"""See the module. A context that the host cut changes the speed by itself, so the automaton starts afresh."""

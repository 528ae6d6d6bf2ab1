"""How far another clock is ahead, how fast it runs away, and how well that is known.

Inputs
------
samples
    Readings of two clocks in nanoseconds, one after the other: local, remote, local, remote ... (``clock_samples``).
    With ``columns: 3`` each reading has a third number, the round trip it took; the local reading then is the
    middle of it.

Settings
--------
window, least
    Latest readings that count, and those below which nothing is said.
columns
    2, or 3 with round trips.
bound
    Slope in ppm that no crystal exceeds.

Maths
-----
``offset = remote - local`` by itself ages: at 50 ppm it is 5 us wrong after 100 ms. So a line is fitted by least
squares through the offsets of the window, centred at the newest reading: its height there is ``offset_ns``, its
slope ``skew_ppm``. Differences are taken of 64-bit integers and only then become floats, so nothing is lost on
clocks that count from 1970.

A reading whose round trip exceeds 1.5 times the least of the window is left out (Cristian). So is one whose residual
lies further than five median absolute deviations from the median residual, one nanosecond at least. Three such in a
row to the same side are no outliers: the clock was set, and the line begins anew with them. It begins anew as well
when either clock runs backwards (a counter that wrapped, a restart) or when 104 days lie between two readings. A slope
over the bound is kept at the bound, and ``is_bounded`` says so.

When not to use it
------------------
With readings whose delay differs by direction: half the difference goes into the offset, and no statistics sees it.
On offsets above 2^53 ns (one clock from 1970, one from boot) ``offset_ns`` is rounded to 256 ns, the skew is not:
subtract a first reading from each clock, as ``stabilitykit.sources.probes.ClockProbe`` does.

References
----------
.. [1] formulas B2.4: 50 ppm, 100 ms, 50 ns of jitter: offset only 5 us, this line 105 ns at most.
.. [2] F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989.
.. [3] D. L. Mills et al., "Network Time Protocol Version 4", RFC 5905.

Examples
--------
A clock that is 7 us ahead and runs 50 ppm fast, read every 100 ms; the 15th reading is delayed by 2 ms:

>>> from stabilitykit.detectors.clock_sync import CLOCK_SYNC
>>> from stabilitykit.detectors.trace import trace
>>> times = [n * 100_000_000 for n in range(20)]
>>> late = [2_000_000 * (n == 14) for n in range(20)]
>>> turns = trace(CLOCK_SYNC, [[t, t + 7000 + t // 20_000 - d] for t, d in zip(times, late)])
>>> [round(turns[-1][name], 3) for name in ("offset_ns", "skew_ppm", "n_count")]
[102000.0, 50.0, 19.0]
>>> turns[8]["skew_ppm"], round(turns[9]["skew_ppm"], 3), round(turns[14]["offset_ns"], 3)
(nan, 50.0, 77000.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.line_fit import CUT, line_fit, residual_spread
from stabilitykit.kernels.pointers import Block
from stabilitykit.kernels.wide_int import read_wide, write_wide
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["CLOCK_SYNC", "clock_sync_kernel"]

FARTHEST = 1 << 61
"""Readings beyond it are none: the difference of two others fits 64 bits."""
EXACT = 2.0**53
ROUND_TRIPS = 1.5
"""Least round trips that a reading may take (Cristian)."""
STEP = 3
"""Outliers in a row, of one size, that are a step of the clock."""
COUNT, STRAYS, STRAY, TRIPS, XS = 0, 1, 2, 3, 4
"""Readings held; strays in a row, the first one's distance from the line; round trips seen; then the window's times."""
LOCAL, REMOTE = 0, 2
"""Words of the newest reading."""


@kernel
def is_slow(f: Block, window: int, trip: int) -> bool:
    """Take a round trip in, and tell whether it is too long beside the least of the window."""
    trips, ring = int(f[TRIPS]), XS + 2 * window
    f[ring + trips % window] = float(trip)
    f[TRIPS] = float(trips + 1 if trips + 1 < 2 * window else window)
    least = float(trip)
    for k in range(min(trips + 1, window)):
        least = min(least, float(f[ring + k]))
    return float(trip) > ROUND_TRIPS * least


@kernel
def fitted(f: Block, window: int, bound: float) -> tuple[float, float, float, float, float]:
    """Fit the line without outliers: slope, height at the newest reading, residual, points, whether it was kept in."""
    count, ys, scratch = int(f[COUNT]), XS + window, XS + 3 * window
    slope, base, residual, used, kept = line_fit(f, XS, ys, count, 0.0, 0.0, 0.0, math.inf, bound)
    if math.isnan(slope):
        return slope, base, residual, used, kept
    middle, spread = residual_spread(f, XS, ys, count, slope, base, scratch)
    return line_fit(f, XS, ys, count, slope, base, middle, max(CUT * spread, 1.0), bound)


@kernel
def is_step(f: Block, window: int, least: float, bound: float) -> bool:
    """Tell whether the reading at hand (0, 0) is one stray of a size too many."""
    strays = 0.0
    if float(f[COUNT]) >= least:
        slope, base, _residual, _used, _kept = fitted(f, window, bound)
        middle, spread = residual_spread(f, XS, XS + window, int(f[COUNT]), slope, base, XS + 3 * window)
        away = -base - middle
        if abs(away) > 2.0 * max(CUT * spread, 1.0):
            ratio = away / float(f[STRAY]) if float(f[STRAYS]) > 0.0 else 0.0
            strays = float(f[STRAYS]) + 1.0 if ratio >= 0.5 and ratio <= 2.0 else 1.0
            if strays == 1.0:
                f[STRAY] = away
    f[STRAYS] = strays
    return strays >= STEP


@kernel
def shift(f: Block, window: int, elapsed: float, change: float) -> int:
    """Move the window so that a reading that much later lies at (0, 0); gives 0."""
    for k in range(int(f[COUNT])):
        f[XS + k] = float(f[XS + k]) - elapsed
        f[XS + window + k] = float(f[XS + window + k]) - change
    return 0


@kernel
def keep_last(f: Block, window: int, last: int) -> int:
    """Forget all but some latest readings; gives 0."""
    gone = int(f[COUNT]) - last
    if gone > 0:
        for k in range(last):
            f[XS + k] = f[XS + gone + k]
            f[XS + window + k] = f[XS + window + gone + k]
        f[COUNT] = float(last)
    return 0


@kernel
def take_reading(f: Block, h: Block, local: int, remote: int, c: Block) -> int:
    """Add one reading to the window; gives 0."""
    window, before = int(c[0]), int(f[COUNT])
    if before > 0:
        elapsed = local - read_wide(h, LOCAL)
        went = remote - read_wide(h, REMOTE)
        if elapsed == 0:
            return 0
        if elapsed < 0 or went < 0 or float(elapsed) > EXACT or float(went) > EXACT:
            f[COUNT] = 0.0
            f[STRAYS] = 0.0
        else:
            shift(f, window, float(elapsed), float(went - elapsed))
            if is_step(f, window, float(c[1]), float(c[3])):
                keep_last(f, window, STEP - 1)
                f[STRAYS] = 0.0
    keep_last(f, window, window - 1)
    count = int(f[COUNT])
    f[XS + count] = 0.0
    f[XS + window + count] = 0.0
    f[COUNT] = float(count + 1)
    write_wide(h, LOCAL, local)
    write_wide(h, REMOTE, remote)
    return 0


@kernel
def clock_sync_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Take the readings of a sample and fit; c is ``window, least, columns, bound`` (a slope)."""
    numbers, out, window, columns = int(n[io[0]]), io[1], int(c[0]), int(c[2])
    for k in range(5):
        x[out + k] = math.nan
    if numbers < columns:
        return 0
    now = -FARTHEST
    for k in range(numbers // columns):
        local, remote = int(ids[io[0]][columns * k]), int(ids[io[0]][columns * k + 1])
        trip = int(ids[io[0]][columns * k + 2]) if columns == 3 else 0
        is_sound = abs(local) < FARTHEST and abs(remote) < FARTHEST and trip >= 0
        if is_sound:
            now = local
            if columns == 2 or not is_slow(f, window, trip):
                take_reading(f, h, local, remote, c)
    x[out + 3] = float(f[COUNT])
    if float(f[COUNT]) >= float(c[1]):
        slope, base, residual, used, kept = fitted(f, window, float(c[3]))
        since = max(now - read_wide(h, LOCAL), 0)
        x[out] = float(read_wide(h, REMOTE) - read_wide(h, LOCAL)) + (base + slope * float(since))
        x[out + 1] = 1e6 * slope
        x[out + 2] = residual
        x[out + 3] = used
        x[out + 4] = kept
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout(f8=XS + 4 * int(settings["window"]), u4=4)


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    window = float(settings["window"])
    return window, min(float(settings["least"]), window), float(settings["columns"]), 1e-6 * float(settings["bound"])


CLOCK_SYNC = DetectorSpec(
    type="clock_sync",
    doc="offset and skew of another clock, by a line through the last readings",
    inputs={"samples": "clock_samples"},
    settings=(
        SettingSpec("window", 20, "latest readings that count (B2.4)", kind="count", lo=3, hi=64, shapes_memory=True),
        SettingSpec("least", 10, "readings below which nothing is said; half a window", kind="count", lo=3, hi=64),
        SettingSpec(
            "columns",
            2,
            "numbers of a reading: 2, or 3 with its round trip",
            kind="count",
            lo=2,
            hi=3,
            shapes_memory=True,
        ),
        SettingSpec("bound", 200.0, "greatest slope in ppm that is believed (B2.4)", lo=1.0, hi=1e6),
    ),
    outputs=(
        OutputSpec("offset_ns", "count", "remote - local at the newest reading, used or not, in nanoseconds"),
        OutputSpec("skew_ppm", "count", "microseconds a second that the remote clock gains"),
        OutputSpec("residual_ns", "count", "root mean square distance of the readings from the line", lo=0.0),
        OutputSpec("n_count", "count", "readings that the line goes through", "count", lo=0.0, hi=64.0),
        OutputSpec("is_bounded", "bool", "the slope was over the bound", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=clock_sync_kernel,
    layout=_layout,
    config=_config,
)
"""See the module. The language has no nanoseconds and no ppm: such outputs are plain numbers, the unit in the name."""

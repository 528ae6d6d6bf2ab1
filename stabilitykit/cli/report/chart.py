"""The geometry of a conversation's chart: numbers and paths, no markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs

from stabilitykit.cli.report.series import CURVES, Curve, Track, bands, thinned

__all__ = ["Chart", "Panel", "draw"]

LEFT, RIGHT, WIDTH = 64.0, 14.0, 960.0
_STRIP, _GAP, _AXIS, _HEAD = 16.0, 20.0, 26.0, 18.0
_POINTS, _BANDS, _MARKS, _DOTS = 700, 300, 150, 120
_TALL, _LOW = 84.0, 64.0


@attrs.frozen
class Tick:
    """A labelled place on an axis."""

    at: float
    text: str


@attrs.frozen
class Dot:
    """One measured value, with what it says when pointed at."""

    x: float
    y: float
    text: str


@attrs.frozen
class Panel:
    """One signal over the turns."""

    title: str
    unit: str
    top: float
    height: float
    path: str
    ticks: Sequence[Tick]
    dots: Sequence[Dot]
    lone: Sequence[Dot]
    is_empty: bool


@attrs.frozen
class Stretch:
    """A state for a while: where it lies and what it says."""

    x: float
    width: float
    state: int
    text: str
    name: str


@attrs.frozen
class Chart:
    """Everything to draw of one conversation."""

    height: float
    bottom: float
    panels: Sequence[Panel]
    stretches: Sequence[Stretch]
    marks: Sequence[Dot]
    ticks: Sequence[Tick]


class _Scale:
    """Turns to x; each turn owns a column of equal width."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.count = first, last - first + 1

    def left(self, turn: float) -> float:
        return LEFT + (turn - self.first) / self.count * (WIDTH - LEFT - RIGHT)

    def middle(self, turn: float) -> float:
        return self.left(turn + 0.5)


def draw(track: Track, states: Sequence[str]) -> Chart:
    """Lay out the chart of one conversation."""
    scale = _Scale(track.at[0], track.at[-1])
    top = _STRIP + _GAP + 6
    panels = []
    for curve, values in zip(CURVES[track.scope], track.values, strict=True):
        height = _LOW if curve.unit == "%" else _TALL
        panels.append(_panel(curve, top + _HEAD, height, track, values, scale))
        top += _HEAD + height + _GAP
    bottom = top - _GAP
    marks = track.fired if len(track.fired) <= _MARKS else track.fired[:: math.ceil(len(track.fired) / _MARKS)]
    return Chart(
        height=bottom + _AXIS,
        bottom=bottom,
        panels=panels,
        stretches=list(_stretches(track, states, scale)),
        marks=[Dot(_r(scale.middle(at)), _STRIP, f"{track.what} {at}: {rules} fired") for at, rules in marks],
        ticks=_turn_ticks(scale),
    )


def _stretches(track: Track, states: Sequence[str], scale: _Scale) -> Iterable[Stretch]:
    for band in bands(track.at, track.states, _BANDS):
        x, end = scale.left(band.first), scale.left(band.last + 1)
        where = f" {band.first}" if band.first == band.last else f"s {band.first}-{band.last}"
        name = states[band.state]
        fits = end - x > 7.5 * len(name) + 10
        yield Stretch(_r(x), _r(end - x), band.state, f"{track.what}{where}: {name}", name if fits else "")


def _panel(curve: Curve, top: float, height: float, track: Track, values: Sequence[float], scale: _Scale) -> Panel:
    known = [v for v in values if v == v]
    highest = _ceiling(max(known, default=0.0), at_least=100.0 if curve.unit == "%" else 1.0)

    def y(value: float) -> float:
        return _r(top + height * (1 - value / highest))

    points = [(t, _r(scale.middle(t)), v) for t, v in thinned(track.at, values, _POINTS)]
    shown = [Dot(x, y(v), f"{track.what} {t}: {v:,.4g} {curve.unit}") for t, x, v in points if v == v]
    lone = [
        Dot(x, y(v), "")
        for k, (_, x, v) in enumerate(points)
        if v == v and not _is_known(points, k - 1) and not _is_known(points, k + 1)
    ]
    return Panel(
        curve.title,
        curve.unit,
        top,
        height,
        path=_path(points, y),
        ticks=[Tick(y(highest * share), _number(highest * share)) for share in (0.0, 0.5, 1.0)],
        dots=shown if len(track.at) <= _DOTS else (),
        lone=lone,
        is_empty=not known,
    )


def _is_known(points: Sequence[tuple[int, float, float]], k: int) -> bool:
    return 0 <= k < len(points) and points[k][2] == points[k][2]


def _path(points: Sequence[tuple[int, float, float]], y: object) -> str:
    parts, is_open = [], False
    for _, x, value in points:
        if value != value:
            is_open = False
            continue
        parts.append(f"{'L' if is_open else 'M'}{x:g} {y(value):g}")  # type: ignore[operator]
        is_open = True
    return "".join(parts)


_ENDS, _STEPS = (1, 1.5, 2, 3, 4, 5, 8), (1, 2, 5)


def _ceiling(value: float, *, at_least: float, digits: Sequence[float] = _ENDS) -> float:
    """Give the next of these digits times a power of ten: the end of an axis, the step of its ticks."""
    value = max(value, at_least)
    power = 10.0 ** math.floor(math.log10(value))
    return next((m * power for m in digits if m * power >= value * (1 - 1e-9)), 10 * power)


def _number(value: float) -> str:
    if value >= 1e6:
        return f"{value:.2g}"
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:g}"


def _turn_ticks(scale: _Scale) -> list[Tick]:
    step = max(1, int(_ceiling(scale.count / 12, at_least=1.0, digits=_STEPS)))
    last = scale.first + scale.count - 1
    turns = [t for t in range(scale.first, last + 1) if t % step == 0 or t == scale.first]
    return [Tick(_r(scale.middle(t)), f"{t:,}") for t in turns if t == scale.first or t - scale.first > 0.7 * step]


def _r(value: float) -> float:
    return round(value, 2)

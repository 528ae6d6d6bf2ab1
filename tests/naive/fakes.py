"""Two trivial detectors with naive twins, to test engines where no phenomenon matters."""

from __future__ import annotations

from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.rules.pack import DetectorUse
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec

__all__ = ["FAKES", "FAKE_TWINS"]

NAN = float("nan")


@kernel
def fake_mean(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Mean of all known values, and whether this one is above the mean before it."""
    value, out = x[io[0]], io[1]
    x[out + 1] = NAN
    if value == value:
        if f[1] > 0.0:
            x[out + 1] = 1.0 if value > f[0] / f[1] else 0.0
        f[0] += value
        f[1] += 1.0
    x[out] = f[0] / f[1] if f[1] > 0.0 else NAN
    return 0


@kernel
def fake_peak(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Greatest known value so far."""
    value, out = x[io[0]], io[1]
    if value == value and (f[1] == 0.0 or value > f[0]):
        f[0] = value
        f[1] = 1.0
    x[out] = f[0] if f[1] > 0.0 else NAN
    return 0


class MeanTwin:
    """What ``fake_mean`` must give."""

    def __init__(self, use: DetectorUse) -> None:
        self.seen: list[float] = []

    def reset(self) -> None:
        """Forget everything."""
        self.seen = []

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one value."""
        value = inputs["input"]
        before = total(self.seen) / len(self.seen) if self.seen else None
        if value is not None:
            self.seen.append(value)
        return {
            "mean_ms": total(self.seen) / len(self.seen) if self.seen else None,
            "is_above": None if value is None or before is None else float(value > before),
        }


class PeakTwin:
    """What ``fake_peak`` must give."""

    def __init__(self, use: DetectorUse) -> None:
        self.peak: float | None = None

    def reset(self) -> None:
        """Forget everything."""
        self.peak = None

    def update(self, inputs: dict[str, Any]) -> dict[str, float | None]:
        """Take one value."""
        value = inputs["input"]
        if value is not None and (self.peak is None or value > self.peak):
            self.peak = value
        return {"peak_ms": self.peak}


def total(values: list[float]) -> float:
    """Sum in order (the built-in sum compensates)."""
    result = 0.0
    for value in values:
        result += value
    return result


FAKES = {
    "fake_mean": DetectorSpec(
        type="fake_mean",
        doc="the mean so far",
        inputs={"input": "itl_ms"},
        settings=(),
        outputs=(
            OutputSpec("mean_ms", "ms", "mean so far", lo=0.0, hi=1e9),
            OutputSpec("is_above", "bool", "above the mean before", "bool", 0, 1),
        ),
        kernel=fake_mean,
        layout=lambda settings: Layout(f8=2),
        config=lambda settings: (),
        model_bound=True,
        on_applied={"trim_context": "rebase", "reset_context": "skip"},
    ),
    "fake_peak": DetectorSpec(
        type="fake_peak",
        doc="the greatest value so far",
        inputs={"input": "ttft_ms"},
        settings=(),
        outputs=(OutputSpec("peak_ms", "ms", "greatest value so far", lo=0.0, hi=1e9),),
        kernel=fake_peak,
        layout=lambda settings: Layout(f8=2),
        config=lambda settings: (),
        default_scope="replica",
    ),
}
FAKE_TWINS = {"fake_mean": MeanTwin, "fake_peak": PeakTwin}

"""What holds for every registered detector, without its author writing a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import pytest

from stabilitykit.detectors import DETECTORS
from stabilitykit.detectors.baseline import BASELINE
from stabilitykit.detectors.trace import Instance, compiled_kernel
from stabilitykit.kernels.compile import is_available
from stabilitykit.signals import CATALOGUE, DetectorSpec, Weights

PROBE = {"centre": 9, "features": 10, "means": 10, "now": 9, "before": 9, "product": 9}
MODELS = {
    "drift": Weights(
        "", {"bias": np.zeros(1), "threshold": np.full(1, 0.5)} | {k: np.linspace(-1, 2, n) for k, n in PROBE.items()}
    ),
    "intent": Weights("", {"weights": np.sin(np.arange(27.0)).reshape(3, 9), "bias": np.zeros(3)}),
}
BASE: dict[str, dict[str, Any]] = {
    "drift_probe": {"dim": 9, "model": MODELS["drift"]},
    "intent_churn": {"model": MODELS["intent"]},
    "intent_drift": {"dim": 9},
    "kl_shift": {"vocab_size": 64, "k_max": 8},
}
TURNS = {"quantile": 1060}
LENGTHS = {"snapshot": 12, "embedding": 9, "logprobs": 64, "prev_logprobs": 64, "top_token_ids": 8, "top_logprobs": 8}
LOOSE = {
    "drift_probe": 1e-6,
    "intent_churn": 1e-12,
    "intent_drift": 1e-12,
    "kl_shift-full": 5e-6,
    "kl_shift-full_pair": 5e-6,
}
"""Tolerance of detectors whose machine code adds products in another order, or in float32; all else is exact."""
SENTINEL = -12345.678
GUARD = 8


def variants(spec: DetectorSpec) -> list[dict[str, Any]]:
    """Give settings that reach every word of every enum setting."""
    base = BASE.get(spec.type, {})
    words = [{s.name: v} for s in spec.settings for v in s.values if v != s.default]
    return [base, *({**base, **w} for w in words)]


CASES = [
    pytest.param(spec, settings, id=f"{name}-{'-'.join(map(str, settings.values()))}")
    for name, spec in DETECTORS.items()
    for settings in variants(spec)
]
every_detector = pytest.mark.parametrize(("spec", "settings"), CASES)


def sample(signal: str, rng: np.random.Generator) -> Any:
    """Draw a plausible value of a signal; one in twenty is an extreme of its domain."""
    known = CATALOGUE.get(signal)
    if known is None:
        return float(rng.choice([-1e300, 1e300, 2.0**63]) if rng.random() < 0.05 else rng.lognormal(3.0, 1.0))
    if known.kind == "array":
        n = LENGTHS.get(signal, int(rng.integers(1, 12)))
        if "logprobs" in signal:
            return np.log(rng.dirichlet(np.full(n, 0.5)) + 1e-30).astype(np.float32)
        if known.unit == "probability":
            return rng.dirichlet(np.full(n, 0.5)).astype(np.float32)
        if known.dtype == "float32":
            return rng.standard_normal(n).astype(np.float32)
        return rng.permutation(40)[:n].astype(np.int64) if signal == "top_token_ids" else rng.integers(0, 40, n)
    if rng.random() < 0.05:
        return float(rng.choice([known.lo, min(known.hi, 2.0**53), known.hi]))
    if known.unit == "ratio":
        return float(rng.uniform(0, 1))
    value = float(rng.lognormal(3.0, 1.0))
    return float(math.floor(value)) if known.kind == "count" else value


def stream(spec: DetectorSpec, seed: int) -> list[dict[str, Any]]:
    """Draw turns: each input is unknown on some of them, all inputs on a few."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(TURNS.get(spec.type, 70)):
        share = rng.choice([0.0, 0.0, 0.0, 0.3, 1.0], p=[0.3, 0.3, 0.2, 0.15, 0.05])
        rows.append({k: None if rng.random() < share else sample(s, rng) for k, s in spec.inputs.items()})
    return rows


class Case:
    """One detector with settings and the kernel under test."""

    def __init__(self, spec: DetectorSpec, settings: Mapping[str, Any], kernel: Callable[..., Any] | None = None):
        self.spec, self.settings, self.kernel = spec, settings, kernel
        self.rows = stream(spec, 1)

    def fresh(self) -> Instance:
        """Give a fresh detector."""
        return Instance(self.spec, self.settings, self.kernel)

    def run(self, instance: Instance, rows: list[dict[str, Any]]) -> str:
        """Give the outputs of some turns as text, which tells -0.0 from 0.0 and equates NaN."""
        return repr([instance.update(row) for row in rows])


def memory_of(instance: Instance) -> bytes:
    """Give all state of a detector."""
    return b"".join(block.tobytes() for block in instance.memory)


def check_outputs(case: Case) -> None:
    """Every output is written on every call, inside its domain; a bool is 0, 1 or unknown."""
    instance = case.fresh()
    for row in case.rows:
        instance.values[len(case.spec.inputs) :] = SENTINEL
        for output, value in zip(case.spec.outputs, instance.update(row).values(), strict=True):
            assert value != SENTINEL, output.name
            assert math.isnan(value) or output.lo <= value <= output.hi, (output.name, value)
            assert not math.isinf(value), output.name
            assert output.kind != "bool" or value in (0.0, 1.0) or math.isnan(value), (output.name, value)


def check_unknown(case: Case) -> None:
    """A turn without any known input changes no memory."""
    instance = case.fresh()
    for row in case.rows:
        before = memory_of(instance)
        instance.update(dict.fromkeys(case.spec.inputs))
        assert memory_of(instance) == before
        instance.update(row)


def check_bounds(case: Case) -> None:
    """Words on both sides of every block keep their values: nothing is written outside the layout."""
    instance = case.fresh()
    wide = [np.full(len(b) + 2 * GUARD, 77, b.dtype) for b in (*instance.memory, instance.values, instance.config)]
    inner = []
    for block, around in zip((*instance.memory, instance.values, instance.config), wide, strict=True):
        around[GUARD : len(around) - GUARD] = block
        inner.append(around[GUARD : len(around) - GUARD])
    instance.memory, instance.values, instance.config = tuple(inner[:4]), inner[4], inner[5]
    config = instance.config.copy()
    case.run(instance, case.rows)
    for around in wide:
        assert (around[:GUARD] == 77).all()
        assert (around[-GUARD:] == 77).all()
    assert (instance.config == config).all()


def check_inputs_kept(case: Case) -> None:
    """Arrays of the host are read, never written."""
    instance = case.fresh()
    for row in case.rows:
        before = {k: np.array(v) for k, v in row.items() if v is not None}
        instance.update(row)
        for name, value in before.items():
            np.testing.assert_array_equal(row[name], value)


def check_deterministic(case: Case) -> None:
    """The same turns give the same outputs and the same memory."""
    one, two = case.fresh(), case.fresh()
    assert case.run(one, case.rows) == case.run(two, case.rows)
    assert memory_of(one) == memory_of(two)


def check_restore(case: Case) -> None:
    """A copy of the memory continues like the original."""
    half = len(case.rows) // 2
    one, two = case.fresh(), case.fresh()
    case.run(one, case.rows[:half])
    for target, source in zip(two.memory, one.memory, strict=True):
        target[:] = source
    assert case.run(one, case.rows[half:]) == case.run(two, case.rows[half:])


def check_reset(case: Case) -> None:
    """After a reset it is a fresh one."""
    used = case.fresh()
    case.run(used, case.rows)
    used.reset()
    fresh = case.fresh()
    assert memory_of(used) == memory_of(fresh)
    assert case.run(used, case.rows) == case.run(fresh, case.rows)


def check_interleaved(case: Case) -> None:
    """Two sessions by turns are each as if alone."""
    others = stream(case.spec, 2)
    one, two = case.fresh(), case.fresh()
    mixed = [(one.update(a), two.update(b)) for a, b in zip(case.rows, others, strict=True)]
    assert repr([a for a, _ in mixed]) == case.run(case.fresh(), case.rows)
    assert repr([b for _, b in mixed]) == case.run(case.fresh(), others)


CHECKS = (
    check_outputs,
    check_unknown,
    check_bounds,
    check_inputs_kept,
    check_deterministic,
    check_restore,
    check_reset,
    check_interleaved,
)


@every_detector
@pytest.mark.parametrize("check", CHECKS)
def test_plain(check, spec, settings):
    """The plain kernel keeps the contract."""
    check(Case(spec, settings))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Give compiled kernels, each compiled once into a cache of this run."""
    if not is_available():
        pytest.skip("numba is not available")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STABILITYKIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield {name: compiled_kernel(spec) for name, spec in DETECTORS.items()}


@every_detector
def test_compiled(compiled, spec, settings):
    """The compiled kernel keeps the contract, and is the plain one to the bit, memory included (or declared loose)."""
    mode = f"-{settings['mode']}" if "mode" in settings else ""
    tolerance = LOOSE.get(spec.type + mode, 0.0)
    case = Case(spec, settings, compiled[spec.type])
    for check in CHECKS:
        check(case)
    fast, plain = case.fresh(), Case(spec, settings).fresh()
    for turn, row in enumerate(case.rows, start=1):
        got, want = fast.update(row), plain.update(row)
        if tolerance:
            assert list(got.values()) == pytest.approx(list(want.values()), rel=tolerance, abs=tolerance, nan_ok=True)
        else:
            assert (repr(got), memory_of(fast)) == (repr(want), memory_of(plain)), turn


@every_detector
def test_says_something(spec, settings):
    """Random turns make at least one output known, so the checks above are not about unknowns only."""
    if settings.get("method") == "static":
        settings = {**settings, "baseline_ms": 20.0}
    instance = Case(spec, settings).fresh()
    assert any(not math.isnan(v) for row in stream(spec, 1) for v in instance.update(row).values())


def test_registered_by_their_type():
    """The registration list goes by the word in YAML; names, docs and defaults are in order."""
    for name, spec in DETECTORS.items():
        assert spec.type == name
        assert all(o.doc and o.name for o in spec.outputs)
        for s in spec.settings:
            assert s.doc, (name, s.name)
            assert s.values == () or s.default in s.values
            assert s.kind in ("enum", "bool", "file") or s.lo <= s.default <= s.hi, (name, s.name)
        for signal in spec.inputs.values():
            assert signal in ("", "timestamp_s") or signal in CATALOGUE  # a time is no signal
        for reaction in spec.on_applied.values():
            assert reaction in ("rebase", "skip", "none")


# Deliberately broken baselines: each breaks one promise, and the contract must notice.


def skips_output(x, f, *rest):
    """Leave the last output as it was."""
    kept = x[-1]
    BASELINE.kernel(x, f, *rest)
    x[-1] = kept
    return 0


def leaves_domain(x, f, *rest):
    """Give a negative deviation."""
    BASELINE.kernel(x, f, *rest)
    x[2] = -1.0
    return 0


def learns_from_unknown(x, f, *rest):
    """Count a turn without a value."""
    unknown = math.isnan(x[0])
    BASELINE.kernel(x, f, *rest)
    f[0] += unknown
    return 0


def writes_outside(x, f, *rest):
    """Write one float past its memory, as compiled code can."""
    BASELINE.kernel(x, f, *rest)
    if f.base is not None and len(f.base) > len(f):
        f.base[GUARD + len(f)] = 1.0
    return 0


def writes_config(x, f, h, w, v, c, *rest):
    """Change its own configuration."""
    BASELINE.kernel(x, f, h, w, v, c, *rest)
    c[0] += 0.01
    return 0


_HIDDEN = np.zeros(3)


def shares_memory(x, f, *rest):
    """Keep its state in a module instead of its row."""
    return BASELINE.kernel(x, _HIDDEN, *rest)


@pytest.mark.parametrize(
    ("kernel", "check"),
    [
        (skips_output, check_outputs),
        (leaves_domain, check_outputs),
        (learns_from_unknown, check_unknown),
        (writes_outside, check_bounds),
        (writes_config, check_bounds),
        (shares_memory, check_deterministic),
        (shares_memory, check_restore),
        (shares_memory, check_reset),
        (shares_memory, check_interleaved),
    ],
)
def test_contract_notices(kernel, check):
    """A broken kernel fails the check of the promise that it breaks."""
    _HIDDEN[:] = 0
    broken = attrs.evolve(BASELINE, kernel=kernel)
    with pytest.raises(AssertionError):
        check(Case(broken, {"warmup": 3}))

"""What one more detector costs a turn: its marginal time inside the pass, against a peer where there is one.

The pass calls every detector through a table of addresses; here one compiled loop does so for a single detector, turn
after turn, and the time of a detector that does nothing is taken off. Arrays are as long as ``LENGTHS`` says. What this
input says nothing to (all outputs unknown) has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.measure import Figure, significant, times
from benchmarks.workload import turns as workload
from stabilitykit import Engine, Turn
from stabilitykit.detectors import DETECTORS
from stabilitykit.detectors.trace import KINDS, Instance
from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_detector, compile_entry
from stabilitykit.kernels.pointers import Block, call_detector
from stabilitykit.signals import CATALOGUE, DetectorSpec, Weights

TURNS, ROUNDS = 20_000, 9
LENGTH = 64
LENGTHS = {"top_token_ids": 20, "top_logprobs": 20, "embedding": 384, "logprobs": 0, "prev_logprobs": 0}
PROBE = ("centre", "features", "means", "now", "before", "product")
SETTINGS: dict[str, dict[str, Any]] = {
    "drift_probe": {
        "dim": 384,
        "model": Weights(
            "",
            {"bias": np.zeros(1), "threshold": np.full(1, 0.5)}
            | {k: np.ones(10 if k in PROBE[1:3] else 384) for k in PROBE},
        ),
    },
    "intent_churn": {"model": Weights("", {"weights": np.ones((8, 384)), "bias": np.zeros(8)})},
}
PEERS = {
    "baseline": ("rolling_var",), "quantile": ("rolling_quantile", "ddsketch"), "transition_spike": ("ddsketch",),
    "itl_breaker": ("adwin", "page_hinkley", "purgatory", "pybreaker"), "throughput_cliff": ("page_hinkley",),
    "excursion": ("rolling_quantile",), "decay_pattern": ("adwin",),
}  # fmt: skip
HALF = {"transition_spike"}
"""At most half of the peer; the others at most the peer."""
CHAT_TARGET = 2.5


@kernel
def run_turns(
    kernels: Any, count: Block, feed: Block, x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block,
    arr: Any, ids: Any, lengths: Block,
) -> int:  # fmt: skip
    """Give row after row to one detector."""
    inputs = int(count[1])
    for k in range(int(count[0])):
        for j in range(inputs):
            x[j] = float(feed[k * inputs + j])
        call_detector(kernels, 0, x, f, h, w, v, c, io, arr, ids, lengths)
    return 0


@kernel
def nothing(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Do nothing, as a detector."""
    return 0


def passes(spec: DetectorSpec, one: Instance, fn: Callable[..., int]) -> Callable[[], int]:
    """Make a batch of turns of one detector, or of what is called in its place."""
    entry = compile_entry(run_turns, ("i8", "i8", "f8", *KINDS))
    rng = np.random.default_rng(3)
    columns = [column(signal, rng) for signal in spec.inputs.values()]
    arrays = [np.ascontiguousarray(a, np.dtype(d or "f4")) for a, d in drawn(spec, rng)]
    table = np.array([a.ctypes.data for a in arrays], np.int64)
    lengths = np.array([*(len(a) for a in arrays), 0], np.int64)
    feed = np.ascontiguousarray(np.array(columns).T)
    kernels = np.array([compile_detector(fn).address], np.int64)
    count = np.array([TURNS, len(columns)], np.int64)
    blocks = (kernels, count, feed, one.values, *one.memory, one.config, one._io, table, table, lengths)
    addresses = np.array([b.ctypes.data for b in blocks], np.int64)

    def batch(kept: Any = (blocks, arrays)) -> int:
        return entry(addresses.ctypes.data)

    return batch


def column(signal: str, rng: np.random.Generator) -> Any:
    """Draw a signal that varies by a tenth inside its domain; a clock goes on."""
    spec = CATALOGUE.get(signal)
    if signal.endswith("_s"):
        return np.arange(float(TURNS))
    high = min(spec.hi, 100.0) if spec is not None else 100.0
    return np.minimum(high * 0.5 * rng.lognormal(0, 0.1, TURNS), high)


def drawn(spec: DetectorSpec, rng: np.random.Generator) -> Iterator[tuple[Any, str]]:
    for signal in spec.inputs.values():
        dtype = CATALOGUE[signal].dtype if signal in CATALOGUE else ""
        size = LENGTHS.get(signal, LENGTH) if dtype else 0
        values = np.arange(size) if "i" in dtype or "u" in dtype else -rng.random(size)
        yield values, dtype


def fed(update: Callable[[float], object]) -> Callable[[], None]:
    values = column("itl_ms", np.random.default_rng(3))[:2000].tolist()

    def batch() -> None:
        for value in values:
            update(value)

    return batch


def peers() -> dict[str, Callable[[], None]]:
    """Make batches of 2,000 updates of every named peer."""
    import purgatory
    import pybreaker
    from ddsketch import DDSketch
    from river import drift, stats, utils

    breaker = purgatory.SyncCircuitBreakerFactory().get_breaker("itl")

    def guarded(value: float) -> None:
        with breaker:
            pass

    call = pybreaker.CircuitBreaker(fail_max=3, reset_timeout=60).call
    return {
        "adwin": fed(drift.ADWIN().update),
        "page_hinkley": fed(drift.PageHinkley().update),
        "rolling_quantile": fed(stats.RollingQuantile(0.99, 100).update),
        "rolling_var": fed(utils.Rolling(stats.Var(), 20).update),
        "ddsketch": fed(DDSketch(0.01).add),
        "purgatory": fed(guarded),
        "pybreaker": fed(lambda value: call(abs, value)),
    }


def rows() -> list[Figure]:
    """Measure every registered detector, all in turn with all peers."""
    named = peers()
    ones = {name: Instance(spec, SETTINGS.get(name)) for name, spec in DETECTORS.items()}
    batches = [
        passes(DETECTORS[name], one, fn) for name, one in ones.items() for fn in (DETECTORS[name].kernel, nothing)
    ]
    found = times([*batches, *named.values()], ROUNDS)
    each = dict(zip(named, (t / 2000 for t in found[len(batches) :]), strict=True))
    figures = []
    for k, (name, one) in enumerate(ones.items()):
        if np.isnan(one.values[len(DETECTORS[name].inputs) :]).all():
            continue
        cost = max(found[2 * k] - found[2 * k + 1], 0.0) / TURNS
        if not PEERS.get(name):
            figures.append(Figure(f"marginal_{name}", f"{name}: ns a turn inside the pass", significant(cost)))
        for peer in PEERS.get(name, ()):
            target = 0.5 if name in HALF else 1.0
            note = f"{cost:.0f} ns against {each[peer]:.0f} ns"
            what = f"{name}, inside the pass / an update of {peer}"
            figures.append(Figure(f"marginal_{name}_{peer}", what, significant(cost / each[peer]), target, note))
    return figures


def chat() -> Figure:
    """Give a turn of `chat` with its scalars against the bench of 25 detectors and 40 rules."""
    from benchmarks.detectors import pack
    from benchmarks.peers import engine_of

    given = workload(4000)
    plain = [Turn(session_id=f"s{s}", **values) for s, values in given]
    bench, whole = engine_of(pack()), Engine.load("chat")
    a, b = best([lambda: walk(bench, plain), lambda: walk(whole, plain)])
    note = f"{b / 4e6:.2f} us against {a / 4e6:.2f} us"
    return Figure("marginal_chat", "chat, all scalars / 25 detectors + 40 rules", significant(b / a), CHAT_TARGET, note)


def walk(engine: Engine, given: Sequence[Turn]) -> None:
    for turn in given:
        engine.evaluate(turn)


def best(batches: Sequence[Callable[[], object]]) -> list[float]:
    """Give the best of some rounds in turn: a neighbour on this machine can only add."""
    rounds = [times(batches, 1) for _ in range(15)]
    return [min(side) for side in zip(*rounds, strict=True)]


def run() -> list[Figure]:
    return [*rows(), chat()]

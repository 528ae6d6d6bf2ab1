"""25 detectors and 40 rules: scalars only, then with an embedding and log-probabilities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.measure import Figure, over, significant, times
from benchmarks.peers import engine_of
from benchmarks.workload import NAMES, pack_text, rules, turns
from stabilitykit import Turn


def pack() -> str:
    """23 detectors of scalars, one of the embedding, one of the log-probabilities."""
    lines = ["detectors:"]
    lines += [f"  base{k}: {{type: baseline, input: {name}}}" for k, name in enumerate(NAMES[:18])]
    lines += [f"  over{k}: {{type: itl_breaker, input: {name}}}" for k, name in enumerate(NAMES[:5])]
    lines += ["  intent: {type: intent_drift}", "  kl: {type: kl_shift}"]
    return pack_text(rules()) + "\n".join(lines) + "\n"


def empty_call():
    from numba import njit

    @njit
    def nothing(a, b, c):
        return 0

    arrays = np.zeros(20), np.zeros(40), np.zeros(40, np.int64)
    nothing(*arrays)
    return lambda _: nothing(*arrays)


def run() -> list[Figure]:
    from scipy.spatial.distance import cosine

    text, given = pack(), turns(4000)
    r = np.random.default_rng(5)
    scalars, full = engine_of(text), engine_of(text)
    plain = [Turn(session_id=f"s{s}", **d) for s, d in given]
    stock = [r.standard_normal(384).astype(np.float32) for _ in range(64)]
    tops = [np.sort(np.log(r.dirichlet(np.ones(21))[:20]))[::-1].astype(np.float32) for _ in range(64)]
    ids = [r.choice(50_000, 20, replace=False).astype(np.int64) for _ in range(64)]
    rich = [
        Turn(session_id=f"s{s}", embedding=stock[k % 64], top_logprobs=tops[k % 64], top_token_ids=ids[k % 61], **d)
        for k, (s, d) in enumerate(given)
    ]
    live = scalars._live
    for turn in plain[:2000]:
        scalars.evaluate(turn)
    assert not full.evaluate(rich[0]).faults
    nothing = empty_call()
    call, address = live.call, live.address
    vectors = [(a, b) for a, b in pairwise(stock)] * 16
    found = times(
        [
            over(plain, scalars.evaluate),
            over(plain, lambda _: call(address)),
            over(plain, nothing),
            over(rich, full.evaluate),
            over(vectors, lambda pair: cosine(*pair)),
        ]
    )
    whole, bare, empty, arrays = (t / len(plain) for t in found[:4])
    scipys = found[4] / len(vectors)
    note = f"{whole / 1e3:.2f} us, pass {bare / 1e3:.2f} us, empty call {empty / 1e3:.3f} us"
    return [
        Figure(
            "detectors_evaluate",
            "25 detectors + 40 rules, evaluate / empty numba call",
            significant(whole / empty),
            11,
            note,
        ),
        Figure("detectors_pass", "the bare pass / empty numba call", significant(bare / empty), 7.5),
        Figure(
            "detectors_arrays",
            "with embedding and top-20 / one scipy cosine",
            significant(arrays / scipys),
            0.65,
            f"{arrays / 1e3:.2f} us against {scipys / 1e3:.2f} us",
        ),
    ]

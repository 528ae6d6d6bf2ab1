from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.kv import KVPolicy
from stabilitykit.mitigations.kv.layout import BUCKETS, CLASS, FINE, HEADER, MARK_WORDS, MARKS, WORDS
from stabilitykit.mitigations.kv.simulate import hits_of
from stabilitykit.mitigations.kv.survival_index import note_index
from stabilitykit.mitigations.kv.table import find
from stabilitykit.mitigations.kv.trace import Trace
from tests.naive.kv_policies import LOW, best_ratios


@given(st.lists(st.floats(0.0, 0.999) | st.sampled_from([0.0, 1e-9, 0.5, 0.999]), min_size=BUCKETS, max_size=BUCKETS))
def test_best_horizon(hazards):
    """In one pass the best ratio of reuse to time is found that a look at every horizon finds."""
    index = np.empty(BUCKETS)
    note_index(np.array(hazards), np.array(LOW), index, np.zeros(3 * BUCKETS))
    assert index.tolist() == pytest.approx(best_ratios(hazards), rel=1e-9)


def class_of(cache: KVPolicy, block: int) -> tuple[int, int, int]:
    """Give a block's coarse class, level and group of what was new."""
    m = cache._memory.m
    found = int(m[m[MARKS] + find(m, block) * MARK_WORDS + CLASS])
    return found // FINE, found % FINE // 8, found % 8


def test_classes():
    """Level: how often the path had grown before the block came; group: octaves of what was new in the prompt."""
    cache = KVPolicy(capacity=64)
    assert cache._memory.m[HEADER + WORDS] == 0
    cache.request([1, 2, 3])
    assert [class_of(cache, b) for b in (1, 2, 3)] == [(0, 0, 2)] * 3
    cache.request([1, 2, 3, 4], is_partial=True)
    assert [class_of(cache, b) for b in (1, 3, 4)] == [(2, 0, 1), (2, 0, 1), (1, 1, 1)]
    cache.request([1, 2, 3, 4, 5, *range(10, 26)])
    assert [class_of(cache, b) for b in (1, 4, 5, 25)] == [(4, 0, 4), (2, 1, 4), (0, 2, 4), (0, 2, 4)]
    cache.request([1, 2, 3])
    assert [class_of(cache, b) for b in (1, 4, 5)] == [(6, 0, 0), (2, 1, 4), (0, 2, 4)]


def test_classes_block_by_block():
    """Told block by block, a prompt is new as far as unseen blocks were admitted; levels are the same."""
    cache = KVPolicy(capacity=64)
    for parent, block in ((None, 1), (1, 2), (2, 3)):
        cache.admit(block, parent, at=0.0)
    assert [class_of(cache, b) for b in (1, 2, 3)] == [(0, 0, 1), (0, 0, 1), (0, 0, 2)]
    cache.admit(4, 3, at=1.0)
    assert [class_of(cache, b) for b in (1, 3, 4)] == [(2, 0, 0), (2, 0, 0), (0, 1, 1)]


@pytest.mark.capability("issue 5 §2: survival learns from a prompt's size which blocks come back")
def test_prompts_tell_more_than_uses():
    """Short prompts come back once, long ones never: whoever tells them apart keeps the short ones."""
    rng, waiting, paths, fresh = np.random.default_rng(4), list[list[int]](), list[list[int]](), 0
    for r in range(1500):
        if len(waiting) > 40 and r % 3 == 0:
            paths.append(waiting.pop(0))
        else:
            length = int(rng.choice([4, 40]))
            paths.append([*range(fresh, fresh + length)])
            fresh += length
            if length == 4:
                waiting.append(paths[-1])
    flat = np.array([block for path in paths for block in path])
    starts = np.cumsum([0, *map(len, paths)])
    trace = Trace(flat, starts, np.arange(1500.0), np.zeros(1500, np.int64))
    uses, prompts = (hits_of(trace, "survival", 400, classes=name)[500:].sum() for name in ("uses", "prompts"))
    assert prompts > 1.2 * uses > 0

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import RecordError, UsageError
from stabilitykit.mitigations.kv.simulate import hits_of, simulate
from stabilitykit.mitigations.kv.trace import Trace, next_uses, read_trace

MOONCAKE = (
    {"timestamp": 0, "input_length": 1200, "output_length": 3, "hash_ids": [0, 1, 2]},
    {"timestamp": 3000, "input_length": 1024, "output_length": 9, "hash_ids": [0, 1]},
)


def trace_of(*paths: list[int]) -> Trace:
    """Make a trace without times."""
    flat = np.array([block for path in paths for block in path], np.int64)
    starts = np.cumsum([0, *map(len, paths)])
    return Trace(flat, starts, np.arange(float(len(paths))), np.zeros(len(paths), np.int64))


@pytest.mark.capability("issue 5 §2: traces in Mooncake's format and a plain one")
def test_formats(tmp_path):
    """Both formats give the same requests; times and partial blocks are Mooncake's alone."""
    one, two = tmp_path / "a.jsonl", tmp_path / "b.txt"
    one.write_text("\n".join(map(json.dumps, MOONCAKE)) + "\n\n")
    two.write_text("# two requests\n0 1 2\n0,1, 1\n")
    counted: list[int] = []
    first, second = read_trace(one, counted.append), read_trace(two)
    for trace in (first, second):
        assert (trace.blocks.tolist(), trace.starts.tolist(), len(trace), trace.distinct) == (
            [0, 1, 2, 0, 1], [0, 3, 5], 2, 3,
        )  # fmt: skip
    assert (first.at_s.tolist(), first.partial.tolist()) == ([0.0, 3.0], [1, 0])
    assert (second.at_s.tolist(), second.partial.tolist()) == ([0.0, 1.0], [0, 0])
    assert sum(counted) == one.stat().st_size
    assert first.part(1, 2).blocks.tolist() == [0, 1]
    assert first.flat().starts.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no request"), ("# nothing\n", "no request"), ("1 2\nthree\n", ":2: neither"), ("{}\n", ":1: no hash_ids"),
        ('{"hash_ids": [1.5]}', ":1: neither"), ('{"hash_ids": 7}', ":1: neither"), ("{", ":1: neither"),
        ('{"hash_ids": [true]}', ":1: neither"), (str(2**64), ":1: neither"), ("{" * 9999 + '"a":', ":1: neither"),
        ('{"hash_ids": [1], "timestamp": "soon"}', ":1: neither"),
    ],
)  # fmt: skip
def test_bad_traces(tmp_path, text, told):
    """What is no trace is refused with its line."""
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(RecordError, match=told):
        read_trace(path)
    with pytest.raises(RecordError, match="No such file"):
        read_trace(tmp_path / "none")


@given(st.lists(st.lists(st.integers(0, 9), max_size=4, unique=True), max_size=20))
def test_next_uses(paths):
    """When each block comes back, by looking."""
    trace, found = trace_of(*paths), []
    for r, path in enumerate(paths):
        for block in path:
            later = [q for q in range(r + 1, len(paths)) if block in paths[q]]
            found.append(float(later[0]) if later else np.inf)
    assert next_uses(trace).tolist() == found


@pytest.mark.capability("issue 5 §2: hit ratios by policy and size, with the Belady bound")
def test_simulate():
    """The bound bounds, a cache as large as everything hits what can be hit, and progress adds up."""
    rng = np.random.default_rng(3)
    trace = trace_of(*([int(a), 100 + 10 * int(a) + int(b)] for a, b in rng.integers(0, 6, (300, 2))))
    done: list[int] = []
    names = ["lru", "survival", "fifo", "belady"]
    found = {(s.policy, s.capacity): s for s in simulate(trace, names, [4, 100], progress=done.append)}
    assert sum(done) == 8 * len(trace.blocks)
    possible = 1 - trace.distinct / len(trace.blocks)
    for name in names:
        assert found[name, 100].hit_ratio == pytest.approx(possible)
        assert 0 < found[name, 4].hit_ratio <= found["belady", 4].hit_ratio
    with pytest.raises(UsageError, match="sizes from 1"):
        list(simulate(trace, ["lru"], [0]))
    with pytest.raises(UsageError, match="policies are"):
        list(simulate(trace, ["mru"], [1]))
    assert [s.hit_ratio for s in simulate(trace_of(), ["lru"], [1])] == [0.0]


def flat_requests() -> Trace:
    """Give keys of which few are asked for often, and runs of keys that never come back."""
    rng = np.random.default_rng(11)
    popular = np.minimum(rng.zipf(1.2, 12_000), 4_000)
    scan = np.arange(10_000, 13_000)
    return trace_of(*([int(key)] for key in np.concatenate([popular[:6_000], scan, popular[6_000:]])))


@pytest.mark.capability("issue 5 §2: hit counts of FIFO, LRU, LFU, SIEVE and Belady are libcachesim's in flat mode")
@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "sieve", "belady"])
@pytest.mark.parametrize("capacity", [10, 300, 2_000])
def test_libcachesim(policy, capacity):
    """Request by request the same hits as the library's own implementation."""
    library = pytest.importorskip("libcachesim", reason="no libcachesim for this system")
    trace = flat_requests()
    nexts = next_uses(trace)
    name = {"fifo": "FIFO", "lru": "LRU", "lfu": "LFU", "sieve": "Sieve", "belady": "Belady"}[policy]
    cache, hits = getattr(library, name)(capacity), []
    for k, (key, later) in enumerate(zip(trace.blocks.tolist(), nexts.tolist(), strict=True)):
        asked = library.Request(obj_id=key, obj_size=1, clock_time=k, next_access_vtime=int(min(later, 2.0**62)))
        hits.append(int(cache.get(asked)))
    assert hits_of(trace, policy, capacity, nexts, may_refuse=False).tolist() == hits


@pytest.mark.slow
@pytest.mark.capability("issue 5 §2: on a real trace the cache stays a prefix tree within its capacity")
def test_real_trace(shared_data):
    """The first requests of a public trace: every policy stays within Belady's bound."""
    trace = read_trace(shared_data / "traces" / "mooncake_conversation.jsonl").part(0, 1500)
    bound = hits_of(trace, "belady", 800).sum()
    for policy in ("survival", "lru", "lru-k", "slru", "hybrid", "fifo", "lfu", "sieve"):
        assert 0 < hits_of(trace, policy, 800).sum() <= bound


def test_a_line_without_an_end(tmp_path):
    """A line of more than 1 MiB is refused with its number, and no more of it is read; one of 1 MiB is a request."""
    path = tmp_path / "t"
    path.write_text("1 2\n" + "7 " * (1 << 19) + "8\n")
    with pytest.raises(RecordError, match=r"t:2: a line of more than 1 MiB"):
        read_trace(path)
    path.write_text("7 " * ((1 << 19) - 1) + "8\n")
    assert read_trace(path).blocks.tolist() == [7, 8]
    with pytest.raises(RecordError, match=r"/dev/zero:1: a line of more than 1 MiB"):
        read_trace(Path("/dev/zero"))

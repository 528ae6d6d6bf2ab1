from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.kv_aging import KV_AGING
from stabilitykit.detectors.trace import Instance, compiled_kernel
from stabilitykit.errors import UsageError
from stabilitykit.sources.block_tracker import BlockTracker, prefix_blocks

PATHS = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 2), min_size=1, max_size=5)), min_size=1, max_size=30
)
"""Requests: who, and which branch is taken at each depth."""


def path_of(branches):
    """Name blocks by the way to them, so that they form a tree."""
    ids, name = [], 1
    for branch in branches:
        name = 4 * name + branch
        ids.append(name)
    return ids


class Replay:
    """Keeps every access of every block and answers from the whole history."""

    def __init__(self, method, window, lag):
        self.method, self.window, self.lag, self.now = method, window, max(lag, window), 0
        self.times, self.owner, self.parents = {}, {}, {}

    def touch(self, session, ids):
        """Note one request."""
        self.now += 1
        known = [b in self.times for b in ids]
        for parent, block in zip([None, *ids], ids, strict=False):
            self.times.setdefault(block, []).append(self.now)
            self.owner[block] = session
            self.parents[block] = parent
        return known.index(False) if False in known else len(ids)

    def age(self, block):
        """Give a block's age."""
        times = self.times[block]
        if self.method == "idle":
            return min((self.now - times[-1]) / self.window, 1)
        now, before = self.reuses(times, self.now), self.reuses(times, self.now - self.lag)
        if before:
            return min(max(1 - now / before, 0), 1)
        return 0.0 if now else None if self.now - times[0] < self.window + self.lag else 1.0

    def reuses(self, times, until):
        """Count accesses after the first, in the window that ends at a time."""
        return sum(until - self.window < t <= until for t in times[1:])

    def pollution(self, session):
        """Give the share of marked leaves among the leaves of a session; deeper blocks are bigger."""
        leaves = [b for b, s in self.owner.items() if s == session and b not in self.parents.values()]
        ages = [self.age(b) for b in leaves]
        if all(a is None for a in ages):
            return None
        marked = sum(size(b) for b, a in zip(leaves, ages, strict=True) if a is not None and a >= 0.7)
        return marked / sum(map(size, leaves))


def size(block):
    """Give some bytes."""
    return 1.0 + block % 7


@pytest.mark.capability(
    "issue 3 §1: KV block tracker: ages, hits and byte-weighted pollution of leaves equal a replay of the whole history"
)
@given(PATHS, st.sampled_from(["idle", "formula"]), st.integers(1, 6), st.integers(1, 6))
def test_equals_a_replay_of_everything(requests, method, window, lag):
    """Any prefix tree, two sessions: exactly the brute-force answer after every request."""
    tracker, replay = BlockTracker(method=method, window=window, lag=lag), Replay(method, window, lag)
    for session, branches in requests:
        ids = path_of(branches)
        report = tracker.touch(session, ids, sizes=[size(b) for b in ids])
        assert report is not None
        assert report.hit_blocks == replay.touch(session, ids)
        for block in replay.times:
            age = tracker.age(block)
            assert (None if math.isnan(age) else age) == replay.age(block)
        for who in "ab":
            wanted = replay.pollution(who)
            assert tracker.pollution(who) == pytest.approx(math.nan if wanted is None else wanted, nan_ok=True)
        assert (report.pollution_ratio == tracker.pollution(session)) or math.isnan(report.pollution_ratio)


@given(PATHS)
def test_reading_changes_nothing(requests):
    """Ages, tiers, marks and pollution are pure reads: asked or not, the same answers later."""
    quiet, asked = BlockTracker(), BlockTracker()
    for session, branches in requests:
        one = quiet.touch(session, path_of(branches))
        for block in path_of(branches):
            asked.age(block), asked.tier(block), asked.age(-1)
        list(asked.marked())
        two = asked.touch(session, path_of(branches))
        assert one is not None
        assert two is not None
        assert (one.hit_blocks, one.tier_bytes) == (two.hit_blocks, two.tier_bytes)


@pytest.mark.capability("issue 3 §1: KV block tracker: a clock that runs backwards is refused and counted")
def test_a_clock_that_runs_backwards_is_refused():
    """Seconds: an earlier or missing time notes nothing; tiers follow seconds of idleness."""
    tracker = BlockTracker(method="idle", clock="seconds", window=10)
    assert tracker.touch("a", [1, 2], at=100.0) is not None
    assert tracker.touch("a", [3], at=99.0) is None
    assert tracker.touch("a", [3]) is None
    assert (tracker.backwards, len(tracker)) == (2, 2)
    tracker.touch("b", [9], at=103.0)
    assert tracker.tier(2) == 1
    report = tracker.touch("a", [1], at=107.0)
    assert report is not None
    assert report.tier_bytes == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "lru"}, {"window": 0}, {"capacity": 0}, {"clock": "days"}, {"clock": "seconds"},
        {"window": math.inf}, {"window": math.nan}, {"lag": math.nan}, {"lag": -1}, {"capacity": math.nan},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong):
    """A mistake of the caller is an error; a map measured in requests reads no seconds."""
    with pytest.raises(UsageError, match=r"method must be one of|must be above 0|measured in requests"):
        BlockTracker(**wrong)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [1.0] * 3])
def test_sizes_that_cannot_be_are_refused(sizes):
    """Other than one finite size from 0 on for each block is an error, and nothing is noted."""
    tracker = BlockTracker()
    with pytest.raises(UsageError, match="sizes are one finite number"):
        tracker.touch("a", [1, 2], sizes=sizes)
    assert len(tracker) == 0


@pytest.mark.parametrize("at", [math.inf, -math.inf, math.nan, None])
def test_a_time_that_is_none_does_no_lasting_harm(at):
    """The request is refused, and counted; the next one with a time is noted."""
    tracker = BlockTracker(method="idle", clock="seconds")
    assert tracker.touch("a", [1], at=at) is None
    assert tracker.touch("a", [1], at=5.0) is not None
    assert (tracker.backwards, len(tracker)) == (1, 1)


@pytest.mark.parametrize(("tokens", "width"), [([1.5], 1), ([1], 0), ([1], -2), (["1"], 1)])
def test_prefix_blocks_of_no_tokens(tokens, width):
    """Tokens that are no whole numbers would be cut off; a block holds one at least."""
    with pytest.raises(UsageError, match=r"whole numbers?"):
        prefix_blocks(tokens, width)


def test_eviction_by_the_host_is_followed():
    """An evicted block is unknown again, its parent a leaf; one that never was is no error."""
    tracker = BlockTracker(method="idle", window=2)
    tracker.touch("a", [1, 2])
    for _ in range(3):
        tracker.touch("b", [5])
    assert list(tracker.marked()) == [2]
    tracker.evict(2)
    tracker.evict(77)
    assert list(tracker.marked()) == [1]
    assert math.isnan(tracker.age(2))


def traced(shared_data, name):
    """Give the block ids of each request of a public trace."""
    lines = (shared_data / "traces" / f"mooncake_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["hash_ids"] for line in lines]


@pytest.mark.capability("issue 3 §1: KV block tracker on public serving traces: bounded, leaf first")
@pytest.mark.parametrize("name", ["conversation", "synthetic"])
def test_a_public_trace_is_followed(shared_data, name):
    """A real server's block ids: the tracker's hits are the trace's, and what it forgets is always a leaf."""
    requests = traced(shared_data, name)[:1500]
    tracker, small, seen = BlockTracker(), BlockTracker(capacity=2000), set()
    for number, ids in enumerate(requests):
        report = tracker.touch(number % 50, ids)
        less = small.touch(number % 50, ids)
        assert report is not None
        assert less is not None
        wanted = next((i for i, b in enumerate(ids) if b not in seen), len(ids))
        assert report.hit_blocks == wanted >= less.hit_blocks
        seen.update(ids)
        assert len(small) <= 2000
    assert len(tracker) == len(seen)
    orphans = sum(b.parent is not None and b.parent not in small._blocks for b in small._blocks.values())
    assert orphans == 0
    ages = [tracker.age(b) for b in seen]
    assert np.mean([a >= 0.7 for a in ages]) > 0.2


@pytest.mark.capability(
    "issue 3 §1: KV aging per block: `kv_aging` reads a public trace through the tracker, ages agree"
)
def test_the_detector_reads_what_the_tracker_gives(shared_data):
    """The same requests through both: every block known to both has one age, and the shares follow."""
    settings = {"method": "aging_calibrated", "slots": 8192}
    detector = Instance(KV_AGING, settings, compiled_kernel(KV_AGING))
    tracker = BlockTracker()
    out: dict[str, float] = {}
    for ids in traced(shared_data, "conversation")[:120]:
        report = tracker.touch("all", ids)
        assert report is not None
        out = detector.update({"blocks": report.block_ids})
    ages = [tracker.age(b) for b in tracker._blocks]
    assert out["age"] == pytest.approx(np.mean(ages), abs=0.01)
    assert out["pollution_ratio"] == pytest.approx(np.mean([a >= 0.7 for a in ages]), abs=0.01)
    assert out["second_tier_ratio"] == pytest.approx(np.mean([0.3 <= a < 0.7 for a in ages]), abs=0.01)


@pytest.mark.capability(
    "issue 3 §1: KV block tracker: blocks made from tokens hit as a recorded llama.cpp server reused them"
)
def test_a_recorded_server_reused_what_the_tracker_says(root):
    """Two chats in turn on one slot that holds the last prompt: hits never exceed, and match when the chat changes."""
    with np.load(root / "tests" / "golden" / "prefixes.npz") as file:
        chats, reused = file["chat"].tolist(), file["reused"].tolist()
        prompts = np.split(file["ids"].astype(np.int64), np.cumsum(file["length"])[:-1])
    tracker, held = BlockTracker(), list[int]()
    for number, prompt in enumerate(prompts):
        blocks = prefix_blocks(prompt)
        report = tracker.touch(chats[number], blocks)
        assert report is not None
        assert 16 * report.hit_blocks <= reused[number]
        if number and chats[number] != chats[number - 1]:
            assert report.hit_blocks == reused[number] // 16 > 0
        for gone in set(held) - set(blocks):
            tracker.evict(gone)
        held = blocks


@given(st.lists(st.integers(0, 3), max_size=70), st.lists(st.integers(0, 3), max_size=70), st.integers(1, 16))
def test_prefix_blocks_are_equal_as_far_as_prompts_are(one, two, width):
    """Two prompts share exactly the full blocks of their common prefix; ids are signed 64-bit."""
    common = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    a, b = prefix_blocks(one, width), prefix_blocks(two, width)
    assert len(a) == len(one) // width
    assert sum(x == y for x, y in zip(a, b, strict=False)) == common // width
    report = BlockTracker().touch("s", [*a, 2**64 - 1, 2**63])
    assert report is not None
    assert report.block_ids.tolist() == [*a, -1, -(2**63)]

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.memory_loss import MEMORY_LOSS
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_twins
from tests.naive.memory_loss import MemoryLossTwin

tokens = st.one_of(st.none(), st.sampled_from([0, 1, 2048, 74706]), st.integers(0, 5000)).map(
    lambda v: None if v is None else float(v)
)
rows = st.lists(
    st.fixed_dictionaries({"sent": tokens, "used": tokens, "hits": st.one_of(st.none(), st.floats(0, 1))}), max_size=70
)


def out_of(rows, name):
    """Give one output turn by turn."""
    return [t[name] for t in trace(MEMORY_LOSS, rows)]


@given(rows, st.sampled_from([0.0, 0.1]), st.sampled_from([1, 3]))
def test_is_naive_twin(turns, lost, warmup):
    """The kernel is its naive twin, unknown turns and empty prompts among them."""
    check_twins(MEMORY_LOSS, MemoryLossTwin, turns, {"lost": lost, "warmup": warmup})


def test_long_collapse_becomes_usual():
    """After 50 turns without the cache its absence is the usual thing, in the twin as well."""
    turns = [{"used": 100.0 + i, "hits": 0.95 if i < 10 else 0.0} for i in range(90)]
    check_twins(MEMORY_LOSS, MemoryLossTwin, turns)
    assert out_of(turns, "is_collapsed")[10:60] == [1.0] * 50
    assert out_of(turns, "is_collapsed")[-1] == 0.0


def test_server_cuts_in_silence():
    """74,706 tokens were sent and 2,048 used: 97 % are lost, on the first turn of a session too."""
    (turn,) = trace(MEMORY_LOSS, [{"sent": 74706.0, "used": 2048.0}])
    assert turn["is_lost"] == 1.0
    assert round(turn["lost_ratio"], 2) == 0.97


def test_a_count_that_is_a_little_off_is_no_loss():
    """A tenth less is tolerated, as another tokenizer may count; more than was sent is nothing lost."""
    turns = trace(MEMORY_LOSS, [{"sent": 1000.0, "used": 900.0}, {"sent": 1000.0, "used": 1040.0}])
    assert [t["is_lost"] for t in turns] == [0.0, 0.0]
    assert turns[1]["lost_ratio"] == 0.0


def test_without_sent_the_prompt_must_not_shrink():
    """A conversation that grows does not lose; one whose prompt halves did."""
    assert out_of([{"used": u} for u in (100.0, 200.0, 310.0, 150.0)], "is_lost")[1:] == [0.0, 0.0, 1.0]


def test_a_long_message_is_no_cache_collapse():
    """The hit ratio halves because the message is long; what was held is still held."""
    turns = [{"used": u, "hits": h} for u, h in ((1000, 0.0), (1100, 0.9), (1200, 0.9), (1300, 0.9), (2800, 0.46))]
    last = trace(MEMORY_LOSS, [{k: float(v) for k, v in t.items()} for t in turns])[-1]
    assert last["kept_ratio"] > 0.9
    assert last["is_collapsed"] == 0.0


def test_a_server_without_cache_never_collapses():
    """Nothing kept on any turn is no collapse."""
    assert set(out_of([{"used": 100.0 * i, "hits": 0.0} for i in range(1, 9)], "is_collapsed")[4:]) == {0.0}


def test_first_turn_is_unknown():
    """Without what was sent and without a turn before nothing can be said."""
    assert all(math.isnan(v) for v in trace(MEMORY_LOSS, [{"used": 500.0, "hits": 0.5}])[0].values())

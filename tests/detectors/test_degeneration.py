from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.subjects.degeneration import goes_round, ordinary, ours, run
from stabilitykit.detectors.degeneration import DEGENERATION
from stabilitykit.detectors.trace import trace
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.degeneration import DegenerationTwin

token = st.one_of(st.integers(0, 6), st.integers(-(2**62), 2**62))


@st.composite
def answers(draw):
    """Draw an answer: noise, a cycle, noise."""
    noise = st.lists(token, max_size=60)
    cycle = draw(st.lists(token, min_size=1, max_size=30)) * draw(st.integers(0, 9))
    return draw(noise) + cycle + draw(noise)


rows = st.lists(
    st.fixed_dictionaries(
        {
            "output": st.one_of(st.none(), answers(), st.just(list(range(40)))),
            "progress": st.sampled_from([None, None, 1.0, 2.0]),
            "finish": st.sampled_from([None, 0.0, 2.0]),
            "logprobs": st.sampled_from([None, [-0.5, -2.0], [-3.0]]),
        }
    ),
    max_size=8,
)


def degenerate(turns, **settings):
    """Give is_degenerate turn by turn."""
    return [t["is_degenerate"] for t in trace(DEGENERATION, turns, settings)]


def words(seed, n, vocabulary=5000):
    """Draw an answer of n random tokens."""
    rng = random.Random(seed)
    return [rng.randrange(vocabulary) for _ in range(n)]


@given(rows, st.sampled_from([{}, {"max_period": 5, "tokens": 12}, {"copies": 2, "special_to": 4}]))
def test_is_naive_twin(turns, settings):
    """The kernel is its naive twin, huge and negative ids, tool calls and progress among them."""
    check_twins(DEGENERATION, DegenerationTwin, turns, settings)


def test_every_period_is_naive_twin():
    """So it is for a cycle of every period up to 130 between noise, in answers longer than what is looked at."""
    for period in range(1, 131):
        loop = words(period, period) * 4
        answer = words(1, 700) + (loop * 60)[: max(len(loop), 60)] + words(2, 330)
        check_twins(DEGENERATION, DegenerationTwin, [{"output": answer}])


@pytest.mark.capability("issue 3 §1: exact token cycles of period 1-128, at least 3 copies and 48 tokens")
@given(st.integers(1, 128), st.integers(0, 90), st.integers(0, 200), st.integers(0, 200), st.randoms())
def test_cycle_is_found(period, more, before, after, rng):
    """A cycle that just fulfils both conditions, or more, is found wherever it stands."""
    loop = rng.sample(range(10_000, 20_000), period)
    length = max(48, 3 * period) + more
    cycle = [loop[i % period] for i in range(length)]
    answer = [rng.randrange(5000) for _ in range(before)] + cycle + [rng.randrange(5000) for _ in range(after)]
    (turn,) = trace(DEGENERATION, [{"output": answer}])
    assert turn["cycle_period"] == period
    assert turn["cycle_copies"] == pytest.approx(length / period)
    assert turn["is_degenerate"] == 1.0


@given(st.integers(1, 128), st.randoms())
def test_a_shorter_cycle_is_none(period, rng):
    """One token short of three copies, or of 48 tokens, is no cycle."""
    loop = rng.sample(range(10_000, 20_000), period)
    cycle = [loop[i % period] for i in range(max(48, 3 * period) - 1)]
    answer = words(3, 60) + cycle + words(4, 60)
    assert trace(DEGENERATION, [{"output": answer}])[0]["cycle_period"] == 0.0


@given(st.integers(48, 1024), st.integers(1, 400))
def test_repetition_is_near_the_exact_share(n, vocabulary):
    """The estimate is within 0.04 of the exact share of repeated 3-grams of the last 256 tokens."""
    answer = words(n * 1000 + vocabulary, n, max(vocabulary // 40, 1))
    grams = [tuple(answer[i : i + 3]) for i in range(max(n - 256, 0), n - 2)]
    exact = 1 - len(set(grams)) / len(grams)
    assert trace(DEGENERATION, [{"output": answer}])[0]["repetition_ratio"] == pytest.approx(exact, abs=0.04)


def test_similarity_is_near_the_exact_share():
    """Over many pairs with a known overlap the estimate has the right mean and the promised spread."""
    errors = []
    for seed in range(60):
        first = words(seed, 200)
        second = first[: 20 + 3 * seed] + words(seed + 1000, 180 - 3 * seed)
        one, two = ({tuple(a[i : i + 3]) for i in range(len(a) - 2)} for a in (first, second))
        exact = len(one & two) / len(one | two)
        errors.append(trace(DEGENERATION, [{"output": first}, {"output": second}])[1]["similarity_ratio"] - exact)
    assert abs(np.mean(errors)) < 0.03
    assert np.std(errors) < 0.09


def test_a_few_changed_words_are_nearly_the_same():
    """Of 200 tokens three are others: nine pairs in ten are alike; with half of the reply new none is."""
    few, half = [], []
    for seed in range(60):
        rng, first = random.Random(seed), words(seed, 200)
        second = list(first)
        for place in rng.sample(range(200), 3):
            second[place] = rng.randrange(5000, 9000)
        other = first[:100] + words(seed + 500, 100)
        few.append(trace(DEGENERATION, [{"output": first}, {"output": second}])[1]["similarity_ratio"])
        half.append(trace(DEGENERATION, [{"output": first}, {"output": other}])[1]["similarity_ratio"])
    assert sum(share >= 0.8 for share in few) >= 54
    assert max(half) < 0.8


def test_the_same_reply_three_times():
    """The third copy in a row is a loop, and so is one of two replies that take turns."""
    a, b = {"output": words(1, 60)}, {"output": words(2, 60)}
    assert degenerate([a, a, a, b]) == [0.0, 0.0, 1.0, 0.0]
    assert degenerate([a, b, a, b]) == [0.0, 0.0, 0.0, 1.0]


def test_progress_makes_it_no_loop():
    """The same reply is fine as long as tool results change, and a loop when they no longer do."""
    same = words(1, 60)
    moving = [{"output": same, "progress": float(i)} for i in range(6)]
    assert degenerate(moving) == [0.0] * 6
    assert degenerate([*moving, *[{"output": same, "progress": 5.0}] * 2]) == [0.0] * 7 + [1.0]


def test_polling_is_no_loop():
    """Equal tool calls are not compared while the host says nothing about progress; known standstill is a loop."""
    call = {"output": words(1, 30), "finish": 2.0}
    assert degenerate([call] * 6) == [0.0] * 6
    assert degenerate([{**call, "progress": 1.0}] * 4) == [0.0, 0.0, 1.0, 1.0]


def test_short_replies_may_be_equal():
    """A short word again and again is no loop: below 16 tokens nothing is compared."""
    turns = trace(DEGENERATION, [{"output": words(1, 15)}] * 5)
    assert {t["is_degenerate"] for t in turns} == {0.0}
    assert all(math.isnan(t["similarity_ratio"]) for t in turns)


def test_special_tokens_are_counted_when_told():
    """Ids of the told range leak, the last token may be one; nothing is told by default."""
    answer = [5, 900, 6, 901, 7, 900]
    assert (
        trace(DEGENERATION, [{"output": answer}], {"special_from": 900, "special_to": 901})[0]["special_count"] == 1.0
    )
    assert math.isnan(trace(DEGENERATION, [{"output": answer}])[0]["special_count"])


def test_peak_is_the_likeliest_candidate():
    """The peak is the probability of the likeliest of the candidates, in whatever order."""
    out = trace(DEGENERATION, [{"logprobs": [-5.0, math.log(0.75), -7.0]}])[0]
    assert out["peak_ratio"] == pytest.approx(0.75)
    assert math.isnan(out["is_degenerate"])


def test_long_session_remembers_the_last_four():
    """The ring of replies turns over many times and still finds the last four, no more."""
    turns = [{"output": words(i, 60)} for i in range(40)]
    out = trace(DEGENERATION, [*turns, turns[36]])[-1]
    assert out["similarity_ratio"] == 1.0
    assert trace(DEGENERATION, [*turns, turns[35]])[-1]["similarity_ratio"] < 0.2


def test_machine_code_is_the_plain_kernel():
    """On long answers, sound and looping ones, machine code says the same to the bit and ends in the same memory."""
    turns = [{"output": words(i, 40 + 70 * i, 3 + 40 * i), "progress": float(i // 3)} for i in range(16)]
    check_compiled(DEGENERATION, [*turns, *turns[:3]])


@pytest.mark.capability("issue 6 §1: degeneration: no false call in 1,000 ordinary answers of a real model")
def test_ordinary_answers_are_not_called():
    """A thousand and more at temperature 0.7: what is called loops by a brute-force rule too, and most are sound."""
    answers = ordinary()
    sound = [a for a in answers if not a.is_bad]
    assert len(sound) > 0.9 * len(answers)
    assert len(sound) >= 1000
    assert sum(ours(a) for a in sound) == 0
    assert sum(ours(a) for a in answers) >= 1


def test_the_brute_force_rule_knows_a_loop():
    """Three copies of half an answer's phrases are a loop, two are none, and an overlap is no copy."""
    assert goes_round([1, 2, 3, 4] * 3 + list(range(100, 112)))
    assert not goes_round([1, 2, 3, 4] * 2 + list(range(100, 108)))
    assert not goes_round([1] * 9 + list(range(100, 109)))


@pytest.mark.capability("issue 6 §1: degeneration: recall at least .9 on answers of broken servers")
def test_answers_of_broken_servers_are_called(shared_data):
    """The accuracy subject reaches its targets of recall and false calls; with permuted labels both are alike."""
    report = run(shared_data)
    assert [t.what for t in report.targets if not t.is_met] == []
    check = next(x for x in report.lines if x.kind == "check")
    chance = check.figures
    assert all(low <= chance[name] <= high for name, (low, high) in check.intervals.items())
    assert check.intervals.keys() == chance.keys()
    assert abs(chance["recall"] - chance["false calls in 1,000"] / 1000) < 0.02

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.positions import MODES, StoredKeys, compensate_positions, kept_after_shift
from stabilitykit.mitigations.rotary import Rope, rotated

ROPE = Rope(32)


@st.composite
def kept(draw):
    """Give sinks and positions of kept tokens behind them."""
    sinks = draw(st.integers(0, 4))
    rest = draw(st.sets(st.integers(sinks, 300), min_size=1, max_size=20))
    return sinks, [*range(sinks), *sorted(rest)]


@pytest.mark.capability("issue 5 §4: offsets in modes absolute, cache_relative (sinks kept) and rerotate")
@given(kept())
def test_modes(case):
    """Absolute keeps everything; the other two count inside the cache, and one of them says how far keys turn."""
    sinks, old = case
    done = {mode: compensate_positions(old, mode=mode, n_sink=sinks) for mode in MODES}  # type: ignore[arg-type]
    assert all(d.why == "" for d in done.values())
    assert (done["absolute"].positions.tolist(), done["absolute"].next_position) == (old, old[-1] + 1)
    for mode in ("cache_relative", "rerotate"):
        assert done[mode].positions.tolist() == list(range(len(old)))
        assert done[mode].next_position == len(old)
    assert (done["rerotate"].rotation == np.arange(len(old)) - old).all()
    assert not done["absolute"].rotation.any()
    assert not done["cache_relative"].rotation.any()
    assert not done["rerotate"].rotation[:sinks].any()


@pytest.mark.capability("issue 5 §4: compensation leaves attention scores as they were")
@given(kept(), st.integers(0, 2**32 - 1))
def test_scores_stay(case, seed):
    """Between tokens that were neighbours in what was kept, scores of queries and keys stay: both move alike."""
    sinks, old = case
    rng = np.random.default_rng(seed)
    query, keys = rng.standard_normal((1, 32)), rng.standard_normal((len(old), 32))
    stored = rotated(keys, old, ROPE)
    done = compensate_positions(old, n_sink=sinks)
    new = rotated(stored, done.rotation, ROPE)
    fresh = rotated(query, done.next_position, ROPE) @ rotated(keys, done.positions, ROPE).T
    assert rotated(query, done.next_position, ROPE) @ new.T == pytest.approx(fresh, abs=1e-9)
    tail = [k for k in range(len(old)) if old[-1] - old[k] == len(old) - 1 - k]
    before = rotated(query, old[-1] + 1, ROPE) @ stored.T
    assert fresh[0, tail] == pytest.approx(before[0, tail], abs=1e-9)


def test_turning_one_side_only_changes_scores_wildly():
    """New positions for queries with keys as they were: the mistake that this is there to prevent."""
    rng = np.random.default_rng(4)
    query, keys = rng.standard_normal((1, 32)), rng.standard_normal((400, 32))
    old = np.arange(5000, 5400)
    right = rotated(query, 5400, ROPE) @ rotated(keys, old, ROPE).T
    assert np.abs(rotated(query, 400, ROPE) @ rotated(keys, old, ROPE).T - right).max() > 5


@pytest.mark.capability("issue 5 §4: two compensations are one by the sum, and turning back is the identity")
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_stored_keys_add_turns_exactly(turns, seed):
    """However often keys were turned: reading gives one turn by the sum, to the bit; the way back gives the first."""
    keys = np.random.default_rng(seed).standard_normal((5, 32)).astype(np.float32)
    stored = StoredKeys.of(keys)
    for by in turns:
        stored = stored.turn(by)
    assert (stored.read(ROPE) == rotated(keys, sum(turns), ROPE)).all()
    assert (stored.turn(-sum(turns)).read(ROPE) == keys).all()
    apart = stored.turn([0, 1, 2, 3, 4]).keep([4, 0])
    assert (apart.read(ROPE) == rotated(keys[[4, 0]], [sum(turns) + 4, sum(turns)], ROPE)).all()


@pytest.mark.capability("issue 5 §4: the error does not grow with the number of compensations")
def test_error_does_not_grow():
    """Twenty turns in half precision: from the last result five times the error of one, from the first none more."""
    rope, rng = Rope(128), np.random.default_rng(3)
    keys = rng.standard_normal((300, 128)).astype(np.float16)
    stored, chained, errors = StoredKeys.of(keys), keys, []
    for step in range(1, 21):
        stored, chained = stored.turn(-256), rotated(chained, -256, rope)
        exact = rotated(keys.astype(np.float64), -256 * step, rope)
        errors.append([np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in (stored.read(rope), chained)])
    own, repeated = np.array(errors).T
    assert own.max() < 1.05 * own[0]
    assert repeated[-1] > 3 * repeated[0]


@pytest.mark.capability("issue 5 §4: compensation is refused with a reason on MLA and beyond the window")
def test_refusals():
    """Latent keys, no room behind the last position, sinks that were dropped, positions that cannot be."""
    old = [0, 1, 50, 51]
    assert "MLA" in compensate_positions(old, is_mla=True).why
    assert (
        compensate_positions(old, mode="absolute", max_position=52).why
        == "the last position would be 52, the model has 52"
    )
    assert compensate_positions(old, mode="absolute", max_position=53).why == ""
    assert compensate_positions(old, max_position=5).why == ""
    assert "model has 5" in compensate_positions(old, max_position=5, room=2).why
    assert "first 3 tokens" in compensate_positions(old, n_sink=3).why
    assert "do not increase" in compensate_positions([3, 2]).why
    refused = compensate_positions(old, is_mla=True)
    assert (refused.positions.tolist(), refused.rotation.tolist()) == (old, [0] * 4)
    with pytest.raises(UsageError, match="none of absolute"):
        compensate_positions(old, mode="other")  # type: ignore[arg-type]


@pytest.mark.parametrize("by", [[1.9] * 4, 1.0, [1, 2], [[1, 2, 3, 4]], [[1], [2], [3], [4]], [2**70] * 4, [None] * 4])
def test_turns_that_cannot_be(by):
    """Not cut off and not stretched: whole numbers, one or as many as there are keys."""
    stored = StoredKeys.of(np.zeros((2, 4, 32)))
    with pytest.raises(UsageError, match="turn"):
        stored.turn(by)
    assert stored.turn([1, 2, 3, 4]).turned.tolist() == [1, 2, 3, 4]


def test_positions_and_places_are_whole():
    """A float is refused, not cut off."""
    for kept_ in ([0, 1.9], [0.0, 1.0], ["0"], [2**63]):
        with pytest.raises(UsageError, match="positions are whole"):
            compensate_positions(kept_)
    with pytest.raises(UsageError, match="places are whole"):
        StoredKeys.of(np.zeros((4, 32))).keep([1.9])


def test_an_empty_cache():
    """Nothing kept: the next token is the first."""
    assert compensate_positions([]).next_position == 0


@pytest.mark.capability("issue 5 §4: llama.cpp's context shift gives the right offsets from n_keep, n_left, n_discard")
@given(st.integers(0, 20), st.integers(0, 60), st.integers(0, 60))
def test_context_shift_as_the_server_does_it(n_keep, n_left, n_discard):
    """The server's own steps on a cache: remove [n_keep, n_keep + n_discard), add -n_discard behind."""
    if n_discard > n_left:
        with pytest.raises(UsageError, match="cannot be"):
            kept_after_shift(n_keep, n_left, n_discard)
        return
    cache = {token: token for token in range(n_keep + n_left)}  # token -> position
    cache = {t: p for t, p in cache.items() if not n_keep <= p < n_keep + n_discard}
    cache = {t: p - n_discard if p >= n_keep + n_discard else p for t, p in cache.items()}
    old = kept_after_shift(n_keep, n_left, n_discard)
    done = compensate_positions(old, n_sink=n_keep)
    assert dict(zip(old.tolist(), done.positions.tolist(), strict=True)) == cache
    assert set(done.rotation[n_keep:].tolist()) <= {-n_discard}


def test_context_shifts_of_real_logs(shared_data):
    """Every shift that real servers logged halves what is left and leaves room for as many tokens as it dropped."""
    lines = (shared_data / "logs" / "engine_log_lines.jsonl").read_text(encoding="utf-8").splitlines()
    shifts = [row["line"] for row in map(json.loads, lines) if "n_discard" in row["line"]]
    for line in shifts:
        words = line.replace("=", " ").replace(",", " ").split()
        numbers = {name: int(words[words.index(name) + 1]) for name in ("n_keep", "n_left", "n_discard")}
        done = compensate_positions(kept_after_shift(**numbers), n_sink=numbers["n_keep"])
        assert done.why == ""
        assert done.next_position == numbers["n_keep"] + numbers["n_left"] - numbers["n_discard"]
    assert shifts


@pytest.mark.parametrize("wrong", [-1, True, 1.5, math.nan, math.inf, "1", None, 1 << 63])
@pytest.mark.parametrize("name", ["n_sink", "room", "max_position"])
def test_numbers_of_positions_that_are_none(name, wrong):
    """NaN is no model without an end."""
    with pytest.raises(UsageError, match=f"{name} is a whole number"):
        compensate_positions([0, 1, 5], **{name: wrong})


@pytest.mark.parametrize("wrong", [math.nan, 2.0, True, None])
def test_a_shift_of_no_numbers(wrong):
    """What no log line says is refused."""
    for name in ("n_keep", "n_left", "n_discard"):
        with pytest.raises(UsageError, match="each number of a shift"):
            kept_after_shift(**{"n_keep": 1, "n_left": 4, "n_discard": 2, name: wrong})


def test_keys_without_a_place():
    """One key alone has no number of its own."""
    with pytest.raises(UsageError, match="at least two dimensions"):
        StoredKeys.of([1.0, 0.0])


@pytest.mark.parametrize("kept", [[[0, 1], [2, 3]], 3, np.zeros((0, 2), np.int64)])
def test_positions_of_several_conversations(kept):
    """Two rows are no longer row: they are refused, not laid end to end."""
    with pytest.raises(UsageError, match="kept is one row of positions"):
        compensate_positions(kept)

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.detectors.position_offset import DTYPES, MODES, POSITION_OFFSET
from stabilitykit.detectors.trace import Instance, trace
from tests.detectors.agreement import check_compiled, check_twins
from tests.naive.position_offset import NaivePositionOffset

TOKENS = st.one_of(st.none(), st.integers(0, 60).map(float), st.sampled_from([2.0**53, 1e9]))
EXTREMES = st.sampled_from([-(2**63), 2**63 - 1, 2**53])


@st.composite
def rows(draw):
    """Give a row of positions: right ones, shifted, with a gap, or any."""
    size = draw(st.integers(1, 12))
    first = draw(st.integers(0, 60))
    row = list(range(first, first + size))
    kind = draw(st.sampled_from(["plain", "plain", "gap", "any", "extreme"]))
    if kind == "gap":
        at, gap = draw(st.integers(0, size - 1)), draw(st.integers(-5, 30))
        return row[:at] + [p + gap for p in row[at:]]
    if kind == "extreme":
        return [*row, draw(EXTREMES)]
    return draw(st.lists(st.one_of(st.integers(-3, 70), EXTREMES), max_size=12)) if kind == "any" else row


TURNS = st.fixed_dictionaries(
    {
        "positions": st.one_of(st.none(), rows()),
        "input_tokens": TOKENS,
        "sent_tokens": TOKENS,
        "cached_tokens": TOKENS,
        "window": TOKENS,
        "mla": st.sampled_from([None, 0.0, 1.0]),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(MODES),
        "n_sink": st.integers(0, 4),
        "max_position": st.sampled_from([1, 40, 163840]),
        "dtype": st.sampled_from(DTYPES),
        "rotary_dim": st.sampled_from([2, 4, 64, 128]),
    }
)


@pytest.mark.capability("issue 2 §4: `position_offset` is its naive twin")
@given(st.lists(TURNS, max_size=8), SETTINGS)
def test_equals_the_naive_twin(turns, settings):
    """Any rows and counts: kernel and twin agree, unknowns included."""
    check_twins(POSITION_OFFSET, NaivePositionOffset, turns, settings)


@given(st.lists(TURNS, max_size=8), SETTINGS)
def test_compiled_equals_plain(turns, settings):
    """Machine code gives the same bits and the same memory."""
    check_compiled(POSITION_OFFSET, turns, settings)


def offsets(turns, **settings):
    """Give the offset of every turn."""
    return [out["offset"] for out in trace(POSITION_OFFSET, turns, settings)]


DROP = [{"input_tokens": 100, "positions": range(100)}, {"input_tokens": 70, "positions": range(30, 100)}]


def test_absolute_positions_stay_when_history_is_dropped():
    """30 tokens gone: the last token keeps position 99; restarting at 0 would be 30 behind."""
    restarted = [DROP[0], {"input_tokens": 70, "positions": range(70)}]
    assert offsets(DROP) == [0.0, 0.0]
    assert offsets(restarted) == [0.0, -30.0]


@pytest.mark.parametrize("mode", ["cache_relative", "rerotate"])
def test_relative_positions_start_again(mode):
    """Inside the cache the last of 70 tokens has position 69: absolute positions are 30 ahead."""
    assert offsets(DROP, mode=mode) == [0.0, 30.0]


def test_several_drops_add_up():
    """The base is the sum of what was dropped, not slides times window."""
    turns = [{"input_tokens": n, "positions": range(d, d + n)} for n, d in [(100, 0), (70, 30), (90, 30), (50, 70)]]
    assert offsets(turns) == [0.0] * 4


def test_sinks_keep_their_positions():
    """With 4 sinks the one gap behind them is declared; without, it is a break."""
    row = [*range(4), *range(34, 100)]
    turns = [DROP[0], {"input_tokens": 70, "positions": row}]
    assert offsets(turns, n_sink=4) == [0.0, 0.0]
    assert offsets(turns) == [0.0, -30.0]


@pytest.mark.parametrize(
    ("row", "offset"),
    [([0, 1, 2, 4, 5], 1.0), ([0, 1, 1, 2, 3], -1.0), ([0, 2, 1, 3, 4], -1.0), ([-5, 1, 2, 3, 4], -5.0)],
)
def test_a_break_inside_the_row_shows(row, offset):
    """Gap, repetition, swap and a negative position, with the token count and without."""
    assert offsets([{"input_tokens": 5, "positions": row}]) == [offset]
    assert offsets([{"positions": row}])[0] != 0.0


def test_a_row_may_be_the_last_part_of_the_prompt():
    """Positions of the tokens that were not cached, with input_tokens or cached_tokens to place them."""
    part = {"positions": range(48, 60)}
    assert offsets([part | {"input_tokens": 60}, part | {"cached_tokens": 48}, part | {"cached_tokens": 32}]) == [
        0,
        0,
        16,
    ]


@pytest.mark.parametrize(
    ("window", "last", "is_over"), [(None, 163839, 0), (None, 163840, 1), (64, 63, 0), (64, 64, 1)]
)
def test_the_window_ends_before_its_size(window, last, is_over):
    """A position equal to the window is outside; the smaller of window and max_position counts."""
    (out,) = trace(POSITION_OFFSET, [{"positions": [last], "window": window}])
    assert out["is_over_window"] == is_over


def test_phase_error_grows_with_position_not_with_turns():
    """The same prompt twice gives the same error; ten times the position, ten times the error."""
    small, again, great = trace(POSITION_OFFSET, [{"input_tokens": n} for n in (10001, 10001, 100001)])
    assert small["phase_error"] == again["phase_error"]
    assert great["phase_error"] == pytest.approx(10 * small["phase_error"])
    assert math.isnan(great["offset"])


@pytest.mark.capability("issue 3 §1: positions are never compensated on multi-head latent attention")
def test_what_cannot_be_compensated():
    """A shared latent cannot be rotated; beyond the window only a fresh context helps, inside it all is well."""
    row = {"input_tokens": 70, "sent_tokens": 100, "positions": range(70), "window": 100}
    outs = [trace(POSITION_OFFSET, [row | change])[0] for change in ({}, {"mla": 0}, {"mla": 1}, {"window": 99})]
    assert [out["offset"] for out in outs] == [-30] * 4
    assert [out["is_compensable"] for out in outs] == [1, 1, 0, 0]
    (out,) = trace(POSITION_OFFSET, [row | {"window": 70}], {"mode": "cache_relative"})
    assert out["is_compensable"] == 1


@pytest.mark.capability("issue 3 §1: phase error by number format, position and rotations, a warning from 1e-2 on")
def test_phase_error_by_format():
    """At 32k only float64 and float32 stay below the warning, the more bits the better; bfloat16 is lost."""
    turn = {"input_tokens": 32768}
    error = {d: trace(POSITION_OFFSET, [turn], {"dtype": d, "rotary_dim": 128})[0]["phase_error"] for d in DTYPES}
    assert error["f64"] < 1e-10 < error["f32"] < 1e-2 < error["f16"] <= error["bf16"] == math.pi


def test_rerotation_adds_up():
    """Keys in bf16 rotated twice have more phase error than once, and only in mode rerotate."""
    turns = [{"sent_tokens": n, "input_tokens": 5.0} for n in (5, 6, 9)]
    error = {
        mode: [o["phase_error"] for o in trace(POSITION_OFFSET, turns, {"mode": mode, "dtype": "bf16"})]
        for mode in MODES
    }
    fresh, once, twice = error["rerotate"]
    assert once - fresh == pytest.approx(1.8e-3)
    assert twice - fresh == pytest.approx(1.8e-3 * 2**0.76)
    assert error["cache_relative"] == [fresh] * 3


def test_an_unknown_turn_changes_nothing():
    """Nothing given: all unknown, memory untouched."""
    detector = Instance(POSITION_OFFSET)
    detector.update({"input_tokens": 100.0})
    before = detector.memory[0].copy()
    assert all(math.isnan(v) for v in detector.update({}).values())
    assert (before == detector.memory[0]).all()


@pytest.mark.oracle
def test_phase_error_against_transformers():
    """The library's own rotary embedding stays within the bound at 32k."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is an extra")
    config = llama.LlamaConfig(hidden_size=128, num_attention_heads=1, max_position_embeddings=32768)
    positions = torch.arange(32768)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config)(torch.zeros(1), positions)
    exact = positions.double()[0, :, None] * 1e4 ** (-torch.arange(0, 128, 2).double() / 128)
    off = torch.atan2(sin[0, :, :64].double(), cos[0, :, :64].double()) - exact
    worst = float(torch.abs(torch.atan2(torch.sin(off), torch.cos(off))).max())
    (out,) = trace(POSITION_OFFSET, [{"input_tokens": 32768}], {"rotary_dim": 128})
    assert worst <= out["phase_error"] <= 3 * worst

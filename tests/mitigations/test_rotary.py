from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.rotary import Rope, rotated

ROPES = [
    Rope(8),
    Rope(64, layout="interleaved"),
    Rope(64, base=5e5, scaling="llama3", factor=8.0, original_max_position=8192),
    Rope(64, scaling="linear", factor=4.0),
    Rope(64, scaling="ntk", factor=2.0, original_max_position=4096),
    Rope(64, scaling="yarn", factor=16.0, original_max_position=4096),
]


def exactly(keys, by, rope):
    """Turn keys in extended precision, pair by pair."""
    out = keys.astype(np.longdouble)
    for n in range(len(keys)):
        for i, theta in enumerate(rope.frequencies().astype(np.longdouble)):
            a, b = (i, i + rope.dim // 2) if rope.layout == "half" else (2 * i, 2 * i + 1)
            c, s = np.cos(by[n] * theta), np.sin(by[n] * theta)
            x, y = out[n, a], out[n, b]
            out[n, a], out[n, b] = x * c - y * s, x * s + y * c
    return out


def in_ulps(found, wanted, size):
    """Give the greatest difference in units of the last place of the greater of a component and its pair."""
    return float((np.abs(found - wanted) / np.spacing(size.astype(found.dtype))).max())


@pytest.mark.capability("issue 5 §4: turned keys are within 2 ulp of an oracle in extended precision, both layouts")
@pytest.mark.parametrize("rope", ROPES, ids=lambda r: f"{r.scaling}-{r.layout}")
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_within_two_ulp(rope, dtype):
    """Distances up to 100,000 positions either way; two components behind the rotary ones stay as they are."""
    rng = np.random.default_rng(2)
    keys = rng.standard_normal((40, rope.dim + 2)).astype(dtype)
    by = rng.integers(-100_000, 100_000, 40)
    found, wanted = rotated(keys, by, rope), exactly(keys, by, rope)
    assert found.dtype == dtype
    assert (found[:, rope.dim :] == keys[:, rope.dim :]).all()
    near = np.maximum(np.abs(wanted), np.abs(keys).max() * float(np.finfo(dtype).eps) * 1e-3)
    assert in_ulps(found, wanted, near) <= 2.0


@pytest.mark.parametrize("rope", ROPES, ids=lambda r: f"{r.scaling}-{r.layout}")
@given(st.integers(-5000, 5000), st.integers(-5000, 5000), st.integers(0, 2**32 - 1))
def test_turns_add_up(rope, a, b, seed):
    """Turning by a and then by b is turning by a + b; turning back gives the key again."""
    key = np.random.default_rng(seed).standard_normal((1, rope.dim))
    assert rotated(rotated(key, a, rope), b, rope) == pytest.approx(rotated(key, a + b, rope), abs=1e-10)
    assert rotated(rotated(key, a, rope), -a, rope) == pytest.approx(key, abs=1e-10)
    assert np.linalg.norm(rotated(key, a, rope)) == pytest.approx(np.linalg.norm(key))


def test_heads_and_distances_broadcast():
    """Keys of several heads turn by their token's distance, one distance turns all alike."""
    rope = Rope(4)
    keys = np.random.default_rng(1).standard_normal((2, 3, 4))
    found = rotated(keys, [0, 7, -7], rope)
    assert (found[:, 0] == keys[:, 0]).all()
    assert (found[1] == rotated(keys[1], [0, 7, -7], rope)).all()
    assert (rotated(keys, 7, rope)[:, 1] == found[:, 1]).all()


def test_what_cannot_be_turned():
    """Fewer components than the rotary embedding has, an odd number of them, an unknown scaling."""
    with pytest.raises(UsageError, match="keys of 2 components"):
        rotated([[1.0, 2.0]], 1, Rope(4))
    with pytest.raises(UsageError, match="even number"):
        Rope(5)
    with pytest.raises(UsageError, match="layout"):
        Rope(4, layout="other")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="factor"):
        Rope(4, factor=0.5)
    with pytest.raises(UsageError, match="even number"):
        Rope(0)
    with pytest.raises(UsageError, match="scaling"):
        Rope(4, scaling="other")  # type: ignore[arg-type]


def test_a_sequence_that_still_fits_is_not_stretched():
    """Frequencies that change with the length (dynamic ntk) are the plain ones up to the trained length."""
    rope = Rope(8, scaling="ntk", factor=4.0, original_max_position=100, length=50)
    assert (rope.frequencies() == Rope(8).frequencies()).all()
    assert Rope(8, scaling="ntk", factor=4.0, original_max_position=100, length=400).frequencies()[-1] < 1e-3


@pytest.mark.parametrize(
    ("scaling", "slow", "fast"), [("yarn", 1.0, 32.0), ("llama3", 1.0, 4.0), ("linear", math.inf, math.inf)]
)
def test_fast_pairs_stay_and_slow_ones_are_divided(scaling, slow, fast):
    """By how often a pair turns over the trained length: kept, divided by the factor, or strictly in between."""
    plain = Rope(128).frequencies()
    shares = Rope(128, scaling=scaling, factor=8.0, original_max_position=4096).frequencies() / plain
    turns = 4096 * plain / (2 * math.pi)
    between = (turns > slow) & (turns < fast)
    assert shares[turns >= fast] == pytest.approx(1.0)
    assert shares[turns <= slow] == pytest.approx(1 / 8)
    assert ((shares[between] > 1 / 8 + 1e-6) & (shares[between] < 1 - 1e-6)).all()
    assert (np.diff(shares) <= 1e-12).all()


def test_ntk_divides_the_slowest_pair_by_the_factor():
    """The fastest stays as it is, and those between follow one base."""
    shares = Rope(128, scaling="ntk", factor=4.0).frequencies() / Rope(128).frequencies()
    assert (shares[0], shares[-1]) == pytest.approx((1.0, 1 / 4))
    assert np.diff(np.log(shares)) == pytest.approx(math.log(1 / 4) / 63)


PARAMETERS = {
    "none": ("default", {}),
    "linear": ("linear", {"factor": 4.0}),
    "ntk": ("dynamic", {"factor": 2.0}),
    "yarn": ("yarn", {"factor": 16.0, "original_max_position_embeddings": 4096}),
    "llama3": (
        "llama3",
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
}
LENGTH = 12_000
OURS = {
    "none": Rope(128),
    "linear": Rope(128, scaling="linear", factor=4.0),
    "ntk": Rope(128, scaling="ntk", factor=2.0, original_max_position=4096, length=LENGTH),
    "yarn": Rope(128, scaling="yarn", factor=16.0, original_max_position=4096),
    "llama3": Rope(128, scaling="llama3", factor=8.0, original_max_position=8192),
}


@pytest.mark.oracle
@pytest.mark.capability("issue 5 §4: turned keys equal transformers' rotary embedding, every scaling")
@pytest.mark.parametrize("scaling", PARAMETERS)
def test_against_transformers(scaling):
    """Frequencies, and keys embedded at one position and turned to another, are the library's own."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is an extra")
    kind, more = PARAMETERS[scaling]
    config = llama.LlamaConfig(
        hidden_size=128,
        num_attention_heads=1,
        max_position_embeddings=4096 if kind == "dynamic" else 131072,
        rope_parameters={"rope_type": kind, "rope_theta": 10000.0, **more},
    )
    embedding = llama.LlamaRotaryEmbedding(config)
    where = torch.tensor([[0, 17, 300, LENGTH - 1]])
    key = torch.randn(1, 1, 4, 128, generator=torch.Generator().manual_seed(0))
    cos, sin = embedding(key, where)
    at, _ = llama.apply_rotary_pos_emb(key, key, cos, sin)
    amplitude = float(torch.sqrt(cos[0, 0, 0] ** 2 + sin[0, 0, 0] ** 2))
    rope = OURS[scaling]
    np.testing.assert_allclose(embedding.inv_freq.double().numpy(), rope.frequencies(), rtol=1e-6)
    wanted = at[0, 0].numpy()
    found = rotated(key[0, 0].numpy() * np.float32(amplitude), where[0].numpy(), rope)
    assert np.abs(found - wanted).max() < 4e-3  # float32 angles are off by 1e-3 at 12,000
    back = rotated(wanted, -where[0].numpy(), rope)
    assert np.abs(back / amplitude - key[0, 0].numpy()).max() < 4e-3
    moved = where - torch.tensor([[0, 10, 10, 10]])
    cos, sin = embedding(key, moved)
    if kind != "dynamic":  # its frequencies change with the length; stored keys keep those they were made with
        again, _ = llama.apply_rotary_pos_emb(key, key, cos, sin)
        turned = rotated(wanted, [0, -10, -10, -10], rope)
        assert np.abs(turned - again[0, 0].numpy()).max() < 4e-3
    assert math.isfinite(amplitude)


@pytest.mark.parametrize("name", ["base", "factor", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, 0, -1.0, True, "1", None, 10**400])
def test_numbers_that_no_model_has(name, wrong):
    """They are refused when the embedding is made, not as NaN in a key."""
    with pytest.raises(UsageError, match=name):
        Rope(4, **{name: wrong})


@pytest.mark.parametrize("wrong", [{"dim": 1 << 40}, {"dim": 4.0}, {"original_max_position": 0}, {"length": math.nan}])
def test_lengths_that_no_model_has(wrong):
    """The same for whole numbers."""
    with pytest.raises(UsageError):
        Rope(**{"dim": 4, **wrong})


@pytest.mark.parametrize(
    ("keys", "by"),
    [([[1.0, 0.0]], [1.5]), ([[1.0, 0.0]], [1, 2]), ([[1.0, 0.0]], None), ([1.0, 0.0], 1), ([["a", "b"]], 1)],
)
def test_keys_and_turns_that_are_none(keys, by):
    """A turn of 1.5 positions is not one of 1."""
    with pytest.raises(UsageError):
        rotated(keys, by, Rope(2))

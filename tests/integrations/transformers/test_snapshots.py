from __future__ import annotations

import numpy as np

from stabilitykit.integrations.transformers.snapshots import _SIGNS, ANCHORS, snapshot_of


class Block:
    """As much of a tensor as a snapshot asks for, around an array."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, np.float32)
        self.shape, self.ndim = self.numbers.shape, self.numbers.ndim

    def is_floating_point(self):
        """Tell that it holds plain numbers."""
        return True

    def __getitem__(self, at):
        return Block(self.numbers[at])

    def float(self):
        """Give itself."""
        return self

    def detach(self):
        """Give itself."""
        return self

    def mean(self, dim):
        """Give the mean over an axis."""
        return Block(self.numbers.mean(axis=dim))

    def to(self, place):
        """Give itself."""
        return self

    def numpy(self):
        """Give the array."""
        return self.numbers


class Layer:
    """A layer of a cache."""

    def __init__(self, keys, values, is_sliding=False):
        self.keys, self.values, self.is_sliding = Block(keys), Block(values), is_sliding

    def get_seq_length(self):
        """Give the tokens so far."""
        return self.keys.shape[-2]


class Cache:
    """A cache of some layers."""

    def __init__(self, *layers):
        self.layers = list(layers)


def random_cache(tokens, seed=0, **more):
    """Give a cache of one layer with two heads of 32 components, whose keys lean to one side."""
    draw = np.random.default_rng(seed)
    lean = draw.normal(0, 1, (1, 2, 1, 32))
    return Cache(Layer(*(draw.normal(0, 1, (2, 1, 2, tokens, 32)) + lean), **more))


def snap(cache, row=0, valid=None):
    """Take a snapshot of one layer."""
    return snapshot_of(cache, (0,), row, valid)


def moved(cache, change):
    """Give the cosine of a cache's snapshot to that of a changed one."""
    before = snap(cache).astype(float)
    layer = cache.layers[0]
    changed = Cache(Layer(*change(layer.keys.numbers.copy(), layer.values.numbers.copy())))
    after = snap(changed).astype(float)
    return before @ after / np.linalg.norm(before) / np.linalg.norm(after)


def test_signs_resemble_no_shift_of_themselves():
    """The overlap of the signs with themselves, moved by any number of places, is at most 13 %."""
    overlaps = [abs(_SIGNS[: ANCHORS - k] @ _SIGNS[k:]) / (_SIGNS @ _SIGNS) for k in range(1, ANCHORS)]
    assert max(overlaps) < 0.13
    assert abs(_SIGNS.sum()) < 1e-12


def test_more_tokens_change_little():
    """A turn of 10 tokens on 40: the cosine stays far above .72."""
    draw = np.random.default_rng(1)

    def longer(keys, values):
        new = draw.normal(0, 1, (2, 1, 2, 10, 32))
        return tuple(np.concatenate([old, more], axis=2) for old, more in zip((keys, values), new, strict=True))

    assert moved(random_cache(40), longer) > 0.9


def test_what_the_means_do_not_see_the_signs_do():
    """Tokens moved round, all or the keys alone, and heads moved round: the cosine falls below .72."""
    cache = random_cache(40)
    for shift in (1, 5, 13, 30):
        assert moved(cache, lambda k, v, by=shift: (np.roll(k, by, 2), np.roll(v, by, 2))) < 0.65
        assert moved(cache, lambda k, v, by=shift: (np.roll(k, by, 2), v)) < 0.65
    assert moved(cache, lambda k, v: (np.roll(k, 1, 1), np.roll(v, 1, 1))) < 0.65


def test_a_flipped_exponent_anywhere_is_seen():
    """A number of 1e38 in place of one below 1, behind the first tokens: the means point elsewhere."""

    def flipped(keys, values):
        values[0, 1, 33, 2] = 1e38
        return keys, values

    assert moved(random_cache(40), flipped) < 0.65


def test_padding_does_not_count():
    """Tokens of padding in front leave the snapshot as it is."""
    cache = random_cache(40)
    layer = cache.layers[0]
    padded = [np.pad(part.numbers, ((0, 0), (0, 0), (7, 0), (0, 0)), constant_values=9) for part in
              (layer.keys, layer.values)]  # fmt: skip
    valid = np.arange(47) >= 7
    np.testing.assert_allclose(snap(Cache(Layer(*padded)), valid=valid), snap(cache), rtol=1e-6)


def test_a_sliding_window_has_means_only():
    """Its first tokens leave the cache, so there is nothing to hold them against."""
    assert len(snap(random_cache(40, is_sliding=True))) == 128
    assert len(snap(random_cache(40))) == 192


def test_too_little_to_read_is_no_snapshot():
    """Twelve tokens, no layers, or a layer that holds no plain numbers."""
    quantized = type("HQQQuantizedLayer", (Layer,), {})(*np.ones((2, 1, 2, 40, 8)))
    assert snap(random_cache(12)) is None
    assert snapshot_of(Cache(), None, 0, None) is None
    assert snapshot_of(Cache(quantized), None, 0, None) is None
    assert snap(Cache(quantized)) is None


def test_a_cache_of_nothing_says_nothing():
    """Zeros stay zeros; the detector holds a vector of zeros for unknown."""
    assert not snap(Cache(Layer(*np.zeros((2, 1, 2, 20, 8))))).any()

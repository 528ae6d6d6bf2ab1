from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.compile import compile_entry, is_available
from stabilitykit.kernels.siphash import KINDS, padded, siphash, siphash_words

KEY = bytes(range(16))
VECTORS = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    2: 0x0D6C8009D9A94F5A,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
    63: 0x958A324CEB064572,
}
"""Of the authors' reference implementation: key 00..0f, input 00 01 02 ..., by length."""


@pytest.mark.parametrize("size", VECTORS)
@pytest.mark.capability("issue 3 §1: SipHash-2-4 with an explicit key, the authors' test vectors")
def test_vectors_of_the_authors(size):
    """The published vectors, the paper's own (15 bytes) among them."""
    assert siphash(KEY, bytes(range(size))) == VECTORS[size]


def by_words(entry, key, data):
    """Hash with the kernel on words."""
    words = np.frombuffer(padded(data), np.uint64).copy()
    state, keys, count = np.zeros(4, np.uint64), np.frombuffer(key, np.uint64).copy(), np.array([len(words)])
    entry(state, keys, words, count)
    return int(state[0])


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=300))
def test_words_are_the_definition(key, data):
    """The kernel on 64-bit words gives what Python's integers give."""
    with np.errstate(over="ignore"):
        assert by_words(siphash_words, key, data) == siphash(key, data)


def test_compiled_is_the_definition(tmp_path, monkeypatch):
    """So does its compiled twin, at every length up to some words and with all bits set."""
    if not is_available():
        pytest.skip("numba is not available")
    monkeypatch.setenv("STABILITYKIT_CACHE_DIR", str(tmp_path))
    entry = compile_entry(siphash_words, KINDS)

    def run(*blocks):
        addresses = np.array([b.ctypes.data for b in blocks], np.int64)
        return entry(addresses.ctypes.data)

    for size in (*range(34), 255, 256, 300):
        for data in (bytes(k * 7 & 255 for k in range(size)), b"\xff" * size):
            assert by_words(run, b"\xfe" * 16, data) == siphash(b"\xfe" * 16, data)


def test_a_key_has_16_bytes():
    """Another key is misuse."""
    with pytest.raises(ValueError, match="16 bytes"):
        siphash(b"short", b"")

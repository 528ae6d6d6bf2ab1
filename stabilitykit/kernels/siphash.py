"""SipHash-2-4: a keyed hash that nobody can make collide on purpose without the key.

Python's own ``hash()`` is SipHash-1-3 under a key that is drawn anew in every process, so its values can
neither be compared between processes nor stored. This one takes its key, 128 bits, from the caller.
``siphash`` is the definition on Python's integers; ``siphash_words`` is the same on 64-bit words for compiling.

References
----------
.. [1] J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012.

Examples
--------
The test vector of the paper's appendix:

>>> from stabilitykit.kernels.siphash import siphash
>>> hex(siphash(bytes(range(16)), bytes(range(15))))
'0xa129ca6149be45e5'
"""

from __future__ import annotations

import numpy as np

from stabilitykit.kernels._registry import kernel
from stabilitykit.kernels.pointers import Block

__all__ = ["KINDS", "TAILS", "padded", "siphash", "siphash_words"]

KINDS = ("u8", "u8", "u8", "i8")
"""Kind of each block of ``siphash_words``."""
_MASK = (1 << 64) - 1
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_S0, _S1, _S2, _S3 = (np.uint64(word) for word in _START)
_13, _16, _17, _21, _32 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32))
_64 = np.uint64(64)
_FF = np.uint64(0xFF)
TAILS = tuple(bytes(7 - size % 8) + bytes([size]) for size in range(256))
"""What fills data of a length (modulo 256) up to whole words."""


def padded(data: bytes) -> bytes:
    """Fill data up to whole 64-bit words; the last byte is the length modulo 256."""
    return data + TAILS[len(data) & 255]


def siphash(key: bytes, data: bytes) -> int:
    """Give the 64-bit SipHash-2-4 of some bytes.

    Parameters
    ----------
    key
        16 bytes.
    """
    if len(key) != 16:
        raise ValueError("a SipHash key has 16 bytes")
    k = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [start ^ k[i & 1] for i, start in enumerate(_START)]
    whole = padded(data)
    for at in range(0, len(whole), 8):
        word = int.from_bytes(whole[at : at + 8], "little")
        v[3] ^= word
        _round(v)
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _turn(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & _MASK
    v[2] = (v[2] + v[3]) & _MASK
    v[1], v[3] = _turn(v[1], 13) ^ v[0], _turn(v[3], 16) ^ v[2]
    v[0] = (_turn(v[0], 32) + v[3]) & _MASK
    v[2] = (v[2] + v[1]) & _MASK
    v[1], v[3] = _turn(v[1], 17) ^ v[2], _turn(v[3], 21) ^ v[0]
    v[2] = _turn(v[2], 32)


@kernel
def sip_rounds(v: Block, times: int) -> None:
    """Mix the four words of the state some times."""
    for _ in range(times):
        v[0] = v[0] + v[1]
        v[2] = v[2] + v[3]
        v[1] = ((v[1] << _13) | (v[1] >> (_64 - _13))) ^ v[0]
        v[3] = ((v[3] << _16) | (v[3] >> (_64 - _16))) ^ v[2]
        v[0] = ((v[0] << _32) | (v[0] >> _32)) + v[3]
        v[2] = v[2] + v[1]
        v[1] = ((v[1] << _17) | (v[1] >> (_64 - _17))) ^ v[2]
        v[3] = ((v[3] << _21) | (v[3] >> (_64 - _21))) ^ v[0]
        v[2] = (v[2] << _32) | (v[2] >> _32)


@kernel
def siphash_words(v: Block, key: Block, words: Block, n: Block) -> int:
    """Leave the hash of n padded words in v[0]; v has four words, key two.

    In plain Python the sums wrap around, of which NumPy warns: call it under ``np.errstate(over="ignore")``.
    """
    v[0] = _S0 ^ key[0]
    v[1] = _S1 ^ key[1]
    v[2] = _S2 ^ key[0]
    v[3] = _S3 ^ key[1]
    for i in range(n[0]):
        v[3] = v[3] ^ words[i]
        sip_rounds(v, 2)
        v[0] = v[0] ^ words[i]
    v[2] = v[2] ^ _FF
    sip_rounds(v, 4)
    v[0] = (v[0] ^ v[1]) ^ (v[2] ^ v[3])
    return 0

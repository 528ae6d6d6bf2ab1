"""How the keys of a conversation store spread over its buckets."""

from __future__ import annotations

import secrets
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from stabilitykit.kernels.compile import compile_entry, is_available
from stabilitykit.kernels.siphash import KINDS, TAILS, siphash, siphash_words

__all__ = ["KeyHashMonitor", "SipHasher", "pack_key"]

_HEAD = struct.Struct("<IqI").pack
_WORDS = 64
_MOST = 8 * _WORDS - 8
_write = struct.Struct(f"=q{8 * _WORDS}s").pack_into


def pack_key(session_id: str, turn_id: int, role: str) -> bytes:
    """Give one key's bytes: the lengths first, so that no two keys have the same.

    Glued together, session "1", turn 23 and session "12", turn 3 would be one key.

    Examples
    --------
    >>> pack_key("1", 23, "user") == pack_key("12", 3, "user")
    False
    """
    session, name = session_id.encode(), role.encode()
    return _HEAD(len(session), turn_id, len(name)) + session + name


class SipHasher:
    """SipHash-2-4 under one key, compiled where there is a compiler.

    Parameters
    ----------
    key
        16 bytes.

    Examples
    --------
    >>> hex(SipHasher(bytes(range(16)))(bytes(range(15))))
    '0xa129ca6149be45e5'
    """

    def __init__(self, key: bytes) -> None:
        siphash(key, b"")  # refuses a key of another length
        self._key = key
        self._entry = _compiled()
        # Buffers that nobody uses just now. Taking one out and putting it back are atomic: no lock.
        self._free: deque[_Buffers] = deque([_Buffers(key)])

    def __call__(self, data: bytes) -> int:
        """Hash some bytes to 64 bits."""
        size = len(data)
        if self._entry is None or size > _MOST:
            return siphash(self._key, data)
        try:
            buffers = self._free.pop()
        except IndexError:
            buffers = _Buffers(self._key)
        _write(buffers.into, 0, (size >> 3) + 1, data + TAILS[size & 255])
        self._entry(buffers.address)
        found: int = buffers.out[0]
        self._free.append(buffers)
        return found


class _Buffers:
    """What one call of the compiled hash reads and writes."""

    __slots__ = ("_held", "address", "into", "out")

    def __init__(self, key: bytes) -> None:
        state, words = np.zeros(4, np.uint64), np.frombuffer(key, np.uint64).copy()
        data = np.zeros(1 + _WORDS, np.int64)  # number of words, words
        addresses = np.array([block.ctypes.data for block in (state, words, data[1:], data)], np.int64)
        self._held = (state, words, data, addresses)
        self.into: Any = memoryview(data).cast("B")  # type: ignore[arg-type]
        self.out: Any = memoryview(state)  # type: ignore[arg-type]
        self.address = addresses.ctypes.data


def _compiled() -> Callable[[int], int] | None:
    if not is_available():
        return None
    try:
        return compile_entry(siphash_words, KINDS)
    except Exception:  # a compiler fails in its own ways; the definition gives the same, slowly
        return None


class KeyHashMonitor:
    """Counts keys and the buckets that they fall into.

    ``signals()`` gives ``hash_keys_count`` (distinct keys), ``hash_buckets_count`` and
    ``hash_occupied_count`` of the window since the last reading.

    Parameters
    ----------
    buckets
        Buckets of the table.
    key
        16 secret bytes for SipHash-2-4; drawn when not given. Give one where hashes are compared between
        processes.
    hash
        The table's own hash of a key's bytes, where it is not SipHash: then it is that one which is judged.
    least
        Keys below which nothing is said; they stay for the next reading.
    capacity
        Most distinct keys of a window; those that come later are hashed and not counted.

    Examples
    --------
    >>> monitor = KeyHashMonitor(buckets=64, key=bytes(16), least=8)
    >>> for turn in range(16):
    ...     _ = monitor.add("c-1", turn, "user")
    >>> monitor.signals()["hash_keys_count"], monitor.signals()
    (16, {})
    """

    def __init__(
        self,
        buckets: int,
        *,
        key: bytes | None = None,
        hash: Callable[[bytes], int] | None = None,  # noqa: A002 - what it is called everywhere
        least: int = 64,
        capacity: int = 16384,
    ) -> None:
        self._buckets = buckets
        self._hash = SipHasher(secrets.token_bytes(16) if key is None else key) if hash is None else hash
        self._least = least
        self._capacity = capacity
        self._seen: dict[bytes, int] = {}

    def add(self, session_id: str, turn_id: int, role: str) -> int:
        """Note a key that goes into the table; gives its hash, for the table to use."""
        session, name = session_id.encode(), role.encode()  # pack_key, without the call
        data = _HEAD(len(session), turn_id, len(name)) + session + name
        value = self._hash(data)
        if len(self._seen) < self._capacity:
            self._seen[data] = value
        return value

    def add_bytes(self, data: bytes) -> int:
        """Note a key of any other kind by its bytes."""
        value = self._hash(data)
        if len(self._seen) < self._capacity:
            self._seen[data] = value
        return value

    def signals(self) -> dict[str, Any]:
        """Give the window since the last reading, once it has enough keys, and begin a new one."""
        if len(self._seen) < self._least:
            return {}
        seen, self._seen = self._seen, {}
        values = list(seen.copy().values())  # in one step each: a thread may still hold the old window
        return {
            "hash_keys_count": len(values),
            "hash_buckets_count": self._buckets,
            "hash_occupied_count": len({value % self._buckets for value in values}),
        }

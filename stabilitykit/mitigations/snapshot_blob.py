"""A ring of snapshots as a blob: for a move to another process, or a store outside.

Examples
--------
>>> ring = SnapshotRing(keep=2)
>>> ring.take(1, [{"role": "user", "content": "Hello"}])
True
>>> restore_ring(export_ring(ring)).back(0).messages
[{'role': 'user', 'content': 'Hello'}]
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from stabilitykit.errors import BlobError, UsageError
from stabilitykit.kernels.simhash import VERSION as PLANES
from stabilitykit.mitigations.snapshots import Packed, Plain, SnapshotRing, unpacked

__all__ = ["export_ring", "restore_ring"]

_HEAD = struct.Struct("<4sHI")
_MAGIC, _VERSION = b"SKSR", 1


def export_ring(ring: SnapshotRing) -> bytes:
    """Write a ring: magic, version, CRC-32 of the rest, JSON, compressed."""
    new = ring.newest
    told = {
        "keep": ring.keep,
        "max_bytes": ring.max_bytes,
        "last": ring.last,
        "planes": PLANES,
        "newest": new and [new.turn_id, new.texts, _plain(new.state), _plain(new.signature)],
        "older": [
            [one.turn_id, one.first, one.last, *map(_plain, (one.texts, one.state, one.signature))]
            for one in ring.older
        ],
    }
    body = zlib.compress(json.dumps(told).encode())
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(body)) + body


def restore_ring(blob: bytes) -> SnapshotRing:
    """Read a ring; signatures made with other hyperplanes are dropped.

    Restore only what a store of your own kept.

    Raises
    ------
    BlobError
        Damaged, of a newer version, or with contents that no ring has.
    """
    if len(blob) < _HEAD.size or blob[:4] != _MAGIC:
        raise BlobError("not an exported ring of snapshots")
    _, version, crc = _HEAD.unpack_from(blob)
    body = blob[_HEAD.size :]
    if version != _VERSION:
        raise BlobError(f"version {version}; this library reads {_VERSION}")
    if zlib.crc32(body) != crc:
        raise BlobError("damaged: checksum does not agree")
    try:
        ring = _ring(json.loads(zlib.decompress(body)))
        _check(ring)
    except (zlib.error, ValueError, KeyError, TypeError, OverflowError, RecursionError, UsageError) as error:
        raise BlobError(f"its contents are no ring of snapshots ({type(error).__name__})") from None
    return ring


def _ring(told: Any) -> SnapshotRing:
    ring = SnapshotRing(_whole(told["keep"]), _whole(told["max_bytes"]))
    is_known = told["planes"] == PLANES
    if told["newest"]:
        turn_id, texts, state, signed = told["newest"]
        ring.newest = Plain(_whole(turn_id), tuple(texts), _bytes(state), _bytes(signed) if is_known else b"")
    for turn_id, first, last, texts, state, signed in told["older"]:
        ends, signature = (_whole(first), _whole(last)), _bytes(signed) if is_known else b""
        ring.older.append(Packed(_whole(turn_id), *ends, _bytes(texts), _bytes(state), signature))
    ring.last = _whole(told["last"])
    return ring


def _check(ring: SnapshotRing) -> None:
    """Go back all the way: what cannot be gone back to is found here, not on the day it is needed."""
    chain = [ring.newest] if ring.newest else []
    for packed in reversed(ring.older):
        if not chain or not 0 <= packed.first <= len(chain[-1].texts) - packed.last <= len(chain[-1].texts):
            raise ValueError("parts of a newer snapshot that are not there")
        chain.append(unpacked(packed, chain[-1]))
    if not all(isinstance(json.loads(text), dict) for text in {text for plain in chain for text in plain.texts}):
        raise TypeError("a message that is none")


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise TypeError("not a whole number")
    return number


def _plain(data: bytes) -> str:
    return base64.b85encode(data).decode()


def _bytes(text: Any) -> bytes:
    return base64.b85decode(text)

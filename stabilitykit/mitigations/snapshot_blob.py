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

from stabilitykit.errors import BlobError
from stabilitykit.kernels.simhash import VERSION as PLANES
from stabilitykit.mitigations.snapshots import Packed, Plain, SnapshotRing

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
        Damaged, or of a newer version.
    """
    if len(blob) < _HEAD.size or blob[:4] != _MAGIC:
        raise BlobError("not an exported ring of snapshots")
    _, version, crc = _HEAD.unpack_from(blob)
    body = blob[_HEAD.size :]
    if version != _VERSION:
        raise BlobError(f"version {version}; this library reads {_VERSION}")
    if zlib.crc32(body) != crc:
        raise BlobError("damaged: checksum does not agree")
    told = json.loads(zlib.decompress(body))
    ring = SnapshotRing(told["keep"], told["max_bytes"])
    is_known = told["planes"] == PLANES
    if told["newest"]:
        turn_id, texts, state, signed = told["newest"]
        ring.newest = Plain(turn_id, tuple(texts), _bytes(state), _bytes(signed) if is_known else b"")
    for turn_id, first, last, texts, state, signed in told["older"]:
        signature = _bytes(signed) if is_known else b""
        ring.older.append(Packed(turn_id, first, last, _bytes(texts), _bytes(state), signature))
    ring.last = told["last"]
    return ring


def _plain(data: bytes) -> str:
    return base64.b85encode(data).decode()


def _bytes(text: Any) -> bytes:
    return base64.b85decode(text)

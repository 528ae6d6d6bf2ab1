"""One session as a blob: for a move to another process, or a store outside."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import attrs
import numpy as np

from stabilitykit.decision import Decision, Fault
from stabilitykit.errors import BlobError
from stabilitykit.generation import Generation
from stabilitykit.session import Session

__all__ = ["export_session", "read_blob", "restore_session"]

_MAGIC = b"SKIT"
_VERSION = 1
_HEAD = struct.Struct("<4sHI")


def export_session(session: Session, live: Generation) -> bytes:
    """Write a session: magic, version, length, JSON head, row, vectors, decision, CRC-32."""
    decision = session.decision
    vec = b"" if session.vec is None else session.vec.tobytes()
    row = session.rows.view(session.row).tobytes()
    head = {
        "fingerprint": live.fingerprint,
        "tenant": _text(session.key[0]),
        "session": _text(session.key[1]),
        "last": session.last,
        "revision": session.revision,
        "model": session.model,
        "state": live.pack.states[decision._code & 255].name if decision else live.pack.initial,
        "row": len(row),
        "vec": len(vec),
        "turn": decision.turn_id if decision else -1,
        "code": decision._code if decision else 0,
        "faults": [attrs.astuple(f) for f in decision.faults] if decision else [],
        "snapshot": len(decision._snapshot) if decision else 0,
        "memory": len(decision._memory) if decision else 0,
    }
    text = json.dumps(head).encode()
    body = _HEAD.pack(_MAGIC, _VERSION, len(text)) + text + row + vec
    if decision:
        body += decision._snapshot + decision._memory
    return body + struct.pack("<I", zlib.crc32(body))


def read_blob(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Check a blob and give its head and the bytes behind it.

    Raises
    ------
    BlobError
        Damaged, cut short, or of a newer version.
    """
    if len(blob) < _HEAD.size + 4 or blob[:4] != _MAGIC:
        raise BlobError("not an exported session")
    body, (crc,) = blob[:-4], struct.unpack("<I", blob[-4:])
    if zlib.crc32(body) != crc:
        raise BlobError("damaged: checksum does not agree")
    _, version, size = _HEAD.unpack_from(body)
    if version != _VERSION:
        raise BlobError(f"version {version}; this library reads {_VERSION}")
    try:
        head = json.loads(body[_HEAD.size : _HEAD.size + size])
    except ValueError as error:
        raise BlobError(f"damaged head: {error}") from None
    return head, body[_HEAD.size + size :]


def restore_session(blob: bytes, live: Generation) -> Session:
    """Give the session of a blob, in fresh memory of this generation.

    Raises
    ------
    BlobError
        Damaged, newer, or of another pack.
    """
    head, data = read_blob(blob)
    if head["fingerprint"] != live.fingerprint:
        raise BlobError("the session belongs to another pack")
    sizes = [head["row"], head["vec"], head["snapshot"], head["memory"]]
    if sum(sizes) != len(data) or head["row"] != live.rows[0].nbytes:
        raise BlobError("damaged: sizes do not agree")
    row, vec, snapshot, memory = (data[sum(sizes[:k]) : sum(sizes[: k + 1])] for k in range(4))
    rows = live.rows[0]
    session = Session(rows, rows.take(), key=(_value(head["tenant"]), _value(head["session"])))
    rows.view(session.row)[:] = np.frombuffer(row, np.float64)
    if vec:
        session.need_vector()
        assert session.vec is not None
        session.vec[:] = np.frombuffer(vec, np.float32)
    session.last, session.revision, session.model = head["last"], head["revision"], head["model"]
    if head["turn"] >= 0:
        faults = tuple(Fault(*f) for f in head["faults"])
        fields = (live, session.key[1], head["turn"], head["code"], snapshot, faults, memory, "session")
        session.decision = tuple.__new__(Decision, fields)
    return session


def _text(value: Any) -> str:
    return f"b{value.hex()}" if isinstance(value, bytes) else f"s{value}"


def _value(text: str) -> str | bytes:
    return bytes.fromhex(text[1:]) if text[0] == "b" else text[1:]

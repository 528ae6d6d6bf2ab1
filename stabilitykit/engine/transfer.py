"""One session as a blob: for a move to another process, or a store outside."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, cast

import attrs
import numpy as np

from stabilitykit.decision import Decision, Fault
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.migrate import state_indices, value_slots
from stabilitykit.errors import BlobError
from stabilitykit.session import Session

__all__ = ["export_session", "read_blob", "restore_session"]

_MAGIC = b"SKIT"
_VERSION = 1
_HEAD = struct.Struct("<4sHI")


def export_session(session: Session, live: Generation) -> bytes:
    """Write a session: magic, version, length, JSON head, row, vectors, decision, CRC-32.

    The session stands in this generation's memory, and so does its decision afterwards.
    """
    decision = session.decision
    if decision is not None and decision._view is not live:
        decision = _restated(decision, session, live)
    vec = b"" if session.vec is None else session.vec.tobytes()
    row = session.rows.view(session.row).tobytes()
    head = {
        "fingerprint": live.fingerprint,
        "layout": _layout(live),
        "tenant": _text(session.key[0]),
        "session": _text(session.key[1]),
        "last": session.last,
        "revision": session.revision,
        "model": session.model,
        "said_model": session.said_model,
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


def _restated(decision: Decision, session: Session, live: Generation) -> Decision:
    """Say what an earlier pack decided in the words of this one; what it has no word for is left out."""
    old, p = cast(Generation, decision._view), live.program
    shown = np.full(p.out_words + p.live, np.nan)
    words = shown[: p.out_words].view(np.uint64)
    words[:] = 0
    values, mine = old.values(decision), dict(value_slots(old.program))
    for name, slot in value_slots(p):
        if name in mine:
            shown[p.out_words + slot] = values[mine[name]]
    states = state_indices(old.pack, live.pack)
    for scope, tables in enumerate(p.rules):
        at = p.out_at[scope]
        for group in range(4):
            said = old.words(decision, scope, group)
            for rule_id, bit in old.program.rules[scope].bits.items():
                if said >> bit & 1 and rule_id in tables.bits:
                    to = tables.bits[rule_id]
                    words[at + group * tables.words + (to >> 6)] |= np.uint64(1 << (to & 63))
        words[at + 4 * tables.words] = _machine_word(old.machine_word(decision, scope), states)
    code = decision._code & ~0x1FFFF | _machine_word(decision._code & 0x1FFFF, states)
    memory = live.rule_memory(session.row) if decision._memory else b""
    told = (code, shown.tobytes(), decision.faults, memory, "session", decision.tenant)
    return tuple.__new__(Decision, (live, decision.session_id, decision.turn_id, *told))


def _machine_word(word: int, states: Sequence[int | None]) -> int:
    return (states[word & 255] or 0) | (states[word >> 8 & 255] or 0) << 8 | word & 1 << 16


def _layout(live: Generation) -> int:
    """Digest what stands where: another release may lay the same pack out differently."""
    p = live.program
    return zlib.crc32(repr((p.rows[0].spans, p.rows[0].vector, p.out_at, p.out_words, p.live)).encode())


def read_blob(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Check a blob and give its head and the bytes behind it.

    Raises
    ------
    BlobError
        Damaged, cut short, or of a newer version.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise BlobError(f"not an exported session but {type(blob).__name__}")
    blob = bytes(blob)
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
        return _checked_head(head), body[_HEAD.size + size :]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BlobError(f"damaged head: {type(error).__name__}") from None


def _checked_head(head: Any) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "fingerprint": str, "layout": int, "tenant": str, "session": str, "last": int, "revision": int,
        "model": str | None, "said_model": str | None, "row": int, "vec": int, "turn": int, "code": int,
        "faults": list, "snapshot": int, "memory": int,
    }  # fmt: skip
    for name, kind in wanted.items():
        if not isinstance(head[name], kind):
            raise TypeError(name)
    head["key"] = (_value(head["tenant"]), _value(head["session"]))
    head["faults"] = tuple(Fault(kind, signal, detail) for kind, signal, detail in head["faults"])
    if min(head[k] for k in ("row", "vec", "snapshot", "memory", "code")) < 0:
        raise ValueError
    checked: dict[str, Any] = head
    return checked


def restore_session(blob: bytes, live: Generation) -> Session:
    """Give the session of a blob, in fresh memory of this generation.

    Raises
    ------
    BlobError
        Damaged, newer, or of another pack.
    """
    head, data = read_blob(blob)
    if head["fingerprint"] != live.fingerprint or head["layout"] != _layout(live):
        raise BlobError("the session belongs to another pack")
    p, rows = live.program, live.rows[0]
    sizes = [head["row"], head["vec"], head["snapshot"], head["memory"]]
    fits = (
        sum(sizes) == len(data)
        and sizes[0] == rows.nbytes
        and sizes[1] in (0, 4 * rows.vector)
        and sizes[2] == (8 * (p.out_words + p.live) if head["turn"] >= 0 else 0)
        and sizes[3] in (0, 8 * p.rules[0].copied)
    )
    if not fits:
        raise BlobError("damaged: sizes do not agree")
    row, vec, snapshot, memory = (data[sum(sizes[:k]) : sum(sizes[: k + 1])] for k in range(4))
    states = {np.frombuffer(row, np.uint64)[p.rows[0].machine], head["code"] & 255, head["code"] >> 8 & 255}
    if max(states) >= len(live.pack.states):
        raise BlobError("damaged: no such state")
    session = Session(rows, rows.take(), key=head["key"])
    rows.view(session.row)[:] = np.frombuffer(row, np.float64)
    block = session.need_vector() if vec else None
    if block is not None:
        block[:] = np.frombuffer(vec, np.float32)
    session.last, session.revision = head["last"], head["revision"]
    session.model, session.said_model = head["model"], head["said_model"]
    if head["turn"] >= 0:
        tenant, name = session.key
        fields = (live, name, head["turn"], head["code"], snapshot, head["faults"], memory, "session", tenant)
        session.decision = tuple.__new__(Decision, fields)
    return session


def _text(value: Any) -> str:
    return f"b{value.hex()}" if isinstance(value, bytes) else f"s{value}"


def _value(text: str) -> str | bytes:
    if text[:1] not in ("b", "s"):
        raise ValueError
    return bytes.fromhex(text[1:]) if text[0] == "b" else text[1:]

"""Export and restore: mid-stream, damaged in every way, of another pack."""

from __future__ import annotations

import json
import random
import struct
import zlib
from typing import Any

import pytest

from stabilitykit import StabilityKitError
from stabilitykit.engine.transfer import read_blob
from stabilitykit.errors import BlobError
from tests.engines import VECTORS, Turn, breaker, play, vector_engine, words


def stream(seed, count=24, session="a"):
    """Give turns with vectors, faults, gaps, models and extras."""
    rng = random.Random(seed)
    turns, number = [], 0
    for _ in range(count):
        number += rng.choice([1, 1, 1, 2])
        turn = Turn(session_id=session, turn_id=number, model=rng.choice([None, "m", "m", "n"]))
        turn.itl_ms = rng.choice([30.0, 40.0, 300.0, float("nan")])
        turn.finish_reason = rng.choice([None, "stop", "abort"])
        if rng.random() < 0.7:
            turn.embedding = [rng.random() for _ in range(4)]
        if rng.random() < 0.7:
            turn.top_token_ids, turn.top_logprobs = (
                [1, 2, 3],
                sorted((-5.0 * rng.random() - 0.1 for _ in range(3)), reverse=True),
            )
        if rng.random() < 0.3:
            turn.extra = {"host_score": rng.random()}
        turns.append(turn)
    return turns


@pytest.mark.capability("issue 2 §2: export and restore mid-stream continue identically, vectors included")
def test_mid_stream(tmp_path):
    """Cut anywhere, move to another process' engine, go on: the same decisions, bit for bit."""
    turns = stream(1)
    whole = vector_engine(tmp_path)
    want = [words(whole.evaluate(t)) for t in turns]
    source = vector_engine(tmp_path)
    for cut, turn in enumerate(turns):
        assert words(source.evaluate(turn)) == want[cut]
        target = vector_engine(tmp_path, capacity=5)
        target.restore(source.export("a"))
        assert target.export("a") == source.export("a")
        stored = target.evaluate(turn)
        assert words(stored) == want[cut]
        assert target.evaluate(turn) is stored
        if cut % 6 == 0:
            assert [words(target.evaluate(t)) for t in turns[cut + 1 :]] == want[cut + 1 :]


def test_names_and_places(tmp_path):
    """Identities of any kind survive; a broken session comes back as one that is kept."""
    engine = breaker()
    for tenant, session in (("", "a"), (b"\x00t", b"\xff"), ("té", "\udc80"), ("b", "s")):
        engine.evaluate(Turn(session_id=session, tenant=tenant, itl_ms=90.0, model="m"))
        engine.evaluate(Turn(session_id=session, tenant=tenant, itl_ms=90.0))
        blob = engine.export(session, tenant=tenant)
        other = breaker()
        assert other.restore(blob) == session
        assert list(other.sessions.kept) == [(tenant, session)]
        assert other.restore(memoryview(blob)) == session
        assert other.export(session, tenant=tenant) == blob


def test_a_restored_decision_is_its_tenant_s(tmp_path):
    """What was decided is told again for the same tenant, by another engine and after a reload."""
    turn = Turn(session_id="a", tenant="one", turn_id=1, itl_ms=90.0)
    engine, other = vector_engine(tmp_path), vector_engine(tmp_path)
    decision = engine.evaluate(turn)
    other.restore(engine.export("a", tenant="one"))
    assert other.evaluate(turn).tenant == decision.tenant == "one"
    path = tmp_path / "more.yaml"
    path.write_text(VECTORS.replace("pack: vectors", "pack: more"), encoding="utf-8")
    other.reload(str(path))
    third = type(other).load(str(path), ttl_s=None)
    third.restore(other.export("a", tenant="one"))
    assert (third.evaluate(turn).tenant, third.evaluate(turn).turn_id) == ("one", 1)


def outcome(engine, blob):
    """Restore; give what the session says afterwards, or None where the blob is refused."""
    try:
        engine.restore(blob)
    except BlobError:
        return None
    return engine.export("a")


@pytest.mark.capability("issue 2 §2: every truncation and every bit flip of a blob is refused or harmless")
def test_damaged():
    """Every length and every single bit of a short row's blob: BlobError, and the engine is as it was."""
    engine = breaker()
    play(engine, [90.0, 90.0])
    blob = engine.export("a")
    other = breaker()
    assert all(outcome(other, blob[:k]) is None for k in range(len(blob)))
    for k in range(8 * len(blob)):
        bad = bytearray(blob)
        bad[k >> 3] ^= 1 << (k & 7)
        assert outcome(other, bytes(bad)) is None
    assert len(other.sessions) == 0
    assert [len(rows._free) for rows in other._live.rows] == [len(rows._free) for rows in breaker()._live.rows]
    assert outcome(other, blob) == blob


def resealed(blob, change):
    """Change a blob's head and make the checksum right again."""
    body = blob[:-4]
    magic, version, size = struct.unpack_from("<4sHI", body)
    head = change(json.loads(body[10 : 10 + size]))
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    body = struct.pack("<4sHI", magic, version, len(text)) + text + body[10 + size :]
    return body + struct.pack("<I", zlib.crc32(body))


def test_wrong_with_the_right_checksum(tmp_path):
    """A blob that somebody composed wrongly is refused as a damaged one is."""
    engine = breaker()
    play(engine, [90.0, 90.0])
    blob = engine.export("a")
    assert outcome(breaker(), resealed(blob, lambda head: head)) == blob
    head, _ = read_blob(blob)
    changes: list[Any] = [
        lambda h, k=k: {n: v for n, v in h.items() if n != k}
        for k in json.loads(json.dumps(head, default=str))
        if k != "key"
    ]
    wrong: list[Any] = [None, -1, [], "zz", 10**30, 1.5]
    changes += [lambda h, k=k, v=v: {**h, k: v} for k in head if k != "key" for v in wrong]
    changes += [lambda h: [], lambda h: None, lambda h: b"{", lambda h: b"\xff", lambda h: b"[" * 10_000]
    changes += [lambda h: {**h, "code": 77}, lambda h: {**h, "code": 77 << 8}, lambda h: {**h, "faults": [["a"]]}]
    for change in changes:
        bad = resealed(blob, change)
        other = breaker()
        try:
            other.restore(bad)
        except BlobError:
            assert len(other.sessions) == 0
            continue
        # What is only a name or a number of the host's may be anything: then the session works under it.
        for key in [*other.sessions.live, *other.sessions.kept]:
            other.evaluate(Turn(session_id=key[1], tenant=key[0], itl_ms=10.0)).explain()
    for junk in (None, "text", 5, b"", b"SKIT", b"\0" * 100, [blob], b"SKIT" + bytes(200)):
        with pytest.raises(BlobError):
            breaker().restore(junk)


def test_newer_version():
    """A blob of a newer format says which version it has."""
    engine = breaker()
    play(engine, [90.0])
    body = bytearray(engine.export("a")[:-4])
    struct.pack_into("<H", body, 4, 2)
    with pytest.raises(BlobError, match="version 2"):
        engine.restore(bytes(body) + struct.pack("<I", zlib.crc32(body)))


@pytest.mark.capability("issue 2 §2: a blob of another pack or layout is refused")
def test_another_pack(tmp_path):
    """A session of another pack, or of this one with another layout, is refused."""
    engine = vector_engine(tmp_path)
    engine.evaluate(Turn(session_id="a", itl_ms=90.0))
    other = vector_engine(tmp_path, VECTORS.replace("window: 3", "window: 4"))
    for blob, target in (
        (engine.export("a"), other),
        (resealed(engine.export("a"), lambda h: {**h, "layout": 1}), engine),
    ):
        with pytest.raises(BlobError, match="another pack"):
            target.restore(blob)
    assert issubclass(BlobError, StabilityKitError)


def test_export_after_a_reload(tmp_path):
    """A session whose decision is of an earlier pack moves too, told in the words of the new pack."""
    engine = vector_engine(tmp_path)
    turns = [Turn(session_id="a", itl_ms=300.0 if k > 3 else 30.0, turn_id=k, replica="r") for k in range(6)]
    stored = [engine.evaluate(turn) for turn in turns][-1]
    path = tmp_path / "vectors.yaml"
    path.write_text(
        VECTORS.replace("  - {rule: jump", "  - {rule: more, when: 'ttft_ms > 1 s'}\n  - {rule: jump"), encoding="utf-8"
    )
    engine.reload(str(path))
    other = vector_engine(tmp_path, path.read_text(encoding="utf-8"))
    other.restore(engine.export("a"))
    got = other.sessions.find(("", "a")).decision
    assert words(got) == words(stored)
    assert (got.state, got.generation) == ("broken", 1)
    assert "slow-now" in got.explain()
    after = Turn(session_id="a", turn_id=6, itl_ms=30.0, replica="r")
    assert words(other.evaluate(after)) == words(engine.evaluate(after))

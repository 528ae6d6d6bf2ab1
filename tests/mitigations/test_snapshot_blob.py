from __future__ import annotations

import json
import math
import zlib
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import BlobError
from stabilitykit.mitigations import snapshot_blob
from stabilitykit.mitigations.snapshot_blob import _HEAD, _MAGIC, _VERSION, export_ring, restore_ring
from stabilitykit.mitigations.snapshots import SnapshotRing


def a_ring(texts):
    """Give a ring with a snapshot for each text."""
    ring = SnapshotRing(keep=3, max_bytes=10_000)
    for turn_id, text in enumerate(texts):
        ring.take(turn_id, [{"content": text}], text.encode("utf-8", "replace"), [1.0, turn_id])
    return ring


@pytest.mark.capability("issue 5 §5: snapshots are versioned: a ring moves to another process, or says why it cannot")
@given(st.lists(st.text(max_size=20), max_size=5))
def test_a_ring_moves(texts):
    """Everything is there, and it goes on in the same way."""
    ring = a_ring(texts)
    other = restore_ring(export_ring(ring))
    assert (other.keep, other.max_bytes, other.nbytes) == (ring.keep, ring.max_bytes, ring.nbytes)
    for one in (ring, other):
        one.take(9, [{"content": "later"}])
    assert [other.back(k) for k in range(12)] == [ring.back(k) for k in range(12)]
    assert export_ring(other) == export_ring(ring)


def test_damage():
    """Every flipped bit, every cut and a newer version is an error with a reason."""
    blob = export_ring(a_ring(["one", "two"]))
    for at in range(len(blob)):
        damaged = bytearray(blob)
        damaged[at] ^= 1
        with pytest.raises(BlobError):
            restore_ring(bytes(damaged))
        with pytest.raises(BlobError):
            restore_ring(blob[:at])


def forged(body):
    """Give a blob with any body and the right checksum."""
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(body)) + body


def told_of(ring):
    """Give what the blob of a ring holds."""
    return json.loads(zlib.decompress(export_ring(ring)[_HEAD.size :]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.binary(max_size=30))
def test_a_right_checksum_over_no_json(body):
    """Bytes that are not compressed, or hold no JSON, are an error of the blob, whatever the checksum says."""
    for wrong in (body, zlib.compress(body)):
        with pytest.raises(BlobError):
            restore_ring(forged(wrong))


@given(JSON, st.sampled_from(["", "keep", "max_bytes", "last", "newest", "older"]), st.integers(0, 5), st.booleans())
def test_a_right_checksum_over_other_contents(value, field, place, is_missing):
    """Anything in the place of a field: the ring is refused, or can be gone back in all the way."""
    told = told_of(a_ring(["one", "two", "three"]))
    if field in ("newest", "older"):
        row = told["newest"] if field == "newest" else told["older"][-1]
        row[place % len(row)] = value
    elif field and is_missing:
        del told[field]
    else:
        told = told | {field: value} if field else value
    try:
        ring = restore_ring(forged(zlib.compress(json.dumps(told).encode())))
    except BlobError:
        return
    assert len(ring.turn_ids) == len(ring.older) + (ring.newest is not None)
    assert all(found is None or isinstance(found.messages, list) for found in map(ring.back, range(5)))


@pytest.mark.parametrize(
    "wrong",
    [
        {}, [], {"keep": 0}, {"keep": 2.5}, {"last": None}, {"newest": 7}, {"newest": None},
        {"newest": [2, ["x"], "", ""]}, {"newest": [2, [], "", ""]},
        {"older": [[1, 0, 0]]}, {"older": [[1, -1, 0, "", "", ""]]}, {"older": {"a": 1}},
        {"older": [[1, 0, 0, "~~", "", ""]]}, {"older": [[1, 0, 0, "VPaz", "VPaz", ""]]},
    ],
)  # fmt: skip
def test_contents_that_no_ring_has(wrong):
    """Fields that are missing, of another type or that do not fit each other."""
    told = told_of(a_ring(["one", "two"])) | wrong if wrong else wrong
    with pytest.raises(BlobError, match="contents"):
        restore_ring(forged(zlib.compress(json.dumps(told).encode())))


def test_other_hyperplanes():
    """Signatures of another version are never compared: they are dropped, the text is not."""
    blob = export_ring(a_ring(["one"]))
    assert restore_ring(blob).similarity([1.0, 0.0]) == 1.0
    with mock.patch.object(snapshot_blob, "PLANES", 2):
        ring: Any = restore_ring(blob)
    assert math.isnan(ring.similarity([1.0, 0.0]))
    assert ring.back(0).messages == [{"content": "one"}]

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import BlobError
from stabilitykit.mitigations import snapshot_blob
from stabilitykit.mitigations.snapshot_blob import export_ring, restore_ring
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


def test_other_hyperplanes():
    """Signatures of another version are never compared: they are dropped, the text is not."""
    blob = export_ring(a_ring(["one"]))
    assert restore_ring(blob).similarity([1.0, 0.0]) == 1.0
    with mock.patch.object(snapshot_blob, "PLANES", 2):
        ring: Any = restore_ring(blob)
    assert math.isnan(ring.similarity([1.0, 0.0]))
    assert ring.back(0).messages == [{"content": "one"}]

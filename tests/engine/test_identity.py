"""Who a turn belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from stabilitykit.engine.identity import MAX_ID_BYTES, check_id, check_number, hashed
from stabilitykit.errors import TurnError


@pytest.mark.parametrize("value", ["", "x" * 128, "é" * 64, b"\xff" * 128, "\udc80"])
def test_identities(value):
    """Text and bytes of at most 128 bytes."""
    check_id(value, "session_id")
    assert len(value) <= MAX_ID_BYTES


@pytest.mark.parametrize("value", ["x" * 129, "é" * 65, b"x" * 129, 1, None, 1.5, ["a"], object()])
def test_no_identities(value):
    """Anything else is refused under the field's name, without its text."""
    with pytest.raises(TurnError, match=r"^tenant must ") as error:
        check_id(value, "tenant")
    assert "xxx" not in str(error.value)


def test_numbers():
    """Whole numbers in [0, 2**63)."""
    for good in (0, 1, 2**63 - 1):
        check_number(good, "turn_id")
    bad: list[Any] = [-1, 2**63, True, 1.0, "1", None]
    for value in bad:
        with pytest.raises(TurnError, match="revision must be"):
            check_number(value, "revision")


def test_hashes():
    """Keyed, of fixed length, for text and bytes alike."""
    assert hashed("a", b"k") == hashed(b"a", b"k")
    assert {len(hashed(v, b"k")) for v in ("", "x" * 128, b"\xff")} == {16}
    assert len({hashed("a", b"k", tenant) for tenant in ("", "a", "b")}) == 3
    assert hashed("a", b"k", "b") == hashed(b"a", b"k", b"b")

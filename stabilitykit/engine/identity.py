"""Who a turn belongs to: keys of sessions, replicas and devices, checked once."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from stabilitykit.errors import TurnError, UsageError

__all__ = ["MAX_ID_BYTES", "check_id", "check_key", "check_number", "hashed", "plain_bytes", "salt_of"]

MAX_ID_BYTES = 128


def check_id(value: Any, what: str) -> None:
    """Refuse an identity that is no text or bytes of at most 128 bytes.

    Only text and bytes: their hashes are keyed, so nobody can choose ids that collide.
    """
    if isinstance(value, str):
        size = len(value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        size = len(value)
    else:
        raise TurnError(f"{what} must be str or bytes, not {type(value).__name__}")
    if size > MAX_ID_BYTES:
        raise TurnError(f"{what} must have at most {MAX_ID_BYTES} bytes, not {size}")


def check_number(value: Any, what: str) -> None:
    """Refuse a turn id or revision that is no whole number in [0, 2**63)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TurnError(f"{what} must be an int, not {type(value).__name__}")
    if not 0 <= value < 1 << 63:
        raise TurnError(f"{what} must be in [0, 2**63)")


def check_key(value: Any) -> None:
    """Refuse a secret that no keyed hash takes."""
    if not isinstance(value, bytes) or not 0 < len(value) <= blake2b.MAX_KEY_SIZE:
        raise UsageError(f"a key has 1 to {blake2b.MAX_KEY_SIZE} bytes")


def hashed(value: Any, key: bytes, tenant: Any = "") -> str:
    """Give a keyed hash of an identity, for logs; of one name in two tenants two."""
    return blake2b(plain_bytes(value), key=key, salt=salt_of(tenant, key), digest_size=8).hexdigest()


def plain_bytes(value: Any) -> bytes:
    """Give the bytes of an identity."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def salt_of(tenant: Any, key: bytes) -> bytes:
    """Give the salt that keeps a tenant's keyed hashes apart from all others; the default tenant has none."""
    return blake2b(plain_bytes(tenant), key=key, digest_size=blake2b.SALT_SIZE).digest() if tenant else b""

"""The compile cache: one checked file per compiled function, in a directory of the user alone.

What is claimed: a file that was cut, damaged, renamed, left by another version or written by
another user is never loaded; the function is compiled again and the file replaced in one step.
Nothing in a file is unpickled. What is not claimed: the checksum is no signature, so whoever can
already write as this user (or as root) can plant code here, as in any file that the user runs.

A place that cannot be used is no error: the code is compiled in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import attrs

from stabilitykit.kernels.report import report

__all__ = ["Store", "cache_directory", "open_store"]

_MAGIC = b"stabilitykit-code-1\n"
_DIGEST = hashlib.sha256().digest_size
_LARGEST = 16 << 20
"""Bytes; a real file has about 10 thousand."""


@attrs.frozen
class Store:
    """Files of compiled code by key.

    Parameters
    ----------
    directory
        A directory that belongs to this user or to root and that nobody else can write.
    """

    directory: Path

    def load(self, key: str) -> bytes | None:
        """Give what was saved under a key, or None when it is absent or not as it was saved."""
        try:
            with self._opened() as place:
                blob = _read(f"{key}.code", place)
        except OSError:
            return None
        head = len(_MAGIC) + _DIGEST
        payload = blob[head:]
        return payload if blob[:head] == _MAGIC + _digest(key, payload) else None

    def save(self, key: str, payload: bytes) -> None:
        """Keep a payload under a key; a failure leaves what was there before."""
        with contextlib.suppress(OSError), self._opened() as place:
            _replace(f"{key}.code", _MAGIC + _digest(key, payload) + payload, place)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Hold the checked directory open, so that nobody can exchange it meanwhile."""
        place = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _check(place)
            yield place
        finally:
            os.close(place)


def cache_directory() -> Path:
    """Give ``STABILITYKIT_CACHE_DIR``, else ``stabilitykit`` in the user's cache directory."""
    given = os.environ.get("STABILITYKIT_CACHE_DIR")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home and os.path.isabs(home) else Path.home() / ".cache") / "stabilitykit"


def open_store() -> Store | None:
    """Give the store, its directory made (mode 0700) if needed, or None when there is no safe one."""
    if not hasattr(os, "geteuid"):  # ownership cannot be checked on this platform
        return None
    try:
        store = Store(cache_directory())
        store.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with store._opened():
            return store
    except (OSError, RuntimeError) as problem:  # RuntimeError: the user has no home directory
        report("compile_cache_refused", problem)
        return None


def _check(descriptor: int) -> None:
    """Refuse what another user owns or can write."""
    found = os.fstat(descriptor)
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("another user could have written this")


def _read(name: str, place: int) -> bytes:
    """Read a regular file of this user from an open directory."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    with open(descriptor, "rb") as file:
        _check(descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise PermissionError("not a file of this cache")
        return file.read(_LARGEST)


def _replace(name: str, blob: bytes, place: int) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    new = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(new, flags, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(descriptor)
        os.rename(new, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=place)
        raise


def _digest(key: str, payload: bytes) -> bytes:
    """Hash a payload together with its key: a file renamed to another function is refused."""
    return hashlib.sha256(f"{len(key)}:{key}:".encode() + payload).digest()

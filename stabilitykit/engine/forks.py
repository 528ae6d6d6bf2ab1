"""Engines survive ``os.fork``: the fork waits for the step under way, the child gets free locks."""

from __future__ import annotations

import logging  # noqa: F401 - registers before us, so that its locks are taken after ours
import os
import threading
import weakref
from typing import Any

__all__ = ["watch_forks"]

_engines: weakref.WeakSet[Any] = weakref.WeakSet()
_registry = threading.Lock()
_held: list[Any] = []


def watch_forks(engine: Any) -> None:
    """Hold the engine's lock over every fork from now on."""
    with _registry:
        _engines.add(engine)


def _before() -> None:
    _registry.acquire()
    for engine in list(_engines):
        engine._lock.acquire()
        _held.append(engine)


def _after() -> None:
    while _held:
        _held.pop()._lock.release()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)

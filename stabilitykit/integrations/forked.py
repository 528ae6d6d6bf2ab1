"""A forked child, its parent's threads gone: whoever held a lock then would hold it there for ever."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forked", "begins_anew"]


class Forked(Protocol):
    """What has locks, or counts what the parent's threads do."""

    def begin_anew(self) -> None:
        """Make new locks, in the child."""


_ALL: weakref.WeakSet[Forked] = weakref.WeakSet()


def begins_anew(one: Forked) -> None:
    """Have ``begin_anew`` called in every child that is forked from now on, for as long as it lives."""
    _ALL.add(one)


def _in_child() -> None:
    for one in list(_ALL):
        one.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

"""The engine: a Turn in, a Decision out."""

from __future__ import annotations

from stabilitykit.engine.engine import Engine

__all__ = ["Engine"]

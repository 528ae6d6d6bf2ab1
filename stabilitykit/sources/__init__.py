"""What real systems say, turned into turns and samples: one source per file."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PRODUCERS"]

PRODUCERS: Mapping[str, tuple[str, ...]] = {}
"""Sources by name, with the signals each of them fills in. A signal of no source is the host's to measure."""

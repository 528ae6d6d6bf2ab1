"""Numba primitives and the one place where numba's options are decided.

A function under ``@kernel`` stays plain Python: that is the uncompiled engine. ``warm_up``
makes the compiled twins, made from the same source at warm-up, never at import.
"""

from __future__ import annotations

from stabilitykit.kernels._registry import kernel

__all__ = ["kernel"]

"""Which share of a prompt the prefix cache served."""

from __future__ import annotations

import math

from stabilitykit.kernels._registry import kernel

__all__ = ["hit_ratio"]


@kernel
def hit_ratio(cached: float, prompt: float) -> float:
    """Give cached tokens / prompt tokens; NaN where that is no share.

    Examples
    --------
    >>> hit_ratio(30.0, 40.0), hit_ratio(1.0, 0.0), hit_ratio(50.0, 40.0), hit_ratio(math.nan, 40.0)
    (0.75, nan, nan, nan)
    """
    return cached / prompt if prompt > 0.0 and cached >= 0.0 and cached <= prompt else math.nan

"""The tiers of KV blocks by age, half-open: [0, .3) keep, [.3, .7) the slower tier, [.7, 1] marked for eviction.

References
----------
.. [1] kv-and-context, Aging.
"""

from __future__ import annotations

__all__ = ["LAST_TIER", "SECOND_TIER"]

SECOND_TIER, LAST_TIER = 0.3, 0.7
"""Ages from which on a block is in tier 1, and in tier 2."""

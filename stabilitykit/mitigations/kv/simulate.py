"""What each policy would have hit on a trace, size by size, and what could have been hit at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import UsageError
from stabilitykit.mitigations.kv.policy import POLICIES, KVPolicy
from stabilitykit.mitigations.kv.trace import Trace, next_uses

__all__ = ["Simulated", "hits_of", "simulate"]


@attrs.frozen(eq=False)
class Simulated:
    """One policy at one size.

    Parameters
    ----------
    policy
        Its name.
    capacity
        Blocks.
    hits
        Leading blocks that were cached, int64[requests].
    blocks
        Blocks that were asked for.
    """

    policy: str
    capacity: int
    hits: NDArray[np.int64]
    blocks: int

    @property
    def hit_ratio(self) -> float:
        """Share of blocks that were hits, 0 for none."""
        return float(self.hits.sum()) / self.blocks if self.blocks else 0.0


def hits_of(
    trace: Trace, policy: str, capacity: int, nexts: NDArray[np.float64] | None = None, **settings: Any
) -> NDArray[np.int64]:
    """Run one policy over a trace; gives the leading cached blocks of each request.

    Parameters
    ----------
    nexts
        What `next_uses` gives, for belady; computed when not given.
    settings
        Further settings of `KVPolicy`.
    """
    if policy == "belady" and nexts is None:
        nexts = next_uses(trace)
    cache = KVPolicy(policy, capacity=capacity, **settings)  # type: ignore[arg-type]
    return cache.run(trace.blocks, trace.starts, trace.at_s, trace.partial, nexts)


def simulate(
    trace: Trace,
    policies: Sequence[str],
    sizes: Sequence[int],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int], object] = lambda count: None,
) -> Iterator[Simulated]:
    """Run policies over a trace at sizes.

    Parameters
    ----------
    policies
        Names; ``belady`` gives the bound: who knows the future and may refuse a block.
    sizes
        Capacities in blocks.
    settings
        Further settings of a policy, by its name.
    progress
        Told how many blocks were done.

    Raises
    ------
    UsageError
        A policy that does not exist, or a size below 1.

    Examples
    --------
    Two prompts that share a block, again and again, in a cache of three blocks:

    >>> import numpy as np
    >>> from stabilitykit.mitigations.kv.simulate import simulate
    >>> from stabilitykit.mitigations.kv.trace import Trace
    >>> paths = [[1, 2, 3], [1, 4, 5]] * 10
    >>> starts = np.arange(0, 61, 3)
    >>> trace = Trace(np.ravel(paths), starts, np.arange(20.0), np.zeros(20, np.int64))
    >>> [(one.policy, round(one.hit_ratio, 3)) for one in simulate(trace, ["lru", "belady"], [3])]
    [('lru', 0.317), ('belady', 0.617)]
    """
    unknown = [name for name in policies if name not in POLICIES]
    if unknown or any(size < 1 for size in sizes):
        raise UsageError(f"policies are {', '.join(POLICIES)}, sizes from 1 on")
    nexts = next_uses(trace) if "belady" in policies else None
    for policy in policies:
        for size in sizes:
            hits = hits_of(trace, policy, size, nexts, **(settings or {}).get(policy, {}))
            progress(len(trace.blocks))
            yield Simulated(policy, size, hits, len(trace.blocks))

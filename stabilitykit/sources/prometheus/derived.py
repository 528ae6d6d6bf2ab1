"""Signals that take several metrics of one page: used tokens, fragmentation, GPU memory."""

from __future__ import annotations

from collections.abc import Mapping

from stabilitykit.sources.prometheus.names import GPU_MEMORY, PAGES, TRITON_TOKENS, VLLM_TOKENS

__all__ = ["derived_signals"]

_USAGE, _OLD_USAGE, _BLOCKS, _BLOCK_TOKENS = VLLM_TOKENS.metrics
_USED_BLOCKS, _TOKENS_PER = TRITON_TOKENS.metrics
(_PAGE_TOKENS,) = PAGES.metrics
_USED_MIB, _FREE_MIB, _RESERVED_MIB = GPU_MEMORY.metrics


def derived_signals(values: Mapping[str, float]) -> dict[str, float]:
    """Compute what is defined from the metrics of one owner.

    Parameters
    ----------
    values
        By metric, as the table writes it.

    Examples
    --------
    >>> derived_signals({"DCGM_FI_DEV_FB_USED": 6144.0, "DCGM_FI_DEV_FB_FREE": 18432.0})
    {'gpu_memory_ratio': 0.25}
    """
    found: dict[str, float] = {}
    usage = values.get(_USAGE, values.get(_OLD_USAGE))
    if usage is not None and _BLOCKS in values and _BLOCK_TOKENS in values:
        found["kv_used_tokens"] = float(round(usage * values[_BLOCKS]) * values[_BLOCK_TOKENS])
    elif _USED_BLOCKS in values and _TOKENS_PER in values:
        found["kv_used_tokens"] = values[_USED_BLOCKS] * values[_TOKENS_PER]
    if values.get(_PAGE_TOKENS) == 1.0:
        found["kv_fragmentation_ratio"] = 0.0
    if _USED_MIB in values and _FREE_MIB in values:
        total = values[_USED_MIB] + values[_FREE_MIB] + values.get(_RESERVED_MIB, 0.0)
        if total > 0.0:
            found["gpu_memory_ratio"] = values[_USED_MIB] / total
    return found

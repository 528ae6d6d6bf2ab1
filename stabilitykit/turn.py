"""What the host saw: Turn (cheap, computes nothing) and the mark of a missing value."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from stabilitykit.signals import CATALOGUE

if TYPE_CHECKING:
    from stabilitykit.decision import Receipt

__all__ = ["MISSING", "MISSING_BITS", "Turn", "is_missing"]

MISSING_BITS = 0x7FF8_0000_4D49_5353
MISSING: float = struct.unpack("<d", struct.pack("<Q", MISSING_BITS))[0]
"""A quiet NaN with a payload of our own: *not given*. A NaN that the host passes is *invalid*."""

_pack_double = struct.Struct("<d").pack
_MISSING_BYTES = _pack_double(MISSING)


def is_missing(value: object) -> bool:
    """Tell whether a field of a Turn was not given (``None`` counts as not given)."""
    if value is None:
        return True
    return isinstance(value, float) and value != value and _pack_double(value) == _MISSING_BYTES


@attrs.define(eq=False, repr=False, kw_only=True)
class Turn:
    """One turn of one conversation, as the host saw it.

    Every signal is optional; what is not given is missing, which is not zero. Units stand in
    the names; see the catalogue in ``stabilitykit.signals``.

    Parameters
    ----------
    session_id
        The conversation; at most 128 bytes.
    turn_id
        Increasing number of the turn; ``None``: the engine issues the next one.
    revision
        Greater than before for a regenerated answer to the same turn.
    tenant
        Sessions of different tenants never meet.
    replica, device
        Who served it; ``None`` is the tenant's one default replica or device.
    model
        Baselines belong to (session, model).
    timestamp_s
        When the turn ended, in seconds of any steady clock; orders samples.
    replica_sample_s, device_sample_s
        When the replica or device signals on this turn were measured.
    applied
        The receipt of an earlier decision's actions that the host carried out.
    extra
        Values of signals that the pack declares.

    Examples
    --------
    >>> Turn(session_id="c-1", turn_id=7, ttft_ms=412.0, itl_ms=38.0)
    Turn(session_id='c-1', turn_id=7, ttft_ms=412.0, itl_ms=38.0)
    """

    session_id: str
    turn_id: int | None = None
    revision: int = 0
    tenant: str = ""
    replica: str | None = None
    device: str | None = None
    model: str | None = None
    timestamp_s: float = MISSING
    replica_sample_s: float = MISSING
    device_sample_s: float = MISSING
    # latency
    ttft_ms: float = MISSING
    itl_ms: float = MISSING
    tpot_ms: float = MISSING
    rt_ms: float = MISSING
    queue_ms: float = MISSING
    prefill_ms: float = MISSING
    decode_tokens_per_s: float = MISSING
    stream_age_ms: float = MISSING
    # tokens
    sent_tokens: float = MISSING
    input_tokens: float = MISSING
    output_tokens: float = MISSING
    cached_tokens: float = MISSING
    reasoning_tokens: float = MISSING
    session_tokens: float = MISSING
    context_window_tokens: float = MISSING
    context_usage_ratio: float = MISSING
    # outcome
    finish_reason: str | None = None
    error: str | None = None
    http_status: float = MISSING
    is_history_truncated: bool | float = MISSING
    recall_ratio: float = MISSING
    progress_count: float = MISSING
    user_questions: float = MISSING
    # KV cache
    kv_hit_ratio: float = MISSING
    kv_usage_ratio: float = MISSING
    kv_used_tokens: float = MISSING
    kv_fragmentation_ratio: float = MISSING
    kv_idle_turns: float = MISSING
    preemptions_count: float = MISSING
    prefix_hit_ratio: float = MISSING
    # integrity
    is_mla: bool | float = MISSING
    mask_rows: float = MISSING
    mask_cached_tokens: float = MISSING
    # load
    running_requests: float = MISSING
    waiting_requests: float = MISSING
    pending_requests: float = MISSING
    oldest_wait_ms: float = MISSING
    generated_tokens_per_s: float = MISSING
    mean_ttft_ms: float = MISSING
    mean_itl_ms: float = MISSING
    mean_queue_ms: float = MISSING
    mean_prefill_ms: float = MISSING
    queue_full_per_s: float = MISSING
    queue_recv_ms: float = MISSING
    # runtime
    state_transition_us: float = MISSING
    ringbuf_pop_us: float = MISSING
    cas_failure_ratio: float = MISSING
    hash_keys_count: float = MISSING
    hash_buckets_count: float = MISSING
    hash_occupied_count: float = MISSING
    # GPU
    gpu_memory_ratio: float = MISSING
    gpu_sm_ratio: float = MISSING
    gpu_temperature_c: float = MISSING
    kernel_us: float = MISSING
    launch_host_us: float = MISSING
    launch_queue_us: float = MISSING
    launch_sync_us: float = MISSING
    launch_total_us: float = MISSING
    # arrays
    embedding: Any = None
    top_token_ids: Any = None
    top_logprobs: Any = None
    logprobs: Any = None
    prev_logprobs: Any = None
    output_token_ids: Any = None
    block_ids: Any = None
    intent_probs: Any = None
    queue_occupancy: Any = None
    position_ids: Any = None
    attention_mask: Any = None
    snapshot: Any = None
    clock_samples: Any = None
    token_frames: Any = None
    token_times_us: Any = None
    valid_keys: Any = None
    cache_positions: Any = None
    position_gaps: Any = None
    extra: Mapping[str, Any] | None = None
    applied: Receipt | None = None

    def __repr__(self) -> str:
        # Arrays and extras by name only: a Turn may stand in a log line.
        parts = []
        for name in _FIELDS:
            value = getattr(self, name)
            spec = CATALOGUE.get(name)
            if is_missing(value) or (name in _DEFAULTS and value == _DEFAULTS[name]):
                continue
            parts.append(f"{name}=..." if name == "extra" or (spec and spec.kind == "array") else f"{name}={value!r}")
        return f"Turn({', '.join(parts)})"


_FIELDS = tuple(a.name for a in attrs.fields(Turn))
_DEFAULTS = {"revision": 0, "tenant": ""}

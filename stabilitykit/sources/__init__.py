"""What real systems say, turned into turns and samples: one source per file."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PRODUCERS"]

PRODUCERS: Mapping[str, tuple[str, ...]] = {
    "nvml": ("gpu_memory_ratio", "gpu_sm_ratio", "gpu_temperature_c"),
    "openai": (
        "ttft_ms", "itl_ms", "tpot_ms", "rt_ms", "queue_ms", "prefill_ms", "decode_tokens_per_s", "stream_age_ms",
        "sent_tokens", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "session_tokens",
        "context_window_tokens", "user_questions", "finish_reason", "error", "http_status", "is_history_truncated",
        "pending_requests", "top_token_ids", "top_logprobs", "output_token_ids",
    ),
    "logs": ("prefix_hit_ratio", "kv_usage_ratio", "kv_used_tokens", "generated_tokens_per_s", "preemptions_count",
             "running_requests", "waiting_requests"),
    "markers": (
        "input_tokens", "context_usage_ratio", "is_history_truncated", "kv_hit_ratio",
        "output_tokens", "ttft_ms", "itl_ms", "finish_reason",
    ),
    "probes": (
        "state_transition_us", "queue_full_per_s", "queue_recv_ms", "queue_occupancy", "ringbuf_pop_us",
        "cas_failure_ratio", "hash_keys_count", "hash_buckets_count", "hash_occupied_count", "pending_requests",
        "oldest_wait_ms", "clock_samples",
    ),
    "profiler": ("kernel_us", "launch_host_us", "launch_queue_us", "launch_sync_us", "launch_total_us"),
    "prometheus": (
        "kv_usage_ratio", "kv_used_tokens", "kv_fragmentation_ratio", "preemptions_count", "prefix_hit_ratio",
        "running_requests", "waiting_requests", "generated_tokens_per_s", "mean_ttft_ms", "mean_itl_ms",
        "mean_queue_ms", "mean_prefill_ms", "gpu_memory_ratio", "gpu_sm_ratio", "gpu_temperature_c",
    ),
    "transformers": (
        "input_tokens", "cached_tokens", "context_window_tokens", "is_mla", "mask_rows", "mask_cached_tokens",
        "position_ids", "cache_positions", "attention_mask", "valid_keys", "snapshot", "logprobs",
    ),
}  # fmt: skip
"""Sources by name, with the signals each of them fills in. A signal of no source is the host's to measure."""

"""What real systems say, turned into turns and samples: one source per file."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PRODUCERS"]

PRODUCERS: Mapping[str, tuple[str, ...]] = {
    "probes": (
        "state_transition_us", "queue_full_per_s", "queue_recv_ms", "queue_occupancy", "ringbuf_pop_us",
        "cas_failure_ratio", "hash_keys_count", "hash_buckets_count", "hash_occupied_count",
    ),
}  # fmt: skip
"""Sources by name, with the signals each of them fills in. A signal of no source is the host's to measure."""

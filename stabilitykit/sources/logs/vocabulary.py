"""The words of log templates: behaviours, their dimensions, and the signals that a log can give."""

from __future__ import annotations

from collections.abc import Mapping

from stabilitykit.signals import CATALOGUE

__all__ = ["BEHAVIOURS", "DIMENSIONS", "SERIES", "count_signal", "is_series_signal"]

DIMENSIONS = ("latency", "failure_rate", "saturation", "correctness")

BEHAVIOURS: Mapping[str, str] = {
    "cache_eviction": "cached prefixes were thrown away",
    "cache_miss": "a prompt that was there is processed again",
    "client_abort": "the client went away before the answer was there",
    "collective_timeout": "the GPUs of one model stopped hearing from each other",
    "config_capacity": "the configuration gives the model less room than it has or is asked for",
    "context_overflow": "a prompt does not fit the window and was refused",
    "context_shift": "part of the context was dropped while the answer went on",
    "context_truncation": "the prompt was cut before the model saw it",
    "crash": "the server, or one of its processes, ended",
    "gpu_fault": "the driver or a kernel reports a fault of the GPU",
    "hang": "nothing moves any more",
    "kv_fragmentation": "KV memory is free but not where it is needed",
    "kv_leak": "KV memory of finished requests is not given back",
    "kv_pressure": "the KV cache is full and requests wait for it",
    "memory_pressure": "memory is short: a collector or an allocator works for it",
    "oom": "an allocation failed",
    "pause": "the process stood still for a while",
    "prefill_stall": "long prompts keep the others from decoding",
    "preemption": "a running request lost its KV memory to another one",
    "queue_backpressure": "more requests wait than are served",
    "rate_limited": "the server refuses requests because there are too many",
    "request_timeout": "a request ran out of time",
    "slow_decode": "tokens come slower than people read",
    "slow_prefill": "a prompt takes long to be processed",
    "template_error": "the prompt is not what the model was trained on",
}
"""What a line, or a series of lines, can be evidence of."""

SERIES: Mapping[str, str] = {
    "log_prompt_tokens_per_s": "prompt tokens the replica processed per second",
    "log_prefill_tokens": "prompt tokens of one batch",
    "log_prefill_ms": "time one prompt took",
    "log_decode_ms": "time the tokens of one answer took",
    "log_request_ms": "time one request took from beginning to end",
    "log_request_tokens_per_s": "tokens of one answer per second",
}
"""Signals of status lines beyond the catalogue, all of a replica; the pack ``logs`` declares them."""


def count_signal(behaviour: str) -> str:
    """Give the signal that counts the lines of a behaviour in the window.

    Examples
    --------
    >>> count_signal("oom")
    'log_oom_count'
    """
    return f"log_{behaviour}_count"


def is_series_signal(name: str) -> bool:
    """Tell whether a status line may fill a signal: one of a replica or a device, or of ``SERIES``."""
    return name in SERIES or (name in CATALOGUE and CATALOGUE[name].scope != "session")

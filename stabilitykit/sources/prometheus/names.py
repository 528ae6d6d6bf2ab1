"""Which metric of which server holds which signal: the one table, newest names first.

A metric is written as its server publishes it; pages with underscores for colons and counters
without ``_total`` are understood too. ``name{label=value}`` is the series with that label,
``name[label]`` the number in that label of an info metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

__all__ = [
    "DERIVED",
    "GPU_MEMORY",
    "PAGES",
    "TABLE",
    "TRITON_TOKENS",
    "VLLM_TOKENS",
    "Derived",
    "Row",
    "Selector",
    "selector",
    "spellings",
    "used_metrics",
]

Form = Literal["gauge", "counter", "rate", "mean", "share"]
Unit = Literal["", "ratio", "percent", "ratio or percent", "s"]


@attrs.frozen
class Row:
    """How one server gives one signal.

    Parameters
    ----------
    server
        Who publishes it.
    signal
        The signal of the catalogue.
    form
        ``gauge``: its value. ``counter``: its value, made to go on over restarts. ``rate``: its increase a second.
        ``mean``: its increase over that of ``over``. ``share``: its increase over both increases together.
    metrics
        Names of the metric, newest first; the first that has a value is used.
    over
        Names of the second counter of ``mean`` and ``share``.
    unit
        What the metric counts in, where that is not what the signal counts in.
    percent_beside
        For ``ratio or percent``: a metric beside which it is a percentage even below 1.
    """

    server: str
    signal: str
    form: Form
    metrics: tuple[str, ...]
    over: tuple[str, ...] = ()
    unit: Unit = ""
    percent_beside: str = ""


@attrs.frozen
class Derived:
    """A signal computed from several metrics of one page (`derived.py`)."""

    server: str
    signal: str
    how: str
    metrics: tuple[str, ...]


def _histogram(server: str, signal: str, *names: str, where: str = "") -> Row:
    upper, lower = (tuple(f"{n}_{end}{where}" for n in names) for end in ("sum", "count"))
    return Row(server, signal, "mean", upper, lower, unit="s")


_VLLM_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")

TABLE: tuple[Row, ...] = (
    Row("vLLM", "kv_usage_ratio", "gauge", _VLLM_USAGE, unit="ratio"),
    Row("vLLM", "running_requests", "gauge", ("vllm:num_requests_running",)),
    Row("vLLM", "waiting_requests", "gauge", ("vllm:num_requests_waiting", "vllm:num_requests_waiting_by_reason")),
    Row("vLLM", "preemptions_count", "counter", ("vllm:num_preemptions_total",)),
    Row(
        "vLLM", "prefix_hit_ratio", "mean",
        ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    ),
    Row("vLLM", "prefix_hit_ratio", "gauge", ("vllm:gpu_prefix_cache_hit_rate",), unit="ratio"),
    Row("vLLM", "generated_tokens_per_s", "rate", ("vllm:generation_tokens_total",)),
    Row("vLLM", "generated_tokens_per_s", "gauge", ("vllm:avg_generation_throughput_toks_per_s",)),
    _histogram("vLLM", "mean_ttft_ms", "vllm:time_to_first_token_seconds"),
    _histogram("vLLM", "mean_itl_ms", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    _histogram("vLLM", "mean_queue_ms", "vllm:request_queue_time_seconds"),
    _histogram("vLLM", "mean_prefill_ms", "vllm:request_prefill_time_seconds"),
    Row("SGLang", "kv_usage_ratio", "gauge", ("sglang:token_usage",), unit="ratio"),
    Row("SGLang", "kv_used_tokens", "gauge", ("sglang:kv_used_tokens", "sglang:num_used_tokens")),
    Row("SGLang", "running_requests", "gauge", ("sglang:num_running_reqs", "sglang:num_requests_running")),
    Row(
        "SGLang", "waiting_requests", "gauge",
        ("sglang:num_queue_reqs", "sglang:num_requests_waiting", "sglang:queue_req"),
    ),
    Row("SGLang", "preemptions_count", "counter", ("sglang:num_retracted_requests_total",)),
    Row("SGLang", "prefix_hit_ratio", "mean", ("sglang:cached_tokens_total",), ("sglang:prompt_tokens_total",)),
    Row(
        "SGLang", "prefix_hit_ratio", "gauge", ("sglang:cache_hit_rate",),
        unit="ratio or percent", percent_beside="sglang:new_seq",
    ),
    Row("SGLang", "generated_tokens_per_s", "rate", ("sglang:generation_tokens_total",)),
    Row("SGLang", "generated_tokens_per_s", "gauge", ("sglang:gen_throughput",)),
    _histogram("SGLang", "mean_ttft_ms", "sglang:time_to_first_token_seconds"),
    _histogram("SGLang", "mean_itl_ms", "sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
    _histogram("SGLang", "mean_queue_ms", "sglang:queue_time_seconds"),
    _histogram("SGLang", "mean_prefill_ms", "sglang:per_stage_req_latency_seconds", where="{stage=prefill_forward}"),
    Row("llama.cpp", "kv_usage_ratio", "gauge", ("llamacpp:kv_cache_usage_ratio",), unit="ratio"),
    Row("llama.cpp", "kv_used_tokens", "gauge", ("llamacpp:kv_cache_tokens",)),
    Row("llama.cpp", "running_requests", "gauge", ("llamacpp:requests_processing",)),
    Row("llama.cpp", "waiting_requests", "gauge", ("llamacpp:requests_deferred",)),
    Row(
        "llama.cpp", "prefix_hit_ratio", "share",
        ("llamacpp:prompt_tokens_cached_total",), ("llamacpp:prompt_tokens_total",),
    ),
    Row("llama.cpp", "generated_tokens_per_s", "rate", ("llamacpp:tokens_predicted_total",)),
    Row(
        "llama.cpp", "mean_itl_ms", "mean",
        ("llamacpp:tokens_predicted_seconds_total",), ("llamacpp:tokens_predicted_total",), unit="s",
    ),
    Row("TGI", "running_requests", "gauge", ("tgi_batch_current_size",)),
    Row("TGI", "waiting_requests", "gauge", ("tgi_queue_size",)),
    Row("TGI", "generated_tokens_per_s", "rate", ("tgi_request_generated_tokens_sum",)),
    _histogram("TGI", "mean_itl_ms", "tgi_request_mean_time_per_token_duration"),
    _histogram("TGI", "mean_queue_ms", "tgi_request_queue_duration"),
    _histogram(
        "TGI", "mean_prefill_ms", "tgi_batch_forward_duration", "tgi_batch_inference_duration", where="{method=prefill}"
    ),
    Row("TensorRT-LLM", "kv_usage_ratio", "gauge", ("trtllm_kv_cache_utilization",), unit="ratio"),
    Row(
        "TensorRT-LLM", "running_requests", "gauge",
        ("trtllm_num_requests_running", "pytrtllm:num_requests_running"),
    ),
    Row(
        "TensorRT-LLM", "waiting_requests", "gauge",
        ("trtllm_num_requests_waiting", "pytrtllm:num_requests_waiting"),
    ),
    Row("TensorRT-LLM", "prefix_hit_ratio", "gauge", ("trtllm_kv_cache_hit_rate",), unit="ratio"),
    Row("TensorRT-LLM", "generated_tokens_per_s", "rate", ("pytrtllm:generation_tokens_total",)),
    _histogram("TensorRT-LLM", "mean_ttft_ms", "trtllm_time_to_first_token_seconds"),
    _histogram("TensorRT-LLM", "mean_itl_ms", "trtllm_time_per_output_token_seconds"),
    _histogram("TensorRT-LLM", "mean_queue_ms", "trtllm_request_queue_time_seconds"),
    Row(
        "Triton", "kv_usage_ratio", "gauge", ("nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=fraction}",),
        unit="ratio",
    ),
    Row("Triton", "running_requests", "gauge", ("nv_trt_llm_request_metrics{request_type=scheduled}",)),
    Row("Triton", "waiting_requests", "gauge", ("nv_trt_llm_request_metrics{request_type=waiting}",)),
    Row("MindIE", "running_requests", "gauge", ("num_requests_running",)),
    Row("MindIE", "waiting_requests", "gauge", ("num_requests_waiting",)),
    Row("MindIE", "preemptions_count", "counter", ("num_preemptions_total",)),
    Row("MindIE", "generated_tokens_per_s", "rate", ("generation_tokens_total",)),
    Row("DCGM", "gpu_sm_ratio", "gauge", ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), unit="ratio"),
    Row("DCGM", "gpu_sm_ratio", "gauge", ("DCGM_FI_DEV_GPU_UTIL",), unit="percent"),
    Row("DCGM", "gpu_temperature_c", "gauge", ("DCGM_FI_DEV_GPU_TEMP",)),
)  # fmt: skip
"""Of rows for one signal the first that has a value is used."""

# fmt: off
VLLM_TOKENS = Derived(
    "vLLM", "kv_used_tokens", "usage x blocks x tokens a block",
    (*_VLLM_USAGE, "vllm:cache_config_info[num_gpu_blocks]", "vllm:cache_config_info[block_size]"),
)
TRITON_TOKENS = Derived(
    "Triton", "kv_used_tokens", "used blocks x tokens a block",
    (
        "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=used}",
        "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=tokens_per}",
    ),
)
PAGES = Derived(
    "SGLang", "kv_fragmentation_ratio", "0 where a page is one token; else the server does not say",
    ("sglang:page_size",),
)
GPU_MEMORY = Derived(
    "DCGM", "gpu_memory_ratio", "used / (used + free + reserved, where that is there)",
    ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"),
)
# fmt: on
DERIVED = VLLM_TOKENS, TRITON_TOKENS, PAGES, GPU_MEMORY


@attrs.frozen
class Selector:
    """A metric of the table, taken apart.

    Parameters
    ----------
    text
        As the table writes it.
    name
        The metric.
    where
        Label and value that a series must have, or ``None``.
    label
        The label whose number is meant, or "" for the value of the series.
    """

    text: str
    name: str
    where: tuple[str, str] | None = None
    label: str = ""


def selector(text: str) -> Selector:
    """Take apart how the table writes a metric.

    >>> selector("tgi_x_sum{method=prefill}").where
    ('method', 'prefill')
    """
    if text.endswith("]"):
        name, _, label = text[:-1].partition("[")
        return Selector(text, name, None, label)
    name, _, where = text.rstrip("}").partition("{")
    label, _, value = where.partition("=")
    return Selector(text, name, (label, value) if where else None)


def spellings(name: str) -> set[str]:
    """Give the names under which pages show a metric: with underscores for colons, without ``_total``.

    >>> sorted(spellings("vllm:num_preemptions_total"))[:2]
    ['vllm:num_preemptions', 'vllm:num_preemptions_total']
    """
    names = {name, name.replace(":", "_")}
    return names | {n.removesuffix("_total") for n in names}


def used_metrics() -> Iterator[str]:
    """Give every metric of the table, some more than once."""
    for row in TABLE:
        yield from (*row.metrics, *row.over, *([row.percent_beside] if row.percent_beside else []))
    for derived in DERIVED:
        yield from derived.metrics

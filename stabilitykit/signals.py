"""What a host can measure: the catalogue of signals, and the specification of a detector.

A signal has a name that ends in its unit, a scope and a domain. A value outside the domain,
NaN or infinite is *invalid*; a value that was not given is *missing*. Rules see both as
*unknown*; ``Decision.faults`` lists the invalid ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs

__all__ = [
    "CATALOGUE",
    "SCOPES",
    "TIME",
    "DetectorSpec",
    "Layout",
    "OutputSpec",
    "Scope",
    "SettingSpec",
    "SignalSpec",
    "Weights",
    "scope_rank",
]

Scope = Literal["session", "replica", "device"]
Kind = Literal["number", "count", "bool", "enum", "array"]
SCOPES: tuple[Scope, ...] = ("session", "replica", "device")
"""Narrowest first: a session is served by a replica, a replica runs on a device."""

TIME = "timestamp_s"
"""No signal, but a detector may name it as an input: the turn's time, in a sample the sample's (unit s)."""

INF = math.inf


def scope_rank(scope: str) -> int:
    """Give 0 for session, 1 for replica, 2 for device (wider is greater)."""
    return SCOPES.index(scope)


@attrs.frozen
class SignalSpec:
    """One thing a host can measure.

    Parameters
    ----------
    name
        The name in Turn, rules and documentation.
    unit
        A unit of the rule language (``ms``, ``us``, ``tokens``, ``C``, ``nats``, ``/s``,
        ``tokens/s`` ...), ``ratio``, ``count``, ``bool``, ``enum`` or, for arrays, what one
        element is.
    scope
        ``session``, ``replica`` or ``device``.
    doc
        One sentence.
    kind
        ``number`` (a measured float), ``count`` (a whole number), ``bool``, ``enum``, ``array``.
    lo, hi
        Closed domain; a value outside it is invalid.
    values
        The words of an enum, in order; their index is the number rules compare.
    dtype
        NumPy dtype of an array signal.
    """

    name: str
    unit: str
    scope: Scope
    doc: str
    kind: Kind = "number"
    lo: float = 0.0
    hi: float = 1e15
    values: tuple[str, ...] = ()
    dtype: str = ""


@attrs.frozen
class OutputSpec:
    """One output of a detector, as rules see it (``detector.output``)."""

    name: str
    unit: str
    doc: str
    kind: Kind = "number"
    lo: float = -INF
    hi: float = INF


@attrs.frozen
class Weights:
    """The arrays of a model file; equal when their files are.

    Parameters
    ----------
    sha256
        Of the file's bytes, hex: what fingerprints and the names of memory say of it.
    arrays
        By name: finite float64, or text.
    """

    sha256: str
    arrays: Mapping[str, Any] = attrs.field(eq=False, repr=False)

    def __str__(self) -> str:
        return self.sha256


@attrs.frozen
class SettingSpec:
    """One setting of a detector in YAML: a plain count, a literal with unit, a bool, a word, a model file.

    The value of a ``file`` is its ``Weights``, or None when the pack names none.
    """

    name: str
    default: Any
    doc: str
    unit: str = "count"
    kind: Literal["number", "count", "bool", "enum", "file"] = "number"
    lo: float = -INF
    hi: float = INF
    values: tuple[str, ...] = ()
    shapes_memory: bool = False


@attrs.frozen
class Layout:
    """Memory one detector instance needs, in elements of each typed row.

    Parameters
    ----------
    f8, u4, u2
        Elements of the float64, uint32 and uint16 slices (all start as zero bytes,
        float64 slices start as ``f8_init`` where given).
    vec
        float32 elements of the vector block, which lives outside the row and is allocated
        when the session first brings an array.
    f8_init
        Initial values of the float64 slice ("()": zeros).
    """

    f8: int = 0
    u4: int = 0
    u2: int = 0
    vec: int = 0
    f8_init: tuple[float, ...] = ()


Reaction = Literal["rebase", "skip", "none"]


@attrs.frozen
class DetectorSpec:
    """A detector type: frozen description, no state.

    Parameters
    ----------
    type
        The word in YAML (``type: itl_breaker``).
    doc
        One sentence: what it sees.
    inputs
        Settings that name a signal, with the default signal ("" when required):
        ``{"input": "itl_ms"}``. Array signals are allowed.
    settings
        The other settings.
    outputs
        What rules can read, in the order the kernel writes them.
    kernel
        ``kernel(x, f, h, w, v, c, io, arr, ids, n) -> int``; see ``stabilitykit.detectors``.
    layout
        Gives the memory for checked settings.
    config
        Gives the float64 configuration block ``c`` for checked settings.
    model_bound
        Memory belongs to (session, model) and starts afresh on a switch.
    on_applied
        Reaction to a receipt, by action name; absent means ``none``.
    default_scope
        Set for detectors that are widened by default; else the narrowest scope of the inputs.
    check
        Says what is wrong with settings that are right one by one ("": nothing).
    """

    type: str
    doc: str
    inputs: Mapping[str, str]
    settings: tuple[SettingSpec, ...]
    outputs: tuple[OutputSpec, ...]
    kernel: Callable[..., Any]
    layout: Callable[[Mapping[str, Any]], Layout]
    config: Callable[[Mapping[str, Any]], tuple[float, ...]]
    model_bound: bool = False
    on_applied: Mapping[str, Reaction] = attrs.field(factory=dict)
    default_scope: Scope | None = None
    check: Callable[[Mapping[str, Any]], str] = lambda settings: ""

    def output(self, name: str) -> OutputSpec | None:
        """Find an output by name."""
        return next((o for o in self.outputs if o.name == name), None)


def _n(name: str, unit: str, scope: Scope, doc: str, lo: float = 0.0, hi: float = 1e15) -> SignalSpec:
    return SignalSpec(name, unit, scope, doc, "number", lo, hi)


def _ratio(name: str, scope: Scope, doc: str) -> SignalSpec:
    return SignalSpec(name, "ratio", scope, doc, "number", 0.0, 1.0)


def _c(name: str, unit: str, scope: Scope, doc: str) -> SignalSpec:
    return SignalSpec(name, unit, scope, doc, "count", 0.0, 2.0**53)


def _a(name: str, unit: str, doc: str, dtype: str, scope: Scope = "session") -> SignalSpec:
    return SignalSpec(name, unit, scope, doc, "array", -INF, INF, (), dtype)


FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "abort", "error", "other")
ERRORS = ("none", "context_overflow", "rate_limited", "timeout", "server", "cancelled", "insufficient_resource")

_ALL: tuple[SignalSpec, ...] = (
    # latency
    _n("ttft_ms", "ms", "session", "request sent to first non-empty content or reasoning chunk", 0.0, 1e9),
    _n("itl_ms", "ms", "session", "mean gap between generated tokens", 0.0, 1e9),
    _n("tpot_ms", "ms", "session", "(rt - ttft) / (output tokens - 1)", 0.0, 1e9),
    _n("rt_ms", "ms", "session", "request sent to last chunk", 0.0, 1e9),
    _n("queue_ms", "ms", "session", "time the request waited before prefill", 0.0, 1e9),
    _n("prefill_ms", "ms", "session", "time the prompt took to be processed", 0.0, 1e9),
    _n("decode_tokens_per_s", "tokens/s", "session", "decode rate: 1000 / mean ITL", 0.0, 1e9),
    _n("stream_age_ms", "ms", "session", "time since the last token of a stream still open", 0.0, 1e9),
    # tokens
    _c("sent_tokens", "tokens", "session", "prompt tokens the host sent"),
    _c("input_tokens", "tokens", "session", "prompt tokens the server says it used"),
    _c("output_tokens", "tokens", "session", "generated tokens"),
    _c("cached_tokens", "tokens", "session", "prompt tokens served from the prefix cache"),
    _c("reasoning_tokens", "tokens", "session", "generated tokens that were reasoning"),
    _c("session_tokens", "tokens", "session", "tokens the conversation holds after this turn"),
    _c("context_window_tokens", "tokens", "session", "context window available to this conversation"),
    SignalSpec("context_usage_ratio", "ratio", "session", "tokens held / context window", "number", 0.0, 16.0),
    # outcome
    SignalSpec("finish_reason", "enum", "session", "why generation ended", "enum", 0, 6, FINISH_REASONS),
    SignalSpec("error", "enum", "session", "what went wrong, `none` when nothing did", "enum", 0, 6, ERRORS),
    SignalSpec("http_status", "count", "session", "HTTP status of the reply", "count", 100, 599),
    SignalSpec("is_history_truncated", "bool", "session", "the server dropped part of the history", "bool", 0, 1),
    _ratio("recall_ratio", "session", "host's own score: facts of earlier turns still recalled"),
    _c("progress_count", "count", "session", "steps the host counts as progress: a changed tool result; monotonic"),
    _c("user_questions", "count", "session", "question marks in the user's message"),
    # KV cache
    _ratio("kv_hit_ratio", "session", "cached prompt tokens / prompt tokens of this turn"),
    _ratio("kv_usage_ratio", "replica", "share of KV blocks in use"),
    _c("kv_used_tokens", "tokens", "replica", "tokens held in the KV cache"),
    _ratio("kv_fragmentation_ratio", "replica", "1 - used tokens / (allocated blocks x block size)"),
    _c("kv_idle_turns", "count", "session", "turns since this conversation's KV entries were last used"),
    _c("preemptions_count", "count", "replica", "preempted requests, monotonic counter"),
    _ratio("prefix_hit_ratio", "replica", "prompt tokens served from the cache / prompt tokens, all requests"),
    # integrity
    SignalSpec("is_mla", "bool", "session", "keys are cached as one shared latent (DeepSeek's MLA)", "bool", 0, 1),
    _c("mask_rows", "count", "session", "rows of attention_mask: tokens that are queries"),
    _c("mask_cached_tokens", "tokens", "session", "cached tokens before the first row of attention_mask"),
    # load
    _c("running_requests", "count", "replica", "requests being decoded"),
    _c("waiting_requests", "count", "replica", "requests waiting for a place"),
    _c("pending_requests", "count", "replica", "requests sent by the host and not answered"),
    _n("oldest_wait_ms", "ms", "replica", "longest time that an open request has waited for its first token", 0.0, 1e9),
    _n("generated_tokens_per_s", "tokens/s", "replica", "tokens generated a second, all requests", 0.0, 1e9),
    _n("mean_ttft_ms", "ms", "replica", "mean time to first token, requests since the last sample", 0.0, 1e9),
    _n("mean_itl_ms", "ms", "replica", "mean gap between tokens, requests since the last sample", 0.0, 1e9),
    _n("mean_queue_ms", "ms", "replica", "mean time before prefill, requests since the last sample", 0.0, 1e9),
    _n("mean_prefill_ms", "ms", "replica", "mean time of prefill, requests since the last sample", 0.0, 1e9),
    _n("queue_full_per_s", "/s", "replica", "rejected puts into a bounded queue, per second", 0.0, 1e9),
    _n("queue_recv_ms", "ms", "replica", "time a consumer waited for an item", 0.0, 1e9),
    # runtime
    _n("state_transition_us", "us", "session", "time one state transition of the host took", 0.0, 1e12),
    _n("ringbuf_pop_us", "us", "replica", "time one pop from the ring buffer took", 0.0, 1e12),
    _ratio("cas_failure_ratio", "replica", "failed compare-and-swap attempts / attempts"),
    _c("hash_keys_count", "count", "replica", "keys inserted in the window"),
    _c("hash_buckets_count", "count", "replica", "buckets of the table"),
    _c("hash_occupied_count", "count", "replica", "buckets that hold at least one key"),
    # GPU
    _ratio("gpu_memory_ratio", "device", "GPU memory in use / total"),
    _ratio("gpu_sm_ratio", "device", "SM utilisation"),
    _n("gpu_temperature_c", "C", "device", "GPU temperature", -50.0, 200.0),
    _n("kernel_us", "us", "device", "duration of one GPU kernel", 0.0, 1e12),
    _n("launch_host_us", "us", "device", "launch latency spent on the host", 0.0, 1e12),
    _n("launch_queue_us", "us", "device", "launch latency spent in the stream queue", 0.0, 1e12),
    _n("launch_sync_us", "us", "device", "launch latency spent in synchronisation", 0.0, 1e12),
    _n("launch_total_us", "us", "device", "launch call to start of the kernel, measured as one", 0.0, 1e12),
    # arrays
    _a("embedding", "component", "embedding of the user's message, f32[d]", "float32"),
    _a("top_token_ids", "token id", "ids of the top-k candidates at one position, i64[k]", "int64"),
    _a("top_logprobs", "nats", "their log-probabilities, f32[k]", "float32"),
    _a("logprobs", "nats", "log-probabilities of the whole vocabulary, f32[V] (opt-in)", "float32"),
    _a("prev_logprobs", "nats", "the same of the previous turn, when the host keeps it, f32[V]", "float32"),
    _a("output_token_ids", "token id", "generated tokens, i64[n]", "int64"),
    _a("block_ids", "block id", "KV blocks the request touched, i64[n]", "int64"),
    _a("intent_probs", "probability", "probability of each intent, f32[c]", "float32"),
    _a("queue_occupancy", "count", "items found in each slot of the queue, i64[slots]", "int64", "replica"),
    _a("position_ids", "position", "positions the model was given, i64[n]", "int64"),
    _a("attention_mask", "0 or 1", "mask the model was given, row-major, i64[q*k]", "int64"),
    _a("snapshot", "component", "mean KV vector of each sampled layer, f32[layers*d]", "float32"),
    _a("clock_samples", "ns", "clock readings: local, remote (and round trip), i64[2*n or 3*n]", "int64", "device"),
    _a("token_frames", "frame", "frame of each token, i64[n]", "int64"),
    _a("token_times_us", "us", "time of each token in the input, i64[n]", "int64"),
    _a("valid_keys", "0 or 1", "keys that may be attended to (no padding, not evicted), i64[k]", "int64"),
    _a("cache_positions", "position", "places in the cache of the same tokens as position_ids, i64[n]", "int64"),
    _a("position_gaps", "index", "places in position_ids where a jump is declared, i64[m]", "int64"),
)

CATALOGUE: dict[str, SignalSpec] = {s.name: s for s in _ALL}
"""Every signal the library knows, by name; packs may declare more."""

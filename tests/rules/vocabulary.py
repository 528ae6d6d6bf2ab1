"""Names that the tests of conditions refer to, and random conditions over them."""

from __future__ import annotations

from hypothesis import strategies as st

from stabilitykit.rules.conditions.condition import Names
from stabilitykit.rules.pack import ParamValue
from stabilitykit.signals import CATALOGUE, DetectorSpec, Layout, OutputSpec, SignalSpec

_OUTPUTS = (
    OutputSpec("is_over", "bool", "above its baseline", "bool"),
    OutputSpec("baseline_ms", "ms", "its baseline"),
    OutputSpec("seen", "count", "values so far", "count", 0.0, 2.0**53),
    OutputSpec("balance", "count", "a count without a domain", "count"),
)
BREAKER = DetectorSpec(
    "itl_breaker",
    "for tests",
    {"input": "itl_ms"},
    (),
    _OUTPUTS,
    kernel=lambda *_: 0,
    layout=lambda _: Layout(),
    config=lambda _: (),
)
NAMES = Names(
    signals={
        **CATALOGUE,
        "x": SignalSpec("x", "ms", "session", "for tests", "number", 0.0, 1e9),
        "y": SignalSpec("y", "ms", "session", "for tests", "number", 0.0, 1e9),
        "heap_mib": SignalSpec("heap_mib", "MiB", "replica", "for tests", "number", 0.0, 1e6),
        "loss_nats": SignalSpec("loss_nats", "nats", "session", "for tests", "number", 0.0, 100.0),
        "loss_bits": SignalSpec("loss_bits", "bits", "session", "for tests", "number", 0.0, 100.0),
    },
    detectors={"itl": (BREAKER, "session"), "kv": (BREAKER, "replica")},
    params={
        "slow": ParamValue("slow", 80.0, "ms"),
        "window": ParamValue("window", 5.0, "turns"),
        "samples": ParamValue("samples", 5.0, "samples"),
        "huge": ParamValue("huge", 300.0, "turns"),
        "factor": ParamValue("factor", 1.5, "ratio"),
        "limit": ParamValue("limit", 8192.0, "ratio"),
        "reason": ParamValue("reason", "stop", "enum"),
        "other": ParamValue("other", "never", "enum"),
        "strict": ParamValue("strict", True, "bool"),
    },
    rules={"slow-turns": "session", "full": "replica", "unchecked": None},
    disabled=frozenset({"off"}),
)

_MS = st.sampled_from(["x", "y", "itl_ms", "ttft_ms", "itl.baseline_ms", "params.slow", "7 ms", "0.25 s", "1500 us"])
_RELOPS = st.sampled_from([">", ">=", "<", "<="])


def _deeper_ms(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.builds("{} {} {}".format, inner, st.sampled_from("+-"), inner)
    scaled = st.builds("({}) {} {}".format, inner, st.sampled_from("*/"), st.sampled_from(["2", "1.5", "3 %", "-4"]))
    greater = st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner)
    memory = st.builds(
        "{}({})".format, st.sampled_from(["abs", "prev", "delta"]), st.sampled_from(["x", "x - y", "-x"])
    )
    window = st.builds(
        "{}({} + x, {})".format,
        st.sampled_from(["mean", "min", "max"]),
        inner,
        st.sampled_from(["5 turns", "params.window", "64 turns"]),
    )
    grouped = st.builds("({})".format, inner)
    negative = st.builds("-({})".format, inner)
    return st.one_of(binary, scaled, greater, memory, window, grouped, negative)


numbers = st.recursive(_MS, _deeper_ms, max_leaves=6)
_ATOMS = st.one_of(
    st.builds("x + {} {} y * {}".format, numbers, _RELOPS, st.sampled_from(["1", "2.5", "params.factor"])),
    st.sampled_from(
        [
            "itl.is_over",
            "rule:slow-turns",
            "rule:full",
            "finish_reason in {length, stop}",
            "finish_reason != error",
            "prev(error) == timeout",
            "kv_usage_ratio > 92 %",
            "mean(kv_usage_ratio, 5 samples) > 0.9",
            "output_tokens / rt_ms > 20 tokens/s",
            "input_tokens > params.limit",
            "output_tokens == 0",
            "kernel_us > 2 ms",
            "heap_mib > 512 KiB",
            "kernel_us / x > 0.5",
        ]
    ),
)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner)
    grouped = st.builds("({})".format, inner)
    negated = st.builds("not {}".format, inner)
    counted = st.builds("count({} or itl.is_over, {}) >= 2".format, st.just("x > 3 ms"), st.just("4 turns"))
    return st.one_of(joined, grouped, negated, counted)


conditions = st.recursive(_ATOMS, _deeper, max_leaves=8)
"""Texts that follow the grammar; most are free of mistakes."""

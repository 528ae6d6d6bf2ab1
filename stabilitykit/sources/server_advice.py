"""What to set on a server so that its conversations can be watched, and stay healthy: each with its flag."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from stabilitykit.sources.server_facts import ServerFacts

__all__ = ["Advice", "advise"]

_FLAGS = {
    "metrics": {"SGLang": "--enable-metrics", "llama.cpp": "--metrics", "vLLM": "leave out --disable-log-stats"},
    "prefix": {"vLLM": "--enable-prefix-caching", "SGLang": "leave out --disable-radix-cache"},
    "context": {
        "vLLM": "--max-model-len {fits}", "SGLang": "--context-length {fits}", "TGI": "--max-total-tokens {fits}",
        "llama.cpp": "-c {all} -np {slots}", "Ollama": "OLLAMA_CONTEXT_LENGTH={wanted}",
    },
    "kv": {"vLLM": "--max-model-len {fits}", "SGLang": "--context-length {fits}", "TGI": "--max-total-tokens {fits}"},
    "block": {"vLLM": "--block-size 16", "SGLang": "--page-size 1"},
    "cached": {"vLLM": "--enable-prompt-tokens-details", "SGLang": "--enable-cache-report"},
    "timings": {"vLLM": "--enable-per-request-metrics, and include_metrics in each request"},
}  # fmt: skip
"""By what is asked for, by server; docs/deploy says where each flag was read."""


@attrs.frozen
class Advice:
    """One thing to change.

    Parameters
    ----------
    about
        A word for it: ``metrics``, ``prefix``, ``context``, ``kv``, ``block``, ``cached``,
        ``timings``.
    finding
        What is so, with its number.
    flag
        What to set; "" where this server has nothing to set.
    """

    about: str
    finding: str
    flag: str


def advise(facts: ServerFacts, *, wanted_tokens: int, shared_tokens: int | None = None) -> list[Advice]:
    """Say what stands in the way.

    Parameters
    ----------
    facts
        What the server said of itself.
    wanted_tokens
        The context that one conversation needs.
    shared_tokens
        The beginning that prompts share: system prompt and tools.
    """
    slots = facts.slots or 1
    fits = wanted_tokens if facts.kv_tokens is None else min(wanted_tokens, facts.kv_tokens)
    filled = {"wanted": wanted_tokens, "fits": fits, "slots": slots, "all": wanted_tokens * slots}
    return [
        Advice(about, finding, _flag(about, facts, fits).format(**filled))
        for about, finding in _findings(facts, wanted_tokens, shared_tokens)
    ]


def _flag(about: str, facts: ServerFacts, fits: int) -> str:
    if about == "context" and facts.context_tokens is not None and fits <= facts.context_tokens:
        return ""  # the KV cache has no room for a longer one
    return _FLAGS[about].get(facts.server, "")


def _findings(facts: ServerFacts, wanted: int, shared: int | None) -> Iterator[tuple[str, str]]:
    if not facts.has_metrics and facts.server != "Ollama":  # that one has none to switch on
        yield "metrics", "there is no page of metrics: load and the KV cache stay unknown"
    if facts.has_prefix_cache is False:
        yield "prefix", "prefix caching is off: every turn reads the whole conversation again"
    context, block, kv = facts.context_tokens, facts.block_tokens, facts.kv_tokens
    if context is not None and context < wanted:
        whose = f"a slot of {facts.slots} has" if facts.slots else "a conversation has"
        room = f", the KV cache has room for {kv}" if kv is not None and kv < wanted else ""
        yield "context", f"{whose} {context} tokens, {wanted} are wanted{room}: longer ones are refused or cut"
    if kv is not None and context is not None and kv < context:
        yield "kv", f"the KV cache holds {kv} tokens, less than one context of {context}"
    if block is not None and shared is not None and shared < block:
        yield "block", f"a block has {block} tokens, the shared beginning {shared}: it is never shared"
    elif block is not None and shared is not None and shared % block > shared // 4:
        yield "block", f"of {shared} shared tokens {shared % block} are read anew: only blocks of {block} are shared"
    if facts.says_cached_tokens is False:
        yield "cached", "replies do not tell their cached tokens: the hit ratio of a turn stays unknown"
    if facts.says_timings is False and facts.server in _FLAGS["timings"]:
        yield "timings", "replies do not tell how long queue and prefill took"

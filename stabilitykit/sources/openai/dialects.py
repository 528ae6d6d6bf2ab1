"""Where each server says what: one row a place, with the factor to the signal's unit.

Servers: OpenAI, vLLM and Qwen (``prompt_tokens_details``), DeepSeek (``prompt_cache_hit_tokens``, ``..._miss_tokens``),
Moonshot (``usage.cached_tokens``, and usage inside a choice), xAI (completion tokens without the reasoning), Groq
(times in seconds, usage under ``x_groq``), llama.cpp (``timings``, and its own ``/completion``), vLLM's ``metrics``,
TGI's ``details``, Ollama (durations in nanoseconds). Of two places that say the same the first counts.

Input tokens are the whole prompt, the part served from a cache among them.

Examples
--------
>>> said({"usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 354,
...       "completion_tokens_details": {"reasoning_tokens": 340}}}, [])
{'input_tokens': 12.0, 'output_tokens': 342.0, 'reasoning_tokens': 340.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.decision import Fault
from stabilitykit.sources.openai.fields import fields, items, number, walk

__all__ = ["drop_excess", "said"]

_ROWS: tuple[tuple[str, str, float], ...] = (
    ("input_tokens", "usage.prompt_tokens", 1),
    ("input_tokens", "usage.input_tokens", 1),
    ("input_tokens", "tokens_evaluated", 1),
    ("input_tokens", "prompt_eval_count", 1),
    ("input_tokens", "prompt_progress.total", 1),
    ("output_tokens", "usage.completion_tokens", 1),
    ("output_tokens", "usage.output_tokens", 1),
    ("output_tokens", "timings.predicted_n", 1),
    ("output_tokens", "tokens_predicted", 1),
    ("output_tokens", "eval_count", 1),
    ("output_tokens", "details.generated_tokens", 1),
    ("cached_tokens", "usage.prompt_tokens_details.cached_tokens", 1),
    ("cached_tokens", "usage.input_tokens_details.cached_tokens", 1),
    ("cached_tokens", "usage.prompt_cache_hit_tokens", 1),
    ("cached_tokens", "usage.cached_tokens", 1),
    ("cached_tokens", "timings.cache_n", 1),
    ("cached_tokens", "prompt_progress.cache", 1),
    ("reasoning_tokens", "usage.completion_tokens_details.reasoning_tokens", 1),
    ("reasoning_tokens", "usage.output_tokens_details.reasoning_tokens", 1),
    ("reasoning_tokens", "usage.reasoning_tokens", 1),
    ("queue_ms", "metrics.queue_time_ms", 1),
    ("queue_ms", "usage.queue_time", 1e3),
    ("prefill_ms", "timings.prompt_ms", 1),
    ("prefill_ms", "usage.prompt_time", 1e3),
    ("prefill_ms", "prompt_eval_duration", 1e-6),
    ("ttft_ms", "metrics.time_to_first_token_ms", 1),
    ("itl_ms", "timings.predicted_per_token_ms", 1),
    ("itl_ms", "metrics.mean_itl_ms", 1),
    ("decode_tokens_per_s", "timings.predicted_per_second", 1),
    ("rt_ms", "usage.total_time", 1e3),
    ("rt_ms", "total_duration", 1e-6),
)  # fmt: skip
_PLACES = tuple((signal, place, tuple(place.split(".")), scale) for signal, place, scale in _ROWS)
_TELLING = ("usage", "timings", "metrics", "details", "x_groq", "prompt_progress", "tokens_evaluated", "eval_count")
_POSITIVE = ("itl_ms", "decode_tokens_per_s")
"""llama.cpp writes 0 for what one token cannot tell."""
_PARTS = (("cached_tokens", "input_tokens"), ("reasoning_tokens", "output_tokens"))


def said(body: Mapping[str, Any], faults: list[Fault]) -> dict[str, float]:
    """Give the signals that a reply or a chunk states, by name.

    Parameters
    ----------
    body
        The fields of the reply or chunk.
    faults
        Takes a fault for each value that is there and cannot be, with its place: no number, negative, a part that is
        greater than its whole.
    """
    choice = fields(next(iter(items(body.get("choices"))), None))
    if not any(map(body.get, _TELLING)) and not choice.get("usage"):
        return {}
    usage = body.get("usage") or choice.get("usage") or walk(body, ("x_groq", "usage")) or {}
    given = {**body, "usage": usage}
    found: dict[str, float] = {}
    places: dict[str, str] = {}
    for signal, place, path, scale in _PLACES:
        if signal in found or (raw := walk(given, path)) is None:
            continue
        value = number(raw)
        if value is None:
            faults.append(Fault("invalid", signal, f"{place}: no finite number"))
        elif value < 0:
            faults.append(Fault("invalid", signal, f"{place}: negative"))
        elif value > 0 or signal not in _POSITIVE:
            found[signal], places[signal] = value * scale, place
    _complete(given, found)
    for part, whole in drop_excess(found):
        faults.append(Fault("invalid", part, f"{places[part]}: more than {whole}"))
    return found


def drop_excess(found: dict[str, float]) -> list[tuple[str, str]]:
    """Take out each part that is greater than its whole; gives the names of both."""
    wrong = [(part, whole) for part, whole in _PARTS if found.get(part, 0.0) > found.get(whole, math.inf)]
    for part, _ in wrong:
        del found[part]
    return wrong


def _complete(given: Mapping[str, Any], found: dict[str, float]) -> None:
    """Add what follows from several fields together."""

    def told(*path: str) -> float | None:
        value = number(walk(given, path))
        return None if value is None or value < 0 else value

    hit, miss = told("usage", "prompt_cache_hit_tokens"), told("usage", "prompt_cache_miss_tokens")
    if hit is None or miss is None:
        hit, miss = told("timings", "cache_n"), told("timings", "prompt_n")
    if hit is not None and miss is not None:
        found.setdefault("input_tokens", hit + miss)
    if prefill := items(walk(given, ("details", "prefill"))):
        found.setdefault("input_tokens", float(len(prefill)))
    total, reasoning = told("usage", "total_tokens"), found.get("reasoning_tokens")
    if (
        total is not None
        and reasoning
        and total - found.get("input_tokens", 0.0) == found.get("output_tokens", 0.0) + reasoning
    ):
        found["output_tokens"] = found.get("output_tokens", 0.0) + reasoning
    _divide(found, told("usage", "completion_time"), 1e3)
    _divide(found, told("eval_duration"), 1e-6)
    load, prompt = told("load_duration"), told("prompt_eval_duration")
    if load is not None and prompt is not None:
        found.setdefault("ttft_ms", (load + prompt) * 1e-6)


def _divide(found: dict[str, float], duration: float | None, scale: float) -> None:
    tokens = found.get("output_tokens", 0.0)
    if duration is not None and duration > 0 and tokens > 0:
        found.setdefault("itl_ms", duration * scale / tokens)

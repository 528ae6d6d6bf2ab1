"""What a server says of itself, and what stands in the way of watching conversations on it.

`look` asks a server; `read_facts` works on its answers alone, so captured ones will do.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.errors import RecordError
from stabilitykit.sources.prometheus import scrape
from stabilitykit.sources.prometheus.lines import Problems, Series, wanted_series

__all__ = ["PATHS", "PROBE", "ServerFacts", "look", "read_facts"]

PATHS = ("/v1/models", "/metrics", "/props", "/get_server_info", "/info", "/api/version")
"""What is asked: OpenAI-style, Prometheus, llama.cpp, SGLang, TGI, Ollama."""
PROBE = "/v1/chat/completions"
"""Answered by one token, to see what a reply carries."""

_METRICS = {b"vllm:cache_config_info", b"sglang:page_size", b"sglang:token_usage", b"llamacpp:requests_processing",
            b"tgi_queue_size", b"vllm:num_requests_running"}  # fmt: skip
_METRICS |= {name.replace(b":", b"_") for name in _METRICS}


@attrs.frozen
class ServerFacts:
    """What is known; ``None`` is not known.

    Parameters
    ----------
    server
        vLLM, SGLang, llama.cpp, TGI, Ollama, or "" when nothing told.
    model
        Name of the first model.
    context_tokens
        The window that one conversation has: of llama.cpp that of one slot.
    slots
        Conversations at a time, where the server divides its context among them.
    trained_tokens
        The window that the model was trained for.
    block_tokens, kv_tokens
        Tokens of a KV block or page, and of all of them.
    has_prefix_cache, has_metrics
        Whether prompts share their beginning, whether there is a page of metrics.
    says_cached_tokens, says_timings
        Whether a reply tells its cached tokens, and how long its parts took.
    """

    server: str = ""
    model: str | None = None
    context_tokens: int | None = None
    slots: int | None = None
    trained_tokens: int | None = None
    block_tokens: int | None = None
    kv_tokens: int | None = None
    has_prefix_cache: bool | None = None
    has_metrics: bool = False
    says_cached_tokens: bool | None = None
    says_timings: bool | None = None


def look(url: str, timeout_s: float = 5.0, *, ask: bool = True, reply_timeout_s: float = 60.0) -> ServerFacts:
    """Ask a server.

    Parameters
    ----------
    url
        Its address without a path.
    timeout_s
        For each question.
    ask
        Also ask for one token, to see what a reply carries.
    reply_timeout_s
        For that token: a first request may compile for a minute.

    Raises
    ------
    RecordError
        It answers nothing at all.
    """
    base, answers, refused = url.rstrip("/"), dict[str, bytes](), ""
    for path in PATHS:
        try:
            answers[path] = scrape(base + path, timeout_s)
        except RecordError as error:
            refused = refused or str(error)
    if not answers:
        raise RecordError(refused)
    if ask:
        with contextlib.suppress(RecordError):  # without this route, or too slow: what a reply carries stays unknown
            answers[PROBE] = scrape(base + PROBE, reply_timeout_s, body=_question(read_facts(answers).model))
    return read_facts(answers)


def _question(model: str | None) -> bytes:
    asked = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "include_metrics": True}
    return json.dumps({**asked, **({"model": model} if model else {})}).encode()


def read_facts(answers: Mapping[str, bytes]) -> ServerFacts:
    """Read a server's answers, by path; what is absent or damaged is not known."""
    models, props, info = (_json(answers.get(path)) for path in ("/v1/models", "/props", "/get_server_info"))
    tgi, ollama, reply = _json(answers.get("/info")), _json(answers.get("/api/version")), _json(answers.get(PROBE))
    first = _first(models.get("data"))
    series = list(wanted_series(answers.get("/metrics", b""), _METRICS, Problems()))
    config = _labels(series, "cache_config_info")
    block, blocks = _whole(config.get("block_size")), _whole(config.get("num_gpu_blocks"))
    page = _value(series, "page_size")
    radix_off = info.get("disable_radix_cache")
    usage, slots = _dict(reply.get("usage")), _whole(props.get("total_slots"))
    prefix = {"True": True, "False": False}.get(config.get("enable_prefix_caching", ""))
    details = _dict(usage.get("prompt_tokens_details"))
    return ServerFacts(
        server=_server(series, props, info, tgi, ollama),
        model=_text(first.get("id")) or _text(tgi.get("model_id")),
        context_tokens=_known(
            _whole(_dict(props.get("default_generation_settings")).get("n_ctx")),
            _whole(first.get("max_model_len")),
            _whole(info.get("context_length")),
            _whole(tgi.get("max_total_tokens")),
        ),
        slots=slots,
        trained_tokens=_whole(_dict(first.get("meta")).get("n_ctx_train")),
        block_tokens=_known(block, page, _whole(info.get("page_size"))),
        kv_tokens=_known(
            block * blocks if block and blocks else None,
            _whole(info.get("max_total_num_tokens")),
            _whole(tgi.get("max_batch_total_tokens")),
        ),
        has_prefix_cache=prefix if not isinstance(radix_off, bool) else not radix_off,
        has_metrics=bool(series),
        says_cached_tokens=_whole(details.get("cached_tokens")) is not None if usage else None,
        says_timings=bool(_dict(reply.get("timings")) or _dict(reply.get("metrics"))) if reply else None,
    )


def _server(
    series: list[Series], props: dict[str, Any], info: dict[str, Any], tgi: dict[str, Any], ollama: dict[str, Any]
) -> str:
    names = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp", "tgi": "TGI"}
    for one in series:
        return names[re.split("[:_]", one.name)[0]]
    if "total_slots" in props:
        return "llama.cpp"
    if "disable_radix_cache" in info:
        return "SGLang"
    if "max_total_tokens" in tgi:
        return "TGI"
    return "Ollama" if set(ollama) == {"version"} else ""


def _json(text: bytes | None) -> dict[str, Any]:
    try:
        value = json.loads(text or b"")
    except (ValueError, RecursionError):  # no answer, or of something else
        return {}
    return _dict(value)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: Any) -> dict[str, Any]:
    return _dict(value[0]) if isinstance(value, list) and value else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _labels(series: list[Series], name: str) -> dict[str, str]:
    return next((one.labels for one in series if one.name.endswith(name)), {})


def _value(series: list[Series], name: str) -> int | None:
    return next((int(one.value) for one in series if one.name.endswith(name)), None)

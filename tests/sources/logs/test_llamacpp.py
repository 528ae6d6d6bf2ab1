"""A real llama.cpp server is driven into trouble, and its own log says so."""

from __future__ import annotations

import io

import pytest

from benchmarks.record.client import post_json
from stabilitykit import Engine
from stabilitykit.sources.logs import Series, blocks
from tests.servers.llamacpp import ServerSettings


@pytest.mark.capability(
    "issue 4 §3: a context shift, an overflow and a cut answer of a real server are read from its log"
)
def test_faults_of_a_real_server(llama, tiny_gguf, matcher):
    """A full window is shifted, a long prompt is refused: the lines are found and their rules fire."""
    server = llama(ServerSettings(n_ctx=256, context_shift=True, model=str(tiny_gguf)))
    chat = {"messages": [{"role": "user", "content": "Tell me everything."}], "seed": 1, "logit_bias": [[2, False]]}
    answer = post_json(server.port, "/v1/chat/completions", {**chat, "max_tokens": 400, "ignore_eos": True})
    assert answer["usage"]["completion_tokens"] == 400
    refused = post_json(
        server.port, "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 600}], "max_tokens": 4}
    )
    assert refused["error"]["type"] == "exceed_context_size_error"
    engine, series, fired = Engine.load("logs", compiled=False), Series("r1"), set()
    for block in blocks(io.BytesIO(server.log().encode())):
        for line in matcher.scan(block):
            sample = series.take(line)
            if sample is not None:
                fired |= set(engine.observe(replica="r1", timestamp_s=sample.timestamp_s, **sample.signals).fired)
    assert {"log-context-shift", "log-context-overflow", "log-context-truncation"} <= fired

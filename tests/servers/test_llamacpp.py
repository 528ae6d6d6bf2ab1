from __future__ import annotations

from benchmarks.record.client import post_json
from tests.servers.llamacpp import ServerSettings


def complete(port, text):
    """Ask for eight tokens, always the likeliest."""
    return post_json(port, "/completion", {"prompt": text, "n_predict": 8, "temperature": 0, "return_tokens": True})


def test_smollm2_answers(llama):
    """The real model goes on in English, and says how much of the prompt it had to read."""
    server = llama(ServerSettings(n_ctx=2048))
    told = complete(server.port, "The capital of France is")
    assert "Paris" in told["content"]
    assert told["timings"]["prompt_n"] + told["timings"]["cache_n"] == 5


def test_one_server_for_equal_settings(llama):
    """Two tests that want the same server share it."""
    assert llama(ServerSettings(n_ctx=2048)) is llama(ServerSettings(n_ctx=2048))


def test_tiny_random_model_answers(llama, tiny_gguf):
    """The random model has SmolLM2's tokenizer and nothing to say; two megabytes of layers are quick."""
    server = llama(ServerSettings(n_ctx=512, model=str(tiny_gguf)))
    told = complete(server.port, "The capital of France is")
    assert len(told["tokens"]) == 8
    assert told["timings"]["prompt_n"] + told["timings"]["cache_n"] == 5
    assert tiny_gguf.stat().st_size < 16_000_000

from __future__ import annotations

import attrs
import pytest

from stabilitykit.sources.server_advice import advise
from stabilitykit.sources.server_facts import ServerFacts

GOOD = ServerFacts(
    server="vLLM", context_tokens=32768, block_tokens=16, kv_tokens=100_000, has_prefix_cache=True, has_metrics=True,
    says_cached_tokens=True, says_timings=True,
)  # fmt: skip


def told(shared=None, wanted=8192, **changes):
    """Give what is said of a good server with one thing changed."""
    return [
        (a.about, a.flag) for a in advise(attrs.evolve(GOOD, **changes), wanted_tokens=wanted, shared_tokens=shared)
    ]


@pytest.mark.capability(
    "issue 4 §5: doctor --server: prefix caching, block size, context per slot, metrics: the flag to set"
)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"has_prefix_cache": False}, [("prefix", "--enable-prefix-caching")]),
        ({"has_prefix_cache": None, "says_timings": None, "says_cached_tokens": None}, []),
        ({"has_metrics": False}, [("metrics", "leave out --disable-log-stats")]),
        ({"server": "llama.cpp", "has_metrics": False}, [("metrics", "--metrics")]),
        ({"server": "Ollama", "has_metrics": False}, []),
        ({"says_cached_tokens": False}, [("cached", "--enable-prompt-tokens-details")]),
        ({"server": "SGLang", "says_cached_tokens": False}, [("cached", "--enable-cache-report")]),
        ({"says_timings": False}, [("timings", "--enable-per-request-metrics, and include_metrics in each request")]),
        ({"server": "SGLang", "says_timings": False}, []),
        ({"server": "llama.cpp", "slots": 4, "context_tokens": 2048}, [("context", "-c 32768 -np 4")]),
        ({"context_tokens": 4096}, [("context", "--max-model-len 8192")]),
        ({"kv_tokens": 20_000}, [("kv", "--max-model-len 8192")]),
        ({"kv_tokens": 20_000, "wanted": 32768}, [("kv", "--max-model-len 20000")]),
        ({"kv_tokens": 20_000, "wanted": 32768, "server": "SGLang"}, [("kv", "--context-length 20000")]),
        ({"kv_tokens": 20_000, "wanted": 32768, "context_tokens": 4096}, [("context", "--max-model-len 20000")]),
        ({"kv_tokens": 20_000, "wanted": 32768, "context_tokens": 20_000}, [("context", "")]),
        (
            {"kv_tokens": 20_000, "wanted": 32768, "context_tokens": 30_000},
            [("context", ""), ("kv", "--max-model-len 20000")],
        ),
        ({"shared": 12}, [("block", "--block-size 16")]),
        ({"shared": 16}, []),
        ({"block_tokens": 256, "shared": 400}, [("block", "--block-size 16")]),
        ({"block_tokens": 256, "shared": 800}, []),
        ({"server": "", "context_tokens": 100}, [("context", "")]),
    ],
)
def test_advice(changes, said):
    """Each finding with the flag of its server; what is not known is no finding."""
    assert told(**changes) == said

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.server_advice import advise
from stabilitykit.sources.server_facts import PATHS, PROBE, ServerFacts, look, read_facts
from tests.servers.llamacpp import ServerSettings

RECORDED = Path(__file__).parent.parent / "data" / "servers"
LLAMACPP = {
    "/v1/models": "llamacpp_v1_models.json", "/props": "llamacpp_props.json", "/metrics": "llamacpp_metrics.prom",
    PROBE: "llamacpp_chat.json",
}  # fmt: skip
KNOWN = ServerFacts(
    server="llama.cpp",
    model="smollm2-135m-instruct-q4_1",
    context_tokens=1024,
    slots=2,
    trained_tokens=8192,
    has_metrics=True,
    says_cached_tokens=True,
    says_timings=True,
)


def recorded():
    """Give the answers of a real llama.cpp server."""
    return {path: (RECORDED / name).read_bytes() for path, name in LLAMACPP.items()}


@pytest.mark.capability("issue 4 §5: doctor --server: facts of llama.cpp from /v1/models, /props and a reply")
def test_recorded_llamacpp():
    """Two slots share 2,048 tokens."""
    assert read_facts(recorded()) == KNOWN


@pytest.mark.capability("issue 4 §5: doctor --server on a live llama.cpp server")
def test_live_llamacpp(llama):
    """A live server says the same as the recorded one."""
    server = llama(ServerSettings(n_ctx=2048, n_parallel=2))
    assert look(f"http://127.0.0.1:{server.port}") == KNOWN


def test_without_metrics_page():
    """Its other answers still say what it is."""
    answers = recorded()
    del answers["/metrics"]
    facts = read_facts(answers)
    assert (facts.server, facts.has_metrics) == ("llama.cpp", False)


@pytest.mark.capability("issue 4 §5: doctor --server: facts of vLLM from vllm:cache_config_info and /v1/models")
def test_vllm(shared_data):
    """A real page: prefix caching off, 81,767 blocks of 16 tokens; a real reply with metrics but no cached tokens."""
    facts = read_facts(
        {
            "/metrics": (shared_data / "prometheus" / "vllm_0_6_cpu_like_sentinels.prom").read_bytes(),
            "/v1/models": b'{"object": "list", "data": [{"id": "m", "max_model_len": 32768}]}',
            PROBE: (shared_data / "responses" / "vllm_per_request_metrics.json").read_bytes(),
        }
    )
    assert facts == ServerFacts(
        server="vLLM", model="m", context_tokens=32768, block_tokens=16, kv_tokens=81767 * 16, has_prefix_cache=False,
        has_metrics=True, says_cached_tokens=False, says_timings=True,
    )  # fmt: skip
    about = {a.about: a.flag for a in advise(facts, wanted_tokens=8192)}
    assert about == {"prefix": "--enable-prefix-caching", "cached": "--enable-prompt-tokens-details"}


def test_the_others():
    """SGLang by its server info, TGI by its info, Ollama by its version, and nobody by nothing."""
    info = b'{"disable_radix_cache": true, "page_size": 64, "context_length": 4096, "max_total_num_tokens": 9000}'
    assert read_facts({"/get_server_info": info, "/metrics": b"sglang:token_usage 0.1\n"}) == ServerFacts(
        server="SGLang", context_tokens=4096, block_tokens=64, kv_tokens=9000, has_prefix_cache=False, has_metrics=True
    )
    tgi = b'{"model_id": "m", "max_total_tokens": 2048, "max_batch_total_tokens": 16000}'
    assert read_facts({"/info": tgi}) == ServerFacts(server="TGI", model="m", context_tokens=2048, kv_tokens=16000)
    assert read_facts({"/api/version": b'{"version": "0.12.0"}'}).server == "Ollama"
    assert read_facts({}) == ServerFacts()


@given(
    st.dictionaries(
        st.sampled_from([*PATHS, PROBE]),
        st.one_of(
            st.binary(),
            st.sampled_from(
                [
                    b"[]",
                    b"{}",
                    b"null",
                    b'{"data": [1]}',
                    b'{"data": {}}',
                    b'{"usage": 3, "timings": 4}',
                    b"[" * 100_000,
                    b'{"total_slots": "x", "default_generation_settings": []}',
                    b"vllm:cache_config_info 1\n",
                ]
            ),
        ),
    )
)
def test_any_answer(answers):
    """Whatever a server answers, it is read; what is not there is not known."""
    advise(read_facts(answers), wanted_tokens=8192, shared_tokens=100)
    assert isinstance(read_facts(answers).has_metrics, bool)

"""A real llama.cpp server, listened to without any client package: raw bytes as they come from the socket."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack, closing, suppress

import pytest

from benchmarks.record.client import count_tokens, slot_window
from stabilitykit import Engine
from stabilitykit.sources.openai import TurnRecorder
from tests.servers.llamacpp import LlamaServer, ServerSettings

SYSTEM = {"role": "system", "content": "You are a helpful assistant of an online shop for bags. " * 6}
QUESTIONS = ("How big is the blue backpack?", "Is it waterproof?", "Who pays the postage?")
CHAT, NATIVE = "/v1/chat/completions", "/completion"


def post(port, path, body):
    """Send a request; gives connection and response, of which nothing is read."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return link, link.getresponse()


def pieces(response, size):
    """Give the bytes of a response as they come, at most so many at a time."""
    while piece := response.read1(size):
        yield piece


def stream(recorder, port, path, body, size=4096):
    """Listen to a whole stream, cut into small pieces; gives the ended call and the bytes that passed."""
    call = recorder.request("c-1", body.get("messages"))
    link, response = post(port, path, body)
    with closing(link):
        passed = b"".join(call.watch(pieces(response, size)))
    return call, passed


def ask(messages, **more):
    """Give a request for a short streamed answer."""
    options = {"stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 5}
    return {"messages": messages, "max_tokens": 12, "temperature": 0, "stream": True, **options, **more}


@pytest.mark.capability("issue 4 §1: raw bytes of a real llama.cpp stream: every number of the Turn is the server's")
def test_conversation(llama):
    """Three turns, cut into pieces of 64 bytes: prefix reuse, log-probabilities, sent tokens, decisions."""
    port = llama(ServerSettings(n_ctx=512)).port
    recorder = TurnRecorder(
        replica="r-1", count_tokens=lambda sent: count_tokens(port, sent), context_window_tokens=slot_window(port)
    )
    engine, messages = Engine.load("chat"), [SYSTEM]
    for number, question in enumerate(QUESTIONS, 1):
        messages.append({"role": "user", "content": question})
        call, passed = stream(recorder, port, CHAT, ask(messages), 64)
        chunks = [json.loads(line[6:]) for line in passed.split(b"\n") if line.startswith(b"data: {")]
        last, turn = chunks[-1], call.turn()
        assert (turn.input_tokens, turn.output_tokens) == (last["usage"]["prompt_tokens"], 12)
        assert turn.sent_tokens == turn.input_tokens
        assert turn.cached_tokens == last["timings"]["cache_n"]
        assert turn.prefill_ms == last["timings"]["prompt_ms"]
        assert turn.decode_tokens_per_s == last["timings"]["predicted_per_second"]
        assert 0 < turn.itl_ms < 3 * last["timings"]["predicted_per_token_ms"] + 20
        assert turn.ttft_ms > turn.prefill_ms
        listed = [choice["logprobs"]["content"] for c in chunks for choice in c["choices"] if choice.get("logprobs")]
        assert turn.top_token_ids.tolist() == [entry["id"] for entry in listed[0][0]["top_logprobs"]]
        assert turn.output_token_ids.tolist() == [token["id"] for tokens in listed for token in tokens]
        assert (turn.finish_reason, turn.error, turn.replica, call.faults) == ("length", "none", "r-1", ())
        if number > 1:
            assert turn.cached_tokens > 0.5 * turn.input_tokens
        assert engine.evaluate(turn).state == "healthy"
        said = "".join(choice["delta"].get("content") or "" for c in chunks for choice in c["choices"])
        messages.append({"role": "assistant", "content": said})


def test_counts_on_the_way(llama):
    """Without usage and log-probabilities the counts of `timings` on every chunk tell the tokens."""
    body = {"messages": [SYSTEM], "max_tokens": 12, "temperature": 0, "stream": True, "timings_per_token": True}
    call, _ = stream(TurnRecorder(), llama(ServerSettings(n_ctx=512)).port, CHAT, body)
    turn = call.turn()
    assert (turn.output_tokens, turn.error) == (12, "none")
    assert 0 < turn.itl_ms < 3 * 1000 / turn.decode_tokens_per_s + 20


@pytest.mark.capability("issue 4 §1: a real llama.cpp server refuses a prompt: error, window and decision")
def test_context_overflow(llama):
    """HTTP 400 with the window in it; the chat pack trims."""
    port = llama(ServerSettings(n_ctx=512)).port
    call = TurnRecorder().request("c-1")
    link, response = post(port, CHAT, ask([{"role": "user", "content": "word " * 600}]))
    with closing(link):
        call.response(response.read(), status=response.status)
    turn = call.turn()
    assert (turn.error, turn.http_status, turn.context_window_tokens) == ("context_overflow", 400, 512)
    decision = Engine.load("chat").evaluate(turn)
    assert (decision.fired, [a.name for a in decision.actions]) == (("context-overflow",), ["trim_context"])


@pytest.mark.capability("issue 4 §1: a real context shift is told from an answer that is cut at the window")
@pytest.mark.parametrize("shifts", [True, False])
def test_context_shift(llama, tiny_gguf, shifts):
    """A random model talks on beyond its window of 256 tokens: shifted, it forgets; cut, it does not."""
    server = llama(ServerSettings(n_ctx=256, context_shift=shifts, model=str(tiny_gguf)))
    body = {"prompt": "Hello there", "n_predict": 400, "ignore_eos": True, "temperature": 0, "stream": True}
    call, passed = stream(TurnRecorder(context_window_tokens=256), server.port, NATIVE, body)
    last, turn = json.loads(passed.rstrip().rpartition(b"data: ")[2]), call.turn()
    assert (last["truncated"], turn.is_history_truncated) == (True, shifts)
    assert turn.output_tokens == last["tokens_predicted"]
    assert (turn.finish_reason, turn.error) == ("length", "none")
    assert (turn.session_tokens == last["tokens_cached"]) is shifts
    assert ("history-truncated" in Engine.load("chat").evaluate(turn).fired) is shifts


def test_pending_requests_and_silence(llama, tiny_gguf):
    """A second request to a server with one slot waits: no token yet, and two are pending."""
    port = llama(ServerSettings(n_ctx=2048, model=str(tiny_gguf))).port
    recorder = TurnRecorder(replica="r-1")
    body = {"prompt": "Hello", "n_predict": 500, "ignore_eos": True, "stream": True}
    busy, waiting = recorder.request("c-1"), recorder.request("c-2")
    link, response = post(port, NATIVE, body)
    with closing(link):
        first = busy.watch(pieces(response, 4096))
        next(first)
        turn = waiting.turn()
        assert (turn.pending_requests, turn.output_tokens) == (2, 0)
        assert turn.stream_age_ms > busy.stream_age_ms > 0
        for _ in first:
            pass
    assert busy.turn().pending_requests == 1
    assert busy.turn().error == "none"


@pytest.mark.capability("issue 4 §1: a server that dies within a stream is an error, whatever the client raises")
def test_server_is_killed(llama, tiny_gguf):
    """The process is killed within an answer: what came is kept, the error is the server's."""
    with ExitStack() as stack:
        server = stack.enter_context(LlamaServer(ServerSettings(n_ctx=2048, model=str(tiny_gguf)), "dying"))
        call = TurnRecorder().request("c-1")
        body = {"prompt": "Hello", "n_predict": 2000, "ignore_eos": True, "stream": True}
        link, response = post(server.port, NATIVE, body)
        with closing(link):
            listening = call.watch(pieces(response, 256))
            next(listening)
            stack.close()
            with suppress(OSError, http.client.HTTPException):  # or the stream merely ends
                for _ in listening:
                    pass
    assert call.turn().error == "server"
    assert call.turn().ttft_ms > 0

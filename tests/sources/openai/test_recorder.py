from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit import Engine
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.openai import TurnRecorder
from stabilitykit.sources.openai.call import LONGEST_BODY
from stabilitykit.sources.openai.reply import MOST_FAULTS, MOST_TOKENS
from stabilitykit.turn import is_missing


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        """Tell the time."""
        return self.now


def chunk(text=None, end=None, **more):
    """Give one chunk of a chat stream."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": end, **more}], "model": "m"}


def spoken(clock, *steps, **settings):
    """Give the call of a stream: pairs of seconds waited and chunk."""
    call = TurnRecorder(clock=clock, **settings).request("c-1")
    for waited, item in steps:
        clock.now += waited
        call.chunk(item)
    call.end()
    return call


@pytest.mark.capability("issue 4 §1: TTFT at the first non-empty content or reasoning chunk")
def test_first_token_is_the_first_with_text():
    """A role, an empty text and a keep-alive are no token; reasoning is one, as is a tool call."""
    for delta in ({"reasoning_content": "Hm"}, {"reasoning": "Hm"}, {"tool_calls": [{"function": {"name": "f"}}]}):
        clock = Clock()
        steps = [(1, {"choices": [{"delta": {"role": "assistant", "content": ""}}]}), (1, {"choices": []})]
        turn = spoken(clock, *steps, (1, {"choices": [{"delta": delta}]}), (1, chunk(end="stop"))).turn()
        assert (turn.ttft_ms, turn.rt_ms, turn.error) == (3000.0, 4000.0, "none")


NATIVE = {
    "Ollama, chat": (
        {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": False},
        {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2},
    ),
    "Ollama, thinking": (
        {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "Hm"}, "done": False},
        {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2},
    ),
    "Ollama, generate": (
        {"model": "m", "response": "Hi", "done": False},
        {"model": "m", "response": "", "done": True, "done_reason": "stop", "eval_count": 2},
    ),
    "llama.cpp, /completion": (
        {"content": "Hi", "tokens": [28], "stop": False, "tokens_predicted": 1, "tokens_evaluated": 2},
        {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "tokens_predicted": 2, "tokens_evaluated": 2},
    ),
    "TGI, generate_stream": (
        {"index": 1, "token": {"id": 28, "text": "Hi", "logprob": -0.1, "special": False}, "details": None},
        {"index": 2, "token": {"id": 2, "text": "", "logprob": -0.1, "special": True},
         "generated_text": "Hi", "details": {"finish_reason": "eos_token", "generated_tokens": 2}},
    ),
    "completions of old": (
        {"choices": [{"text": "Hi", "index": 0, "logprobs": None, "finish_reason": None}]},
        {"choices": [{"text": "", "index": 0, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}},
    ),
}  # fmt: skip


@pytest.mark.capability("issue 4 §1: native streams of Ollama, llama.cpp and TGI, and completions of old")
@pytest.mark.parametrize("server", NATIVE)
def test_native_streams(server):
    """One token after a second, the end after two."""
    first, last = NATIVE[server]
    turn = spoken(Clock(), (1, first), (1, last)).turn()
    assert (turn.ttft_ms, turn.rt_ms) == (1000.0, 2000.0)
    assert (turn.output_tokens, turn.finish_reason, turn.error) == (2, "stop", "none")


@pytest.mark.parametrize("body", [b"<html>502</html>", b"", b"[]", None, {}])
def test_a_reply_that_is_none(body):
    """HTTP 200 and no answer in it: the server's fault."""
    call = TurnRecorder().request("c-1")
    call.response(body, status=200)
    assert (call.turn().error, call.turn().http_status) == ("server", 200)


@pytest.mark.capability("issue 4 §1: chunks of several tokens are divided: by logprobs, counts on the way, final usage")
@pytest.mark.parametrize("told", ["logprobs", "usage", "timings", "final"])
def test_tokens_of_a_chunk(told):
    """Two tokens, then three in one chunk after 300 ms, then one: however the server tells it, 100 ms a token."""
    counts, total = (2, 3, 1), {"usage": {"completion_tokens": 6}}
    steps, so_far = [], 0
    for count in counts:
        so_far += count
        more = {
            "logprobs": {"logprobs": {"content": [{"token": "x", "logprob": -0.1}] * count}},
            "usage": {},
            "timings": {},
            "final": {},
        }[told]
        item = chunk("x" * count, **more)
        item |= {
            "usage": {"usage": {"completion_tokens": so_far}},
            "timings": {"timings": {"predicted_n": so_far}},
        }.get(told, {})
        steps.append((count / 10, item))
    turn = spoken(Clock(), *steps, (0, chunk(end="length")), (0, {"choices": [], **total})).turn()
    expected = 100.0 if told != "final" else 400 / (2 + 2)  # spread evenly: two tokens for each of three chunks
    assert turn.itl_ms == pytest.approx(expected)
    assert turn.output_tokens == 6
    assert turn.decode_tokens_per_s == pytest.approx(1000 / expected)


def test_hidden_reasoning_has_no_chunks():
    """Of 300 tokens 298 were reasoning that nobody saw: the gap of the other two is one gap."""
    usage = {"completion_tokens": 300, "completion_tokens_details": {"reasoning_tokens": 298}}
    turn = spoken(Clock(), (1, chunk("a")), (0.1, chunk("b", "length")), (0, {"choices": [], "usage": usage})).turn()
    assert turn.itl_ms == pytest.approx(100.0)


def test_of_several_choices_one_is_followed():
    """Tokens of the second choice come between; usage counts both and is not distributed."""
    other = {"choices": [{"index": 1, "delta": {"content": "z"}, "finish_reason": None}]}
    usage = {"choices": [], "usage": {"completion_tokens": 40}}
    turn = spoken(Clock(), (1, chunk("a")), (0.1, other), (0.1, chunk("b", "stop")), (0, usage)).turn()
    assert turn.itl_ms == pytest.approx(200.0)


@pytest.mark.capability(
    "issue 4 §1: log-probabilities under content and reasoning_content; the first token of the answer"
)
def test_candidates_are_those_of_the_first_token():
    """The list of the first token of the answer, not of the last, which is the end mark; not of the reasoning."""

    def listed(part, token, logprob):
        return {part: [{"token": token, "logprob": logprob, "top_logprobs": [{"id": ord(token), "logprob": logprob}]}]}

    steps = [
        (1, {"choices": [{"delta": {"reasoning_content": "a"}, "logprobs": listed("reasoning_content", "a", -3.0)}]}),
        (1, chunk("b", logprobs=listed("content", "b", -2.0))),
        (1, chunk("c", "stop", logprobs=listed("content", "c", -0.01))),
    ]
    turn = spoken(Clock(), *steps).turn()
    assert (turn.top_token_ids.tolist(), turn.top_logprobs.tolist()) == ([ord("b")], [-2.0])
    assert turn.top_token_ids.dtype == np.int64
    assert len(turn.output_token_ids) == turn.output_tokens == 3
    turn = spoken(Clock(), steps[0], (1, chunk(end="stop"))).turn()
    assert turn.top_token_ids.tolist() == [ord("a")]


@pytest.mark.capability("issue 4 §1: silent truncation: the server used fewer prompt tokens than were sent")
def test_silent_truncation():
    """Ollama cut 74,706 tokens to 2,048 and answered 200 (data/README); a tokenizer that differs a little is none."""
    recorder = TurnRecorder(count_tokens=lambda request: len(request))
    found = []
    for used in (2048, 74_000):
        call = recorder.request("c-1", "x" * 74_706)
        call.response({"done": True, "done_reason": "stop", "prompt_eval_count": used, "eval_count": 5})
        found.append(call.turn())
    assert found[0].is_history_truncated is True
    assert is_missing(found[1].is_history_truncated)
    assert (found[0].sent_tokens, found[0].error) == (74_706, "none")
    engine = Engine.load("chat")
    assert "history-truncated" in engine.evaluate(found[0]).fired


def test_an_answer_cut_at_the_window_is_no_lost_history():
    """llama.cpp flags both as truncated; after a shift its cache holds less than prompt and answer."""
    for cached, truncated in ((511, False), (174, True)):
        call = TurnRecorder().request("c-1")
        body = {"content": "x", "stop": True, "stop_type": "limit", "truncated": True, "tokens_cached": cached}
        call.response({**body, "tokens_evaluated": 212, "tokens_predicted": 300})
        turn = call.turn()
        assert turn.is_history_truncated is truncated
        assert turn.finish_reason == "length"
        assert is_missing(turn.session_tokens) if not truncated else turn.session_tokens == 174


@pytest.mark.capability("issue 4 §1: stream_age_ms of an open stream: the engine can see a hang before it ends")
def test_open_stream_tells_its_silence():
    """A stream that hangs is told on a peek; the answer itself is not touched."""
    clock = Clock()
    engine = Engine.load("output")
    recorder = TurnRecorder(clock=clock)
    for _ in range(4):
        call = recorder.request("c-1")
        for waited, item in ((0.5, chunk("a")), *[(0.04, chunk("b"))] * 20, (0, chunk(end="stop"))):
            clock.now += waited
            call.chunk(item)
        call.end()
        assert engine.evaluate(call.turn()).fired == ()
    call = recorder.request("c-1")
    clock.now += 0.5
    call.chunk(chunk("a"))
    clock.now += 0.1
    assert call.stream_age_ms == pytest.approx(100.0)
    assert call.turn().output_tokens == 1
    assert engine.peek(call.turn()).fired == ()
    clock.now += 30
    turn = call.turn()
    assert turn.stream_age_ms == pytest.approx(30_100.0)
    assert is_missing(turn.error)
    assert engine.peek(turn).fired == ("stream-hung",)
    call.end()
    assert call.stream_age_ms == 0.0


@pytest.mark.capability("issue 4 §1: pending_requests over all calls of one server")
def test_pending_requests():
    """Sent and not answered, the asking one among them until it is answered; a dropped call leaves by itself."""
    recorder = TurnRecorder(replica="r-1")
    first, second = recorder.request("c-1"), recorder.request("c-2")
    assert (recorder.pending_requests, first.turn().pending_requests) == (2, 2)
    second.response({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    assert (second.turn().pending_requests, second.turn().replica) == (1, "r-1")
    del first
    assert recorder.pending_requests == 0


def test_threads_share_a_recorder():
    """Calls of many threads come and go; none is left."""
    recorder = TurnRecorder()

    def talk():
        for _ in range(200):
            with recorder.request("c") as call:
                call.chunk(chunk("a", "stop"))

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.pending_requests == 0


def test_refusal_gives_error_status_and_window():
    """A context overflow with its HTTP status, as a host without a client package sees it."""
    body = b'{"error": {"message": "request (631 tokens) exceeds the available context size (512 tokens), try"}}'
    call = TurnRecorder(context_window_tokens=4096).request("c-1")
    call.response(body, status=400)
    turn = call.turn()
    assert (turn.error, turn.http_status, turn.context_window_tokens) == ("context_overflow", 400, 512)
    assert is_missing(turn.output_tokens)
    assert Engine.load("chat").evaluate(turn).fired == ("context-overflow",)


def test_a_wrong_request_says_nothing_of_the_conversation():
    """401 is neither a fault of the server nor a success."""
    call = TurnRecorder().request("c-1")
    call.response({"error": {"message": "no key"}}, status=401)
    assert (call.turn().http_status, call.turn().error) == (401, None)


def test_error_objects_of_old_vllm():
    """An error of old vLLM is the chunk itself."""
    steps = [(1, chunk("a")), (1, {"object": "error", "message": "longer than the maximum model length of 4096"})]
    turn = spoken(Clock(), *steps).turn()
    assert (turn.error, turn.context_window_tokens) == ("context_overflow", 4096)


def test_insufficient_system_resource():
    """DeepSeek ends an answer in the middle, with HTTP 200."""
    turn = spoken(Clock(), (1, chunk("a")), (1, chunk(end="insufficient_system_resource"))).turn()
    assert (turn.finish_reason, turn.error) == ("abort", "insufficient_resource")


def test_error_within_a_stream():
    """An error chunk after the first tokens: what came stays, the error is told."""
    steps = [(1, chunk("a")), (1, chunk("b")), (1, {"error": {"message": "CUDA error", "code": 500}})]
    turn = spoken(Clock(), *steps).turn()
    assert (turn.error, turn.ttft_ms, turn.itl_ms) == ("server", 1000.0, 1000.0)


@pytest.mark.capability("issue 4 §1: a server that dies within a stream is an error, whatever the client raises")
def test_server_dies():
    """The client's exception reaches the host as it is; the Turn says server."""

    def dying():
        yield chunk("a")
        raise ConnectionResetError

    recorder = TurnRecorder()
    call = recorder.request("c-1")
    with pytest.raises(ConnectionResetError):
        list(call.watch(dying()))
    assert (call.turn().error, recorder.pending_requests) == ("server", 0)


@pytest.mark.capability("issue 4 §1: truncated SSE, invalid UTF-8 and chunks out of order are located faults")
def test_truncated_stream():
    """Bytes that end in the middle of an event: a located fault, and the answer did not come to its end."""
    call = TurnRecorder().request("c-1")
    whole = b"data: " + json.dumps(chunk("a")).encode() + b"\n\n"
    list(call.watch([whole, whole[:30]]))
    assert call.turn().error == "server"
    assert is_missing(call.turn().output_tokens)
    assert [fault.detail for fault in call.faults] == [
        f"event 2 before byte {len(whole) + 30}: Expecting ',' delimiter at 24"
    ]


def test_host_that_stops_early_cancels():
    """Closing the iterator in the middle cancels; after the finish reason the answer is whole."""
    for end, word in ((None, "cancelled"), ("stop", "none")):
        call = TurnRecorder().request("c-1")
        stream = call.watch(iter([chunk("a", end), chunk("b"), chunk("c")]))
        next(stream)
        stream.close()
        assert call.turn().error == word


def test_mistake_of_the_host_is_not_the_servers():
    """An exception of the host's own in the block cancels an open reply, and goes on its way."""
    call = TurnRecorder().request("c-1")
    call.chunk(chunk("a"))

    def mistake():
        with call:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mistake()
    assert call.turn().error == "cancelled"


def test_nothing_came():
    """A call that was given nothing says nothing of the answer."""
    with TurnRecorder().request("c-1") as call:
        pass
    assert is_missing(call.turn().error)


@pytest.mark.capability("issue 4 §1: every chunk of a host's stream is passed on as it is, in step, also asynchronous")
def test_chunks_pass_untouched():
    """The very objects come out, one for one, and not before the host asks for them."""
    items = [chunk("a"), b'data: {"x": 1}\n\n', "data: [DONE]\n\n", object(), None, 7, chunk("b", "stop")]
    taken = []

    def source():
        for item in items:
            taken.append(item)
            yield item

    call = TurnRecorder().request("c-1")
    for number, item in enumerate(call.watch(source()), 1):
        assert item is items[number - 1]
        assert len(taken) == number
    assert call.turn().error == "none"

    async def listen():
        async def later():
            for item in items:
                yield item

        call = TurnRecorder().request("c-1")
        return call, [item async for item in call.awatch(later())]

    call, passed = asyncio.run(listen())
    assert all(a is b for a, b in zip(passed, items, strict=True))
    assert call.turn().error == "none"


def test_asynchronous_host_is_cancelled():
    """Cancelling the task cancels the call, and the task stays cancelled."""

    async def run():
        async def endless():
            yield chunk("a")
            await asyncio.Event().wait()

        call = TurnRecorder().request("c-1")

        async def listen():
            async for _ in call.awatch(endless()):
                started.set()

        started = asyncio.Event()
        task = asyncio.create_task(listen())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return call.turn()

    assert asyncio.run(run()).error == "cancelled"


def test_lines_without_their_ends():
    """Clients' `iter_lines` take the line ends away."""
    event = "data: " + json.dumps(chunk("a", "stop"))
    call = TurnRecorder().request("c-1")
    list(call.watch([event, "", "data: [DONE]", ""], lines=True))
    assert call.turn().error == "none"
    assert call.faults == ()


@pytest.mark.capability("issue 4 §1: truncated SSE, invalid UTF-8 and chunks out of order are located faults")
def test_invalid_utf8_costs_nothing_but_a_fault():
    """The chunk counts, the place is told, the text is not."""
    call = TurnRecorder().request("c-1")
    call.feed(b'data: {"choices": [{"delta": {"content": "\xff\xfe"}, "finish_reason": "stop"}]}\n\n')
    call.end()
    assert call.turn().finish_reason == "stop"
    assert [fault.detail for fault in call.faults] == ["event 1 before byte 76: invalid UTF-8 at 36"]


@pytest.mark.capability("issue 4 §1: truncated SSE, invalid UTF-8 and chunks out of order are located faults")
def test_counts_that_go_back():
    """Chunks out of order: the count falls, which is a fault; the time of the first token stays."""
    steps = [(0.1, {**chunk("a"), "usage": {"completion_tokens": count}}) for count in (1, 3, 2, 4)]
    call = spoken(Clock(), *steps, (0, chunk(end="stop")))
    assert [fault.detail for fault in call.faults] == ["output tokens went from 3 to 2"]
    assert call.turn().output_tokens == 4


@pytest.mark.capability("issue 4 §1: a clock that goes back costs one gap, and is a fault")
def test_clock_that_goes_back_is_a_fault():
    """One gap is unknown and told."""
    call = spoken(Clock(), (1, chunk("a")), (-5, chunk("b")), (0.1, chunk("c", "length")))
    assert [(fault.signal, fault.detail) for fault in call.faults] == [("itl_ms", "the clock went back")]
    assert call.turn().itl_ms == pytest.approx(100.0)


@pytest.mark.capability("issue 4 §1: no stream makes the recorder hold more than a limit")
def test_memory_is_bounded():
    """A stream without end of bad events and of tokens: the faults and the ids kept are so many."""
    call = TurnRecorder().request("c-1")
    token = [{"id": 1, "token": "x", "logprob": -0.1}]
    for _ in range(3000):
        call.feed(b"data: {broken\n\n")
    for _ in range(200):
        call.chunk(chunk("x", logprobs={"content": token * 100}))
    call.end()
    assert len(call.faults) == MOST_FAULTS
    assert len(call.turn().output_token_ids) == MOST_TOKENS
    assert call.turn().output_tokens == 20_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from([
            "choices", "delta", "content", "usage", "prompt_tokens", "completion_tokens", "timings", "predicted_n",
            "logprobs", "top_logprobs", "token", "bytes", "id", "error", "message", "code", "finish_reason", "index",
            "tool_calls", "function", "details", "tokens", "model", "truncated", "x_groq", "done", "total_tokens",
            "completion_tokens_details", "reasoning_tokens", "token_logprobs", "top_tokens", "n_ctx", "type",
        ]) | st.text(max_size=4),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@given(st.lists(json_values, max_size=6))
@pytest.mark.capability("issue 4 §1: no reply, however odd, raises into the host; every turn of it can be evaluated")
def test_any_json_is_survived(values):
    """Whatever JSON a server sends: no exception, and the engine takes the Turn."""
    call = TurnRecorder().request("c-1")
    for value in values:
        call.chunk(value)
        assert call.turn().error is None or is_missing(call.turn().error)
    call.end()
    assert ENGINE.evaluate(call.turn()).turn_id > 0
    for value in values:
        whole = TurnRecorder().request("c-1")
        whole.response(value, status=500)
        assert whole.turn().error not in (None, "none")
        ENGINE.evaluate(whole.turn())


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", b'{"choices":[{"delta":{"content":"a"}}]}']))
)
def test_any_bytes_are_survived(pieces):
    """Random bytes as a stream and as a reply: no exception, and the engine takes the Turn."""
    call = TurnRecorder().request("c-1")
    assert list(call.watch(pieces)) == pieces
    ENGINE.evaluate(call.turn())
    whole = TurnRecorder().request("c-1")
    whole.response(b"".join(pieces))
    ENGINE.evaluate(whole.turn())


ENGINE = Engine.load("chat", compiled=False)


class Hostile:
    """An object whose fields raise."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


def test_hostile_objects_are_survived():
    """An object that raises when it is looked at is a fault, as is a host's counter that raises."""
    call = TurnRecorder(count_tokens=lambda request: 1 // 0).request("c-1", "hello")
    assert list(call.watch([Hostile()])) != []
    assert [fault.detail for fault in call.faults] == ["count_tokens: ZeroDivisionError", "recorder: RuntimeError"]
    assert is_missing(call.turn().sent_tokens)


def test_what_the_host_adds_wins():
    """The host's own fields go into the Turn."""
    call = TurnRecorder().request("c-1")
    call.response({"model": "m", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    turn = call.turn(turn_id=7, model="mine", is_history_truncated=True)
    assert (turn.turn_id, turn.model, turn.is_history_truncated) == (7, "mine", True)


def test_no_text_is_kept():
    """Neither the Turn, nor the faults, nor the call itself hold any text of the conversation."""
    secret = "s3cret"
    call = TurnRecorder(count_tokens=len).request("c-1", secret)
    call.chunk(chunk(secret, logprobs={"content": [{"token": secret, "logprob": -0.1}]}))
    call.feed(f"data: {{{secret}\n\ndata: {json.dumps({'error': {'message': secret}})}\n\n")
    call.end()
    kept = repr([vars(part) for part in (call, call._reply, call._arrivals, call._decoder)])
    assert secret not in kept + repr(call.turn()) + repr(call.faults)


def test_pieces_are_kept_for_who_asks():
    """Time, tokens and text of each chunk with tokens; of a list of parts the answer's, of reasoning none."""
    clock = Clock()
    call = TurnRecorder(clock=clock).request("c-1", keep_pieces=True)
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": "lo"}, 3]
    two = {"content": [{"token": "H", "logprob": -1.0}, {"token": "el", "logprob": -1.0}]}
    for item in (
        chunk(""), {"choices": [{"delta": {"reasoning_content": "Hm"}}]}, chunk("Hel", logprobs=two), chunk(parts),
        {"choices": [{"text": "!"}]}, chunk("", "stop"),
    ):  # fmt: skip
        clock.now += 1
        call.chunk(item)
    call.end()
    assert [(p.at_s, p.tokens, p.text) for p in call.pieces] == [
        (102.0, None, ""), (103.0, 2.0, "Hel"), (104.0, None, "lo"), (105.0, None, "!"),
    ]  # fmt: skip
    assert not call.faults
    assert spoken(clock, (1, chunk("Hel"))).pieces == ()


def test_producers_list_is_true():
    """Every signal said to come from here does, and no other."""
    clock = Clock()
    token = {"id": 1, "token": "x", "logprob": -0.1, "top_logprobs": [{"id": 1, "logprob": -0.1}]}
    streamed = spoken(
        clock, (1, chunk("x", logprobs={"content": [token]})), (1, chunk("x", "stop")),
        (0, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 3,
                                      "queue_time": 1.0, "prompt_time": 1.0, "reasoning_tokens": 1}}),
        context_window_tokens=4096, count_tokens=lambda request: 12,
    ).turn()  # fmt: skip
    waiting = TurnRecorder().request("c-1", [{"role": "user", "content": "x?"}])
    whole = TurnRecorder().request("c-1")
    whole.response({"stop": True, "truncated": True, "tokens_cached": 3, "tokens_evaluated": 9}, status=200)
    names = {
        name
        for turn in (streamed, waiting.turn(), whole.turn())
        for name in turn.__slots__
        if name != "__weakref__" and not is_missing(getattr(turn, name))
    }
    assert names - {"session_id", "revision", "tenant", "model"} == set(PRODUCERS["openai"])


def faults(call):
    """Give signal and detail of each fault."""
    return [(fault.signal, fault.detail) for fault in call.faults]


@pytest.mark.parametrize("tell", [lambda: 1 / 0, lambda: float("nan"), lambda: "noon"])
def test_clock_that_fails(tell):
    """A clock that raises, or tells no time, costs the times and nothing else."""
    recorder = TurnRecorder(clock=tell)
    call = recorder.request("c-1")
    assert recorder.pending_requests == 1
    assert np.isnan(call.stream_age_ms)
    call.chunk(chunk("Hi"))
    call.chunk(chunk(end="stop"))
    call.end()
    turn = call.turn()
    assert is_missing(turn.ttft_ms)
    assert (turn.error, turn.finish_reason, turn.model) == ("none", "stop", "m")
    assert all(detail.startswith("clock: ") for _, detail in faults(call))
    assert recorder.pending_requests == 0


@pytest.mark.parametrize(
    ("usage", "signal", "detail"),
    [
        ({"prompt_tokens": -5}, "input_tokens", "usage.prompt_tokens: negative"),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            "cached_tokens",
            "usage.prompt_tokens_details.cached_tokens: more than input_tokens",
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}},
            "reasoning_tokens",
            "usage.completion_tokens_details.reasoning_tokens: more than output_tokens",
        ),
    ],
)
def test_usage_that_cannot_be(usage, signal, detail):
    """A negative count, and a part greater than its whole, are dropped with their place."""
    call = TurnRecorder().request("c-1")
    call.response({"choices": [{"finish_reason": "stop"}], "usage": usage})
    assert is_missing(getattr(call.turn(), signal))
    assert faults(call) == [(signal, detail)]


def test_other_numbers_that_cannot_be():
    """A status that HTTP does not have, a negative count of tokens, and a number where bytes belong."""
    call = TurnRecorder(count_tokens=lambda _: -3).request("c-1", [])
    call.feed(300_000_000)
    assert call._decoder.offset == 0
    call.response({"choices": [{"finish_reason": "stop"}]}, status=9999)
    turn = call.turn()
    assert is_missing(turn.http_status)
    assert is_missing(turn.sent_tokens)
    assert faults(call) == [
        ("sent_tokens", "count_tokens: negative"),
        ("", "after byte 0: neither bytes nor text"),
        ("http_status", "status: outside 100 to 599"),
    ]


def test_error_after_the_end():
    """What comes after [DONE] is none of the answer."""
    call = TurnRecorder().request("c-1")
    call.feed(b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n')
    call.feed(b'data: {"error": {"code": 500, "message": "late"}}\n\n')
    call.end()
    assert call.turn().error == "none"
    assert [detail for _, detail in faults(call)] == ["event 3 before byte 141: after [DONE]"]


@pytest.mark.parametrize(
    "usages",
    [
        [{"prompt_tokens": 10}, {"prompt_tokens_details": {"cached_tokens": 20}}],
        [{"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20}}, {"prompt_tokens": 10}],
        [{"completion_tokens": 5}, {"completion_tokens_details": {"reasoning_tokens": 6}}],
    ],
)
def test_a_part_and_its_whole_from_two_chunks(usages):
    """What two chunks of one stream say together must be possible: the part is unknown otherwise, with a fault."""
    call = TurnRecorder().request("c-1")
    for usage in usages:
        call.chunk({"choices": [], "usage": usage})
    call.end()
    turn = call.turn()
    assert is_missing(turn.cached_tokens)
    assert is_missing(turn.reasoning_tokens)
    ((signal, detail),) = faults(call)
    assert detail.startswith(f"{signal} of one chunk: more than ")


def test_a_part_that_came_before_its_whole_has_grown():
    """Consistent statements of several chunks are kept."""
    call = TurnRecorder().request("c-1")
    call.chunk({"choices": [], "usage": {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20}}})
    call.chunk({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 4}})
    call.end()
    assert (call.turn().cached_tokens, call.turn().input_tokens, call.faults) == (20.0, 30.0, ())


@pytest.mark.parametrize(("status", "error"), [(None, None), (200, None), (500, "server")])
def test_a_body_that_is_too_long_is_not_read(status, error):
    """More text than the limit costs no time and no memory: a fault, and nothing is known but the status."""
    call = TurnRecorder().request("c-1")
    call.response(b'{"choices": [{"finish_reason": "stop"}]' + b" " * LONGEST_BODY + b"}", status=status)
    turn = call.turn()
    assert (turn.error, turn.finish_reason, call.is_open) == (error, None, False)
    assert faults(call) == [("", f"the reply: longer than {LONGEST_BODY} bytes")]


def test_a_reply_that_cannot_be_looked_at_is_no_longer_pending():
    """A foreign object whose fields raise is a fault; the request is answered all the same."""

    class Odd:
        @property
        def __dict__(self):  # type: ignore[override]
            raise RuntimeError

    recorder = TurnRecorder()
    recorder.request("c-1").response(Odd())
    assert recorder.pending_requests == 0

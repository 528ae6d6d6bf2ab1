"""The real client of the openai package and a real llama.cpp server, watched."""

from __future__ import annotations

import asyncio
import copy
import logging
from types import SimpleNamespace

import pytest

from stabilitykit import Decision, Engine
from stabilitykit.integrations.openai import watch
from stabilitykit.sources.openai import TurnRecorder
from tests.servers.llamacpp import ServerSettings

openai = pytest.importorskip("openai")
SYSTEM = {"role": "system", "content": "You are a helpful assistant of an online shop for bags. " * 6}
QUESTIONS = ("How big is the blue backpack?", "Is it waterproof?", "Who pays the postage?")


@pytest.fixture(scope="module")
def address(llama):
    """Give where a server with a window of 512 tokens answers."""
    return {"base_url": f"http://127.0.0.1:{llama(ServerSettings(n_ctx=512)).port}/v1", "api_key": "none"}


def ask(text, **more):
    """Give a request for a short answer."""
    return {
        "model": "any",
        "messages": [SYSTEM, {"role": "user", "content": text}],
        "max_tokens": 12,
        "temperature": 0,
        **more,
    }


def last(chat):
    """Give the number of the latest decision."""
    return None if chat.decision is None else chat.decision.turn_id


STREAMED = {"stream": True, "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 5}


@pytest.mark.capability("issue 4 §1: a real conversation through the openai client and llama.cpp: turns and decisions")
def test_conversation(address):
    """Three streamed turns: the host gets every chunk, the turn every number, the engine finds it healthy."""
    decisions: list[Decision] = []
    with openai.OpenAI(**address, max_retries=0) as client:
        engine = Engine.load("chat")
        seen = []
        evaluate = engine.evaluate

        def overheard(turn):
            seen.append(turn)
            return evaluate(turn)

        engine.evaluate = overheard  # type: ignore[method-assign]
        chat = watch(client, engine, session_id="c-1", on_decision=decisions.append)
        messages = [SYSTEM]
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            stream = chat.chat.completions.create(**{**ask(question), "messages": messages}, **STREAMED)
            chunks = list(stream)
            assert {type(chunk).__name__ for chunk in chunks} == {"ChatCompletionChunk"}
            said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            messages.append({"role": "assistant", "content": said})
            usage = chunks[-1].usage
            turn = seen[-1]
            assert (turn.input_tokens, turn.output_tokens) == (usage.prompt_tokens, usage.completion_tokens)
            assert turn.cached_tokens == usage.prompt_tokens_details.cached_tokens
            assert len(turn.top_token_ids) == 5
            first = next(c.choices[0].logprobs.content[0] for c in chunks if c.choices and c.choices[0].logprobs)
            assert turn.top_token_ids.tolist() == [entry.id for entry in first.top_logprobs]
            assert 0 < turn.ttft_ms < turn.rt_ms
            assert 0 < turn.itl_ms < turn.rt_ms
            assert turn.prefill_ms == chunks[-1].model_extra["timings"]["prompt_ms"]  # no field of the package's
            finish = next(c.choices[0].finish_reason for c in reversed(chunks) if c.choices)
            assert (turn.error, turn.finish_reason, turn.pending_requests) == ("none", finish, 0)
        assert seen[1].cached_tokens > 0.5 * seen[1].input_tokens  # the prefix was served from the cache
        assert [decision.turn_id for decision in decisions] == [1, 2, 3]
        assert chat.decision is decisions[-1]
        assert decisions[-1].state == "healthy"


@pytest.mark.capability("issue 4 §1: the client's own exceptions reach the host; a refused prompt is a decision")
def test_refusal(address):
    """The prompt exceeds the window: BadRequestError for the host, trim_context from the engine."""
    with openai.OpenAI(**address, max_retries=0) as client:
        decisions: list[Decision] = []
        chat = watch(client, Engine.load("chat"), session_id="c-1", on_decision=decisions.append)
        for extra in ({}, {"stream": True}):
            with pytest.raises(openai.BadRequestError):
                chat.chat.completions.create(**ask("word " * 600, **extra))
        assert decisions[0].fired == ("context-overflow",)
        assert [action.name for action in decisions[0].actions] == ["trim_context"]
        assert "context-stuck" in decisions[1].fired
        assert "reset_context" in [action.name for action in decisions[1].actions]


def test_whole_reply_and_everything_else(address):
    """A reply without a stream is the client's own object; what is not watched is the client itself."""
    with openai.OpenAI(**address, max_retries=0) as client:
        recorder = TurnRecorder(replica="r-1")
        chat = watch(client, Engine.load("chat"), session_id="c-1", recorder=recorder)
        reply = chat.chat.completions.create(**ask("Hello"))
        assert type(reply).__name__ == "ChatCompletion"
        assert last(chat) == 1
        assert [model.id for model in chat.models.list()] == [model.id for model in client.models.list()]
        assert chat.chat.completions.with_raw_response.create(**ask("Hello")).status_code == 200
        assert (last(chat), recorder.pending_requests) == (1, 0)


@pytest.mark.parametrize("way", ["close", "with", "drop", "never"])
def test_stream_left_early(address, way):
    """Closed, left by its block, dropped, or never read: cancelled, judged, and the connection is free again."""
    with openai.OpenAI(**address, max_retries=0) as client:
        recorder = TurnRecorder()
        chat = watch(client, Engine.load("chat"), session_id="c-1", recorder=recorder)
        stream = chat.chat.completions.create(**ask("Tell me about rivers.", stream=True))
        assert recorder.pending_requests == 1
        assert isinstance(chat.peek(), Decision)
        assert last(chat) is None
        if way != "never":
            next(stream)
        if way == "with":
            with stream as same:
                assert next(same).choices
        elif way == "close" or way == "never":
            stream.close()
        response = stream.response
        del stream
        assert last(chat) == 1
        assert recorder.pending_requests == 0
        response.close()


@pytest.mark.capability("issue 4 §1: the asynchronous openai client is watched like the other")
def test_asynchronous_client(address):
    """Stream, whole reply and refusal through AsyncOpenAI."""

    async def talk():
        async with openai.AsyncOpenAI(**address, max_retries=0) as client:
            turns: list[Decision] = []
            chat = watch(client, Engine.load("chat"), session_id="c-1", on_decision=turns.append)
            stream = await chat.chat.completions.create(**ask(QUESTIONS[0]), **STREAMED)
            chunks = [chunk async for chunk in stream]
            assert chunks[-1].usage.completion_tokens == 12
            await chat.chat.completions.create(**ask(QUESTIONS[0]))
            with pytest.raises(openai.BadRequestError):
                await chat.chat.completions.create(**ask("word " * 600))
            async with await chat.chat.completions.create(**ask("Hello", stream=True)) as early:
                await anext(early)
            return turns

    decisions = asyncio.run(talk())
    assert [decision.turn_id for decision in decisions] == [1, 2, 3, 4]
    assert [decision.fired for decision in decisions] == [(), (), ("context-overflow",), ()]


@pytest.mark.capability("issue 4 §1: telemetry never kills the reply: whatever fails is logged")
def test_telemetry_never_kills_the_reply(caplog):
    """An engine that raises, a callback that raises, an id that never works: the reply arrives, a line is logged."""
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **request: body)))
    engine = Engine.load("chat")
    broken = SimpleNamespace(evaluate=lambda turn: 1 // 0, peek=lambda turn: 1 // 0)

    def raising(decision):
        raise RuntimeError("the host's own")

    for chat in (
        watch(client, broken, session_id="c-1"),  # type: ignore[arg-type]
        watch(client, engine, session_id="c-1", on_decision=raising),
        watch(client, engine, session_id=7),  # type: ignore[arg-type]
    ):
        with caplog.at_level(logging.WARNING, logger="stabilitykit"):
            assert chat.chat.completions.create(messages=[]) is body
            assert chat.peek() is None or chat.decision is not None
    assert [line.split("error=")[1] for line in caplog.messages] == ["ZeroDivisionError", "RuntimeError", "TurnError"]


def test_two_requests_at_once():
    """A regenerated answer that overtakes the first: both are judged."""
    chunks = [{"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}]
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **request: iter(chunks))))
    decisions: list[Decision] = []
    chat = watch(client, Engine.load("chat"), session_id="c-1", on_decision=decisions.append)
    first, second = chat.chat.completions.create(), chat.chat.completions.create()
    assert (list(second), list(first)) == (chunks, chunks)
    assert [decision.turn_id for decision in decisions] == [1, 2]


class _Later:
    """An asynchronous client that gives what it was given."""

    def __init__(self, reply):
        self.reply = reply
        self.chat = SimpleNamespace(completions=self)

    async def create(self, **_):
        return self.reply


async def _answers():
    yield {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}


def _later(reply):
    recorder = TurnRecorder()
    return recorder, watch(_Later(reply), Engine.load("chat"), session_id="c-1", recorder=recorder)


@pytest.mark.parametrize("way", ["cancelled", "closed", "stream dropped"])
def test_request_that_never_starts(way):
    """Cancelled before its first step, closed unawaited, or a stream never iterated: no call is left open."""

    async def talk():
        recorder, chat = _later(_answers())
        for _ in range(3):
            request = chat.chat.completions.create(messages=[])
            if way == "cancelled":
                task = asyncio.create_task(request)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            elif way == "closed":
                request.close()
            else:
                stream = await request
                assert recorder.pending_requests == 1
                del stream
            assert (len(chat._calls), recorder.pending_requests) == (0, 0)

    asyncio.run(talk())


def test_asynchronous_stream_without_close():
    """An async generator is closed by its own `aclose`."""

    async def talk():
        recorder, chat = _later(_answers())
        async with await chat.chat.completions.create(messages=[]) as stream:
            assert len([chunk async for chunk in stream]) == 1
        assert (last(chat), recorder.pending_requests) == (1, 0)

    asyncio.run(talk())


class _Hostile:
    """A reply that raises at every look at it."""

    def __getattr__(self, name):
        raise RuntimeError("no")


def test_hostile_replies():
    """A reply that raises when it is looked at, and a stream that cannot be closed, reach the host as they are."""
    replies = [_Hostile(), iter([{"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}])]
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: replies.pop(0))))
    recorder = TurnRecorder()
    chat = watch(client, Engine.load("chat"), session_id="c-1", recorder=recorder)
    hostile = replies[0]
    assert chat.chat.completions.create(messages=[]) is hostile
    assert recorder.pending_requests == 0
    with chat.chat.completions.create(messages=[]) as stream:
        assert len(list(stream)) == 1
    assert last(chat) == 2


def test_a_copy_of_a_watched_client():
    """``copy`` asks for names before there is anything to pass them on to."""
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: {})), name="mine")
    watched = copy.copy(watch(client, Engine.load("chat"), session_id="c-1"))
    assert (watched.name, copy.copy(watched.chat).completions.create()) == ("mine", {})

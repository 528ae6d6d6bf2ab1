"""A real application behind the middleware, driven by the decisions of real packs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from stabilitykit import Engine, Turn
from stabilitykit.integrations.asgi import DegradedReplies, session_header
from stabilitykit.integrations.gate import Gate
from stabilitykit.sources.openai import TurnRecorder

httpx = pytest.importorskip("httpx")

PACK = """
stabilitykit: 1
pack: asking
rules:
  - {rule: full, when: kv_usage_ratio > 90 %, do: [{refuse_new: {retry_after_s: 30 s}}], tags: [sandbox]}
  - {rule: busy, when: itl_ms > 80 ms, do: [{throttle: {max_concurrency: 1}}], tags: [sandbox]}
  - {rule: down, when: "error in {server}", do: [{canned_reply: {name: sorry}}], tags: [sandbox]}
machine:
  initial: healthy
  states: [{state: healthy}, {state: broken, while: [{switch_model: {to: light}}]}]
  transitions: [{from: healthy, to: broken, when: any}, {from: broken, to: healthy, when: none}]
"""
REPLIES = {"sorry": "Try again in a minute.", "default": "Later."}


class Clock:
    """Stands until it is moved."""

    now = 1_000.0

    def __call__(self):
        """Tell the time."""
        return self.now


class Host:
    """A chat backend: an application that evaluates each turn, the middleware around it, and a client."""

    def __init__(self, tmp_path, **more):
        path = tmp_path / "asking.yaml"
        path.write_text(PACK, encoding="utf-8")
        self.engine, self.clock = Engine.load(str(path)), Clock()
        self.gate = Gate(clock=self.clock, **more)
        self.turn, self.status, self.pieces = {}, 200, ["Bon", "jour"]
        self.served, self.go = 0, asyncio.Event()
        self.came: asyncio.Queue[str] = asyncio.Queue()
        self.routes = [Route("/v1/chat/completions", self.chat, methods=["POST"])]
        self.app = DegradedReplies(
            Starlette(routes=self.routes), self.gate, replies=REPLIES, wall=lambda: 1_700_000_000.0
        )
        self.go.set()

    async def chat(self, request):
        """Answer in pieces, or fail; the turn is judged before the reply begins."""
        session = request.headers["x-session-id"]
        self.served += 1
        self.came.put_nowait(session)
        await self.go.wait()
        if self.turn:
            self.gate.note(self.engine.evaluate(Turn(session_id=session, **self.turn)))
        if self.status == 0:
            raise RuntimeError("the server has gone")
        if self.status != 200:
            return JSONResponse({"error": "no"}, self.status)

        async def pieces():
            for piece in self.pieces:
                yield piece

        return StreamingResponse(pieces(), media_type="text/event-stream", headers={"X-Downgraded": "false"})

    async def ask(self, session, *, tenant="", **body):
        """Send one request."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            headers = {"X-Session-Id": session, "Authorization": tenant}
            return await client.post("/v1/chat/completions", json={"model": "big", **body}, headers=headers)


@pytest.mark.capability("issue 5 §6: ASGI: refuse_new is 429 with Retry-After for new conversations, for its time only")
def test_refuse_new(tmp_path):
    """A known conversation goes on, a new one is told how long to wait, and after that time it is served."""

    async def run():
        host = Host(tmp_path)
        assert (await host.ask("old")).status_code == 200
        host.gate.note(host.engine.observe(replica="r1", timestamp_s=1.0, kv_usage_ratio=0.95))
        refused = await host.ask("new")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert (refused.headers["x-downgraded"], refused.json()["error"]["code"]) == ("true", "rate_limited")
        assert (await host.ask("old")).status_code == 200
        host.clock.now += 29.5
        assert (await host.ask("new")).headers["retry-after"] == "1"
        host.clock.now += 1.0
        assert (await host.ask("new")).status_code == 200
        assert host.served == 3

    asyncio.run(run())


def test_two_tenants(tmp_path):
    """One tenant's conversation is answered from the shelf and throttled; the other's of its id is served."""

    async def run():
        host = Host(tmp_path)
        host.app = DegradedReplies(
            Starlette(routes=host.routes), host.gate, replies=REPLIES, tenant_of=session_header("authorization")
        )
        host.gate.note(host.engine.evaluate(Turn(session_id="c-1", tenant="one", error="server")))
        asked = [await host.ask("c-1", tenant=tenant) for tenant in ("two", "one")]
        assert [reply.headers.get("x-stability-state") for reply in asked] == [None, "broken"]
        assert host.served == 1
        host.turn = {"tenant": "one", "itl_ms": 100.0}
        await host.ask("c-1", tenant="one")
        host.go.clear()
        first = asyncio.create_task(host.ask("c-1", tenant="one"))
        while host.served < 3:
            await host.came.get()
        assert (await host.ask("c-1", tenant="one")).status_code == 429
        host.go.set()
        assert (await first).status_code == (await host.ask("c-1", tenant="two")).status_code == 200

    asyncio.run(run())


@pytest.mark.capability("issue 5 §6: ASGI: throttle is 429 for requests of a conversation over its limit")
def test_throttle(tmp_path):
    """Of two requests at once the second is refused; other conversations and later requests are served."""

    async def run():
        host = Host(tmp_path)
        host.turn = {"itl_ms": 100.0}
        await host.ask("c-1")
        host.go.clear()
        first = asyncio.create_task(host.ask("c-1"))
        assert [await host.came.get(), await host.came.get()] == ["c-1", "c-1"]
        second = await host.ask("c-1")
        other = asyncio.create_task(host.ask("c-2"))
        assert await host.came.get() == "c-2"
        host.go.set()
        assert (second.status_code, second.headers["retry-after"]) == (429, "1")
        assert second.headers["x-stability-state"] == "broken"
        assert ((await first).status_code, (await other).status_code) == (200, 200)
        assert (await host.ask("c-1")).status_code == 200

    asyncio.run(run())


@pytest.mark.capability("issue 5 §6: degraded replies carry X-Downgraded: true and X-Stability-State, streams too")
def test_headers(tmp_path):
    """Only degraded replies carry them, once, whatever the application says; the stream comes piece by piece."""

    async def run():
        host = Host(tmp_path)
        healthy = await host.ask("c-1")
        assert healthy.headers["x-downgraded"] == "false"
        assert "x-stability-state" not in healthy.headers
        host.turn = {"itl_ms": 100.0}
        await host.ask("c-1")
        host.turn = {}
        degraded = await host.ask("c-1")
        assert degraded.headers.get_list("x-downgraded") == ["true"]
        assert (degraded.headers["x-stability-state"], degraded.text) == ("broken", "Bonjour")
        host.turn = {"itl_ms": 10.0}
        await host.ask("c-1")
        host.turn = {}
        assert "x-stability-state" not in (await host.ask("c-1")).headers

    asyncio.run(run())


@pytest.mark.capability("issue 5 §6: a canned reply answers in place of one that failed, whole or as a stream")
@pytest.mark.parametrize("status", [503, 0])
def test_canned_in_place_of_a_failure(tmp_path, status):
    """What the application answers with 5xx, or not at all, is replaced; TurnRecorder can read what the client gets."""

    async def run():
        host = Host(tmp_path)
        host.turn, host.status = {"error": "server"}, status
        whole = await host.ask("c-1")
        assert (whole.status_code, whole.headers["x-downgraded"]) == (200, "true")
        assert whole.headers["x-stability-state"] == "broken"
        body = whole.json()
        assert (body["choices"][0]["message"]["content"], body["model"]) == (REPLIES["sorry"], "big")
        assert body["created"] == 1_700_000_000
        stream = await host.ask("c-2", stream=True)
        assert stream.headers["content-type"] == "text/event-stream"
        with TurnRecorder().request("c-2") as call:
            list(call.watch([stream.content]))
        assert (call.turn().finish_reason, call.turn().error) == ("stop", "none")
        texts = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: {")]
        assert "".join(t["choices"][0]["delta"].get("content", "") for t in texts) == REPLIES["sorry"]

    asyncio.run(run())


def test_canned_for_the_next_request(tmp_path):
    """A decision that comes after the reply has begun answers the next request, once, without the application."""

    async def run():
        host = Host(tmp_path)
        await host.ask("c-1")
        host.gate.note(host.engine.evaluate(Turn(session_id="c-1", error="server")))
        assert (await host.ask("c-1")).json()["choices"][0]["message"]["content"] == REPLIES["sorry"]
        assert host.served == 1
        assert (await host.ask("c-1")).text == "Bonjour"

    asyncio.run(run())


@pytest.mark.parametrize("status", [500, 0])
def test_a_failure_nobody_decided_on_stays_one(tmp_path, status):
    """Without a decision the application's own 5xx, or its exception, reaches the client."""

    async def run():
        host = Host(tmp_path)
        host.status = status
        if status == 0:
            with pytest.raises(RuntimeError, match="gone"):
                await host.ask("c-1")
        else:
            assert ((await host.ask("c-1")).status_code, (await host.ask("c-1")).json()) == (500, {"error": "no"})
        host.status = 200
        assert (await host.ask("c-1")).status_code == 200

    asyncio.run(run())


def test_a_text_that_is_not_there(tmp_path, caplog):
    """Neither the name nor a default: the application answers, and the log says which text is missing."""

    async def run():
        host = Host(tmp_path)
        host.app = DegradedReplies(Starlette(routes=host.routes), host.gate)
        host.gate.note(host.engine.evaluate(Turn(session_id="c-1", error="server")))
        assert (await host.ask("c-1")).text == "Bonjour"

    asyncio.run(run())
    assert "name=sorry" in caplog.text


def test_connections_that_pass_untouched(caplog):
    """Other kinds than HTTP, requests of no conversation, and a reader that fails go to the application as they are."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], receive, send))

    async def receive():
        return {}

    async def send(message):
        return None

    def bad(scope):
        raise KeyError("session")

    async def run():
        for kind, reader in (("lifespan", None), ("websocket", None), ("http", None), ("http", bad)):
            scope = {"type": kind, "headers": []}
            await DegradedReplies(app, Gate(), session_of=reader)(scope, receive, send)

    asyncio.run(run())
    assert seen == [(kind, receive, send) for kind in ("lifespan", "websocket", "http", "http")]
    assert "error=KeyError" in caplog.text


def test_session_header():
    """The header's name is read as HTTP reads it, without regard to case."""
    scope = {"type": "http", "headers": [(b"X-Chat", b"c-9")]}
    assert (session_header("x-chat")(scope), session_header()(scope)) == ("c-9", None)


def exchange(app, scope, messages):
    """Give what an application sends; after the given messages the client has gone."""
    sent, left = [], iter(messages)

    async def receive():
        return next(left, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "http", "method": "POST", "path": "/", "headers": [], **scope}, receive, send))
    return sent


async def plain(scope, receive, send):
    """Answer without looking."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("session", [["c-1"], {"id": 1}, {1}])
def test_a_conversation_that_cannot_be_a_key(session, caplog):
    """The request passes untouched, the log says why."""
    sent = exchange(DegradedReplies(plain, Gate(), session_of=lambda _: session), {}, [])
    assert sent[0]["status"] == 204
    assert "telemetry_failed" in caplog.text


@pytest.mark.parametrize("wall", [lambda: 1 / 0, lambda: float("nan")])
def test_a_wall_clock_that_fails(tmp_path, wall):
    """The prepared text is sent all the same."""
    host = Host(tmp_path)
    host.gate.note(host.engine.evaluate(Turn(session_id="c-1", error="server")))
    app = DegradedReplies(plain, host.gate, replies=REPLIES, wall=wall)
    start, body = exchange(app, {"headers": [(b"x-session-id", b"c-1")]}, [{"type": "http.request", "body": b"{}"}])
    assert (start["status"], json.loads(body["body"])["created"]) == (200, 0)


@pytest.mark.parametrize("end", [[], [{"type": "http.request", "body": b"", "more_body": False}]])
def test_a_body_byte_by_byte(tmp_path, end):
    """A request in a hundred thousand pieces costs no more than its bytes, also where the client goes early."""
    host = Host(tmp_path)
    host.gate.note(host.engine.evaluate(Turn(session_id="c-1", error="server")))
    asked = json.dumps({"model": "m", "stream": True, "messages": "x" * 100_000}).encode()
    pieces = [{"type": "http.request", "body": bytes([octet]), "more_body": True} for octet in asked]
    app = DegradedReplies(plain, host.gate, replies=REPLIES)
    start, body = exchange(app, {"headers": [(b"x-session-id", b"c-1")]}, [*pieces, *end])
    assert (start["status"], body["body"].startswith(b"data: ")) == (200, True)


def test_other_kinds_of_connections():
    """Websockets and the application's life span pass untouched, whatever their messages hold."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], await receive()))

    for kind in ("websocket", "lifespan"):
        exchange(DegradedReplies(app, Gate(), session_of=lambda _: "c-1"), {"type": kind}, [{"type": f"{kind}.x"}])
    assert seen == [("websocket", {"type": "websocket.x"}), ("lifespan", {"type": "lifespan.x"})]


def test_a_request_that_is_cancelled(tmp_path):
    """The client goes while it is served: its place under the limit is free again."""
    host = Host(tmp_path)
    host.gate.note(host.engine.evaluate(Turn(session_id="c-1", itl_ms=100.0)))

    async def gone():
        begun = asyncio.Event()

        async def hang(scope, receive, send):
            begun.set()
            await asyncio.Event().wait()

        app = DegradedReplies(hang, host.gate, session_of=lambda _: "c-1")
        unused: Any = None
        task = asyncio.create_task(app({"type": "http", "headers": []}, unused, unused))
        await begun.wait()
        assert host.gate.enter("c-1").retry_after_s is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(gone())
    assert host.gate.enter("c-1").retry_after_s is None


def test_a_long_failure_is_passed_on():
    """A failed reply that goes on and on is not held back until its end: the client sees its first pieces before."""
    sent: list[Any] = []
    seen: list[int] = []
    receive: Any = None

    async def fail_at_length(scope, receive, send):
        await send({"type": "http.response.start", "status": 503, "headers": []})
        for _ in range(40):
            await send({"type": "http.response.body", "body": b"no", "more_body": True})
            seen.append(len(sent))
        await send({"type": "http.response.body", "body": b""})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(b"x-session-id", b"c-1")]}
    asyncio.run(DegradedReplies(fail_at_length, Gate())(scope, receive, send))
    assert (seen[0], seen[-1], len(sent)) == (0, 41, 42)
    assert sent[0]["status"] == 503

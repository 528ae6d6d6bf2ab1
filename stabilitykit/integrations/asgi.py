"""An ASGI middleware that carries out what decisions ask of replies: 429, a prepared text, and what the client is told.

It needs no package: an ASGI application is a function. What the application streams is passed on as it comes.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from stabilitykit.integrations.canned import Asked, canned_completion, canned_events
from stabilitykit.integrations.gate import Admission, Gate
from stabilitykit.integrations.telling import tell

__all__ = ["DegradedReplies", "session_header"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MAX_BODY = 1 << 20
"""Bytes of a request read to see whether it asks for a stream, when a prepared text answers it."""

_MAX_HELD = 16
"""Messages of a reply of status 5xx that are held back until it is at its end: such replies are short."""


def session_header(name: str = "x-session-id") -> Callable[[Scope], str | None]:
    """Give a reader of the conversation's id from a header of the request."""
    wanted = name.lower().encode()

    def read(scope: Scope) -> str | None:
        return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted), None)

    return read


class DegradedReplies:
    """Wraps an application; requests of other kinds than HTTP, and of no conversation, pass untouched.

    ====================  ==========================================================================================
    decision              reply
    ====================  ==========================================================================================
    ``refuse_new``        429 with ``Retry-After``, for a conversation that the gate has not seen
    ``throttle``          429 with ``Retry-After``, for a request over the conversation's limit
    ``canned_reply``      200 with the prepared text, as the request asks, a completion or a stream: in place of
                          the reply that has just failed (5xx, an exception) where the decision came with it, else
                          of the next
    all that degrade      each of the above, ``switch_model`` and a rewrite of the context: the reply carries
                          ``X-Downgraded: true`` and ``X-Stability-State``
    ====================  ==========================================================================================

    Parameters
    ----------
    app
        The application.
    gate
        Is told every decision (``gate.note``).
    replies
        Prepared texts by name; a name that is not there is answered by the one called ``default``, and without that by
        the application.
    session_of
        Gives the conversation of a request from its ASGI scope; None: it belongs to none.
    tenant_of
        Gives the tenant, as its Turns have it; take it from what the request was authenticated with. None: the default.
    wall
        Seconds since 1970, for the field ``created`` of a prepared reply.
    """

    def __init__(
        self,
        app: App,
        gate: Gate,
        *,
        replies: Mapping[str, str] | None = None,
        session_of: Callable[[Scope], str | None] | None = None,
        tenant_of: Callable[[Scope], str | None] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._app, self._gate, self._wall = app, gate, wall
        self._replies = dict(replies or {})
        self._session_of = session_of or session_header()
        self._tenant_of = tenant_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        found = self._conversation(scope) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        session_id, tenant = found
        admission = self._gate.enter(session_id, tenant=tenant)
        if admission.retry_after_s is not None:
            await _refuse(send, admission, admission.retry_after_s)
        elif (text := self._text(admission.canned)) is not None:
            await self._answer(text, admission.state, await _body(receive), send)
        else:
            await self._pass(session_id, tenant, admission, scope, receive, send)

    def _conversation(self, scope: Scope) -> tuple[str, str] | None:
        try:
            session_id = self._session_of(scope)
            tenant = self._tenant_of(scope) if self._tenant_of is not None else None
            found = None if session_id is None else (session_id, tenant or "")
            hash(found)  # what cannot be a key is no conversation
            return found
        except Exception as error:
            tell("telemetry_failed", where="asgi", error=type(error).__name__)
            return None

    def _created(self) -> int:
        try:
            return int(self._wall())
        except Exception as error:
            tell("telemetry_failed", where="asgi", error=type(error).__name__)
            return 0

    def _text(self, name: str | None) -> str | None:
        if name is None:
            return None
        text = self._replies.get(name, self._replies.get("default"))
        if text is None:
            tell("canned_reply_missing", name=name)
        return text

    async def _pass(
        self, session_id: str, tenant: str, admission: Admission, scope: Scope, receive: Receive, send: Send
    ) -> None:
        reply = _Reply(receive, send, admission.state)
        failure: Exception | None = None
        try:
            await self._app(scope, reply.receive, reply.send)
        except Exception as error:
            failure = error
        finally:
            if admission.canned is None:
                self._gate.leave(session_id, tenant=tenant)
        canned = None if reply.is_begun else self._gate.take_canned(session_id, tenant=tenant)
        if (text := self._text(canned)) is not None:
            if failure is not None:
                tell("reply_replaced", error=type(failure).__name__)
            await self._answer(text, self._gate.state(session_id, tenant=tenant), await reply.request(), send)
            return
        await reply.release()
        if failure is not None:
            raise failure

    async def _answer(self, text: str, state: str, body: bytes, send: Send) -> None:
        asked = Asked.from_body(body)
        kind, render = (
            (b"text/event-stream", canned_events) if asked.is_stream else (b"application/json", canned_completion)
        )
        reply = render(text, asked.model, self._created())
        await _reply(send, 200, [(b"content-type", kind), *_said(state)], reply)


class _Reply:
    """A reply on its way, passed on as it comes; one of status 5xx is held back, for a prepared text may replace it."""

    def __init__(self, receive: Receive, send: Send, state: str) -> None:
        self._receive, self._send, self._state = receive, send, state
        self._failed: list[Message] = []
        self._asked, self._is_asked = bytearray(), False
        self.is_begun = False

    async def receive(self) -> Message:
        message = await self._receive()
        if len(self._asked) < _MAX_BODY:
            self._asked += message.get("body", b"")
        self._is_asked = _is_last(message)
        return message

    async def request(self) -> bytes:
        """Give the body of the request, whether or not the application has read it."""
        return bytes(self._asked if self._is_asked else self._asked + await _body(self._receive))

    async def send(self, message: Message) -> None:
        if not self.is_begun and (self._failed or message.get("status", 0) >= 500):
            self._failed.append(message)
            if len(self._failed) > _MAX_HELD:
                await self.release()
            return
        await self._pass(message)

    async def release(self) -> None:
        """Send what was held back."""
        held, self._failed = self._failed, []
        for message in held:
            await self._pass(message)

    async def _pass(self, message: Message) -> None:
        self.is_begun = True
        if message["type"] == "http.response.start" and self._state:
            said = _said(self._state)
            names = {name for name, _ in said}
            kept = [(n, v) for n, v in message.get("headers", ()) if n.lower() not in names]
            message = {**message, "headers": [*kept, *said]}
        await self._send(message)


def _said(state: str) -> Headers:
    return [(b"x-downgraded", b"true"), (b"x-stability-state", state.encode("latin-1", "replace"))]


async def _refuse(send: Send, admission: Admission, seconds: float) -> None:
    error = {"message": "The service is degraded; retry later.", "type": "overloaded", "code": "rate_limited"}
    wait = str(max(1, math.ceil(seconds))).encode()
    headers = [(b"content-type", b"application/json"), (b"retry-after", wait), *_said(admission.state)]
    await _reply(send, 429, headers, json.dumps({"error": error}).encode())


async def _reply(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive) -> bytes:
    """Read a request's body, up to a bound: what follows is not needed."""
    body = bytearray()
    while len(body) < _MAX_BODY:
        message = await receive()
        body += message.get("body", b"")
        if _is_last(message):
            break
    return bytes(body)


def _is_last(message: Message) -> bool:
    return message["type"] != "http.request" or not message.get("more_body", False)

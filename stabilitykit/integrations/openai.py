"""The openai package's client, watched: every chat completion becomes a Turn, every Turn a Decision.

Nothing of what the client gives is changed, and nothing that goes wrong here reaches the host: it is logged. The
package itself is not imported; any client with ``chat.completions.create`` will do.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from stabilitykit.decision import Decision, Receipt
from stabilitykit.engine import Engine
from stabilitykit.integrations.telling import tell
from stabilitykit.sources.openai import Call, TurnRecorder

__all__ = ["Watched", "watch"]


def watch(
    client: Any,
    engine: Engine,
    *,
    session_id: str,
    tenant: str = "",
    recorder: TurnRecorder | None = None,
    on_decision: Callable[[Decision], Any] | None = None,
) -> Watched:
    """Give a stand-in for a client, for one conversation.

    Parameters
    ----------
    client
        An ``OpenAI`` or ``AsyncOpenAI`` (or a client of their kind).
    engine
        Decides on every completion when it is at its end.
    session_id, tenant
        The conversation.
    recorder
        Shared by the conversations of one server, for ``pending_requests`` (None: one of its own).
    on_decision
        Told every decision; ``Watched.decision`` keeps the latest.

    Examples
    --------
    >>> from types import SimpleNamespace as Client
    >>> body = {"choices": [{"message": {"content": "Salut"}, "finish_reason": "stop"}]}
    >>> client = Client(chat=Client(completions=Client(create=lambda **request: body)))
    >>> chat = watch(client, Engine.load("chat"), session_id="c-1")
    >>> chat.chat.completions.create(messages=[]) is body, chat.decision.state
    (True, 'healthy')
    """
    return Watched(client, engine, session_id, tenant, recorder or TurnRecorder(), on_decision)


class Watched:
    """A client whose ``chat.completions.create`` is watched; everything else is the client's own.

    Not watched: ``with_raw_response``, ``parse`` and the ``stream`` helper, which send requests of their own; copies of
    the client (``with_options``).

    Attributes
    ----------
    decision
        The latest decision on this conversation; ``None`` before the first.
    applied
        Set it to the receipt of what the host carried out of that decision; it goes with the next turn.
    """

    def __init__(
        self,
        client: Any,
        engine: Engine,
        session_id: str,
        tenant: str,
        recorder: TurnRecorder,
        on_decision: Callable[[Decision], Any] | None,
    ) -> None:
        self.decision: Decision | None = None
        self.applied: Receipt | None = None
        self._client = client
        self._engine = engine
        self._session_id = session_id
        self._tenant = tenant
        self._recorder = recorder
        self._on_decision = on_decision
        self._calls: list[Call] = []
        self.chat = _Passing(client.chat, completions=_Passing(client.chat.completions, create=self._create))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # ``copy`` asks for them before there is a client
            raise AttributeError(name)
        return getattr(self._client, name)

    def peek(self) -> Decision | None:
        """Tell what would be decided now, of an answer that is still awaited too: whether its stream hangs."""
        try:
            return self._engine.peek(self._calls[-1].turn(tenant=self._tenant)) if self._calls else self.decision
        except Exception as error:
            tell("telemetry_failed", where="peek", error=type(error).__name__)
            return None

    def _create(self, *args: Any, **kwargs: Any) -> Any:
        call = self._recorder.request(self._session_id, kwargs)
        self._calls.append(call)
        try:
            reply = self._client.chat.completions.create(*args, **kwargs)
        except BaseException as error:
            self._give_up(call, error)
            raise
        return self._later(call, reply) if inspect.isawaitable(reply) else self._received(call, reply)

    def _later(self, call: Call, reply: Any) -> Any:
        """Give the coroutine of a request that is sent when it starts; one that never does leaves nothing behind."""
        self._calls.remove(call)
        call.hold()
        awaited = self._awaited(call, reply)
        if inspect.iscoroutine(reply):  # the client's own would not be missed by anybody: no warning of a second one
            weakref.finalize(awaited, reply.close).atexit = False
        return awaited

    async def _awaited(self, call: Call, reply: Any) -> Any:
        self._calls.append(call)
        call.send()
        try:
            return self._received(call, await reply)
        except BaseException as error:
            self._give_up(call, error)
            raise

    def _received(self, call: Call, reply: Any) -> Any:
        kind = type(reply)  # where Python itself looks for them; an object's own `__getattr__` may raise anything
        if hasattr(kind, "__anext__"):
            return _AsyncStream(self, call, reply)
        if hasattr(kind, "__next__"):
            return _Stream(self, call, reply)
        call.response(reply)
        call.end()
        self._judge(call)
        return reply

    def _give_up(self, call: Call, error: BaseException) -> None:
        call.fail(error)
        call.end()
        self._judge(call)

    def _judge(self, call: Call) -> None:
        """Decide on an ended call, once."""
        try:
            self._calls.remove(call)
        except ValueError:  # it is judged already
            return
        try:
            if call.faults:
                tell("reply_faults", faults=[fault.detail for fault in call.faults])
            applied, self.applied = self.applied, None
            self.decision = self._engine.evaluate(call.turn(tenant=self._tenant, applied=applied))
            if self._on_decision is not None:
                self._on_decision(self.decision)
        except Exception as error:
            tell("telemetry_failed", where="evaluate", error=type(error).__name__)


class _Passing:
    """Passes on every attribute but some."""

    def __init__(self, inner: Any, **own: Any) -> None:
        self._inner = inner
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


class _Stream(_Passing):
    """A stream of the client's, iterated under watch; left early, it is judged when it is closed or dropped."""

    def __init__(self, watched: Watched, call: Call, stream: Any) -> None:
        super().__init__(stream)
        self._items = _until_judged(watched, call, stream)
        next(self._items)  # to where it waits for the host: from here on its end is its own `finally`

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._items.close()
        if (close := getattr(self._inner, "close", None)) is not None:
            close()


def _until_judged(watched: Watched, call: Call, stream: Any) -> Generator[Any]:
    try:
        yield None
        yield from call.watch(stream)
    finally:
        watched._give_up(call, GeneratorExit())  # nothing, when the stream has ended


class _AsyncStream(_Passing):
    """The same for an asynchronous client."""

    def __init__(self, watched: Watched, call: Call, stream: Any) -> None:
        super().__init__(stream)
        self._watched, self._call = watched, call
        self._items = _until_judged_async(watched, call, stream)

    def __del__(self) -> None:  # never iterated, the generator has no end of its own
        self._watched._give_up(self._call, GeneratorExit())

    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._items)

    async def __aenter__(self) -> _AsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._items.aclose()
        self._watched._give_up(self._call, GeneratorExit())
        close = getattr(self._inner, "close", None) or getattr(self._inner, "aclose", None)
        if close is not None and inspect.isawaitable(closing := close()):
            await closing


async def _until_judged_async(watched: Watched, call: Call, stream: Any) -> AsyncGenerator[Any]:
    try:
        async with contextlib.aclosing(call.awatch(stream)) as items:
            async for item in items:
                yield item
    finally:
        watched._give_up(call, GeneratorExit())

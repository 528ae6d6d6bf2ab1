"""One request and what came back: fed by the host, read at any moment, never an exception into the host's reply."""

from __future__ import annotations

import functools
import json
import math
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs
import numpy as np

from stabilitykit.compiled.inputs import KEPT_OF_SENT
from stabilitykit.decision import Fault
from stabilitykit.sources.openai.arrivals import Arrivals
from stabilitykit.sources.openai.fields import fields, number
from stabilitykit.sources.openai.outcomes import error_of
from stabilitykit.sources.openai.reply import Piece, Reply
from stabilitykit.sources.openai.sse import SseDecoder
from stabilitykit.turn import Turn

__all__ = ["LONGEST_BODY", "Call", "Open"]

LONGEST_BODY = 16 << 20
"""Bytes of a whole reply that is given as text: 20 candidates of each of 10,000 tokens. More would hold the host up."""

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


def _quiet(method: Callable[Concatenate[Call, P], R]) -> Callable[Concatenate[Call, P], R | None]:
    """Turn what goes wrong inside into a fault: a reply must not fail because it is watched."""

    @functools.wraps(method)
    def quiet(self: Call, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self._reply.fault(f"recorder: {type(error).__name__}")
            return None

    return quiet


@attrs.frozen
class Open:
    """What the calls of one recorder share.

    Parameters
    ----------
    clock
        Seconds of a steady clock.
    replica
        Who serves them.
    window
        Context window in tokens, where the host knows it.
    calls
        Those that are not answered; one that is dropped unended leaves by itself.
    """

    clock: Callable[[], float]
    replica: str | None
    window: float | None
    calls: weakref.WeakSet[Call]


class Call:
    """One request; made by `TurnRecorder.request`.

    Feed it one of: a whole reply (``response``), parsed chunks (``chunk``), raw bytes of a stream (``feed``), or let it
    watch a stream that the host iterates (``watch``, ``awatch``). Then ``turn()`` gives the Turn.

    Every ``at`` is a time of the recorder's clock, in seconds; without it the clock is asked.
    """

    def __init__(
        self,
        shared: Open,
        session_id: str,
        sent_tokens: float | None,
        user_questions: int | None = None,
        *,
        keep_pieces: bool = False,
    ) -> None:
        self.session_id = session_id
        self.is_open = True
        self._shared = shared
        self._sent_tokens = sent_tokens
        self._user_questions = user_questions
        self._arrivals = Arrivals(math.nan)
        self._reply = Reply(self._arrivals, [] if keep_pieces else None)
        self._decoder = SseDecoder()
        self._events = 0
        self._status: float | None = None
        self._is_stream = False
        self._is_done = False

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        self.end()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Bad input that was noticed, the first ones."""
        return tuple(self._reply.faults)

    @property
    def pieces(self) -> Sequence[Piece]:
        """The chunks of a stream that held tokens, with their text; empty unless they were asked for."""
        return self._reply.pieces or ()

    @property
    def stream_age_ms(self) -> float:
        """Milliseconds since the last token, before the first since the request; 0 when the reply is at its end."""
        return self._arrivals.silence_ms(self._time(None)) if self.is_open else 0.0

    def send(self, *, at: float | None = None) -> None:
        """Say that the request goes out now: from here on it is pending, and its times count."""
        self._arrivals.sent_s = self._time(at)
        self._shared.calls.add(self)

    def hold(self) -> None:
        """Take the request back: it goes out later (``send``), or never."""
        self._shared.calls.discard(self)

    @_quiet
    def response(self, body: object, *, status: float | None = None, at: float | None = None) -> None:
        """Take a whole reply in: parsed, an object, or JSON text; an error body together with its HTTP status.

        Text of more than 16 MiB is not read (``LONGEST_BODY``): a fault.
        """
        try:
            self._arrivals.event(self._time(at))
            self._status = status = self._http(number(status))
            if isinstance(body, str | bytes | bytearray):
                body = self._whole(body)
            given = fields(body)
            self._reply.take(given, None, status)
            self._reply.is_complete = bool(given)
        finally:
            self.end()

    @_quiet
    def chunk(self, chunk: object, *, at: float | None = None) -> None:
        """Take one parsed chunk of a stream in: a dict or an object."""
        self._is_stream = True
        self._events += 1
        given = fields(chunk)
        if given:
            self._reply.take(given, self._time(at))
        else:
            self._reply.fault(f"chunk {self._events}: no object with fields")

    @_quiet
    def feed(self, data: object, *, at: float | None = None) -> None:
        """Take raw bytes of a stream in, or text, cut anywhere."""
        self._is_stream = True
        if not isinstance(data, str | bytes | bytearray | memoryview):  # bytes(n) would be n zeros
            self._reply.fault(f"after byte {self._decoder.offset}: neither bytes nor text")
            return
        overlong, now = self._decoder.overlong, self._time(at)
        for event in self._decoder.feed(data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)):
            self._event(event, now)
        if self._decoder.overlong > overlong:
            self._reply.fault(f"an event before byte {self._decoder.offset} is longer than {self._decoder.limit} bytes")

    @_quiet
    def fail(self, error: BaseException, *, at: float | None = None) -> None:
        """Note what a client raised instead of an answer, or within it; after the answer's end it is none of it."""
        if self.is_open and not self._reply.is_complete:
            word, window, status = error_of(error)
            self._status = self._http(status) if self._status is None else self._status
            self._reply.failed(word, window)

    @_quiet
    def end(self) -> None:
        """Say that nothing more will come; more than once does no harm."""
        if not self.is_open:
            return
        self.is_open = False
        self._shared.calls.discard(self)
        now = self._arrivals.last_s  # what was left came with the last bytes
        for event in self._decoder.end():
            self._event(event, self._time(now))

    def watch(self, stream: Iterable[C], *, lines: bool = False) -> Generator[C]:
        """Iterate a host's stream of chunks, bytes or texts: every item is passed on as it is.

        Parameters
        ----------
        lines
            The items are lines without their ends, as ``iter_lines`` of HTTP clients gives them.
        """
        self._is_stream = True
        try:
            for item in stream:
                self._see(item, lines)
                yield item
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.end()

    async def awatch(self, stream: AsyncIterable[C], *, lines: bool = False) -> AsyncGenerator[C]:
        """Iterate an asynchronous stream; as ``watch``."""
        self._is_stream = True
        try:
            async for item in stream:
                self._see(item, lines)
                yield item
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.end()

    def turn(self, **more: Any) -> Turn:
        """Give the Turn so far: of an open reply its silence, of an ended one everything.

        Parameters
        ----------
        more
            Further fields of the Turn, such as ``turn_id`` or ``embedding``; they win.
        """
        found = self._signals() or {}
        known = {name: value for name, value in found.items() if value is not None}
        return Turn(session_id=self.session_id, **{**known, **more})

    @_quiet
    def _see(self, item: object, lines: bool) -> None:
        if isinstance(item, str | bytes | bytearray):
            self.feed(item if isinstance(item, str) else bytes(item))
            if lines:
                self.feed(b"\n")
        else:
            self.chunk(item)

    def _time(self, at: float | None) -> float:
        """Give a time, or ask the clock for it; NaN with a fault where that is none."""
        given = number(at)
        if given is not None:
            return given
        try:
            given = number(self._shared.clock())
        except Exception as error:  # the host's function: its mistakes must not cost the reply
            self._reply.fault(f"clock: {type(error).__name__}")
            return math.nan
        if given is None:
            self._reply.fault("clock: no finite number")
            return math.nan
        return given

    def _http(self, status: float | None) -> float | None:
        if status is not None and not 100 <= status <= 599:
            self._reply.fault("status: outside 100 to 599", "http_status")
            return None
        return status

    def _event(self, event: bytes, now_s: float) -> None:
        self._events += 1
        if self._is_done:  # the answer was at its end: this is none of it
            self._reply.fault(f"event {self._events} before byte {self._decoder.offset}: after [DONE]")
            return
        if event.strip() == b"[DONE]":
            self._is_done = self._reply.is_complete = True
            return
        body = self._parsed(event, f"event {self._events} before byte {self._decoder.offset}")
        if body is not None:
            self._reply.take(fields(body), now_s)

    def _whole(self, body: str | bytes | bytearray) -> dict[str, Any] | None:
        if len(body) > LONGEST_BODY:
            self._reply.fault(f"the reply: longer than {LONGEST_BODY} bytes")
            self._reply.failed(None, None)  # nobody knows what it was
            return None
        return self._parsed(bytes(body, "utf-8", "replace") if isinstance(body, str) else bytes(body), "the reply")

    def _parsed(self, data: bytes, where: str) -> dict[str, Any] | None:
        """Parse JSON; what cannot be read becomes a located fault, and says nothing of its text."""
        try:
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as error:
                self._reply.fault(f"{where}: invalid UTF-8 at {error.start}")
                text = data.decode("utf-8", "replace")
            body = json.loads(text)
        except json.JSONDecodeError as error:
            self._reply.fault(f"{where}: {error.msg} at {error.pos}")
            return None
        except (ValueError, RecursionError) as error:
            self._reply.fault(f"{where}: {type(error).__name__}")
            return None
        if not isinstance(body, dict):
            self._reply.fault(f"{where}: no JSON object")
            return None
        return body

    @_quiet
    def _signals(self) -> dict[str, Any]:
        reply, arrivals, shared = self._reply, self._arrivals, self._shared
        found: dict[str, Any] = {
            "replica": shared.replica,
            "model": reply.model,
            "sent_tokens": self._sent_tokens,
            "user_questions": self._user_questions,
            "context_window_tokens": reply.window or shared.window,
            "pending_requests": len(shared.calls),
            "http_status": self._status,
        }
        if self.is_open:
            found["ttft_ms"] = arrivals.ttft_ms()
            found["stream_age_ms"] = self.stream_age_ms
            found["output_tokens"] = max(arrivals.chunks, reply.said.get("output_tokens", 0.0), arrivals.counted_tokens)
            return found
        found.update(reply.said, **self._latencies(), **self._arrays())
        found["finish_reason"] = reply.finish_reason
        found["error"] = self._error()
        found["output_tokens"] = self._output_tokens()
        found["is_history_truncated"] = self._is_truncated()
        if reply.is_truncated:
            found["session_tokens"] = reply.held_tokens
        return found

    def _error(self) -> str | None:
        if self._reply.is_failed:
            return self._reply.error
        if self._reply.is_complete:
            return "none"
        # It died in the middle of the answer, or what it sent is none; nothing at all is nobody's fault.
        return "server" if self._is_stream or self._arrivals.last_s is not None else None

    def _output_tokens(self) -> float | None:
        told, arrivals = self._reply.said.get("output_tokens"), self._arrivals
        counted = arrivals.counted_tokens if arrivals.is_counted or not self._is_stream else 0.0
        return told if told is not None or not counted else counted

    def _is_truncated(self) -> bool | None:
        """Whether history was dropped: the server's own word, or a prompt that is shorter than the one sent.

        Otherwise nothing is said: the engine compares with the turn before.
        """
        used = self._reply.said.get("input_tokens")
        if self._sent_tokens is not None and used is not None and used < KEPT_OF_SENT * self._sent_tokens:
            return True
        return self._reply.is_truncated

    def _latencies(self) -> dict[str, float | None]:
        """Give the host's own times where there are any, else the server's."""
        reply, arrivals, said = self._reply, self._arrivals, self._reply.said
        output = self._output_tokens()
        visible = output
        if visible is not None:
            visible -= reply.finish_reason == "stop"  # the end mark is a token without a chunk
            visible -= 0.0 if reply.has_reasoning else said.get("reasoning_tokens", 0.0)
        itl = arrivals.itl_ms(visible, is_divisible=not reply.has_choices)
        itl = said.get("itl_ms") if itl is None else itl
        ttft, rt = arrivals.ttft_ms(), arrivals.rt_ms()
        tpot = None
        if rt is not None and ttft is not None and output is not None and output > 1:
            tpot = (rt - ttft) / (output - 1)
        ttft = said.get("ttft_ms") if ttft is None and not self._is_stream else ttft
        rt = said.get("rt_ms") if rt is None else rt
        rate = said.get("decode_tokens_per_s") or (1e3 / itl if itl else None)
        return {"ttft_ms": ttft, "itl_ms": itl, "rt_ms": rt, "tpot_ms": tpot, "decode_tokens_per_s": rate}

    def _arrays(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if top := self._reply.top:
            found["top_token_ids"] = np.array([which for which, _ in top], np.int64)
            found["top_logprobs"] = np.array([value for _, value in top], np.float32)
        if self._reply.output_ids:
            found["output_token_ids"] = np.array(self._reply.output_ids, np.int64)
        return found

"""TurnRecorder: one for each server a host talks to; every request to it becomes a Turn."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from stabilitykit.sources.openai.call import Call, Open
from stabilitykit.sources.openai.fields import number
from stabilitykit.sources.questions import user_questions

__all__ = ["TurnRecorder"]


class TurnRecorder:
    """Records the requests of one host to one server, of any number of conversations, from any number of threads.

    Parameters
    ----------
    replica
        Name of the server, for ``pending_requests`` and its samples.
    clock
        Seconds of a steady clock.
    count_tokens
        Counts the prompt tokens of a request, for ``sent_tokens``; asked before the time of the request is taken.
        A count that is some percent off will do: what servers cut silently is far more.
    context_window_tokens
        The server's context window, where the host knows it.

    Examples
    --------
    >>> ticks = iter([0.0, 0.5, 0.6, 0.7])
    >>> recorder = TurnRecorder(clock=lambda: next(ticks))
    >>> stream = [{"choices": [{"delta": {"content": word}, "finish_reason": end}]} for word, end in
    ...           [("Salut", None), (" !", None), ("", "stop")]]
    >>> with recorder.request("c-1") as call:
    ...     for chunk in call.watch(stream):
    ...         pass
    >>> turn = call.turn()
    >>> turn.ttft_ms, round(turn.itl_ms), turn.finish_reason, turn.error
    (500.0, 100, 'stop', 'none')
    """

    def __init__(
        self,
        *,
        replica: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
        count_tokens: Callable[[Any], float] | None = None,
        context_window_tokens: float | None = None,
    ) -> None:
        self._shared = Open(clock, replica, context_window_tokens, weakref.WeakSet())
        self._count_tokens = count_tokens

    @property
    def pending_requests(self) -> int:
        """Requests sent and not answered."""
        return len(self._shared.calls)

    def request(
        self, session_id: str, request: Any = None, *, at: float | None = None, keep_pieces: bool = False
    ) -> Call:
        """Begin a call at the moment its request is sent.

        Parameters
        ----------
        session_id
            The conversation.
        request
            What is sent (messages, or the whole payload); ``count_tokens`` looks at it, and the question marks of its
            newest user message are counted (``user_questions``). Nothing of it is kept.
        at
            When it was sent, in seconds of the clock.
        keep_pieces
            Keep every chunk of a stream, with its text, as ``Call.pieces``; a recorder keeps no text else.
        """
        sent, problem = None, ""
        if self._count_tokens is not None:
            try:
                sent = number(self._count_tokens(request))
                if sent is not None and sent < 0:
                    sent, problem = None, "count_tokens: negative"
            except Exception as error:  # the host's function: its mistakes must not cost the reply
                problem = f"count_tokens: {type(error).__name__}"
        call = Call(self._shared, session_id, sent, _questions(request), keep_pieces=keep_pieces)
        if problem:
            call._reply.fault(problem, "sent_tokens")
        call.send(at=at)
        return call


def _questions(request: Any) -> int | None:
    try:
        return user_questions(request)
    except Exception:  # a foreign request of an odd shape must not cost the reply: its number is unknown
        return None

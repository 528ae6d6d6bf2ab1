"""One streamed chat completion: a Turn as the recorder makes it, the text for the history, the time of each chunk."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import attrs

from stabilitykit.errors import UsageError
from stabilitykit.sources.openai import Call, TurnRecorder
from stabilitykit.turn import Turn

__all__ = ["Answer", "Client", "Server", "server_of"]

_BLOCK = 1 << 16
_LONGEST_WAIT_S = 10.0
"""No server is waited for longer than this, whatever its Retry-After says."""


@attrs.frozen
class Server:
    """Where requests go.

    Parameters
    ----------
    base
        Scheme and host, without a path of the API.
    model
        Name sent with each request; ``None``: none is sent.
    more
        Further fields of each request.
    key
        Sent as a bearer token.
    timeout_s
        For the connection, and for each wait within a stream.
    """

    base: str
    model: str | None = None
    more: Mapping[str, Any] = attrs.field(factory=dict)
    key: str | None = attrs.field(default=None, repr=False)
    timeout_s: float = 120.0


@attrs.frozen(eq=False)
class Answer:
    """What one request came to.

    Parameters
    ----------
    text
        The answer; "" when there is none.
    sent_ns, end_ns
        When it was sent and over, in ns of a steady clock.
    chunks
        Time and number of tokens of each chunk with text.
    wait_s
        How long the server asks to be left alone.
    faults
        What was wrong with the stream, in words without its text.
    """

    turn: Turn
    text: str
    sent_ns: int
    end_ns: int
    chunks: Sequence[tuple[int, int]]
    wait_s: float = 0.0
    faults: Sequence[str] = ()

    @property
    def is_answered(self) -> bool:
        """Whether there was an answer, whole."""
        return self.turn.error == "none"

    def gaps_ms(self) -> Iterator[float]:
        """Give the gap before each token after the first chunk; that of a chunk of several tokens is divided."""
        for (before, _), (now, tokens) in zip(self.chunks, self.chunks[1:], strict=False):
            yield from [(now - before) / 1e6 / tokens] * tokens


def server_of(url: str) -> str:
    """Give the base of an address, with or without the path of the API.

    Raises
    ------
    UsageError
        No address of a web server.

    Examples
    --------
    >>> server_of("http://127.0.0.1:8000/v1/"), server_of("https://host/openai")
    ('http://127.0.0.1:8000', 'https://host/openai')
    """
    base = url.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
    try:
        parts = urlsplit(base)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        has_host = False
    if not has_host:
        raise UsageError(f"{url}: no address of a server, for example http://127.0.0.1:8000")
    return base


class Client:
    """Asks one server; may be used from any number of threads.

    Parameters
    ----------
    server
        Where requests go.
    recorder
        Makes the Turns; its clock must be ``time.perf_counter``.
    epoch_s
        What is added to that clock for the Turns' ``timestamp_s``.
    """

    def __init__(self, server: Server, recorder: TurnRecorder, epoch_s: float = 0.0) -> None:
        self._server, self._recorder, self._epoch_s = server, recorder, epoch_s
        parts = urlsplit(server.base)
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = parts.hostname or "", parts.port, f"{parts.path}/v1/chat/completions"
        self._headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if server.key:
            self._headers["Authorization"] = f"Bearer {server.key}"

    def ask(
        self, session_id: str, turn_id: int, messages: Sequence[Mapping[str, str]], stop: Event, **more: Any
    ) -> Answer:
        """Send one request and read its answer.

        Parameters
        ----------
        stop
            When it is set, the answer is not read to its end.
        more
            Further fields of this request.
        """
        body = {"messages": list(messages), "stream": True, "stream_options": {"include_usage": True}}
        if self._server.model is not None:
            body["model"] = self._server.model
        payload = json.dumps({**body, **self._server.more, **more}).encode()
        link = self._kind(self._host, self._port, timeout=self._server.timeout_s)
        call: Call | None = None
        reading = _Reading()
        try:
            link.connect()
            call = self._recorder.request(session_id, keep_pieces=True)
            reading.sent_ns = time.perf_counter_ns()
            link.request("POST", self._path, payload, self._headers)
            reading.read(link.getresponse(), call, stop)
        except (OSError, http.client.HTTPException) as error:
            call = self._recorder.request(session_id) if call is None else call
            call.fail(error)
        finally:
            link.close()
        call.end()
        end_s = time.perf_counter()
        told = {} if reading.status is None else {"http_status": float(reading.status)}
        turn = call.turn(turn_id=turn_id, timestamp_s=self._epoch_s + end_s, **told)
        return Answer(
            turn,
            "".join(piece.text for piece in call.pieces),
            reading.sent_ns,
            int(1e9 * end_s),
            [(int(1e9 * piece.at_s), int(piece.tokens or 1)) for piece in call.pieces],
            reading.wait_s,
            [fault.detail for fault in call.faults],
        )


class _Reading:
    """What is read of one response beside what the recorder reads."""

    def __init__(self) -> None:
        self.sent_ns = time.perf_counter_ns()
        self.status: int | None = None
        self.wait_s = 0.0

    def read(self, response: http.client.HTTPResponse, call: Call, stop: Event) -> None:
        self.status = response.status
        if response.status != 200:
            self.wait_s = _wait_s(response)
            call.response(response.read(_BLOCK), status=response.status)
            return
        while not stop.is_set() and (data := response.read1(_BLOCK)):
            call.feed(data)


def _wait_s(response: http.client.HTTPResponse) -> float:
    """Read Retry-After in seconds; a date, or none where the server is full, is one second."""
    told = response.getheader("Retry-After", "")
    if told.strip().isdecimal():
        return min(float(told.strip()[:9]), _LONGEST_WAIT_S)
    return 1.0 if told or response.status in (429, 503) else 0.0

"""A streaming client that knows how long it has been waiting: what a host needs to see a hang."""

from __future__ import annotations

import json
import socket
import time
from types import TracebackType
from typing import Any

__all__ = ["Stream"]


class Stream:
    """One chat completion of a server on loopback.

    Parameters
    ----------
    port
        Where the server listens.
    tokens
        Longest answer.
    """

    def __init__(self, port: int, tokens: int) -> None:
        body = json.dumps(
            {"messages": [{"role": "user", "content": "Tell me about rivers."}], "max_tokens": tokens, "stream": True}
        )
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60.0)
        self._sent = self._last = time.perf_counter()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        self._socket.sendall(f"{head}Content-Type: application/json\r\n\r\n{body}".encode())
        self._buffer = b""
        self._times: list[float] = []
        self._is_open = True

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        now = time.perf_counter()
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                self._times.append(now)
                self._last = now
            if line.startswith(b"data: [DONE]") or not data:
                self._is_open = False
        self._is_open = self._is_open and bool(data)

    def read(self, tokens: int) -> None:
        """Read until so many tokens have come."""
        while self._is_open and len(self._times) < tokens:
            self._receive()

    def read_all(self) -> None:
        """Read to the end and close."""
        while self._is_open:
            self._receive()
        self._socket.close()

    def wait_ms(self, silence: float) -> None:
        """Read on until no token has come for so long."""
        while (left := silence / 1e3 - (time.perf_counter() - self._last)) > 0:
            self._socket.settimeout(left)
            try:
                self._receive()
            except TimeoutError:
                return

    def signals(self) -> dict[str, Any]:
        """Say what a Turn takes: of an open stream its silence, of an ended one its latencies."""
        count = len(self._times)
        if self._is_open:
            return {"stream_age_ms": 1e3 * (time.perf_counter() - self._last), "output_tokens": count}
        gaps = 1e3 * (self._times[-1] - self._times[0]) / (count - 1)
        return {"ttft_ms": 1e3 * (self._times[0] - self._sent), "itl_ms": gaps, "output_tokens": count}

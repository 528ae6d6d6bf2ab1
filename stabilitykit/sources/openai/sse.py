r"""Server-sent events, cut anywhere: bytes in, the data of whole events out, never more held than a limit.

Ollama streams bare JSON lines instead; a line that begins with ``{`` is an event by itself.

References
----------
.. [1] WHATWG, "HTML Living Standard", section 9.2, "Server-sent events".

Examples
--------
>>> decoder = SseDecoder()
>>> decoder.feed(b'data: {"id"'), decoder.feed(b': 1}\r\n\r\ndata: [DO'), decoder.feed(b'NE]\n\n')
([], [b'{"id": 1}'], [b'[DONE]'])
"""

from __future__ import annotations

__all__ = ["LIMIT", "SseDecoder"]

LIMIT = 1 << 20
"""Bytes of one event; the longest seen, a last chunk that lists the request's settings, has some thousands."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Decodes one stream.

    Parameters
    ----------
    limit
        Bytes of one event; a longer one is dropped and counted.

    Attributes
    ----------
    offset
        Bytes taken in so far.
    overlong
        Events dropped because they were longer than the limit.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.offset = 0
        self.overlong = 0
        self._line = bytearray()
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._is_line_dropped = False
        self._is_event_dropped = False
        self._is_after_return = False
        self._is_first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes in; gives the data of the events that they complete."""
        self.offset += len(data)
        if self._is_after_return and data:
            data = data.removeprefix(b"\n")  # the second half of a line end that was cut
            self._is_after_return = False
        if not data:
            return []
        self._is_after_return = data.endswith(b"\r")
        *lines, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[bytes] = []
        for line in lines:
            self._hold(line)
            self._end_line(found)
        self._hold(rest)
        return found

    def end(self) -> list[bytes]:
        """Give the event that the stream ended in: the last one may lack its blank line, or be cut."""
        found: list[bytes] = []
        self._end_line(found)
        self._end_event(found)
        return found

    def _hold(self, part: bytes) -> None:
        self._line_size += len(part)
        if self._is_line_dropped or not part:
            return
        self._line += part
        if self._line_size + self._data_size > self.limit:
            self._is_line_dropped = True
            if self._line.startswith(b"{"):
                self.overlong += 1
            else:
                self._is_event_dropped = True
                self._data.clear()
            self._line.clear()

    def _end_line(self, found: list[bytes]) -> None:
        line, is_blank = bytes(self._line), self._line_size == 0
        self._line.clear()
        self._line_size = 0
        if is_blank:
            return self._end_event(found)
        if self._is_line_dropped:
            self._is_line_dropped = False
            return None
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.startswith(b"{"):
            found.append(line)
        elif line.startswith(b"data:") and not self._is_event_dropped:  # the rest: comments, fields nobody here reads
            self._data.append(line[5:].removeprefix(b" "))
            self._data_size += len(line)
        return None

    def _end_event(self, found: list[bytes]) -> None:
        self.overlong += self._is_event_dropped
        if self._data:
            found.append(b"\n".join(self._data))
        self._data.clear()
        self._data_size = 0
        self._is_event_dropped = False

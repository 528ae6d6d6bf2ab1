"""When tokens came: time to the first, mean gap between tokens, silence; in a few numbers, however long the stream."""

from __future__ import annotations

__all__ = ["Arrivals"]


class Arrivals:
    """Times of one reply, in seconds of one clock.

    A gap is divided by the tokens of the chunk that ends it. A clock that goes back makes one gap unknown, no more.

    Parameters
    ----------
    sent_s
        When the request was sent. NaN, here as in every time that is noted: the clock did not say.

    Attributes
    ----------
    first_s, last_token_s
        When the first and the latest token came (``None``: none yet).
    last_s
        When the latest chunk of any kind came.
    chunks, counted_tokens
        Chunks that held tokens; tokens of those whose number is known.
    went_back
        Times the clock went back.

    Examples
    --------
    >>> times = Arrivals(10.0)
    >>> times.token(10.5, 1), times.token(10.6, 2), times.token(10.7, None)
    (None, None, None)
    >>> round(times.itl_ms(output_tokens=6, is_divisible=True), 1)
    40.0
    """

    def __init__(self, sent_s: float) -> None:
        self.sent_s = sent_s
        self.first_s: float | None = None
        self.last_token_s: float | None = None
        self.last_s: float | None = None
        self.chunks = 0
        self.counted_tokens = 0.0
        self.went_back = 0
        self._uncounted_chunks = 0
        self._gaps_s = 0.0
        self._gap_tokens = 0.0
        self._gap_chunks = 0

    def event(self, now_s: float) -> None:
        """Note a chunk of any kind."""
        self.went_back += now_s < (self.sent_s if self.last_s is None else self.last_s)
        self.last_s = now_s

    def token(self, now_s: float, count: float | None) -> None:
        """Note a chunk with text: of so many tokens, or of a number not known yet."""
        before = self.last_token_s
        self.last_token_s = now_s
        self.chunks += 1
        if count is None:
            self._uncounted_chunks += 1
        else:
            self.counted_tokens += count
        if before is None:
            self.first_s = now_s
        elif now_s >= before:
            self._gaps_s += now_s - before
            if count is None:
                self._gap_chunks += 1
            else:
                self._gap_tokens += count

    @property
    def is_counted(self) -> bool:
        """Whether the number of tokens of every chunk is known."""
        return self.chunks > 0 and self._uncounted_chunks == 0

    def itl_ms(self, output_tokens: float | None, is_divisible: bool) -> float | None:
        """Give the mean gap between tokens after the first chunk.

        Parameters
        ----------
        output_tokens
            Tokens of the whole answer that came as text (``None``: not told).
        is_divisible
            Whether these may be distributed over the chunks whose number of tokens is not known; else each is one.
        """
        each = 1.0
        if is_divisible and output_tokens is not None and self._uncounted_chunks:
            each = max(1.0, (output_tokens - self.counted_tokens) / self._uncounted_chunks)
        tokens = self._gap_tokens + each * self._gap_chunks
        return 1e3 * self._gaps_s / tokens if tokens > 0 else None

    def ttft_ms(self) -> float | None:
        """Give the time from the request to the first chunk with text."""
        return _span_ms(self.sent_s, self.first_s)

    def rt_ms(self) -> float | None:
        """Give the time from the request to the last chunk."""
        return _span_ms(self.sent_s, self.last_s)

    def silence_ms(self, now_s: float) -> float:
        """Give the time since the last token, before the first since the request."""
        since = self.sent_s if self.last_token_s is None else self.last_token_s
        return max(1e3 * (now_s - since), 0.0)  # in this order NaN stays NaN


def _span_ms(start_s: float, end_s: float | None) -> float | None:
    return 1e3 * (end_s - start_s) if end_s is not None and end_s >= start_s else None

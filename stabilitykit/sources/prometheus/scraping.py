"""One HTTP request for a page: bounded in time and size, straight to the host that was named."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import IO

from stabilitykit.errors import RecordError
from stabilitykit.sources.prometheus.lines import MAX_BYTES

__all__ = ["scrape"]

_CHUNK = 1 << 16
_LONGEST_S = 86_400.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A page that moved is an error: whoever redirects a scrape decides whom we believe."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


def scrape(
    url: str, timeout_s: float = 5.0, clock: Callable[[], float] = time.monotonic, body: bytes | None = None
) -> bytes:
    """Fetch a page.

    Parameters
    ----------
    url
        ``http`` or ``https``; no redirect is followed and no proxy is used.
    timeout_s
        For the whole answer; more than a day is a day, which sockets can still count.
    clock
        Seconds that never go back.
    body
        JSON to send; the request is a POST then.

    Raises
    ------
    RecordError
        No answer in time, or one that is not 200; or more than 16 MiB; or no time to wait.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise RecordError(f"{url}: not an http or https address")
    if not timeout_s > 0.0:
        raise RecordError(f"{url}: the time to wait is no positive number")
    timeout_s = min(timeout_s, _LONGEST_S)
    end = clock() + timeout_s
    try:
        request = urllib.request.Request(url, body, {"Accept": "text/plain, application/json;q=0.5"})
        if body is not None:
            request.add_header("Content-Type", "application/json")
        with _OPENER.open(request, timeout=timeout_s) as answer:
            if answer.status != 200:
                raise RecordError(f"{url}: HTTP {answer.status}")
            return _body(url, answer, end, clock)
    except urllib.error.HTTPError as error:
        error.close()
        raise RecordError(f"{url}: HTTP {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise RecordError(f"{url}: {str(reason)[:120] or type(error).__name__}") from None


def _body(url: str, answer: HTTPResponse, end: float, clock: Callable[[], float]) -> bytes:
    body = bytearray()
    while chunk := answer.read1(_CHUNK):
        body += chunk
        if len(body) > MAX_BYTES:
            raise RecordError(f"{url}: more than {MAX_BYTES >> 20} MiB")
        if clock() > end:
            raise RecordError(f"{url}: not complete in time")
    if answer.length:  # what was announced and did not come
        raise RecordError(f"{url}: the answer was cut off")
    return bytes(body)

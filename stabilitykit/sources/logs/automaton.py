"""google-re2, the only engine that log patterns meet: linear in the line, whatever the pattern."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from stabilitykit.errors import MissingExtra

__all__ = ["MAX_PROGRAM", "compiled", "prefilter", "refusal", "search_set"]

MAX_PROGRAM = 5_000
"""Instructions of one compiled pattern."""


def _re2() -> Any:
    try:
        import re2
    except ImportError:
        raise MissingExtra("google-re2", "logs") from None
    return re2


@lru_cache(maxsize=1)
def _options() -> Any:
    options = _re2().Options()
    options.log_errors = False
    options.encoding = options.Encoding.LATIN1  # bytes as they are: a log need not be UTF-8
    options.max_mem = 64 << 20
    return options


def compiled(regex: bytes) -> Any:
    """Compile one pattern."""
    return _re2().compile(regex, _options())


def refusal(regex: str) -> tuple[str, str] | None:
    """Say why re2 does not take a pattern and which part of it, ``None`` when it does."""
    try:
        size = compiled(regex.encode("latin-1", "replace")).programsize
    except _re2().error as error:
        said = error.args[0]
        message = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        kind, _, part = message.partition(": ")
        return f"re2 does not take it: {kind}", part
    if size > MAX_PROGRAM:
        return f"the pattern is too big: {size:,} instructions, at most {MAX_PROGRAM:,}", ""
    return None


def search_set(regexes: Iterable[bytes]) -> Any:
    """Build one automaton over all patterns: ``Match(line)`` gives the indices of those that match."""
    built = _re2().Set.SearchSet(_options())
    for regex in regexes:
        built.Add(regex)
    built.Compile()
    return built


def prefilter(literals: Iterable[tuple[bytes, bool]]) -> bytes:
    """Give the pattern that finds any of the literals; each says whether case is ignored."""
    parts = sorted({(b"(?i:%s)" if fold else b"%s") % _re2().escape(text) for text, fold in literals})
    return b"(?:" + b"|".join(parts) + b")"

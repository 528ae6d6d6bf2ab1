"""A log as blocks of clean lines: bounded memory, whatever the bytes are."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import attrs
import numpy as np

from stabilitykit.errors import RecordError

__all__ = ["BLOCK", "MAX_LINE", "Block", "Counts", "blocks", "open_log", "read_blocks"]

BLOCK = 1 << 18
MAX_LINE = 8_192
"""Bytes of a line that are looked at."""

_ANSI = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78cDEHMNOZ])")
_DOCKER = re.compile(rb'(?m)^\{"log":"(?:[^"\\\n]|\\.)*".*\}$')
_KUBERNETES = re.compile(rb"(?m)^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) ([FP]) (.*)(?:\n|\Z)")


@attrs.frozen
class Block:
    """Some lines, without escapes, joined by line feeds; ``first`` is the number of the first (from 1)."""

    first: int
    data: bytes


@attrs.define
class Counts:
    """What reading a log came across: lines, those of them that were cut, bytes."""

    lines: int = 0
    cut: int = 0
    size: int = 0


def open_log(path: Path) -> IO[bytes]:
    """Open a log for reading, unpacked when it is named ``.gz`` or ``.xz``."""
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb")


def read_blocks(path: Path, counts: Counts | None = None) -> Iterator[Block]:
    """Read a log file to its end, as `blocks` reads a stream.

    Raises
    ------
    RecordError
        It is not there, may not be read, or is packed and damaged or cut off.
    """
    try:
        with open_log(path) as stream:
            yield from blocks(stream, counts)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise RecordError(f"{path}: {getattr(error, 'strerror', None) or type(error).__name__}") from None


def blocks(stream: IO[bytes], counts: Counts | None = None) -> Iterator[Block]:
    """Read a stream to its end in blocks of whole lines.

    Parameters
    ----------
    stream
        Bytes; need not be UTF-8, need not have line feeds.
    counts
        Told what was met.
    """
    told = counts if counts is not None else Counts()
    rest, is_cut = b"", False
    while chunk := _full(stream):
        told.size += len(chunk)
        if is_cut:  # the end of a line that was cut already
            _, found, chunk = chunk.partition(b"\n")
            if not found:
                continue
            is_cut = False
        body, found, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > MAX_LINE:
            body, found, rest, is_cut = body + found + rest[: MAX_LINE + 1], b"\n", b"", True
        if found:
            yield _block(body, told)
    if rest:
        yield _block(rest, told)


def _full(stream: IO[bytes]) -> bytes:
    """Read as much as a block holds: a pipe or an archive gives less at a time."""
    parts, size = [], 0
    while size < BLOCK and (part := stream.read(BLOCK - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _block(body: bytes, told: Counts) -> Block:
    first = told.lines + 1
    told.lines += body.count(b"\n") + 1
    return Block(first, _cut(clean(body), told))


def _cut(body: bytes, told: Counts) -> bytes:
    breaks = np.flatnonzero(np.frombuffer(body, np.uint8) == 10)
    if np.diff(breaks, prepend=-1, append=len(body)).max() <= MAX_LINE + 1:
        return body
    told.cut += sum(len(line) > MAX_LINE for line in body.split(b"\n"))
    return b"\n".join(line[:MAX_LINE] for line in body.split(b"\n"))


def clean(body: bytes) -> bytes:
    r"""Take away what terminals and containers have added; every line stays in its place.

    Examples
    --------
    >>> clean(b"\x1b[1;36m(EngineCore pid=7)\x1b[0;0m INFO ready\r\n")
    b'(EngineCore pid=7) INFO ready\n'
    >>> clean(b'{"log":"msg=\\"truncating input prompt\\"\\n","stream":"stderr"}')
    b'msg="truncating input prompt"'
    """
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b'{"log":"' in body:
        body = _DOCKER.sub(_unpacked, body)
    if b" stdout " in body or b" stderr " in body:
        body = _joined(body)
    return _ANSI.sub(b"", body) if b"\x1b" in body else body


def _unpacked(match: re.Match[bytes]) -> bytes:
    try:
        text = json.loads(match[0])["log"]
    except (ValueError, KeyError, RecursionError):
        return match[0]
    return str(text).rstrip("\n").replace("\n", " ").encode("utf-8", "replace")


def _joined(body: bytes) -> bytes:
    """Put the parts of a long line together that a container runtime has split; empty lines keep their places."""
    missing = 0

    def part(match: re.Match[bytes]) -> bytes:
        nonlocal missing
        is_last = match.end() == len(body) and not match[0].endswith(b"\n")
        if match[1] == b"P" and not is_last:
            missing += 1
            return match[2]
        ends, missing = b"\n" * (missing + 1 - is_last), 0
        return match[2] + ends

    return _KUBERNETES.sub(part, body)

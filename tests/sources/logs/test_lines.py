"""Reading logs: escapes, containers, long lines, any bytes."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tracemalloc
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.sources.logs import Counts, blocks, open_log
from stabilitykit.sources.logs.lines import BLOCK, MAX_LINE, clean


def read(data, counts=None):
    """Read bytes as (number, line) pairs."""
    found: list[tuple[int, bytes]] = []
    for block in blocks(io.BytesIO(data), counts):
        found += enumerate(block.data.split(b"\n"), block.first)
    return found


@pytest.mark.capability("issue 4 §3: ANSI codes and the wrappers of containers are taken off, lines keep their numbers")
def test_escapes_and_wrappers():
    """Colours, titles, carriage returns, Docker's JSON and split container lines."""
    assert clean(b"\x1b[1;36m(pid=1)\x1b[0;0m \x1b]0;t\x07INFO\x1b[K ok\r\n\x1b(Bx") == b"(pid=1) INFO ok\nx"
    docker = json.dumps({"log": 'level=WARN msg="x"\n', "stream": "stderr", "time": "t"}).encode().replace(b": ", b":")
    assert clean(docker + b"\nplain") == b'level=WARN msg="x"\nplain'
    kubernetes = (
        b"2026-01-01T10:00:00.1Z stderr P first \n2026-01-01T10:00:00.2Z stderr F second\n"
        b"2026-01-01T10:00:00.3Z stdout F third"
    )
    assert clean(kubernetes) == b"first second\n\nthird"


@given(st.lists(st.binary(max_size=60).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=30))
def test_any_lines(lines):
    """Every line comes out with its number, whatever its bytes."""
    text = b"\n".join(line.replace(b"\x1b", b"").replace(b"{", b"").replace(b"std", b"") for line in lines)
    got = [line for _, line in read(text)]
    assert b"\n".join(got) == text.removesuffix(b"\n")


@pytest.mark.capability(
    "issue 4 §3: a line of 10 MB takes bounded memory; what is beyond 8 KiB is not looked at, and counted"
)
def test_a_line_without_end():
    """Ten megabytes without a line feed: the first 8 KiB are kept, the next line is found, memory stays small."""
    counts, data = Counts(), b"first\n" + b"x" * 10_000_000 + b"\nlast\n"
    stream = io.BytesIO(data)
    tracemalloc.start()
    lines = [line for block in blocks(stream, counts) for line in block.data.split(b"\n")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [b"first", b"x" * MAX_LINE, b"last"]
    assert (counts.lines, counts.cut) == (3, 1)
    assert peak < 12 * BLOCK


def test_packed_files_and_pipes(tmp_path):
    """Plain, gzip and xz give the same; so does a stream that hands out a byte at a time."""
    text = b"one\ntwo\n" * 50

    class Slow(io.RawIOBase):
        """Gives seven bytes at most."""

        def __init__(self):
            self.rest = io.BytesIO(text)

        def read(self, size=-1):
            return self.rest.read(min(7, size))

    for name, data in (("a.log", text), ("a.log.gz", gzip.compress(text)), ("a.log.xz", lzma.compress(text))):
        path = tmp_path / name
        path.write_bytes(data)
        with open_log(path) as stream:
            assert [b.data for b in blocks(stream)] == [b.data for b in blocks(cast(IO[bytes], Slow()))]


def test_invalid_utf8(matcher):
    """A line that is no UTF-8 is matched all the same; the text of a field shows what is readable."""
    found = matcher.match(b'\xff\xfe "POST /v1/\xffchat HTTP/1.1" 200 OK')
    assert found[0].fields["endpoint"] == "/v1/\ufffdchat"

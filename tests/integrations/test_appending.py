"""Lines of several writers in one file, also behind one that was torn."""

from __future__ import annotations

import os

import pytest

from stabilitykit.integrations.appending import append_line, end_torn_line


@pytest.mark.parametrize(("before", "after"), [(b"", b""), (b"whole\n", b"whole\n"), (b"a\nto", b"a\nto\n")])
def test_a_torn_line_is_ended(tmp_path, before, after):
    """Only where one is; what follows stands on a line of its own."""
    path = tmp_path / "lines"
    path.write_bytes(before)
    with path.open("a+b", buffering=0) as file:
        end_torn_line(file.fileno())
        append_line(file.fileno(), b"new\n")
    assert path.read_bytes() == after + b"new\n"


def test_a_line_that_does_not_fit(tmp_path, monkeypatch):
    """A write that stops in the middle is an error, and the rest of it is ended before the next."""
    path, write = tmp_path / "lines", os.write
    with path.open("a+b", buffering=0) as file:
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", lambda number, line: write(number, line[:3]))
            with pytest.raises(OSError, match="did not fit"):
                append_line(file.fileno(), b"first\n")
        end_torn_line(file.fileno())
        append_line(file.fileno(), b"second\n")
    assert path.read_bytes() == b"fir\nsecond\n"

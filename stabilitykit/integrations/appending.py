"""One line at the end of a file that several processes write to: whole, whatever happened to the one before."""

from __future__ import annotations

import os

__all__ = ["append_line", "end_torn_line"]


def append_line(file: int, line: bytes) -> None:
    """Append a line, its line feed included, in one write.

    Raises
    ------
    OSError
        It could not be written, or not to its end: ``end_torn_line`` before the next.
    """
    if os.write(file, line) != len(line):
        raise OSError("the line did not fit on the disk")


def end_torn_line(file: int) -> None:
    """End a line that a crash or a full disk has torn, so that the next one does not hang on it.

    For the first line of a process, and after a failure: while another process writes, a part of its line may be seen,
    and an empty line would follow it.

    Parameters
    ----------
    file
        Descriptor, open for reading and appending.
    """
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        append_line(file, b"\n")

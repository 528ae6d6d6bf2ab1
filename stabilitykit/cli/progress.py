"""A bar while a long log is read; nothing where nobody watches."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["counting", "reading"]

_LONG = 1 << 20
"""Bytes from which on reading is worth a bar."""


@contextlib.contextmanager
def reading(files: Sequence[Path]) -> Iterator[Callable[[int], object]]:
    """Give a function that is told how many bytes were read."""
    total = sum(path.stat().st_size for path in files if path.is_file())
    if total < _LONG or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("replaying"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Lines printed meanwhile go above the bar, but only on a terminal: a file must get them itself.
    shared = sys.stdout.isatty()
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=shared, redirect_stderr=True)
    with bar as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


@contextlib.contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[int], object]]:
    """Give a function that is told how much of a long computation is done."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)

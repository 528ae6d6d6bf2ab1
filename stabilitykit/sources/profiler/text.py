"""The text of a profile, plain or gzip, and the samples of one in the order of time."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stabilitykit.errors import RecordError
from stabilitykit.sample import Sample

__all__ = ["MAX_SAMPLES", "Timed", "in_order", "open_text"]

MAX_SAMPLES = 1_000_000
"""Kernels, operators or calls that are held of one file."""
Timed = tuple[float, str, dict[str, float]]
"""End in microseconds, device, signals."""


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a file as UTF-8 text; gzip is recognised by its first bytes.

    Raises
    ------
    RecordError
        It cannot be opened, or what is read of it is damaged.
    """
    try:
        with open(path, "rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            data: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_gzip else raw  # type: ignore[assignment]
            yield io.TextIOWrapper(data, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: not UTF-8: byte 0x{error.object[error.start]:02X}") from None
    except (EOFError, zlib.error) as error:
        raise RecordError(f"{path}: damaged gzip: {error}") from None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}") from None


def in_order(rows: list[Timed]) -> list[Sample]:
    """Give samples by their end; of two that end together on a device the second is the next float later.

    The engine takes no second sample of one moment, and two streams do end in one.
    """
    latest: dict[str, float] = {}
    samples = []
    for end_us, device, signals in sorted(rows, key=lambda row: row[0]):
        now = end_us / 1e6
        if now <= latest.get(device, -math.inf):
            now = math.nextafter(latest[device], math.inf)
        latest[device] = now
        samples.append(Sample(device=device, timestamp_s=now, signals=signals))
    return samples

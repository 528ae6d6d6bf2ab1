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

__all__ = ["MAX_SAMPLES", "Timed", "gpu_name", "in_order", "open_text", "sound"]

MAX_SAMPLES = 1_000_000
"""Kernels, operators or calls that are held of one file."""
Timed = tuple[float, str, dict[str, float]]
"""End in microseconds, device, signals."""
_MAX_NAME = 64


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


def gpu_name(number: object) -> str:
    r"""Name a GPU; what a file gives for its number may be anything.

    Examples
    --------
    >>> gpu_name(0), gpu_name("1\x1b[2J"), len(gpu_name("x" * 9_000))
    ('gpu-0', 'gpu-1[2J', 68)
    """
    plain = "".join(c for c in str(number)[: 2 * _MAX_NAME] if c.isprintable())
    return "gpu-" + plain.encode("utf-8", "replace")[:_MAX_NAME].decode("utf-8", "ignore")


def sound(signals: dict[str, float]) -> dict[str, float]:
    """Leave out what is no finite number: a sum or a unit has made it too great."""
    return {name: value for name, value in signals.items() if math.isfinite(value)}


def in_order(rows: list[Timed]) -> list[Sample]:
    """Give samples by their end; of two that end together on a device the second is the next float later.

    A row whose end is no finite number, or that has no sound signal, gives none.

    The engine takes no second sample of one moment, and two streams do end in one.
    """
    latest: dict[str, float] = {}
    samples = []
    for end_us, device, signals in sorted(rows, key=lambda row: row[0]):
        now, signals = end_us / 1e6, sound(signals)
        if not math.isfinite(now) or not signals:
            continue
        if now <= latest.get(device, -math.inf):
            now = math.nextafter(latest[device], math.inf)
        latest[device] = now
        samples.append(Sample(device=device, timestamp_s=now, signals=signals))
    return samples

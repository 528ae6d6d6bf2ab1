"""Traces of requests as paths of KV blocks: Mooncake's JSON lines, or one request a line of plain block ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import RecordError
from stabilitykit.kernels.block_ids import signed_id

__all__ = ["Trace", "next_uses", "read_trace"]

_TOKENS = 512
"""Tokens of a block in Mooncake's traces."""
_LONGEST = 1 << 20
"""Bytes of one request's line: above 50,000 blocks."""


@attrs.frozen(eq=False)
class Trace:
    """Requests in the order of their arrival.

    Parameters
    ----------
    blocks
        Block ids of all requests one behind the other, int64[n].
    starts
        Where each request begins, int64[requests + 1].
    at_s
        Arrival in s, float64[requests]; the number of the request where the trace has no times.
    partial
        1 where a request's last block is not full, int64[requests].
    """

    blocks: NDArray[np.int64]
    starts: NDArray[np.int64]
    at_s: NDArray[np.float64]
    partial: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the requests."""
        return len(self.starts) - 1

    @property
    def distinct(self) -> int:
        """Different blocks."""
        return len(np.unique(self.blocks))

    def flat(self) -> Trace:
        """Give every block as a request of its own: a cache of keys, without the tree."""
        lengths = np.diff(self.starts)
        count = len(self.blocks)
        return Trace(self.blocks, np.arange(count + 1), np.repeat(self.at_s, lengths), np.zeros(count, np.int64))

    def part(self, first: int, last: int) -> Trace:
        """Give requests first to last - 1."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        return Trace(
            self.blocks[begin:end], self.starts[first : last + 1] - begin, self.at_s[first:last],
            self.partial[first:last],
        )  # fmt: skip


def next_uses(trace: Trace) -> NDArray[np.float64]:
    """Give for each block of each request the number of the next request that uses it; infinite for none."""
    found = np.full(len(trace.blocks), np.inf)
    _, names = np.unique(trace.blocks, return_inverse=True)
    soonest = np.full(int(names.max(initial=-1)) + 1, np.inf)
    for request in range(len(trace) - 1, -1, -1):
        here = slice(int(trace.starts[request]), int(trace.starts[request + 1]))
        found[here] = soonest[names[here]]
        soonest[names[here]] = request
    return found


def read_trace(path: Path, progress: Callable[[int], object] = lambda count: None) -> Trace:
    """Read a trace; which of the two formats it is shows in its first line.

    Parameters
    ----------
    path
        Mooncake: one JSON object a line with ``hash_ids`` and, if known, ``timestamp`` (ms) and ``input_length``
        (tokens, blocks of 512). Plain: the block ids of one request a line, apart by blanks or commas; ``#`` begins a
        remark.
    progress
        Told how many bytes were read.

    Raises
    ------
    RecordError
        The file cannot be read, holds no request, or a line is neither or above 1 MiB; the message names the line.
    """
    requests: list[tuple[Sequence[int], float, bool]] = []
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(iter(lambda: file.readline(_LONGEST + 1), b""), 1):
                if len(raw) > _LONGEST:
                    raise RecordError(f"{path}:{number}: a line of more than {_LONGEST >> 20} MiB")
                progress(len(raw))
                text = raw.decode(errors="replace").strip()
                if text and not text.startswith("#"):
                    requests.append(_request(text, len(requests), f"{path}:{number}"))
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or type(error).__name__}") from None
    if not requests:
        raise RecordError(f"{path}: no request in it")
    return _together(requests)


def _request(text: str, number: int, where: str) -> tuple[Sequence[int], float, bool]:
    try:
        if not text.startswith("{"):
            return _ids([int(word) for word in text.replace(",", " ").split()]), float(number), False
        found: dict[str, Any] = json.loads(text)
        ids, length = _ids(found["hash_ids"]), found.get("input_length")
        at_s = float(found.get("timestamp", 1000.0 * number)) / 1000.0
        return ids, at_s, length is not None and int(length) < _TOKENS * len(ids)
    except KeyError:
        raise RecordError(f"{where}: no hash_ids") from None
    except (ValueError, TypeError, RecursionError):
        raise RecordError(f"{where}: neither Mooncake's JSON nor a line of block ids") from None


def _ids(given: Iterable[Any]) -> list[int]:
    """Take whole numbers of 64 bits, doubles once."""
    ids = list(given)
    if not all(isinstance(one, int) and not isinstance(one, bool) and -(2**63) <= one < 2**64 for one in ids):
        raise ValueError
    return list(dict.fromkeys(map(signed_id, ids)))


def _together(requests: Sequence[tuple[Sequence[int], float, bool]]) -> Trace:
    return Trace(
        np.array([block for ids, _, _ in requests for block in ids], np.int64),
        np.cumsum([0, *(len(ids) for ids, _, _ in requests)]),
        np.array([at_s for _, at_s, _ in requests]),
        np.array([is_partial for _, _, is_partial in requests], np.int64),
    )

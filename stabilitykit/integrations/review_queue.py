"""A review queue for people: one JSON line for each ``send_to_review``, in files of bounded size."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from operator import index
from pathlib import Path
from typing import Any

from stabilitykit.actions import Action
from stabilitykit.decision import Decision
from stabilitykit.engine.identity import check_key, hashed
from stabilitykit.errors import UsageError
from stabilitykit.integrations.appending import append_line, end_torn_line
from stabilitykit.integrations.telling import tell
from stabilitykit.mitigations.directives import SendToReview, directive

__all__ = ["ReviewQueue"]

_FULL = re.compile(r"[\w-]+\.[0-9]{20}-[0-9]+\.jsonl")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")


class ReviewQueue:
    """Appends to ``FOLDER/QUEUE.jsonl``, a file for each queue.

    A line holds the conversation as a keyed hash, the turn, the state, the rules with their numbers, and nothing that
    anybody said, unless the host gives ``text``. Several processes may write: a line is one write at the file's end. A
    file that is full is renamed under its time; of those the newest stay.

    Parameters
    ----------
    folder
        Where the files are; it is made when the first line comes.
    key
        Secret of the hashes, up to 64 bytes: the same in all processes, so that one conversation has one hash.
    max_bytes
        Size at which a file is full. A line that would not even fit into an empty one is refused, and told in the log
        (``review_failed``) where it comes by ``note``.
    keep
        Full files of a queue that stay.
    clock
        Nanoseconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from stabilitykit import Engine, Turn
    >>> decision = Engine.load("chat").evaluate(Turn(session_id="c-1", turn_id=7))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queue = ReviewQueue(folder, key=b"secret")
    ...     queue.put(decision, "people", text="What the user asked, if the host wants people to see it.")
    ...     [(entry["turn"], entry["state"], len(entry["session"])) for entry in queue.read("people")]
    [(7, 'healthy', 16)]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        key: bytes,
        max_bytes: int = 16 << 20,
        keep: int = 8,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        check_key(key)
        if not 1 <= max_bytes < math.inf or index(keep) < 0:
            raise UsageError("a file has at least one byte, and none or more full ones stay")
        self._folder, self._key, self._clock = Path(folder), key, clock
        self._max_bytes, self._keep = max_bytes, keep
        self._whole: set[Path] = set()  # files whose last line is known to have its end

    def note(self, decision: Decision, *, text: str | None = None) -> bool:
        """Put the conversation into every queue that a decision names; False when there was none. Never raises."""
        try:
            asked = [action for action in decision.actions if action.name == SendToReview.action]
        except Exception as error:
            tell("review_failed", error=type(error).__name__)
            return False
        return sum([self._noted(decision, action, text) for action in asked]) > 0

    def _noted(self, decision: Decision, action: Action, text: str | None) -> bool:
        try:
            asked = directive(action)
            assert isinstance(asked, SendToReview)
            self.put(decision, asked.queue, text=text)
            return True
        except Exception as error:
            tell("review_failed", error=type(error).__name__)
            return False

    def put(self, decision: Decision, queue: str = "default", *, text: str | None = None) -> None:
        """Append one line.

        Raises
        ------
        UsageError
            The queue's name is no name of a file: letters, digits, ``_`` and ``-``, at most 64. Or the line, its text
            included, is longer than ``max_bytes``: nothing is written.
        OSError
            The file cannot be written.
        """
        if not _NAME.fullmatch(queue):
            raise UsageError("a queue's name is made of at most 64 letters, digits, _ and -")
        self._append(self._folder / f"{queue}.jsonl", self._entry(decision, text))

    def read(self, queue: str = "default") -> Iterator[Mapping[str, Any]]:
        """Give a queue's entries, oldest first; a line cut off by a full disk is left out."""
        for path in [*self._full(queue), self._folder / f"{queue}.jsonl"]:
            try:
                lines = path.read_bytes().splitlines()
            except FileNotFoundError:  # none yet, or another process was done with it meanwhile
                continue
            for line in lines:
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    continue

    def _entry(self, decision: Decision, text: str | None) -> dict[str, Any]:
        reasons = [
            {"rule": r.rule, "signal": r.signal, "value": _known(r.value), "threshold": _known(r.threshold)}
            for r in decision.reasons
        ]
        entry = {
            "at_ns": self._clock(),
            "session": hashed(decision.session_id, self._key, decision.tenant),
            "turn": decision.turn_id,
            "state": decision.state,
            "previous": decision.previous,
            "fired": list(decision.fired),
            "reasons": reasons,
            "pack": decision.fingerprint,
        }
        return entry if text is None else {**entry, "text": text}

    def _append(self, path: Path, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=True).encode() + b"\n"
        if len(line) > self._max_bytes:
            raise UsageError(f"the entry with its text takes {len(line)} bytes, a file at most {self._max_bytes}")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(file).st_size
            if size == 0 or size + len(line) <= self._max_bytes:
                if path not in self._whole:
                    end_torn_line(file)
                    self._whole.add(path)
                append_line(file, line)
                return
        except OSError:
            self._whole.discard(path)
            raise
        finally:
            os.close(file)
        self._retire(path)
        self._append(path, entry)

    def _retire(self, path: Path) -> None:
        # A name of its own for each: of two processes that retire at once, neither overwrites what the other kept. It
        # comes after all others, also where the clock stood still or went back.
        last = max((int(old.name.split(".")[1].partition("-")[0]) for old in self._full(path.stem)), default=0)
        full = path.with_name(f"{path.stem}.{max(self._clock(), last + 1):020d}-{os.getpid()}.jsonl")
        try:
            path.rename(full)
        except FileNotFoundError:  # another process was faster
            return
        for old in self._full(path.stem)[: -self._keep or None]:
            old.unlink(missing_ok=True)

    def _full(self, queue: str) -> list[Path]:
        return sorted(path for path in self._folder.glob(f"{queue}.*-*.jsonl") if _FULL.fullmatch(path.name))


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""A recording on disk: one or several log files, their mappings, and embeddings beside them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from stabilitykit.errors import RecordError
from stabilitykit.rules.conditions.suggest import nearest
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.sources.cells import ABSENT, find
from stabilitykit.sources.mapping import LogMapping
from stabilitykit.sources.rows import BadRow, Row, Rows, format_of, open_rows
from stabilitykit.sources.tabular import Located, mapped_entries, named_entries
from stabilitykit.turn import Turn

__all__ = ["BadLine", "LogFile", "shipped_recording"]

_KEPT = 20
"""Bad lines remembered with their reasons; all are counted."""


@attrs.frozen
class BadLine:
    """A line that was left out."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class LogFile:
    """One log file, read as turns and samples.

    Parameters
    ----------
    path
        The file. ``X.embeddings.npz`` beside ``X.jsonl`` gives each turn its embedding: an array
        under each session id, whose row ``turn_id - 1`` belongs to that turn.
    mapping
        What its columns are; ``None``: they have the names of a Turn.
    declared
        Signals of the pack beyond the catalogue.
    keep_going
        Count bad lines and leave them out, instead of raising at the first.

    Attributes
    ----------
    bad_count, bad
        Lines left out, and the first of them.
    """

    def __init__(
        self,
        path: Path,
        mapping: LogMapping | None = None,
        *,
        declared: Mapping[str, SignalSpec] | None = None,
        keep_going: bool = False,
    ) -> None:
        self.path, self.mapping = path, mapping
        self._declared = declared or {}
        self._keep_going = keep_going
        self._unknown: set[str] = set()
        self._unmet: dict[str, int] = dict(mapping.columns) if mapping else {}
        self.bad_count = 0
        self.bad: list[BadLine] = []

    def entries(self, advance: Callable[[int], object] = lambda count: None) -> Iterator[Turn | Sample]:
        """Read the file from its beginning.

        Parameters
        ----------
        advance
            Told the bytes of the file as they are read.

        Raises
        ------
        RecordError
            A bad line, unless bad lines are to be counted; a file that is damaged as a whole.
        PackError
            A column of the mapping that the file does not have.
        """
        return (located.entry for located in self.located(advance))

    def located(self, advance: Callable[[int], object] = lambda count: None) -> Iterator[Located]:
        """Read the file with line numbers, as ``entries``."""
        chosen = (self.mapping.format if self.mapping else "") or format_of(self.path)
        rows = open_rows(self.path, chosen, advance)
        if self.mapping is None:
            found = named_entries(rows, self._declared, self._refuse, self._unknown)
        else:
            if rows.columns is not None:
                self.mapping.check_columns(rows.columns, self.path.name)
            found = mapped_entries(self._noting(rows), self.mapping, self._declared, self._refuse)
        vectors = embeddings_beside(self.path)
        return found if vectors is None else (_with_embedding(located, vectors) for located in found)

    @property
    def absent(self) -> dict[str, int]:
        """Columns of the mapping that no row has had so far, with the line of the mapping that names them."""
        return dict(self._unmet)

    def _noting(self, rows: Rows) -> Rows:
        return Rows(rows.columns, map(self._note, rows.items))

    def _note(self, row: Row | BadRow) -> Row | BadRow:
        if self._unmet and isinstance(row, Row):
            for name in [n for n in self._unmet if find(row.fields, n) is not ABSENT]:
                del self._unmet[name]
        return row

    @property
    def unknown(self) -> dict[str, str]:
        """Columns without a meaning that were met so far, each with the nearest name that has one."""
        return {name: nearest(name, [*CATALOGUE, *self._declared]) for name in sorted(self._unknown)}

    def _refuse(self, line: int, reason: str) -> None:
        bad = BadLine(str(self.path), line, reason)
        if not self._keep_going:
            raise RecordError(str(bad))
        self.bad_count += 1
        if len(self.bad) < _KEPT:
            self.bad.append(bad)


def shipped_recording() -> Path:
    """Give the recording that comes with the library: a real llama.cpp server in four conversations."""
    return Path(str(files("stabilitykit") / "data" / "recordings" / "llamacpp_smollm2.jsonl"))


def embeddings_beside(path: Path) -> Mapping[str, Any] | None:
    """Find the stored embeddings of a recording, ``None`` when there are none.

    Raises
    ------
    RecordError
        The file beside it is no archive of arrays.
    """
    stem = path.name.removesuffix(".gz")
    beside = path.with_name(f"{stem.rpartition('.')[0] or stem}.embeddings.npz")
    if not beside.is_file():
        return None
    try:
        with np.load(beside, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name], np.float32) for name in archive.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RecordError(f"{beside}: no archive of embeddings: {type(error).__name__}") from None


def _with_embedding(located: Located, vectors: Mapping[str, Any]) -> Located:
    turn = located.entry
    if isinstance(turn, Turn) and turn.embedding is None and isinstance(turn.turn_id, int):
        rows = vectors.get(turn.session_id)
        if rows is not None and 0 < turn.turn_id <= len(rows):
            turn.embedding = rows[turn.turn_id - 1]
    return located

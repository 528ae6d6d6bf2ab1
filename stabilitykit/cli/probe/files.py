"""The three files of a probe: a recording to replay, its figures as JSON, and a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from stabilitykit.cli.output import note
from stabilitykit.cli.probe.client import Answer
from stabilitykit.errors import UsageError
from stabilitykit.sample import Sample
from stabilitykit.turn import is_missing
from stabilitykit.turn_record import TurnRecord

__all__ = ["Names", "recorded", "recorded_sample", "write"]


@attrs.frozen
class Names:
    """Where the files go."""

    recording: Path
    figures: Path
    report: Path

    @classmethod
    def of(cls, output: Path) -> Names:
        """Give the names that begin with a path.

        Raises
        ------
        UsageError
            The folder does not exist.
        """
        if not output.parent.is_dir():
            raise UsageError(f"--output: no directory {output.parent}")
        return cls(*(output.with_name(f"{output.name}.{end}") for end in ("jsonl", "json", "html")))


def recorded(answer: Answer) -> str:
    """Give the line of a turn; its gaps stand beside the signals."""
    row = TurnRecord.dump(answer.turn)
    if gaps := [round(gap, 2) for gap in answer.gaps_ms()]:
        row["itl_ms_per_token"] = gaps
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def recorded_sample(sample: Sample) -> str:
    """Give the line of a sample."""
    row = {name: value for name in ("replica", "device") if (value := getattr(sample, name)) is not None}
    if not is_missing(sample.timestamp_s):
        row["timestamp_s"] = sample.timestamp_s
    return json.dumps({"observe": {**row, **sample.signals}}, separators=(",", ":"))


def write(names: Names, lines: Sequence[str], figures: Any, page: str) -> None:
    """Write all three, each whole or not at all.

    Raises
    ------
    UsageError
        One cannot be written.
    """
    texts = ("".join(f"{line}\n" for line in lines), json.dumps(figures, indent=1, allow_nan=False) + "\n", page)
    for path, text in zip(attrs.astuple(names), texts, strict=True):
        try:
            _write_whole(path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise UsageError(f"--output: {path}: {error.strerror or type(error).__name__}") from None
    note(f"wrote {names.recording}, {names.figures.name} and {names.report.name}")


def _write_whole(path: Path, content: bytes) -> None:
    """Write beside it first: who interrupts finds the old file, or none, and no half one."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

"""The log files a command reads: options, mappings, order, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from stabilitykit.cli.output import note, plain
from stabilitykit.engine.replay import Entry, merge_on_time
from stabilitykit.errors import UsageError
from stabilitykit.rules.pack import Pack
from stabilitykit.sources.mapping import LogMapping, read_mapping
from stabilitykit.sources.recording import LogFile, shipped_recording

__all__ = ["FilesArgument", "KeepGoingOption", "MapOption", "Recording"]

FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="Logs: JSON lines, CSV or Parquet, gzip too [the shipped recording]."),
]
MapOption = Annotated[
    list[Path] | None,
    typer.Option("--map", metavar="MAPPING", help="What the columns are: one for all files, or one for each in order."),
]
_PROBED = "itl_ms_per_token"
"""What ``probe`` writes beside the signals: no news."""
KeepGoingOption = Annotated[bool, typer.Option("--keep-going", help="Count bad lines and leave them out.")]


class Recording:
    """The logs of one command.

    Parameters
    ----------
    files
        In the order given; the shipped recording when there are none.
    maps
        Mapping files: none, one for all, or one for each.
    pack
        The pack whose declared signals may occur.

    Raises
    ------
    UsageError
        Another number of mappings.
    """

    def __init__(
        self, files: Sequence[Path] | None, maps: Sequence[Path] | None, pack: Pack, *, keep_going: bool = False
    ) -> None:
        self.paths = list(files or [shipped_recording()])
        given = list(maps or [])
        if len(given) not in (0, 1, len(self.paths)):
            raise UsageError(f"{len(given)} mappings for {len(self.paths)} files: give one for all, or one for each")
        if len(given) == 1:
            given *= len(self.paths)
        mappings: list[LogMapping | None] = [read_mapping(path, declared=pack.signals) for path in given]
        self.logs = [
            LogFile(path, mapping, declared=pack.signals, keep_going=keep_going)
            for path, mapping in zip(self.paths, mappings or [None] * len(self.paths), strict=True)
        ]

    def entries(self, advance: Callable[[int], object] = lambda count: None) -> Iterator[Entry]:
        """Give turns and samples; those of several files in the order of their timestamps."""
        if len(self.logs) == 1:
            return self.logs[0].entries(advance)
        return merge_on_time([log.entries(advance) for log in self.logs])

    @property
    def bad_count(self) -> int:
        """Lines left out."""
        return sum(log.bad_count for log in self.logs)

    def report(self) -> None:
        """Say on stderr which lines and columns were left out."""
        for log in self.logs:
            for bad in log.bad:
                note(("left out ", "yellow"), plain(bad))
            if log.bad_count:
                note(f"{plain(log.path.name)}: {log.bad_count} bad line{'s' * (log.bad_count != 1)} left out")
            if log.path.resolve() == shipped_recording().resolve():
                continue  # its own README says what its other columns are
            strange = {name: near for name, near in log.unknown.items() if name != _PROBED}
            unknown = [plain(name) + (f" (did you mean {near}?)" if near else "") for name, near in strange.items()]
            if unknown:
                shown = ", ".join(unknown[:12]) + (f" and {len(unknown) - 12} more" if len(unknown) > 12 else "")
                note(f"{plain(log.path.name)}: columns that are no signals: {shown}")
            for name, line in log.absent.items():
                note(("warning: ", "yellow"), f"{log.mapping.file}:{line}: no row has a column {plain(name)!r}")  # type: ignore[union-attr]

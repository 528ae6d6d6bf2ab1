"""Every exception the library raises, and the tree they form.

::

    StabilityKitError
    ├── PackError            a rule pack cannot be loaded (holds every located Problem of it)
    ├── UsageError           the host called the library wrongly (also a TypeError or ValueError)
    │   ├── TurnError        a Turn or a sample that cannot be accepted at all
    │   └── UnknownSignal    a name that is no signal of the pack
    ├── RecordError          foreign JSON, CSV or Parquet that is no Turn (located)
    ├── BlobError            an exported session that cannot be restored
    ├── ReloadRefused        a new pack that would lose session state (SK510)
    └── MissingExtra         an optional dependency is not installed (also an ImportError)

Bad telemetry is never an exception: it becomes a ``Fault`` on the decision.
"""

from __future__ import annotations

import attrs

__all__ = [
    "BlobError",
    "MissingExtra",
    "PackError",
    "Problem",
    "RecordError",
    "ReloadRefused",
    "StabilityKitError",
    "TurnError",
    "UnknownSignal",
    "UsageError",
]


class StabilityKitError(Exception):
    """Base of every exception raised on purpose by stabilitykit."""


@attrs.frozen(order=True)
class Problem:
    """One located mistake in a pack file.

    Parameters
    ----------
    file
        The file as the user named it.
    line, col
        One-based position of the offending text.
    code
        ``SKnnn``, see section 10 of the rule language.
    message
        One sentence.
    snippet
        The offending source line, without its line break ("" when unknown).
    width
        Number of columns the caret line underlines, at least 1.
    hint
        A fix or the nearest valid name ("" when there is none).
    """

    file: str
    line: int
    col: int
    code: str
    message: str
    snippet: str = attrs.field(default="", order=False)
    width: int = attrs.field(default=1, order=False)
    hint: str = attrs.field(default="", order=False)

    def __str__(self) -> str:
        lines = [f"{self.file}:{self.line}:{self.col}: {self.code} {self.message}"]
        if self.snippet:
            lines += [f"    {self.snippet}", "    " + " " * (self.col - 1) + "^" * max(1, self.width)]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)


class PackError(StabilityKitError):
    """A rule pack that cannot be loaded.

    Attributes
    ----------
    problems
        All located problems, ordered by position, at most 50 per file.
    """

    def __init__(self, problems: list[Problem] | tuple[Problem, ...]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class UsageError(StabilityKitError, ValueError):
    """The host called the library in a way that can never work."""


class TurnError(UsageError, TypeError):
    """An argument that is no Turn, or whose identity cannot be used."""


class UnknownSignal(UsageError, KeyError):
    """A signal name that the loaded pack does not know."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RecordError(StabilityKitError, ValueError):
    """Foreign data that cannot become a Turn; the message names field and place."""


class BlobError(StabilityKitError, ValueError):
    """An exported session that is damaged, newer, or of another pack layout."""


class ReloadRefused(StabilityKitError):
    """A reload that would lose session state; the engine keeps the old pack."""


class MissingExtra(StabilityKitError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(f"{module} is not installed: pip install 'stabilitykit[{extra}]'")

"""Places in pack files, and the collection of everything found wrong there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import attrs

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.conditions.lexer import Near, SyntaxProblem
from stabilitykit.rules.conditions.suggest import did_you_mean

if TYPE_CHECKING:
    from stabilitykit.rules.files.reader import Document

__all__ = ["BAD", "MAX_PROBLEMS", "Findings", "Place"]

MAX_PROBLEMS = 50
"""Problems reported of one file."""
_ENOUGH = 100  # after so many, nothing further of a file is looked at
_KEPT = 200  # what a hostile file may make us store before the 50 first by position are known
_COMPARED = 20_000  # names that are looked at for hints, all problems together
_NAMES_SOMETHING = frozenset(["SK301", "SK302", "SK303", "SK304", "SK305", "SK308", "SK332", "SK506"])


class _Bad:
    """A value that was already reported: whoever meets it stays silent."""

    def __repr__(self) -> str:
        return "BAD"


BAD = _Bad()


class Place(NamedTuple):
    """A value in a file: the document and the path of keys and indices to it."""

    doc: Document
    path: tuple[str | int, ...] = ()

    def child(self, *steps: str | int) -> Place:
        """Give the place of something inside this one."""
        return Place(self[0], self[1] + steps)

    @property
    def file(self) -> str:
        """The file as the user named it."""
        return self.doc.file

    @property
    def line(self) -> int:
        """One-based line of the value."""
        return self.doc.line(self.path)


class Findings:
    """Collects problems of all files, then raises them together.

    Attributes
    ----------
    incomplete
        Set when a file of the set could not be read: from then on an unknown name proves
        nothing, and is not reported.

    Examples
    --------
    >>> Findings().problems()
    ()
    """

    def __init__(self) -> None:
        self._by_file: dict[str, list[Problem]] = {}
        self._near: dict[int, Near] = {}
        self.warnings: list[str] = []
        self.incomplete = False

    def add(
        self,
        place: Place,
        code: str,
        message: str,
        *,
        hint: str = "",
        near: Near | None = None,
        key: bool = False,
        offset: int | None = None,
        width: int | None = None,
        certain: bool = False,
    ) -> None:
        """Report a problem at a place.

        Parameters
        ----------
        hint
            A fix.
        near
            A misspelt word and the words there are: the nearest, when there is one, becomes the
            hint. It is looked for only when the problem is reported.
        key
            At the key, not at its value.
        offset, width
            A part of a text, in characters.
        certain
            True when no other file could declare the name that is missing.
        """
        if self.incomplete and not certain and code in _NAMES_SOMETHING:
            return
        kept = self._by_file.setdefault(place.file, [])
        if len(kept) < _KEPT:
            doc = place.doc
            kept.append(doc.problem(place.path, code, message, hint=hint, key=key, offset=offset, width=width))
            if near is not None:
                self._near[id(kept[-1])] = near

    def add_inside(self, place: Place, problem: SyntaxProblem) -> None:
        """Report a mistake inside a text: a condition, a guard, a template."""
        p = problem
        self.add(place, p.code, p.message, hint=p.otherwise, near=p.near, offset=p.offset, width=p.width)

    def is_full(self, place: Place) -> bool:
        """Tell whether so much was found in a file that looking further helps nobody."""
        return len(self._by_file.get(place.file, ())) >= _ENOUGH

    def warn(self, place: Place, message: str, offset: int) -> None:
        """Note a finding that is no error, at a part of a text."""
        mark = place.doc.spot(place.path, offset)
        self.warnings.append(f"{place.file}:{mark.line}:{mark.col}: warning: {message}")

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take over problems that are located already."""
        for problem in problems:
            self._by_file.setdefault(problem.file, []).append(problem)

    def __bool__(self) -> bool:
        return any(self._by_file.values())

    def problems(self) -> tuple[Problem, ...]:
        """Give what was found, file by file, by position, each once and at most 50 of a file."""
        found: list[Problem] = []
        for problems in self._by_file.values():
            found += sorted(dict.fromkeys(problems))[:MAX_PROBLEMS]
        compared = 0
        for index, problem in enumerate(found):
            word, known = self._near.get(id(problem), ("", ()))
            names = list(known)
            compared += len(names)
            if word and compared <= _COMPARED and (hint := did_you_mean(word, names)):
                found[index] = attrs.evolve(problem, hint=hint)
        return tuple(found)

    def raise_all(self) -> None:
        """Raise ``PackError`` when anything was found."""
        if self:
            raise PackError(self.problems())

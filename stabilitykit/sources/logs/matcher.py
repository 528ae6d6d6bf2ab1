"""One set of templates over blocks of lines: prefilter, set, fields, the best template of each place in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from stabilitykit.sources.logs.automaton import compiled, prefilter, search_set
from stabilitykit.sources.logs.lines import Block
from stabilitykit.sources.logs.seams import Joined, Seams
from stabilitykit.sources.logs.template import Template

__all__ = ["Found", "Line", "Matcher"]

_MAX_FOUND = 16
"""Finds in one line; a line of 8 KiB that repeats a template is no news after that."""

_MAX_TRIED = 64
"""Joined lines that are remembered: neighbours ask for the same ones."""


@attrs.frozen
class Found:
    """A template found in a line.

    Parameters
    ----------
    fields
        Value by name, in the field's own unit; absent where the line does not say it.
    confidence
        Filled required fields / required fields x prior.
    start, end
        Where in the line, in bytes.
    """

    template: Template
    fields: Mapping[str, float | str]
    confidence: float
    start: int
    end: int

    @property
    def behaviours(self) -> Mapping[str, str]:
        """Dimension by behaviour."""
        return self.template.behaviours


@attrs.frozen
class Line:
    """A line in which something was found; ``joined`` counts the lines that a terminal had made of it."""

    number: int
    text: bytes
    found: tuple[Found, ...]
    joined: int = 1

    @property
    def behaviours(self) -> dict[str, str]:
        """Dimension by behaviour, of everything found."""
        named: dict[str, str] = {}
        for found in self.found:
            for name, way in found.behaviours.items():
                named.setdefault(name, way)
        return named

    @property
    def confidence(self) -> float:
        """The greatest of what was found."""
        return max(found.confidence for found in self.found)

    @property
    def is_whole(self) -> bool:
        """Whether no required field is missing."""
        return all(found.template.required <= found.fields.keys() for found in self.found)


class Matcher:
    """Templates compiled to one google-re2 set with a literal prefilter.

    Parameters
    ----------
    templates
        The set.

    Examples
    --------
    >>> from stabilitykit.sources.logs import Matcher, shipped_templates
    >>> line = b"Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1474 -> 0.1845"
    >>> found = Matcher(shipped_templates()).match(line)[0]
    >>> found.template.id, found.fields["retracted_count"], dict(found.behaviours)
    ('sglang-retraction', 1.0, {'preemption': 'saturation'})
    """

    def __init__(self, templates: Sequence[Template]) -> None:
        self.templates = tuple(sorted(templates, key=lambda t: t.rank))
        self._set = search_set(t.regex for t in self.templates) if self.templates else None
        self._one = [compiled(t.regex) for t in self.templates]
        literals = [(t.literal, t.ignore_case) for t in self.templates] or [(b"\0", False)]
        self._literals = compiled(prefilter(literals))
        self._hits = compiled(b"(?m)^.*" + prefilter(literals) + b".*$")

    def match(self, line: bytes) -> tuple[Found, ...]:
        """Give what a line holds, best first; overlapping finds give way to the better template."""
        taken: list[Found] = []
        for index in sorted(self._set.Match(line) or ()) if self._set else ():
            template = self.templates[index]
            if template.priority < 0 and taken:
                break
            taken += self._places(template, self._one[index], line, taken)
            if len(taken) >= _MAX_FOUND:
                break
        return tuple(taken)

    def _places(self, template: Template, regex: Any, line: bytes, taken: Sequence[Found]) -> list[Found]:
        new: list[Found] = []
        for match in regex.finditer(line):
            start, end = match.span()
            if any(start < f.end and f.start < end for f in taken):
                continue
            groups = zip(template.fields, match.groups(), strict=True)
            read = {field.name: field.read(raw) for field, raw in groups if raw is not None}
            fields = {name: value for name, value in read.items() if value is not None}
            new.append(Found(template, fields, template.confidence(fields), start, end))
            if len(new) >= _MAX_FOUND:
                break
        return new

    def scan(self, block: Block) -> Iterator[Line]:
        """Give the lines of a block in which something is found, in order.

        A line that a terminal wrapped is joined with its neighbours when only that gives a find.
        """
        seams = Seams(block.data, self._literals)
        used = -1  # the last line that is spoken for
        tried: dict[tuple[int, int], tuple[Found, ...]] = {}
        for index, start, end in seams.candidates(self._hits.finditer(block.data)):
            if index <= used:
                continue
            text = block.data[start:end]
            found = self.match(text) if end > start else ()
            line = Line(block.first + index, text, found)
            if not (found and line.is_whole):
                line = self._unwrapped(block, seams, index, used + 1, line, tried)
            if line.found:
                used = line.number - block.first + line.joined - 1
                yield line

    def _unwrapped(
        self,
        block: Block,
        seams: Seams,
        index: int,
        floor: int,
        line: Line,
        tried: dict[tuple[int, int], tuple[Found, ...]],
    ) -> Line:
        best = line
        if len(tried) > _MAX_TRIED:
            tried.clear()
        for joined in seams.joins(index, floor):
            place = (joined.first, joined.last)
            if place not in tried:
                tried[place] = self._across(joined)
            if not (found := tried[place]):
                continue
            longer = Line(block.first + joined.first, joined.text, found, len(joined.seams) + 1)
            if not best.found or (longer.is_whole and not best.is_whole):
                best = longer
            if best.found and best.is_whole:
                break
        return best

    def _across(self, joined: Joined) -> tuple[Found, ...]:
        """Give what lines hold together, if every break lies inside a find: else they are only neighbours."""
        found = self.match(joined.text)
        return found if all(any(f.start < seam < f.end for f in found) for seam in joined.seams) else ()

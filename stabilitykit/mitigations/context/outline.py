"""A tool result in pieces that can be left out one by one: the members of its JSON, or its sentences and fenced code.

What stays stands as it stood, character by character: a number is not written anew. JSON stays JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import NamedTuple

import attrs

from stabilitykit.mitigations.context.pieces import GAP, joined, pieces_of

__all__ = ["Outline", "Piece", "outline_of"]

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_CLOSED = {"{": "}", "[": "]"}
_GAPS = {"{": '"…": "…"', "[": '"…"'}
"""Stands once in an object or list that lost some of its members."""


class Piece(NamedTuple):
    """A sentence; or a member of JSON: its key and value, of an object or list its key and bracket.

    Parameters
    ----------
    parent
        The piece it is a member of, -1: none.
    text
        As it stands in the whole.
    """

    parent: int
    text: str

    @property
    def adds(self) -> str:
        """What it adds to a text that holds its parent, at most: a comma, and of an object the mark and its end."""
        end = self.text[-1]
        return f", {self.text}{_GAPS[end]}{_CLOSED[end]}" if end in _CLOSED else f", {self.text}"


@attrs.frozen
class Outline:
    """The pieces of a text, parents before their members."""

    pieces: list[Piece]
    is_json: bool

    def write(self, kept: Collection[int]) -> str:
        """Give the text with these pieces, whose parents are kept, too, and marks where others stood.

        Examples
        --------
        >>> found = outline_of('{"flights": [{"id": "HAT1", "price": 10.50}, {"id": "HAT2"}], "total": 2}')
        >>> [piece.text for piece in found.pieces]
        ['{', '"flights": [', '{', '"id": "HAT1"', '"price": 10.50', '{', '"id": "HAT2"', '"total": 2']
        >>> found.write({0, 1, 2, 3})
        '{"flights": [{"id": "HAT1", "…": "…"}, "…"], "…": "…"}'
        >>> outline_of("Found it. It is old. The key is K7.").write({0, 2})
        'Found it. … The key is K7.'
        """
        if not kept:
            return GAP.strip()
        return self._members(kept) if self.is_json else joined([p.text for p in self.pieces], kept)

    def _members(self, kept: Collection[int]) -> str:
        inside: list[list[str]] = [[] for _ in self.pieces]  # of each piece, the last one first
        short: set[int] = set()
        for k in range(len(self.pieces) - 1, 0, -1):
            parent = self.pieces[k].parent
            gap = _GAPS[self.pieces[parent].text[-1]]
            if k in kept and self.pieces[k].text != gap:  # where one stands already it is written anew
                inside[parent].append(self._closed(k, inside[k]))
            elif parent not in short:
                short.add(parent)
                inside[parent].append(gap)
        return self._closed(0, inside[0])

    def _closed(self, k: int, inside: list[str]) -> str:
        text = self.pieces[k].text
        return text + ", ".join(reversed(inside)) + _CLOSED[text[-1]] if text[-1] in _CLOSED else text


def outline_of(text: str) -> Outline:
    """Divide a text: an object or list of JSON into its members, anything else into sentences and fenced code."""
    try:
        is_json = bool(text.strip()) and text.lstrip()[0] in _CLOSED and bool(json.loads(text))
    except (ValueError, RecursionError):
        is_json = False
    if is_json:
        return Outline(_read(text), True)
    return Outline([Piece(-1, piece) for piece in pieces_of(text)], False)


def _read(text: str) -> list[Piece]:
    """Find the members of valid JSON."""
    found: list[Piece] = []
    inside = [-1]
    start, end = -1, -1
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in (",", "}", "]"):
            if start >= 0:
                found.append(Piece(inside[-1], text[start:end]))
            if mark != ",":
                inside.pop()
            start = -1
            continue
        start, end = token.start() if start < 0 else start, token.end()
        if mark in _CLOSED:
            found.append(Piece(inside[-1], text[start:end]))
            inside.append(len(found) - 1)
            start = -1
    return found

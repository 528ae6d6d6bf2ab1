"""Reading a pack and what it extends: depth first, each file once, never outside its root."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import attrs

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.conditions.lexer import ID
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.files.locate import Findings, Place
from stabilitykit.rules.files.reader import MAX_BYTES, read
from stabilitykit.rules.files.shape import File, check_file
from stabilitykit.rules.shipped import shipped_dir, shipped_names, shipped_path

__all__ = ["Source", "read_files"]

MAX_FILES = 256
MAX_CHAIN = 32

Source = str | os.PathLike[str]


@attrs.frozen
class _Target:
    """A file to read: its real path, the name shown in messages, and the folder it may not leave."""

    real: str
    shown: str
    root: str


@attrs.define
class _Reading:
    findings: Findings
    files: list[File] = attrs.field(factory=list)
    done: set[str] = attrs.field(factory=set)
    chain: list[_Target] = attrs.field(factory=list)

    def visit(self, target: _Target, said: Place | None) -> None:
        """Read a file and everything below it; ``said`` is where its name stands."""
        names = [t.shown for t in self.chain]
        if target.real in (t.real for t in self.chain):
            start = next(i for i, t in enumerate(self.chain) if t.real == target.real)
            self._refuse(
                said, target.shown, "`extends` goes in a circle: " + " -> ".join([*names[start:], target.shown])
            )
        elif target.real in self.done:
            return
        elif len(self.chain) >= MAX_CHAIN or len(self.done) >= MAX_FILES:
            self._refuse(said, target.shown, f"more than {MAX_FILES} files, or {MAX_CHAIN} behind one another")
        else:
            self._read(target, said)

    def _read(self, target: _Target, said: Place | None) -> None:
        self.done.add(target.real)
        source = _bytes_of(target.real)
        if isinstance(source, str):
            self._refuse(said, target.shown, source)
            return
        try:
            place = Place(read(source, target.shown))
        except PackError as error:
            self.findings.extend(error.problems)
            self.findings.incomplete = True
            return
        place.doc.home = os.path.dirname(target.real), target.root
        file = check_file(self.findings, place)
        if file is None:
            self.findings.incomplete = True
            return
        if file.extends is None:
            self.findings.incomplete = True
        self.chain.append(target)
        for index, entry in enumerate(file.extends or ()):
            where = place.child("extends", index)
            if self.findings.is_full(where):
                self.findings.incomplete = True
                break
            found = _resolve(entry, target)
            if isinstance(found, _Target):
                self.visit(found, where)
            else:
                self._refuse(where, target.shown, *found)
        self.chain.pop()
        self.files.append(file)

    def _refuse(self, said: Place | None, shown: str, message: str, hint: str = "") -> None:
        self.findings.incomplete = True
        if said is None:
            self.findings.extend([Problem(shown, 1, 1, "SK321", message, hint=hint)])
        else:
            self.findings.add(said, "SK321", message, hint=hint)


def read_files(findings: Findings, sources: Source | Sequence[Source], root: Source | None) -> list[File]:
    """Read packs with everything they extend.

    Parameters
    ----------
    sources
        A shipped pack's name, a path (contains ``/`` or ends in ``.yaml``), or several.
    root
        Folder that ``extends`` may not leave; by default the folder of each source.

    Returns
    -------
    list of File
        In the order in which later wins.
    """
    reading = _Reading(findings)
    listed: Sequence[Source] = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    if not listed:
        findings.extend([Problem("<sources>", 1, 1, "SK321", "no pack was named")])
    for source in listed:
        target = _source(source, root)
        if isinstance(target, Problem):
            findings.extend([target])
            findings.incomplete = True
        else:
            reading.visit(target, None)
    return reading.files


def _source(source: Source, root: Source | None) -> _Target | Problem:
    name = os.fspath(source)
    if isinstance(source, str) and "/" not in name and os.sep not in name and not name.endswith(".yaml"):
        path = shipped_path(name) if ID.fullmatch(name) else None
        if path is None:
            return Problem(
                name, 1, 1, "SK321", f"`{name}` is no shipped pack", hint=did_you_mean(name, shipped_names())
            )
        return _shipped(path)
    if "\0" in name:
        return Problem("<sources>", 1, 1, "SK321", "a path cannot contain NUL")
    real = os.path.realpath(name)
    return _Target(real, name, os.path.realpath(root) if root is not None else os.path.dirname(real))


def _shipped(path: Path) -> _Target:
    return _Target(os.path.realpath(path), str(path), os.path.realpath(shipped_dir()))


def _resolve(entry: str, parent: _Target) -> _Target | tuple[str, str]:
    """Find what an entry of ``extends`` names; else say what is wrong with it, and a hint."""
    if "\0" in entry:
        return "a path cannot contain NUL", ""
    if "/" not in entry:
        path = shipped_path(entry) if ID.fullmatch(entry) else None
        if path is not None:
            return _shipped(path)
        hint = (
            f"a path contains `/`: `./{entry}`"
            if entry.endswith((".yaml", ".yml"))
            else did_you_mean(entry, shipped_names())
        )
        return f"`{entry}` is no shipped pack", hint
    if os.path.isabs(entry):
        return "a path in `extends` must be relative to its file", ""
    # Relative to where the file says it is; the real path must stay under the root, links resolved.
    real = os.path.realpath(os.path.join(os.path.dirname(parent.real), entry))
    if os.path.commonpath([real, parent.root]) != parent.root:
        return f"`{entry}` leaves the folder of the first pack file", ""
    return _Target(real, os.path.normpath(os.path.join(os.path.dirname(parent.shown), entry)), parent.root)


def _bytes_of(path: str) -> bytes | str:
    """Read a file, at most one byte over the reader's limit; else say why it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is not a regular file"
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return "there is no such pack file"
    except OSError as error:
        return f"it cannot be read: {os.strerror(error.errno) if error.errno else 'unknown error'}"

"""The shapes a pack is laid out in: inputs, rows of memory and the spans in them, blocks of values."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.rules.pack import Node
from stabilitykit.signals import TIME, SignalSpec

__all__ = ["ArrayInput", "Blocks", "RowGrower", "RowLayout", "ScalarInput", "Span", "walk"]


TIMES = (TIME, "replica_sample_s", "device_sample_s")
"""Fields of a Turn that say when it, or a sample on it, was measured; by scope."""


@attrs.frozen
class ScalarInput:
    """One scalar signal that the pack reads; ``reported`` is False for the parts of a derived one."""

    spec: SignalSpec
    declared: bool
    reported: bool


@attrs.frozen
class ArrayInput:
    """One array signal that the pack reads; ``length`` is enforced when not 0."""

    spec: SignalSpec
    length: int


@attrs.frozen
class Span:
    """A named piece of a row: what survives a reload, an export, a change of model.

    ``kind`` is f8, u8, u4, u2 (``at`` and ``size`` in elements of that type) or bit (one rule: ``at``
    is the first word of its 64, ``size`` its bit).
    """

    name: str
    kind: str
    at: int
    size: int


@attrs.frozen(eq=False)
class RowLayout:
    """Memory of one scope instance: a row of 8-byte units, and a vector block."""

    template: NDArray[np.float64]
    spans: tuple[Span, ...]
    vector: int
    machine: int
    known: int
    reported: int
    model_spans: tuple[Span, ...] = ()
    rebase: dict[str, tuple[Span, ...]] = attrs.field(factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the row, without the vector block."""
        return int(self.template.nbytes)


@attrs.define
class Blocks:
    """Hands out slots block by block, and resolves them once the blocks are complete."""

    sizes: list[int] = attrs.field(factory=lambda: [0, 0, 0, 0])

    def __call__(self, block: int) -> int:
        """Give a fresh slot of a block."""
        self.sizes[block] += 1
        return block << 20 | self.sizes[block] - 1

    def start(self, block: int) -> int:
        """Give the first slot of a block."""
        return sum(self.sizes[:block])

    def resolve(self, slot: int) -> int:
        """Give the final place of a slot."""
        return self.start(slot >> 20) + (slot & (1 << 20) - 1)


class RowGrower:
    """Grows one row of 8-byte units."""

    def __init__(self) -> None:
        self.size = 0
        self.spans: list[Span] = []
        self.init: dict[int, float] = {}

    def take(self, name: str, kind: str, size: int, init: float = 0.0) -> int:
        """Take a piece of the row; gives its place."""
        at = self.size
        self.size += size
        if name and size:
            self.spans.append(Span(name, kind, at, size))
        if init != 0.0:
            self.init.update(dict.fromkeys(range(at, at + size), init))
        return at

    def template(self) -> NDArray[np.float64]:
        """Give the row of a newborn."""
        row = np.zeros(max(self.size, 1))
        for at, value in self.init.items():
            row[at] = value
        return row


def walk(node: Node) -> Iterator[Node]:
    """Give a node and everything below it."""
    yield node
    for a in node.args:
        yield from walk(a)

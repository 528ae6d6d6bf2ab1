"""The state machine: its tables, and one step of it.

A step counts the turn (``dwell``), moves the counters of every transition that leaves the
present state, and takes the first transition that holds; then no second step this turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from stabilitykit.kernels import kernel
from stabilitykit.kernels.bits import popcount64
from stabilitykit.kernels.blob import Blob

__all__ = ["MACHINE_HEADER", "build_machine_tables", "machine_words", "step_machine"]

(G_COUNT, G_FROM, G_TO, G_CLAUSES_OF, G_ATOMS_OF, G_ATOM, G_MASK) = range(7)
MACHINE_HEADER = 7

(W_STATE, W_DWELL, W_COUNTERS) = range(3)

U0 = np.uint64(0)
U1 = np.uint64(1)
_NEGATED, _EMPTY = 1, 2


class GuardNode(Protocol):
    """A checked guard, as ``rules.pack.Node`` has it (siblings do not import each other)."""

    op: str
    name: str
    value: float
    n: int

    @property
    def args(self) -> Sequence[Any]:
        """Give the operands."""


class RuleFacts(Protocol):
    """What a guard asks about a rule of its scope."""

    @property
    def id(self) -> str:
        """Name the rule."""

    @property
    def severity(self) -> str:
        """Give info, warning or critical."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Give its tags."""


def machine_words(transitions: int) -> int:
    """Give the uint64 words one instance needs: state, dwell, and a counter per transition."""
    return W_COUNTERS + transitions


def build_machine_tables(
    states: Sequence[str],
    transitions: Sequence[Any],
    rules: Sequence[RuleFacts],
    bits: Mapping[str, int],
    words: int,
    blob: Blob,
    header: int,
) -> None:
    """Write the machine of one scope into the blob.

    Parameters
    ----------
    rules
        Every rule of the pack; guards range over those in ``bits``, the scope's own.
    bits, words
        Bit of each rule of this scope, and the number of 64-bit words.
    header
        Where the machine section of the int32 header starts.
    """
    index = {name: i for i, name in enumerate(states)}
    own = [r for r in rules if r.id in bits]
    clauses_of, atoms_of = [0], [0]
    atoms: list[int] = []
    masks: list[int] = []
    known: dict[tuple[str, str, float], int] = {}
    for transition in transitions:
        for clause in _clauses(transition.when, negate=False) if transition.when is not None else []:
            for node, negate in clause:
                key = (node.op, node.name, node.value)
                mask = known[key] if key in known else known.setdefault(key, _mask(node, own, bits))
                need = node.n if node.op == "atleast" else 1
                atoms += [need, (_NEGATED if negate else 0) | (0 if mask else _EMPTY)]
                masks += [mask >> 64 * w & (1 << 64) - 1 for w in range(words)]
            atoms_of.append(len(atoms) // 2)
        clauses_of.append(len(atoms_of) - 1)
    head = blob.header
    head[header + G_COUNT] = len(transitions)
    head[header + G_FROM] = blob.words(sum(1 << index[s] for s in t.from_) for t in transitions)
    head[header + G_TO] = blob.ints(v for t in transitions for v in (index[t.to], t.for_turns, t.after))
    head[header + G_CLAUSES_OF] = blob.ints(clauses_of)
    head[header + G_ATOMS_OF] = blob.ints(atoms_of)
    head[header + G_ATOM] = blob.ints(atoms)
    head[header + G_MASK] = blob.words(masks)


def _clauses(node: GuardNode, *, negate: bool) -> list[list[tuple[GuardNode, bool]]]:
    if node.op == "not":
        return _clauses(node.args[0], negate=not negate)
    if node.op in ("and", "or"):
        left, right = (_clauses(a, negate=negate) for a in node.args)
        if (node.op == "or") != negate:
            return left + right
        return [a + b for a in left for b in right]
    return [[(node, negate)]]


def _mask(node: GuardNode, own: Sequence[RuleFacts], bits: Mapping[str, int]) -> int:
    severities = ("info", "warning", "critical")
    mask = 0
    for rule in own:
        if node.op == "rule":
            hit = rule.id == node.name
        else:
            hit = severities.index(rule.severity) >= node.value and (not node.name or node.name in rule.tags)
        mask |= int(hit) << bits[rule.id]
    return mask


@kernel
def guard_atom(atom: int, words: int, out: Any, ti: Any, tu: Any, hb: int) -> int:
    """Give the verdict 0, 1, 2 of one atom over the matched and unknown words in out."""
    p = ti[hb + G_ATOM] + 2 * atom
    mask = ti[hb + G_MASK] + atom * words
    matched = 0
    known = U0
    for w in range(words):
        z = tu[mask + w]
        matched += popcount64(out[w] & z)
        known |= z & ~out[words + w]
    v = 0
    if matched >= ti[p]:
        v = 2
    elif known == U0 and ti[p + 1] & _EMPTY == 0:
        v = 1
    return 2 - v if ti[p + 1] & _NEGATED != 0 else v


@kernel
def guard(transition: int, words: int, out: Any, ti: Any, tu: Any, hb: int) -> int:
    """Give the verdict of one transition's guard; without `when` it is true."""
    first = ti[ti[hb + G_CLAUSES_OF] + transition]
    last = ti[ti[hb + G_CLAUSES_OF] + transition + 1]
    if first == last:
        return 2
    best = 0
    for c in range(first, last):
        least = 2
        for a in range(ti[ti[hb + G_ATOMS_OF] + c], ti[ti[hb + G_ATOMS_OF] + c + 1]):
            least = min(least, guard_atom(a, words, out, ti, tu, hb))
        best = max(best, least)
    return best


@kernel
def step_machine(u: Any, at: int, words: int, out: Any, ti: Any, tu: Any, hb: int) -> int:
    """Make at most one step; gives ``state | previous << 8 | entered << 16``.

    Parameters
    ----------
    u, at
        uint64 memory of the scope, and where its machine words start in it.
    words, out
        The scope's matched and unknown words.
    hb
        Where the machine section starts in ``ti``.
    """
    state = int(u[at + W_STATE])
    dwell = int(u[at + W_DWELL]) + 1
    taken = -1
    count = ti[hb + G_COUNT]
    for k in range(count):
        if (tu[ti[hb + G_FROM] + k] >> np.uint64(state)) & U1 == U0:
            continue
        v = guard(k, words, out, ti, tu, hb)
        c = int(u[at + W_COUNTERS + k])
        if v == 2:
            c += 1
        elif v == 0:
            c = 0
        u[at + W_COUNTERS + k] = np.uint64(c)
        p = ti[hb + G_TO] + 3 * k
        if taken < 0 and v == 2 and c >= ti[p + 1] and dwell >= ti[p + 2]:
            taken = k
    if taken < 0:
        u[at + W_DWELL] = np.uint64(dwell)
        return state | state << 8
    new = ti[ti[hb + G_TO] + 3 * taken]
    u[at + W_STATE] = np.uint64(new)
    u[at + W_DWELL] = U0
    for k in range(count):
        u[at + W_COUNTERS + k] = U0
    return new | state << 8 | 1 << 16

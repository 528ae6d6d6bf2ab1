"""Signals that were known once and have been absent for longer than a rule holds on to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stabilitykit.compiled.program import walk
from stabilitykit.decision import Fault
from stabilitykit.rules.pack import Rule
from stabilitykit.session import Memory
from stabilitykit.signals import TIME

if TYPE_CHECKING:
    from stabilitykit.engine.generation import Generation

__all__ = ["stale_signals"]


def stale_signals(live: Generation, session: Memory | None, replica: Memory, device: Memory) -> list[Fault]:
    """Name the signals whose absence has just outlasted a rule's hold_limit, once per signal."""
    faults: list[Fault] = []
    for scope, memory in enumerate((session, replica, device)):
        if memory is None:
            continue
        for rule in _expired(live, scope):
            names = [n for n in _signals_of(live, rule) if _is_newly_stale(live, n, scope, memory)]
            faults += [Fault("signal_stale", name, f"rule {rule.id}") for name in names]
    return faults


def _signals_of(live: Generation, rule: Rule) -> list[str]:
    names: list[str] = []
    for node in walk(rule.when):
        if node.op == "sig":
            names.append(node.name)
        elif node.op == "out":
            detector = next(d for d in live.pack.detectors if d.id == node.name.split(".")[0])
            names += [s for s in detector.inputs.values() if s not in ("", TIME)]
    return list(dict.fromkeys(names))


def _is_newly_stale(live: Generation, name: str, scope: int, memory: Memory) -> bool:
    names = [s.spec.name for s in live.program.scalars] + list(live.array_names)
    if name not in names:
        return False
    k = names.index(name)
    layout = live.program.rows[scope]
    words = memory.rows.view(memory.row).view(np.uint64)
    bit, known, reported = np.uint64(1 << (k & 63)), layout.known + (k >> 6), layout.reported + (k >> 6)
    present = words[known + live.program.fault_words] & bit
    if present or not words[known] & bit or words[reported] & bit:
        return False
    words[reported] |= bit
    return True


def _expired(live: Generation, scope: int) -> list[Rule]:
    """List the rules of a scope whose unknown just outlasted their hold_limit."""
    tables = live.program.rules[scope]
    at = live.program.out_at[scope] + 3 * tables.words
    found = [i for i, bit in tables.bits.items() if live.out_words[at + (bit >> 6)] >> (bit & 63) & 1]
    return [live.pack.rule(rule_id) for rule_id in found]

"""The fingerprint of a resolved pack: equal fingerprints decide equally."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from stabilitykit.decision import Action
from stabilitykit.rules.pack import Pack

__all__ = ["fingerprint"]


def _actions(actions: Iterable[Action]) -> list[Any]:
    return [[a.name, dict(a.params)] for a in actions]


def fingerprint(pack: Pack) -> str:
    """Hash everything of a pack that decides: not descriptions, files or lines.

    Returns
    -------
    str
        Hex digest of SHA-256 over a canonical JSON text.
    """
    content = {
        "name": pack.name,
        "params": {p.name: [p.value, p.unit] for p in pack.params.values()},
        "signals": {s.name: [s.unit, s.scope, s.kind, s.lo, s.hi, s.values] for s in pack.signals.values()},
        "detectors": [[d.id, d.spec.type, dict(d.inputs), dict(d.settings), d.scope] for d in pack.detectors],
        "rules": [
            [
                *(r.id, r.when.text, r.scope, r.severity, r.for_turns, r.count, r.keep_for, r.cooldown),
                *(r.on_missing, r.hold_limit, _actions(r.do), r.reason, r.tags),
            ]
            for r in pack.rules
        ],
        "machine": [
            pack.initial,
            [[s.name, _actions(s.do), _actions(s.while_), s.was] for s in pack.states],
            [[t.from_, t.to, t.when.text if t.when else "", t.for_turns, t.after] for t in pack.transitions],
        ],
        "actions": [
            [a.name, a.order, a.group, a.rank, a.many, a.drops, [[p.name, p.default, p.unit] for p in a.params]]
            for a in pack.actions.values()
        ],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

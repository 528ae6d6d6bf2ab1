"""Decisions in words: reasons, text, JSON. Rendered on demand, never on the hot path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from stabilitykit.compiled.program import DERIVED
from stabilitykit.decision import Action, Decision, Match, Reason
from stabilitykit.engine.evidence import Evidence, Known, deciding, nearest_change
from stabilitykit.rules.pack import Node, Pack, Rule
from stabilitykit.rules.tables import STREAK_WORDS
from stabilitykit.rules.templates import UNKNOWN
from stabilitykit.rules.templates import render as render_template
from stabilitykit.signals import CATALOGUE, SCOPES, SignalSpec

if TYPE_CHECKING:
    from stabilitykit.engine.generation import Generation

__all__ = ["known_names", "reason_line", "reasons", "render", "shown", "to_dict"]

_HOLDS = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}
_PLAIN_UNITS = ("", "count", "ratio", "bool", "enum", "number")


def reasons(live: Generation, decision: Decision) -> tuple[Reason, ...]:
    """Say why each rule matches, most severe first."""
    matches = decision.matches
    if not matches:
        return ()
    evidence = _evidence(live, decision)
    order = {"critical": 0, "warning": 1, "info": 2}
    matched = sorted(matches, key=lambda m: order[m.severity])
    return tuple(_reason(live, decision, m, evidence) for m in matched)


def _evidence(live: Generation, decision: Decision) -> Evidence:
    p = live.program
    return Evidence(p.slots, p.node_slots, p.rule_slots, live.values(decision).tolist())


def _reason(live: Generation, decision: Decision, match: Match, evidence: Evidence) -> Reason:
    rule = live.pack.rule(match.rule)
    found = deciding(rule.when, evidence)
    streak, need = _streak(live, decision, rule)
    return Reason(
        rule=rule.id,
        severity=rule.severity,
        scope=rule.scope,
        signal=found.left.text,
        op=found.op,
        value=found.value,
        threshold=found.threshold,
        unit=found.left.unit,
        margin=found.margin,
        streak=streak,
        need=need,
        counterfactual=_counterfactual(live, match, evidence, streak),
        text=_text(live, rule, evidence),
    )


def _counterfactual(live: Generation, match: Match, evidence: Evidence, streak: int) -> str:
    rule = live.pack.rule(match.rule)
    if rule.keep_for and (rule.cooldown or not match.fired):
        return ""  # it may have matched before: then it would be kept
    if rule.count and not 0 <= streak <= rule.count[0]:
        return ""  # hits enough without this turn
    known = live.known
    change = nearest_change(rule, evidence, known)
    if change is None:
        return ""
    shown = number(change.operand, change.value, known.specs, is_exact=True)
    held = f", {' and '.join(change.held)} as on this turn" if change.held else ""
    return f"{change.operand.text} {change.op} {shown}{held}"


def known_names(pack: Pack) -> Known:
    """Collect the signals of a pack, and what is made of each."""
    feeds: dict[str, set[str]] = {}
    for name, _, parts in DERIVED:
        for part in parts:
            feeds.setdefault(part, set()).add(name)
    for detector in pack.detectors:
        outputs = {f"{detector.id}.{output.name}" for output in detector.spec.outputs}
        inputs = set(detector.inputs.values())
        for signal in inputs | {base for base, made in feeds.items() if made & inputs}:
            feeds.setdefault(signal, set()).update(outputs)
    return Known({**CATALOGUE, **pack.signals}, {name: frozenset(made) for name, made in feeds.items()})


def _streak(live: Generation, decision: Decision, rule: Rule) -> tuple[int, int]:
    """Give turns counted and wanted; -1 where the decision does not carry the memory."""
    need = rule.count[0] if rule.count else rule.for_turns
    scope = SCOPES.index(rule.scope)
    if not decision._memory or rule.scope != decision.scope:
        return -1, need
    words = np.frombuffer(decision._memory, np.uint64)
    tables = live.program.rules[scope]
    if rule.count:
        name = f"{rule.memory or rule.id}:history"
        at = next(m[2] for m in tables.memory if m[0] == name) - tables.history + STREAK_WORDS * tables.words
        return (int(words[at]) & (1 << rule.count[1]) - 1).bit_count(), need
    bit = tables.bits[rule.id]
    base = (bit >> 6) * STREAK_WORDS
    return sum((int(words[base + k]) >> (bit & 63) & 1) << k for k in range(STREAK_WORDS)), need


def _text(live: Generation, rule: Rule, evidence: Evidence) -> str:
    if not rule.reason:
        return ""
    values: dict[str, Any] = {}
    p = live.program
    for name in p.slots:
        value = evidence.value(Node("out" if "." in name else "sig", name=name, text=f"\0{name}"))
        spec = CATALOGUE.get(name) or p.pack.signals.get(name)
        shown: Any = UNKNOWN if math.isnan(value) else value
        if spec is not None and spec.kind in ("enum", "bool") and shown is not UNKNOWN:
            shown = spec.values[int(value)] if spec.kind == "enum" else str(value != 0.0).lower()
        detector, _, output = name.partition(".")
        if output:
            values.setdefault(detector, {})[output] = shown
        else:
            values[name] = shown
    values["params"] = {name: param.value for name, param in p.pack.params.items()}
    return render_template(rule.reason, values)


def number(node: Node, value: float, specs: Mapping[str, SignalSpec] = CATALOGUE, *, is_exact: bool = False) -> str:
    """Show a value with its unit."""
    if math.isnan(value):
        return "unknown"
    if node.unit == "enum":
        spec = specs.get(node.name)
        if spec is not None and value == int(value) and 0 <= value < len(spec.values):
            return spec.values[int(value)]
    if node.unit == "bool":
        return "true" if value else "false"
    text = f"{value:.6g}"
    if is_exact and float(text) != value:
        text = repr(value)
    return text if node.unit in _PLAIN_UNITS else f"{text} {node.unit}"


def shown(value: float, unit: str, signal: str = "") -> str:
    """Show a value of a reason: with its unit, or as the word of an enum."""
    return number(Node("num", name=signal, unit=unit), value)


def render(live: Generation, decision: Decision) -> str:
    """Write the decision as a few lines of text."""
    changed = "" if decision.previous == decision.state else f" (was {decision.previous})"
    subject = "session" if decision.scope == "session" else decision.scope
    lines = [f"turn {decision.turn_id}: {subject} is {decision.state}{changed}"]
    lines += [f"  {scope}: {state}" for scope, state in decision.scopes.items()]
    fired = set(decision.fired)
    for r in decision.reasons:
        mark = " fired" if r.rule in fired else ""
        run = "" if r.streak < 0 else f", {r.streak}/{r.need}"
        lines.append(f"  {r.severity} {r.rule}{mark}: {reason_line(r)}{run}")
        if r.text:
            lines.append(f"    {r.text}")
        if r.counterfactual:
            lines.append(f"    would not match if {r.counterfactual}")
    for action in decision.actions:
        lines.append(f"  do {_action(action)}  [{action.source}]")
    lines += [f"  not {s.action.name}: {s.winner} goes before it" for s in decision.suppressed]
    lines += [f"  fault {' '.join(x for x in (f.kind, f.signal, f.detail) if x)}" for f in decision.faults]
    return "\n".join(lines)


def reason_line(r: Reason) -> str:
    """Say in one phrase what was compared: signal, value, threshold, margin."""
    if math.isnan(r.value) or math.isnan(r.threshold):
        return f"{r.signal} unknown, kept from before"
    if r.margin < 0 or not _HOLDS[r.op](r.value, r.threshold):
        value, threshold = shown(r.value, r.unit, r.signal), shown(r.threshold, r.unit, r.signal)
        return f"{r.signal} = {value}, no longer {r.op} {threshold}, kept from before"
    margin = "" if r.unit in ("bool", "enum") else f", margin {shown(r.margin, r.unit)}"
    return f"{r.signal} = {shown(r.value, r.unit, r.signal)} {r.op} {shown(r.threshold, r.unit, r.signal)}{margin}"


def _action(action: Action) -> str:
    inside = ", ".join(f"{k}={v}" for k, v in action.params.items())
    return f"{action.name}({inside})"


def to_dict(live: Generation, decision: Decision) -> dict[str, Any]:
    """Give the decision as JSON values: unknown numbers are null, an identity in bytes is hexadecimal."""
    return {
        "scope": decision.scope,
        "id": _id(decision.session_id),
        "tenant": _id(decision.tenant),
        "turn_id": decision.turn_id,
        "state": decision.state,
        "previous": decision.previous,
        "scopes": dict(decision.scopes),
        "matches": [attrs.asdict(m) for m in decision.matches],
        "fired": list(decision.fired),
        "actions": [_action_dict(a) for a in decision.actions],
        "suppressed": [{**_action_dict(s.action), "winner": s.winner} for s in decision.suppressed],
        "reasons": [_reason_dict(r) for r in decision.reasons],
        "faults": [attrs.asdict(f) for f in decision.faults],
        "pack": {"name": live.pack.name, "fingerprint": live.fingerprint, "generation": live.number},
    }


def _id(name: Any) -> str:
    return name if isinstance(name, str) else name.hex()


def _action_dict(action: Action) -> dict[str, Any]:
    return {"name": action.name, "params": dict(action.params), "source": action.source}


def _reason_dict(reason: Reason) -> dict[str, Any]:
    fields = attrs.asdict(reason)
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}

"""A checked pack, written as YAML of the rule language: for tests of the loader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stabilitykit.decision import Action, ActionSpec, ParamSpec
from stabilitykit.rules.pack import Pack, ParamValue, Rule, State, Transition
from stabilitykit.signals import SignalSpec

__all__ = ["to_yaml"]


def to_yaml(pack: Pack) -> str:
    """Write a pack; every text is quoted, everything that has a default is left out at its default.

    Examples
    --------
    >>> from tests.naive.random_packs import random_pack
    >>> to_yaml(random_pack(1)).splitlines()[:2]
    ['stabilitykit: 1', 'pack: "random-1"']
    """
    lines = ["stabilitykit: 1", f"pack: {quoted(pack.name)}"]
    lines += section("params", [f"{p.name}: {{default: {literal(p)}}}" for p in pack.params.values()])
    lines += section("signals", [f"{s.name}: {signal_text(s)}" for s in pack.signals.values()])
    uses = [(u.id, {"type": u.spec.type, **u.inputs, **u.settings, **scope_field(u.widened, u.scope)})
            for u in pack.detectors]  # fmt: skip
    lines += section("detectors", [f"{name}: {flow(fields)}" for name, fields in uses])
    lines += section("rules", [line for rule in pack.rules for line in rule_lines(rule, pack.actions)])
    lines += ["machine:", f"  initial: {quoted(pack.initial)}", "  states:"]
    lines += [f"    {line}" for state in pack.states for line in state_lines(state, pack.actions)]
    lines += ["  transitions:", *[f"    - {transition_text(t)}" for t in pack.transitions]]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Write a double-quoted scalar."""
    return json.dumps(text)


def section(name: str, lines: list[str]) -> list[str]:
    """Write a top-level key with its indented lines, or nothing."""
    return [f"{name}:", *[f"  {line}" for line in lines]] if lines else []


def flow(fields: Mapping[str, Any]) -> str:
    """Write a flow mapping."""
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in fields.items()) + "}"


def scope_field(is_widened: bool, scope: str) -> dict[str, str]:
    """Name the scope of a detector where it is not the narrowest of its inputs."""
    return {"scope": scope} if is_widened else {}


def literal(param: ParamValue) -> str:
    """Write the value of a param with its unit."""
    if param.unit == "ratio":  # a bare number would be a count
        return quoted(f"{param.value * 100:g} %")
    return amount(param.value, param.unit)


def amount(value: float, unit: str) -> str:
    """Write a number: bare for counts and ratios, quoted with its unit otherwise."""
    text = repr(value).removesuffix(".0")
    return text if unit in ("count", "ratio") else quoted(f"{text} {unit}")


def signal_text(spec: SignalSpec) -> str:
    """Write the fields of a declared signal."""
    limits = f"min: {amount(spec.lo, spec.unit)}, max: {amount(spec.hi, spec.unit)}"
    return f"{{unit: {spec.unit}, scope: {spec.scope}, {limits}, doc: {quoted(spec.doc)}}}"


def action_text(action: Action, table: Mapping[str, ActionSpec]) -> str:
    """Write one action with all its parameters."""
    spec = table[action.name]
    fields = [f"{p.name}: {param_text(p, action.params[p.name])}" for p in spec.params]
    return "{" + action.name + ": {" + ", ".join(fields) + "}}"


def param_text(spec: ParamSpec, value: Any) -> str:
    """Write a parameter of an action."""
    return amount(value, spec.unit) if spec.kind in ("number", "count") else json.dumps(value)


def actions_text(actions: Iterable[Action], table: Mapping[str, ActionSpec]) -> str:
    """Write a list of actions."""
    return "[" + ", ".join(action_text(action, table) for action in actions) + "]"


def rule_lines(rule: Rule, table: Mapping[str, ActionSpec]) -> list[str]:
    """Write a rule as an item of a block sequence."""
    word = "turns" if rule.scope == "session" else "samples"
    lines = [f"- rule: {rule.id}", f"  when: {quoted(rule.source)}", f"  severity: {rule.severity}"]
    times = [("for", rule.for_turns, 1), ("keep_for", rule.keep_for, 0), ("cooldown", rule.cooldown, 0)]
    times += [("hold_limit", rule.hold_limit, 20)]
    lines += [f'  {key}: "{n} {word}"' for key, n, default in times if n != default]
    if rule.count is not None:
        lines += [f'  count: {{at_least: {rule.count[0]}, in: "{rule.count[1]} {word}"}}']
    lines += [f"  on_missing: {rule.on_missing}"] if rule.on_missing != "hold" else []
    lines += [f"  do: {actions_text(rule.do, table)}"] if rule.do else []
    return lines + ([f"  tags: {json.dumps(list(rule.tags))}"] if rule.tags else [])


def state_lines(state: State, table: Mapping[str, ActionSpec]) -> list[str]:
    """Write a state as an item of a block sequence."""
    lines = [f"- state: {state.name}"]
    lines += [f"  do: {actions_text(state.do, table)}"] if state.do else []
    return lines + ([f"  while: {actions_text(state.while_, table)}"] if state.while_ else [])


def transition_text(transition: Transition) -> str:
    """Write a transition as a flow mapping."""
    fields: dict[str, Any] = {"from": list(transition.from_), "to": transition.to}
    if transition.when is not None:
        text = transition.when.text
        fields["when"] = text if transition.for_turns == 1 else f"{text} for {transition.for_turns} turns"
    if transition.after:
        fields["after"] = f"{transition.after} turns"
    return flow(fields)

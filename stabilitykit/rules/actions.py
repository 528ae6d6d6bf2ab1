"""Actions of a pack: those it declares, and the ``do`` and ``while`` lists that ask for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from stabilitykit.decision import Action, ActionSpec, ParamSpec
from stabilitykit.rules.conditions.lexer import NAME
from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import Item, check_map, check_required
from stabilitykit.rules.values import Codes, Values

__all__ = ["declare_actions", "plan_actions"]

_CODES = Codes(type="SK417", range="SK417")


def declare_actions(
    findings: Findings, items: Mapping[str, Item], known: Mapping[str, ActionSpec], values: Values
) -> dict[str, ActionSpec]:
    """Give the action table with the pack's own actions behind the known ones, by name."""
    table = dict(known)
    first = 1 + max((a.order for a in known.values()), default=-1)
    for order, (name, item) in enumerate(sorted(items.items()), first):
        if name in known:
            findings.add(item.place, "SK309", f"`{name}` is an action of the language", key=True)
        elif not item.broken:
            table[name] = _declare(findings, item, order, values)
    for name in items:
        if name in table and name not in known:
            _check_declared(findings, items[name], table)
    return table


def _declare(findings: Findings, item: Item, order: int, values: Values) -> ActionSpec:
    params = item.get("params", {})
    specs = []
    if params is not BAD:
        for name, raw in params.items():
            spec = _declare_param(findings, item.at("params").child(name), str(name), raw, values)
            specs += [spec] if spec else []

    def sound(field: str, default: Any) -> Any:
        value = item.get(field, default)
        return default if value is BAD else value

    return ActionSpec(
        item.id,
        order,
        sound("doc", ""),
        tuple(sorted(specs, key=lambda p: p.name)),
        sound("group", ""),
        sound("rank", 0),
        sound("many", False),
        tuple(sound("drops", ())),
    )


def _declare_param(findings: Findings, place: Place, name: str, raw: Any, values: Values) -> ParamSpec | None:
    if not NAME.fullmatch(name):
        findings.add(place, "SK205", "a name is lower-case letters, digits and `_`", key=True)
        return None
    what = f"parameter `{name}`"
    fields = check_map(findings, place, raw, keys.ACTION_PARAM, what)
    if type(raw) is not dict:
        return None
    check_required(findings, place, fields, keys.ACTION_PARAM, what)
    default = values.literal(place.child("default"), fields.get("default"))
    words = fields.get("values")
    if default is None or words is BAD:
        return None
    unit = default.unit or "count"
    kind: Literal["number", "count", "bool", "enum", "word"] = "number"
    if default.kind == "bool":
        kind, unit = "bool", "bool"
    elif default.kind == "word":
        kind, unit = ("enum", "enum") if words else ("word", "word")
    elif unit == "count" and default.is_whole:
        kind = "count"
    spec = ParamSpec(name, None, str(fields.get("doc") or ""), unit, kind, -math.inf, math.inf, tuple(words or ()))
    lo = values.typed(place.child("min"), fields["min"], spec, _CODES) if fields.get("min") is not None else spec.lo
    hi = values.typed(place.child("max"), fields["max"], spec, _CODES) if fields.get("max") is not None else spec.hi
    if lo is BAD or hi is BAD or isinstance(lo, str) or isinstance(hi, str):
        return None
    spec = attrs.evolve(spec, lo=lo, hi=hi)
    value = values.typed(place.child("default"), fields["default"], spec, _CODES)
    return None if value is BAD else attrs.evolve(spec, default=value)


def _check_declared(findings: Findings, item: Item, table: Mapping[str, ActionSpec]) -> None:
    spec = table[item.id]
    for index, name in enumerate(spec.drops):
        if name not in table:
            place = item.at("drops").child(index)
            findings.add(place, "SK304", f"unknown action {show(name)}", near=(name, table))
    if bool(spec.group) != bool(spec.rank):
        findings.add(item.place, "SK202", f"action `{item.id}` needs both `group` and `rank`, or neither", key=True)
        return
    if spec.rank < 0:
        findings.add(item.at("rank"), "SK206", "a rank is 1 or more")
    same = [a.name for a in table.values() if spec.group and a.group == spec.group and a.rank == spec.rank]
    if len(same) > 1 and spec.name != min(same, key=lambda n: table[n].order):
        other = next(n for n in same if n != spec.name)
        findings.add(item.at("rank"), "SK206", f"rank {spec.rank} of group `{spec.group}` belongs to `{other}`")


def plan_actions(
    findings: Findings, place: Place, raw: Any, source: str, table: Mapping[str, ActionSpec], values: Values
) -> tuple[Action, ...]:
    """Check a ``do`` or ``while`` list.

    Parameters
    ----------
    source
        ``rule:<id>`` or ``state:<name>``.

    Returns
    -------
    tuple of Action
        Defaults filled in; what was wrong is reported and left out.
    """
    if raw is None or raw is BAD:
        return ()
    actions: list[Action] = []
    for index, entry in enumerate(raw):
        where = place.child(index)
        if type(entry) is not dict or len(entry) != 1:
            hint = f"`{entry}: {{}}`" if type(entry) is str and entry in table else "`throttle: {}`"
            findings.add(where, "SK203", "an action is one name with its parameters", hint=hint)
            continue
        ((name, given),) = entry.items()
        spec = table.get(name)
        if spec is None:
            findings.add(where.child(name), "SK304", f"unknown action {show(name)}", near=(name, table), key=True)
        elif type(given) is not dict:
            message = f"the parameters of `{name}` must be a mapping"
            findings.add(where.child(name), "SK203", message, hint=f"`{name}: {{}}`", key=given is None)
        else:
            actions.append(Action(name, _parameters(findings, where.child(name), spec, given, values), source))
    return tuple(actions)


def _parameters(
    findings: Findings, place: Place, spec: ActionSpec, given: Mapping[str, Any], values: Values
) -> dict[str, Any]:
    chosen = {p.name: p.default for p in spec.params}
    for name, raw in given.items():
        param = spec.param(name)
        if param is None:
            message = f"action `{spec.name}` has no parameter {show(name)}"
            where, hint = place.child(name), _parameter_list(spec)
            findings.add(where, "SK304", message, hint=hint, near=(name, chosen), key=True, certain=True)
        elif raw is not None:
            value = values.typed(place.child(name), raw, param, _CODES)
            if value is not BAD:
                chosen[name] = value
    return chosen


def _parameter_list(spec: ActionSpec) -> str:
    return "it has " + ", ".join(p.name for p in spec.params) if spec.params else "it has none"

"""Merged items become a Pack: params, signals, detectors, rules, machine, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from stabilitykit.decision import ActionSpec
from stabilitykit.rules.actions import declare_actions
from stabilitykit.rules.cost import too_many
from stabilitykit.rules.declared import declare_signals
from stabilitykit.rules.files.locate import Findings
from stabilitykit.rules.files.merge import Merged
from stabilitykit.rules.files.shape import File
from stabilitykit.rules.fingerprint import fingerprint
from stabilitykit.rules.pack import Pack
from stabilitykit.rules.params import resolve_params
from stabilitykit.rules.rule_check import RuleCheck, labels
from stabilitykit.rules.states import MachineCheck
from stabilitykit.rules.uses import use_detectors
from stabilitykit.rules.values import Values
from stabilitykit.signals import DetectorSpec, SignalSpec

__all__ = ["resolve"]


def resolve(
    findings: Findings,
    files: Sequence[File],
    merged: Merged,
    *,
    overrides: Mapping[str, Any] | None,
    specs: Mapping[str, DetectorSpec],
    known_actions: Mapping[str, ActionSpec],
    catalogue: Mapping[str, SignalSpec],
) -> Pack:
    """Check what the items mean.

    Returns
    -------
    Pack
        Of use only when nothing was found.
    """
    if too_many(findings, merged.sections, files[-1].place):
        findings.raise_all()
    params, literals = resolve_params(findings, merged.section("params"), overrides)
    values = Values(findings, literals)
    declared = declare_signals(findings, merged.section("signals"), catalogue)
    signals = {**catalogue, **{n: s for n, s in declared.items() if s is not None}}
    uses = use_detectors(findings, merged.section("detectors"), specs, signals, values)
    actions = declare_actions(findings, merged.section("actions"), known_actions, values)
    main = files[-1]
    checker = RuleCheck(findings, merged, values, signals, uses, params, actions)
    broken = {n for n, s in declared.items() if s is None} | {n for n, u in uses.items() if u is None}
    checker.broken = frozenset(broken | {n for n, p in literals.items() if p is None})
    rules, order = checker.check(main.place)
    machine = MachineCheck(findings, values, actions, params, rules, labels(merged.section("rules")))
    item = merged.section("machine").get("machine")
    if item is None and not findings.incomplete:
        message = "no file of the loaded set has a `machine`"
        findings.add(main.place.child("pack"), "SK202", message, hint="`extends: [base]`")
    states, initial, transitions = machine.check(item) if item else ((), "", ())
    pack = Pack(
        name=main.name,
        desc=main.desc,
        params=params,
        signals={n: s for n, s in declared.items() if s is not None},
        detectors=tuple(u for u in uses.values() if u is not None),
        rules=tuple(rules[i] for i in merged.section("rules") if i in rules),
        order=tuple(order),
        states=states,
        initial=initial,
        transitions=transitions,
        actions=actions,
        fingerprint="",
        files=tuple(f.place.file for f in files),
        # An inherited machine may range over severities this pack has no rule of: not this file's business.
        warnings=tuple(w for w in findings.warnings if w.startswith(f"{main.place.file}:")),
        machine_file=item.place.file if item else "",
    )
    return pack if findings else attrs.evolve(pack, fingerprint=fingerprint(pack))

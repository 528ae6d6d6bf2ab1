"""A checked pack: what the reader and the checker hand to the compiler, the engine and the tests.

Everything here is resolved: names exist, units agree, params have their values, `extends` is
flattened, order is fixed. Nothing here knows YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.decision import Action, ActionSpec
from stabilitykit.signals import DetectorSpec, Scope, SignalSpec

__all__ = ["MATURITY", "SEVERITIES", "DetectorUse", "Node", "Pack", "ParamValue", "Rule", "State", "Transition"]

SEVERITIES = ("info", "warning", "critical")
MATURITY = ("stable", "incubating", "sandbox")
"""First tag of a rule: how well it is proven."""


@attrs.define(unsafe_hash=True)
class Node:
    """One node of a checked condition or guard; never changed, and shared where it stands twice.

    (Not ``frozen``: a pack makes thousands, and freezing one costs more than checking it.)

    ``op`` is one of

    =============  ==========================================================================
    ``sig``        ``name`` is a signal
    ``out``        ``name`` is ``detector.output``
    ``num``        ``value`` is a literal, already scaled
    ``param``      ``name`` is a param, ``value`` its value
    ``neg abs``    one argument
    ``+ - * /``    two arguments
    ``min max``    the lesser, the greater of two arguments
    ``prev delta``  one argument, with memory
    ``mean wmin wmax``  one argument over the last ``n`` turns or samples
    ``count``      ``args[0]`` is a condition, over the last ``n``
    ``cmp``        ``name`` is one of ``> >= < <= == !=``; two arguments
    ``truth``      one argument of kind bool
    ``and or``     two arguments; ``in {a, b}`` has become an ``or`` of comparisons
    ``not``        one argument
    ``rule``       ``name`` is a rule's id
    ``atleast``    guards only: at least ``n`` matching rules of severity ``value`` (0, 1, 2) or
                   worse, with tag ``name`` when not empty; ``any`` is 1, ``none`` is its ``not``
    =============  ==========================================================================

    Parameters
    ----------
    scope
        Where its memory lives: the narrowest scope of what it reads ("" for constants).
    unit
        Unit of a numeric node, ``bool``, ``enum``, ``count``, ``ratio``, or "" for conditions.
    text
        Canonical text: equal text means equal meaning and, for nodes with memory, one memory.
        Params keep their names in it.
    """

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: float = 0.0
    n: int = 0
    scope: str = ""
    unit: str = ""
    text: str = ""


@attrs.frozen
class ParamValue:
    """A param with its effective value (in the unit of its default)."""

    name: str
    value: Any
    unit: str
    doc: str = ""
    lo: float | None = None
    hi: float | None = None


@attrs.frozen
class DetectorUse:
    """One detector of a pack: a type with checked settings.

    Parameters
    ----------
    inputs
        Setting name to signal name, in the order of ``spec.inputs``.
    settings
        Every setting with its value, defaults filled in, params resolved.
    scope
        Where its memory lives; wider than its inputs when widened, then it takes every turn.
    memory
        Its name across reloads: id + type + settings that shape memory.
    """

    id: str
    spec: DetectorSpec
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    scope: Scope
    widened: bool
    memory: str


@attrs.frozen
class Rule:
    """One rule, checked. ``count`` is ``(k, n)`` and excludes ``for_turns``."""

    id: str
    when: Node
    source: str
    scope: Scope
    desc: str = ""
    severity: str = "warning"
    for_turns: int = 1
    count: tuple[int, int] | None = None
    keep_for: int = 0
    cooldown: int = 0
    on_missing: str = "hold"
    hold_limit: int = 20
    do: tuple[Action, ...] = ()
    reason: str = ""
    tags: tuple[str, ...] = ()
    memory: str = ""
    file: str = ""
    line: int = 0


@attrs.frozen
class State:
    """One state; the order of states in the pack is their severity."""

    name: str
    do: tuple[Action, ...] = ()
    while_: tuple[Action, ...] = ()
    was: str = ""


@attrs.frozen
class Transition:
    """One transition; ``for_turns`` belongs to the guard (1 when not said), ``after`` is 0 when not said."""

    from_: tuple[str, ...]
    to: str
    when: Node | None
    for_turns: int = 1
    after: int = 0
    memory: str = ""


@attrs.frozen
class Pack:
    """A whole pack, resolved.

    Parameters
    ----------
    rules
        In pack order (the order actions follow).
    order
        Rule ids in topological order of ``rule:`` references.
    signals
        Signals the pack declares beyond the catalogue.
    actions
        The action table with the pack's own actions.
    fingerprint
        Hex digest of the resolved pack, params included: equal packs decide equally.
    warnings
        Findings that are no errors (an empty severity in a guard ...), already rendered.
    machine_file
        The file whose machine it is.
    """

    name: str
    desc: str
    params: Mapping[str, ParamValue]
    signals: Mapping[str, SignalSpec]
    detectors: tuple[DetectorUse, ...]
    rules: tuple[Rule, ...]
    order: tuple[str, ...]
    states: tuple[State, ...]
    initial: str
    transitions: tuple[Transition, ...]
    actions: Mapping[str, ActionSpec]
    fingerprint: str
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    machine_file: str = ""

    def rule(self, rule_id: str) -> Rule:
        """Find a rule by id."""
        return next(r for r in self.rules if r.id == rule_id)

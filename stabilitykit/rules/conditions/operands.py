"""The operands of a condition: signals, outputs of detectors, params."""

from __future__ import annotations

import math

from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.lexer import Near
from stabilitykit.rules.conditions.names import Names, Problems
from stabilitykit.rules.conditions.terms import Term
from stabilitykit.rules.conditions.units import PLAIN, unit_of
from stabilitykit.rules.pack import Node, ParamValue
from stabilitykit.signals import OutputSpec, SignalSpec

__all__ = ["Operands"]


class Operands:
    """Finds names; whoever inherits it reports through `bad`.

    Parameters
    ----------
    names
        What may be referred to.
    problems
        Where mistakes go.
    fallback_scope
        Scope of a rule whose own scope is not known.
    """

    def __init__(self, names: Names, problems: Problems, fallback_scope: str) -> None:
        self.names, self.problems, self.fallback_scope = names, problems, fallback_scope

    def bad(self, tree: Tree, code: str, message: str, hint: str = "", near: Near | None = None) -> Term:
        """Report a mistake; the term it gives causes no further ones."""
        self.problems.add(code, tree.offset, tree.end, message, hint, near)
        return Term(None, tree, base="bad")

    def signal(self, tree: Tree) -> Term:
        """Find a signal."""
        spec = self.names.signals.get(tree.name)
        if spec is None:
            near = (tree.name, self.names.signals)
            return self.bad(tree, "SK301", f"unknown signal `{tree.name[:60]}`", self._signal_hint(tree.name), near)
        if spec.kind == "array":
            return self.bad(tree, "SK402", f"`{tree.name}` is an array: only detectors read it")
        return self._measured("sig", tree, spec, spec.scope, spec.values)

    def _signal_hint(self, name: str) -> str:
        names = self.names
        if name in names.detectors:
            outputs = names.detectors[name][0].outputs
            return f"`{name}` is a detector: write `{name}.{outputs[0].name}`" if outputs else ""
        if name in names.params:
            return f"`{name}` is a param: write `params.{name}`"
        return ""

    def _measured(
        self, op: str, tree: Tree, spec: SignalSpec | OutputSpec, scope: str, values: tuple[str, ...] = ()
    ) -> Term:
        unit = unit_of(spec.unit) or PLAIN
        node = Node(op, name=tree.name, scope=scope, unit=spec.unit, text=tree.name)
        if spec.kind == "bool":
            return Term(node, tree, tree.name, base="bool")
        if spec.kind == "enum":
            return Term(node, tree, tree.name, base="enum", values=values)
        whole = spec.kind == "count"
        bare = whole and not unit.is_plain
        return Term(node, tree, tree.name, unit=unit, whole=whole, bare=bare, domain=(spec.lo, spec.hi))

    def dotted(self, tree: Tree) -> Term:
        """Find ``params.x`` or ``detector.output``."""
        first, _, name = tree.name.partition(".")
        if first == "params":
            return self._param(tree, name)
        known = self.names.detectors.get(first)
        if known is None:
            near = (first, (*self.names.detectors, "params"))
            end = tree.offset + len(first)
            self.problems.add("SK302", tree.offset, end, f"unknown detector `{first[:60]}`", near=near)
            return Term(None, tree, base="bad")
        spec, scope = known
        output = spec.output(name)
        if output is None:
            outputs = [known.name for known in spec.outputs]
            hint = f"outputs of {spec.type} are {' '.join(outputs)}"
            message = f"`{first}` has no output `{name[:60]}`"
            self.problems.add("SK302", tree.end - len(name), tree.end, message, hint, (name, outputs))
            return Term(None, tree, base="bad")
        return self._measured("out", tree, output, scope)

    def _param(self, tree: Tree, name: str) -> Term:
        param = self.names.params.get(name)
        if param is None:
            near = (name, self.names.params)
            self.problems.add("SK303", tree.end - len(name), tree.end, f"unknown param `{name[:60]}`", near=near)
            return Term(None, tree, base="bad")
        text = f"params.{name}"
        node = Node("param", name=name, value=_held(param), unit=param.unit, text=text)
        if isinstance(param.value, bool):
            return Term(node, tree, text, base="bool")
        if isinstance(param.value, str):
            return Term(node, tree, text, base="word")
        unit = unit_of(param.unit) or PLAIN
        value = node.value
        # a bare number in a param may stand wherever a bare literal may
        constant = unit.is_plain
        return Term(node, tree, text, unit=unit, whole=value.is_integer(), constant=constant, domain=(value, value))


def _held(param: ParamValue) -> float:
    return math.nan if isinstance(param.value, str) else float(param.value)

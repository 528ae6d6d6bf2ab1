"""Units in whole conditions: the checked node computes what exact arithmetic over base units computes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.condition import check_condition
from stabilitykit.rules.conditions.descent import Tree
from stabilitykit.rules.conditions.syntax import parse_condition
from stabilitykit.rules.conditions.units import unit_of
from stabilitykit.rules.pack import Node
from tests.rules.vocabulary import NAMES

_TIMES = st.sampled_from(["x", "y", "kernel_us", "params.slow", "7 ms", "0.25 s", "1500 us", "-3 ms"])
_PLAIN = st.sampled_from(
    ["2", "1.5", "3 %", "(2 * 3)", "params.factor", "kernel_us / x", "y / kernel_us", "heap_mib / 1 GiB"]
)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-"), inner),
        st.builds("{} {} ({})".format, inner, st.sampled_from("*/"), _PLAIN),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("abs({})".format, inner),
        st.builds("-({})".format, inner),
    )


_READ = ("x", "y", "kernel_us", "output_tokens", "heap_mib")
_SUMS = st.recursive(_TIMES, _deeper, max_leaves=5)
_CONDITIONS = st.one_of(
    st.builds("{} {} {}".format, _SUMS, st.sampled_from([">", "<"]), _SUMS),
    st.builds("({}) / x {} {}".format, _SUMS, st.sampled_from([">", "<"]), _PLAIN),
    st.builds("{} {} {}".format, _PLAIN, st.sampled_from([">", "<"]), _PLAIN),
    st.builds("output_tokens / ({}) > {}".format, _SUMS, st.sampled_from(["20 tokens/s", "output_tokens / y"])),
)
_OPERATIONS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
}


def exact(tree: Tree, values: dict[str, int]) -> Fraction:
    """Compute a syntax tree in base units."""
    if tree.kind == "num":
        unit = unit_of(tree.unit)
        assert unit is not None
        return Fraction(tree.name) * unit.scale
    if tree.kind == "name":
        unit = unit_of(NAMES.signals[tree.name].unit)
        assert unit is not None
        return values[tree.name] * unit.scale
    if tree.kind == "dotted":
        param = NAMES.params[tree.name.partition(".")[2]]
        unit = unit_of(param.unit)
        assert unit is not None
        return Fraction(param.value) * unit.scale
    operation = _OPERATIONS[tree.name if tree.kind == "call" else tree.kind]
    return operation(*(exact(arg, values) for arg in tree.args))


def computed(node: Node, values: dict[str, int]) -> float:
    """Compute a checked node as the engine does."""
    if node.op in ("num", "param"):
        return node.value
    if node.op == "sig":
        return float(values[node.name])
    return _OPERATIONS[node.op](*(computed(arg, values) for arg in node.args))


@given(_CONDITIONS, st.fixed_dictionaries(dict.fromkeys(_READ, st.integers(1, 5000))))
def test_scaling_agrees_with_exact_arithmetic(text, values):
    """Whatever scales meet, the comparison comes out as with exact numbers (away from ties)."""
    node, _ = check_condition(text, NAMES)
    assume(node is not None)
    assert node is not None
    tree = parse_condition(text)
    try:
        left, right = (exact(arg, values) for arg in tree.args)
        a, b = (computed(arg, values) for arg in node.args)
    except ZeroDivisionError:
        assume(False)
    assume(abs(left - right) > Fraction(1, 10**9) * (abs(left) + abs(right)))
    assert (a > b) is (left > right)

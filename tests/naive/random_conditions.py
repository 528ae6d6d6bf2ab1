"""Random conditions that a type checker accepts."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import attrs

from stabilitykit.rules.pack import DetectorUse, Node
from stabilitykit.signals import SignalSpec, scope_rank
from tests.naive import build

__all__ = ["LITERALS", "Grower", "Ranged"]

LITERALS: dict[str, tuple[float, ...]] = {
    "ms": (20.0, 40.0, 80.0, 120.5),
    "us": (50.0, 250.0),
    "tokens": (100.0, 500.0, 1000.0),
    "ratio": (0.07, 0.25, 0.5, 0.8),
    "count": (1.0, 2.0, 3.0),
    "C": (60.0, 80.0),
}
POOL = (
    "ttft_ms itl_ms rt_ms input_tokens output_tokens session_tokens sent_tokens kv_hit_ratio context_usage_ratio "
    "state_transition_us kv_idle_turns finish_reason is_history_truncated host_score "
    "kv_usage_ratio kv_fragmentation_ratio waiting_requests running_requests queue_recv_ms ringbuf_pop_us link_ms "
    "gpu_temperature_c gpu_memory_ratio kernel_us"
).split()


@attrs.frozen
class Ranged:
    """A numeric node and the values it can have."""

    node: Node
    lo: float
    hi: float


class Grower:
    """Grow conditions over a few signals, so that they meet each other."""

    def __init__(
        self,
        rng: random.Random,
        specs: Mapping[str, SignalSpec],
        uses: Sequence[DetectorUse],
        params: Mapping[str, tuple[float, str]],
    ) -> None:
        self.rng, self.params = rng, params
        self.signals = [specs[name] for name in rng.sample(POOL, rng.randint(3, 9))]
        self.signals += [] if any(s.kind in ("number", "count") for s in self.signals) else [specs["itl_ms"]]
        self.rules: list[Node] = []
        self.widest_only = 0  # scopes narrower than this rank are not read
        self.outputs = [(f"{u.id}.{o.name}", o, u.scope) for u in uses for o in u.spec.outputs]

    def condition(self) -> Node:
        """Grow the condition of one rule: it reads something, at most four levels deep."""
        while True:
            self.widest_only = self.rng.choice([0, 0, 0, 1, 2])
            if not any(scope_rank(s.scope) >= self.widest_only for s in self.signals if s.unit in LITERALS):
                continue
            node = self.logic(self.rng.choice([0, 1, 1, 2, 3]))
            if node.scope:
                return node

    def logic(self, depth: int) -> Node:
        """Grow a condition."""
        kind = self.rng.random()
        if depth <= 0 or kind < 0.3:
            return self.atom(depth)
        if kind < 0.55:
            return build.both(self.logic(depth - 1), self.logic(depth - 1))
        if kind < 0.8:
            return build.either(self.logic(depth - 1), self.logic(depth - 1))
        if kind < 0.92:
            return build.invert(self.logic(depth - 1))
        n = self.turns()
        counted = build.window("count", self.logic(depth - 1), n)
        relation, k = self.rng.choice([">=", ">", "==", "!=", "<="]), float(self.rng.randint(1, n - 1))
        return build.compare(counted, relation, build.literal(k)) if counted.scope else self.atom(depth)

    def atom(self, depth: int) -> Node:
        """Grow a condition without `and or not`."""
        kind = self.rng.random()
        references = [r for r in self.rules if scope_rank(r.scope) >= self.widest_only]
        if kind < 0.12 and references:
            return self.rng.choice(references)
        words = [s for s in self.visible() if s.kind == "enum"]
        if kind < 0.22 and words:
            return self.word(self.rng.choice(words))
        facts = [build.operand(s.name, s) for s in self.visible() if s.kind == "bool"]
        facts += [build.output(n, o.unit, s) for n, o, s in self.outputs if o.kind == "bool" and self.is_visible(s)]
        if kind < 0.35 and facts:
            return build.truth(self.rng.choice(facts))
        counts = [s for s in self.visible() if s.kind == "count" and s.unit in LITERALS]
        if kind < 0.42 and counts:
            spec = self.rng.choice(counts)
            value = build.literal(self.rng.choice(LITERALS[spec.unit]), spec.unit)
            return build.compare(build.operand(spec.name, spec), self.rng.choice(["==", "!="]), value)
        return self.comparison(depth)

    def word(self, spec: SignalSpec) -> Node:
        """Compare an enum with one word, or with several (`in`)."""
        words = self.rng.sample(spec.values, self.rng.choice([1, 1, 2, 3]))
        relation = "==" if len(words) > 1 else self.rng.choice(["==", "!="])
        parts = [
            build.compare(build.operand(spec.name, spec), relation, build.literal(spec.values.index(w), "enum", w))
            for w in words
        ]
        return (
            parts[0]
            if len(parts) == 1
            else build.either(*parts[:2])
            if len(parts) == 2
            else build.either(build.either(*parts[:2]), parts[2])
        )

    def comparison(self, depth: int) -> Node:
        """Compare two numbers of one dimension, in a way that the domains do not decide."""
        unit = self.rng.choice([s.unit for s in self.visible() if s.unit in LITERALS])
        for _ in range(20):
            a = self.number(unit, depth, must_read=True)
            b = self.number(unit, self.rng.choice([0, 0, depth]))
            if self.rng.random() < 0.2:
                a, b = b, a
            relation = self.rng.choice([">", ">", ">=", "<", "<="])
            is_open = a.lo < b.hi and b.lo < a.hi
            if is_open and a.node.text != b.node.text and (a.node.scope or b.node.scope):
                return build.compare(a.node, relation, b.node)
        leaf = self.leaf(unit, must_read=True)
        return build.compare(leaf.node, ">", build.literal(self.rng.choice(LITERALS[unit]), unit))

    def number(self, unit: str, depth: int, must_read: bool = False) -> Ranged:
        """Grow a numeric expression of a unit."""
        kind = self.rng.random()
        if depth <= 0 or kind < 0.3:
            return self.leaf(unit, must_read)
        a = self.number(unit, depth - 1, must_read)
        if kind < 0.65 and a.node.scope:
            return self.remembering(a)
        if kind < 0.72:
            low = 0.0 if a.lo <= 0.0 <= a.hi else min(abs(a.lo), abs(a.hi))
            return Ranged(build.call("abs", a.node), low, max(abs(a.lo), abs(a.hi)))
        if kind < 0.77:
            return Ranged(build.call("neg", a.node), -a.hi, -a.lo)
        if kind < 0.83:
            k = self.rng.choice([0.5, 1.5, 2.0])
            return Ranged(build.call("*", build.literal(k), a.node, unit=unit), *sorted((k * a.lo, k * a.hi)))
        b = self.number(unit, depth - 1)
        if unit == "ratio" and kind < 0.9:
            return self.quotient(depth)
        op = self.rng.choice(["+", "-", "min", "max"])
        return Ranged(build.call(op, a.node, b.node, unit=unit), *combined(op, a, b))

    def remembering(self, a: Ranged) -> Ranged:
        """Wrap an expression in one with memory."""
        op = self.rng.choice(["prev", "delta", "mean", "wmin", "wmax"])
        if op in ("prev", "delta"):
            bounds = (a.lo - a.hi, a.hi - a.lo) if op == "delta" else (a.lo, a.hi)
            return Ranged(build.call(op, a.node), *bounds)
        return Ranged(build.window(op, a.node, self.turns()), a.lo, a.hi)

    def quotient(self, depth: int) -> Ranged:
        """Divide two numbers of one dimension."""
        unit = self.rng.choice([s.unit for s in self.visible() if s.unit in LITERALS])
        a, b = self.number(unit, depth - 1, must_read=True), self.number(unit, depth - 1, must_read=True)
        low = 0.0 if a.lo >= 0.0 and b.lo >= 0.0 else -math.inf
        return Ranged(build.call("/", a.node, b.node, unit="ratio"), low, math.inf)

    def leaf(self, unit: str, must_read: bool) -> Ranged:
        """Give a signal, an output, a param or a literal."""
        found = [Ranged(build.operand(s.name, s), s.lo, s.hi) for s in self.visible() if s.unit == unit]
        found += [
            Ranged(build.output(name, o.unit, scope), o.lo, o.hi)
            for name, o, scope in self.outputs
            if o.unit == unit and o.kind in ("number", "count") and self.is_visible(scope)
        ]
        if found and (must_read or self.rng.random() < 0.5):
            return self.rng.choice(found)
        named = [(name, value) for name, (value, its) in self.params.items() if its == unit]
        if named and self.rng.random() < 0.3:
            name, value = self.rng.choice(named)
            return Ranged(build.param(name, value, unit), value, value)
        value = self.rng.choice(LITERALS[unit])
        return Ranged(build.literal(value, unit), value, value)

    def visible(self) -> list[SignalSpec]:
        """Give the signals of the scopes that this rule reads."""
        return [s for s in self.signals if self.is_visible(s.scope)]

    def is_visible(self, scope: str) -> bool:
        """Tell whether this rule reads a scope."""
        return scope_rank(scope) >= self.widest_only

    def turns(self) -> int:
        """Give the length of a window."""
        return self.rng.choice([2, 2, 3, 4, 5, 7, 64])


def combined(op: str, a: Ranged, b: Ranged) -> tuple[float, float]:
    """Give the range of ``+ - min max``."""
    if op == "+":
        return a.lo + b.lo, a.hi + b.hi
    if op == "-":
        return a.lo - b.hi, a.hi - b.lo
    choose = min if op == "min" else max
    return choose(a.lo, b.lo), choose(a.hi, b.hi)

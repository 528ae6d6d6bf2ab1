"""Tables and the step over them, against counters written down plainly, rule by rule."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest

from stabilitykit.kernels.blob import Blob
from stabilitykit.rules.kernel import step_rules
from stabilitykit.rules.lower import Item, ScopeProgram, Term
from stabilitykit.rules.pack import Node, Rule
from stabilitykit.rules.tables import MEMORY_WORDS, RULE_HEADER, RuleTables, build_rule_tables

WHEN = Node("truth")
SATURATED = 255


def rule(name: str, **fields: Any) -> Rule:
    """Make a rule whose condition the test gives as clauses."""
    return Rule(id=name, when=WHEN, source="", scope="session", **fields)


class Stepper:
    """The tables of some items, with memory, run by the plain kernel."""

    def __init__(self, items: list[Item], terms: list[Term] | None = None, slots: int = 8, u8: int = 0) -> None:
        program = ScopeProgram(terms=terms or [], items=items, u8=u8)
        blob = Blob(RULE_HEADER)
        self.tables: RuleTables = build_rule_tables(program, blob, 0, lambda slot: slot)
        self.ti, self.tf, self.tu = blob.arrays()
        self.x = np.full(slots, np.nan)
        self.f = np.full(program.f8 + 1, np.nan)
        self.u = np.zeros(self.tables.u8 + 1, np.uint64)
        size = self.tables.levels + 64 * self.tables.words + 64
        self.scratch = np.zeros(size, np.int32), np.zeros(self.tables.atoms + 64)
        self.out = np.zeros(4 * self.tables.words, np.uint64)

    def step(self, *values: float) -> dict[str, str]:
        """Set the first values and step; gives the letters of each rule: m, u, f, x(pired)."""
        self.x[: len(values)] = values
        step_rules(0, self.x, self.f, self.u, self.ti, self.tf, self.tu, *self.scratch, self.out)
        n = self.tables.words
        groups = self.out.reshape(4, n)
        return {
            name: "".join(
                letter for letter, row in zip("mufx", groups, strict=True) if int(row[bit >> 6]) >> (bit & 63) & 1
            )
            for name, bit in self.tables.bits.items()
        }


def over(slot: int, bound: float = 0.5) -> list[list[tuple[int, float, float]]]:
    """Give the condition x[slot] > bound."""
    return [[(slot, 1.0, bound)]]


@attrs.define
class Plain:
    """A rule of the specification, section 5, in plain numbers."""

    rule: Rule
    streak: int = 0
    blind: int = 0
    keep: int = 0
    cool: int = 0
    on: bool = False
    episode: bool = False
    expired: bool = False

    def step(self, v: int) -> str:
        """Take a verdict (0, 1, 2) in; gives the letters."""
        r = self.rule
        unknown = v == 1
        self.blind = min(self.blind + 1, SATURATED) if unknown else 0
        hold = unknown and r.on_missing == "hold"
        frozen = hold and self.blind <= r.hold_limit
        expires = hold and not frozen and not self.expired
        self.expired = hold and not frozen
        true = v == 2 or (unknown and r.on_missing == "fire")
        self.cool = max(self.cool - 1, 0)
        if not frozen:
            self.streak = min(self.streak + 1, SATURATED) if true else 0
            rise = self.streak >= r.for_turns or (self.on and true)
            if rise:
                self.on, self.keep = True, r.keep_for
            elif self.on and self.keep:
                self.keep -= 1
            else:
                self.on, self.keep = False, 0
        self.episode = self.episode and self.on
        fires = self.on and not self.episode and not frozen and self.cool == 0
        if fires:
            self.episode, self.cool = True, r.cooldown
        return "".join(
            letter for letter, is_set in zip("mufx", (self.on, unknown, fires, expires), strict=True) if is_set
        )


@pytest.mark.capability(
    "issue 2 §3: memory of a rule: streaks, keep, cool-down, hold and expiry as plain counters have it"
)
def test_memory_of_rules_against_plain_counters() -> None:
    """Streaks, keep, cool-down, hold and expiry of 150 rules (three words) over 400 random turns."""
    r = random.Random(4)
    rules = [
        rule(
            f"r{k}", for_turns=r.choice([1, 1, 2, 3, 7]), keep_for=r.choice([0, 0, 1, 4]), cooldown=r.choice([0, 2, 5]),
            on_missing=r.choice(["hold", "clear", "fire"]), hold_limit=r.choice([1, 2, 6]),
        )
        for k in range(150)
    ]  # fmt: skip
    stepper = Stepper([Item(0, over(k % 30), -1, rule) for k, rule in enumerate(rules)], slots=30)
    assert stepper.tables.words == 3
    plain = {rule.id: Plain(rule) for rule in rules}
    x = [0.0] * 30
    for turn in range(400):
        for k in range(30):
            if r.random() < 0.4:
                x[k] = r.choice([0.0, 1.0, float("nan")])
        found = stepper.step(*x)
        for k, one in enumerate(rules):
            v = x[k % 30]
            want = plain[one.id].step(1 if v != v else 2 if v > 0.5 else 0)
            assert found[one.id] == want, (turn, one)


def test_counters_saturate() -> None:
    """A streak of 255 stays 255: a rule that needs 255 turns stays matched after 300."""
    stepper = Stepper(
        [Item(0, over(0), -1, rule("long", for_turns=255)), Item(0, over(0), -1, rule("next", for_turns=2))]
    )
    seen = ["m" in stepper.step(1.0)["long"] for _ in range(600)]
    assert seen == [turn >= 254 for turn in range(600)]
    assert stepper.step(0.0) == {"long": "", "next": ""}


def test_blindness_expires_once() -> None:
    """Beyond hold_limit a held rule lets go, and says so on that turn only; 400 blind turns later too."""
    stepper = Stepper([Item(0, over(0), -1, rule("held", on_missing="hold", hold_limit=3))])
    assert stepper.step(1.0)["held"] == "mf"
    seen = [stepper.step(float("nan"))["held"] for _ in range(400)]
    assert seen[:3] == ["mu", "mu", "mu"]
    assert seen[3] == "ux"
    assert set(seen[4:]) == {"u"}


@pytest.mark.parametrize(("k", "n"), [(1, 1), (2, 3), (3, 64), (5, 5)])
def test_count_of_the_last_turns(k: int, n: int) -> None:
    """`count: k of n` looks at exactly the last n known verdicts."""
    stepper = Stepper([Item(0, over(0), -1, rule("some", count=(k, n), on_missing="hold", hold_limit=255))])
    r, history = random.Random(k), []
    on = False
    for _ in range(300):
        v = r.choice([0.0, 1.0, 1.0, float("nan")])
        if v == v:
            history.append(v)
            met = sum(history[-n:]) >= k
            on = met or (on and v == 1.0)
        assert ("m" in stepper.step(v)["some"]) == on


def test_clauses_are_ors_of_ands() -> None:
    """Clauses of different lengths, side by side in one table, with unknown values."""
    shapes = [
        [[(0, 1.0, 0.5)]],
        [[(0, 1.0, 0.5), (1, -1.0, -0.5)]],
        [[(0, 1.0, 0.5), (1, 1.0, 0.5), (2, 1.0, 0.5)], [(3, 1.0, 0.5)]],
        [[(3, -1.0, -0.5)], [(2, 1.0, 0.5)], [(1, 1.0, 0.5), (0, 1.0, 0.5)]],
    ]
    stepper = Stepper([Item(0, c, -1, rule(f"r{k}", on_missing="clear")) for k, c in enumerate(shapes)])
    r = random.Random(8)
    for _ in range(500):
        x = [r.choice([0.0, 1.0, float("nan")]) for _ in range(4)]

        def level(s: int, sign: float, bound: float, x: list[float] = x) -> int:
            return 1 if x[s] != x[s] else 2 * (x[s] * sign > bound)

        found = stepper.step(*x)
        for k, clauses in enumerate(shapes):
            want = max(min(level(*a) for a in clause) for clause in clauses)
            assert ("m" in found[f"r{k}"], "u" in found[f"r{k}"]) == (want == 2, want == 1)


def test_strata_run_in_order() -> None:
    """A rule that reads another, and one that reads a hidden rule, see this turn's verdict."""
    items = [
        Item(0, over(0), 2, rule("first", for_turns=2, on_missing="clear")),
        Item(0, over(1), 3, None),
        Item(1, [[(2, 1.0, 0.5), (3, 1.0, 0.5)]], 4, rule("second", on_missing="clear")),
        Item(2, [[(4, -1.0, -0.5)]], -1, rule("third", on_missing="clear")),
    ]
    stepper = Stepper(items)
    assert stepper.tables.words == 3
    letters = [{k: v.replace("f", "") for k, v in stepper.step(*x).items()} for x in ((1, 1), (1, 1), (1, 0), (0, 1))]
    assert [tuple(found.values()) for found in letters] == [
        ("", "", "m"), ("m", "m", ""), ("m", "", "m"), ("", "", "m"),
    ]  # fmt: skip
    unknown = stepper.step(float("nan"), 1.0)
    assert unknown == {"first": "u", "second": "u", "third": "u"}


def test_terms_write_before_atoms_read() -> None:
    """A sum of two values is there in the stratum that compares it."""
    stepper = Stepper([Item(0, over(2, 2.5), -1, rule("sum"))], [Term(0, 0, 2, 0, 1)])
    assert "m" in stepper.step(1.0, 2.0)["sum"]
    assert stepper.step(1.0, 1.0)["sum"] == ""


def test_names_of_memory() -> None:
    """Every rule and every history can be found again by name after a reload."""
    stepper = Stepper([Item(0, over(0), -1, rule("a", memory="was")), Item(0, over(0), -1, rule("b", count=(2, 3)))])
    assert stepper.tables.memory == [
        ("was", "bit", 0, 0), ("b", "bit", 0, 1), ("b:history", "u8", MEMORY_WORDS, 1),
    ]  # fmt: skip

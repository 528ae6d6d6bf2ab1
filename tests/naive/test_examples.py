"""The worked examples of section 11 of the rule language, and its directed cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stabilitykit.rules.pack import Node, Rule
from stabilitykit.turn import MISSING, Turn
from tests.naive import build
from tests.naive.engine import NaiveEngine, Outcome
from tests.naive.small import BREAKER, over, pack_of, rule_of, transition

X = over("itl_ms", 80)
Y = over("ttft_ms", 10)
x, y = build.operand("itl_ms"), build.operand("ttft_ms")


def run(rules: Sequence[Rule], row: str, **machine: Any) -> list[Outcome]:
    """Play a row of the table: one word a turn, `x` or `x;y`, `-` is missing."""
    engine = NaiveEngine(pack_of(*rules, **machine))
    outcomes = []
    for word in row.split():
        values = [MISSING if v == "-" else float(v) for v in word.split(";")] + [MISSING]
        outcomes.append(engine.evaluate(Turn(session_id="s", itl_ms=values[0], ttft_ms=values[1])))
    return outcomes


def marks(outcomes: list[Outcome], rule_id: str) -> str:
    """Write a row of results: `.` nothing, `M` matched, `M*` fires too."""
    return " ".join("." if rule_id not in o.matches else "M*" if rule_id in o.fired else "M" for o in outcomes)


def mean(node: Node, n: int) -> Node:
    """Write ``mean(node, n turns)``."""
    return build.window("mean", node, n)


ROWS: dict[str, tuple[Node, dict[str, Any], str, str]] = {
    "1 tie, streak": (X, {"for_turns": 3}, "90 90 80 90 81 90 90", ". . . . . M* M"),
    "2a hold": (X, {"for_turns": 2}, "90 - 90 - 70 -", ". . M* M . ."),
    "2b skip": (X, {"for_turns": 2, "on_missing": "skip"}, "90 - 90 - 70 -", ". . . . . ."),
    "2c fire": (X, {"for_turns": 2, "on_missing": "fire"}, "90 - 90 - 70 -", ". M* M M . ."),
    "3 keep renewed, frozen": (X, {"for_turns": 2, "keep_for": 2}, "90 90 70 90 70 - 70 70", ". M* M M M M M ."),
    "4 count, level": (X, {"count": (2, 4)}, "90 70 90 70 70 70", ". . M* M . ."),
    "5 cool-down, late fire": (X, {"cooldown": 4}, "90 70 90 90 90 90 70 90", "M* . M M M* M . M"),
    "6 and": (build.both(X, Y), {}, "90;- 70;- -;-", ". . ."),
    "6 or": (build.either(X, Y), {}, "90;- 70;- -;-", "M* M M"),
    "6 not": (build.invert(X), {}, "90;- 70;- -;-", ". M* M"),
    "7 window with gaps": (
        build.compare(mean(x, 4), ">", build.literal(80, "ms")),
        {},
        "100 100 - 40 40 - - 100",
        ". M* M . . . . .",
    ),
    "8 delta": (
        build.compare(build.call("delta", x), ">", build.literal(5, "ms")),
        {},
        "10 20 - 30 0 6",
        ". M* M M . M*",
    ),
    "10 hold ends": (X, {"hold_limit": 2}, "90 - - -", "M* M M ."),
    "13 count()": (
        build.compare(build.window("count", X, 4), ">=", build.literal(2)),
        {},
        "90 90 - 70 70 - 70",
        ". M* M M . . .",
    ),
}


@pytest.mark.capability("issue 2 §6: the naive engine gives the worked examples of the specification")
@pytest.mark.parametrize("name", ROWS)
def test_worked_example(name):
    """A row of the table gives exactly the M and * that the table shows."""
    when, fields, row, expected = ROWS[name]
    assert marks(run([rule_of("a", when, **fields)], row), "a") == expected


@pytest.mark.parametrize(("name", "verdicts"), [("7 window with gaps", "UTUFFUUF"), ("8 delta", "UTUUFT")])
def test_verdicts_of_worked_example(name, verdicts):
    """The verdicts that the table prints are the verdicts before `on_missing`."""
    when, fields, row, _ = ROWS[name]
    assert "".join(o.verdicts["a"] for o in run([rule_of("a", when, **fields)], row)) == verdicts


def test_example_9_reference():
    """A reference reads the level of a rule, and is unknown where that one's verdict is."""
    a = rule_of("a", X)
    outcomes = run([a, rule_of("b", build.invert(build.reference("a", "session")))], "90 70 -")
    assert (marks(outcomes, "a"), marks(outcomes, "b")) == ("M* . .", ". M* M")


def test_example_10_reports_the_signal_once():
    """The fault comes on the turn on which holding ends, and never again."""
    outcomes = run([rule_of("a", X, hold_limit=2)], "90 - - - 90 - - -")
    assert [o.faults for o in outcomes] == [[]] * 3 + [[("signal_stale", "itl_ms")]] + [[]] * 4


def test_example_11_half_open():
    """One step a turn; a failed probe goes back to broken."""
    outcomes = run([rule_of("a", X, severity="critical")], "90 90 90 90 70 90 70 70 70 70 70", transitions=BREAKER)
    assert "".join(o.state[0] for o in outcomes) == "bbbrrbbbrrh"
    assert [i for i, o in enumerate(outcomes, 1) if o.fired] == [1, 6]


def test_example_12_blind_turns():
    """A blind turn neither counts for a guard nor restarts it."""
    machine = (
        transition("healthy", "warning", build.at_least(1)),
        transition("warning", "healthy", build.invert(build.at_least(1)), for_turns=2),
    )
    outcomes = run([rule_of("a", X)], "90 70 - 70 90 - 70 70", transitions=machine)
    assert "".join(o.state[0] for o in outcomes) == "wwwhwwwh"


def test_empty_range_on_a_blind_turn():
    """Over an empty range `none` is T even on a blind turn, so a lone info rule never freezes it."""
    machine = (
        transition("healthy", "warning", build.invert(build.at_least(1)), for_turns=2),
        transition("warning", "recovering", build.at_least(1, "critical")),
        transition("warning", "healthy", build.reference("r0")),
    )
    rule = rule_of("r0", over("itl_ms", 5), severity="info")
    outcomes = run([rule], "- 1 9 - - 9 9 -", transitions=machine)
    assert "".join(o.state[0] for o in outcomes) == "hwhhwhhw"


def test_after_holds_on_the_first_turn():
    """The first turn of a session has dwell 1."""
    outcomes = run([rule_of("a", X)], "70 70", transitions=[transition("healthy", "warning", after=1)])
    assert [(o.previous, o.state) for o in outcomes] == [("healthy", "warning"), ("warning", "warning")]


@pytest.mark.parametrize(
    ("when", "row", "verdicts"),
    [
        (build.compare(mean(x, 3), ">", build.literal(80, "ms")), "90 - 90 - - 90 90", "UUTUUUT"),
        (build.compare(mean(x, 4), ">", build.literal(80, "ms")), "90 - - 90 - 90", "UUUTUT"),
        (build.compare(build.window("count", X, 4), ">=", build.literal(2)), "90 - - 90 - - - 90 90", "FUUTUUUUT"),
        (build.compare(build.window("count", X, 3), ">=", build.literal(2)), "90 - 90 - - 90 90", "FUTUUUT"),
    ],
)
def test_how_many_unknown_turns_a_window_bears(when, row, verdicts):
    """A window wants half of its turns known, rounded up; `count` bears half unknown, rounded down."""
    assert "".join(o.verdicts["a"] for o in run([rule_of("a", when)], row)) == verdicts


def test_first_transition_that_holds_wins():
    """Order in the list decides, and counters of the others start anew in the next state."""
    machine = (
        transition("healthy", "broken", build.at_least(1)),
        transition("healthy", "warning", build.at_least(1, "info")),
        transition("broken", "healthy", build.at_least(1, "info"), for_turns=2),
    )
    outcomes = run([rule_of("a", X)], "90 90 90 70", transitions=machine)
    assert "".join(o.state[0] for o in outcomes) == "bbhh"

"""The shipped packs: their cases hold, every rule is shown firing and silent, every action reaches the host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs
import pytest

from stabilitykit.compiled.program import Program, build_program
from stabilitykit.decision import Action, Decision
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine import Engine
from stabilitykit.rules.case_run import run_case, run_cases
from stabilitykit.rules.cases import Case, CaseFile, read_cases
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import Node, Pack, Rule
from stabilitykit.rules.shipped import shipped_names, shipped_path
from stabilitykit.turn import Turn

NAMES = shipped_names()
CITATION = re.compile(r"\b[AB]\d\.?\d?\b|replay_real|benchmarks/|data/README")
"""A section of the formulas, a script that prints the figure, or the page of the shared data."""
DERIVED = {
    "context_usage_ratio": {"input_tokens", "output_tokens", "context_window_tokens"},
    "kv_hit_ratio": {"cached_tokens", "input_tokens"},
    "is_history_truncated": {"sent_tokens", "input_tokens"},
}
"""What the engine makes a signal of when the host does not give it."""


@cache
def loaded(name: str) -> tuple[Pack, Program, CaseFile]:
    """Give a shipped pack, its program, and its cases."""
    pack = load_pack(name, detectors=DETECTORS)
    path = shipped_path(name)
    assert path is not None
    file = path.with_suffix(".test.yaml")
    return pack, build_program(pack), read_cases(file.read_bytes(), file.name, pack)


class Watched:
    """An engine that keeps every decision of a case."""

    def __init__(self, program: Program) -> None:
        self.engine = Engine(program)
        self.decisions: list[Decision] = []

    def evaluate(self, turn: Turn) -> Decision:
        """Take a turn."""
        self.decisions.append(self.engine.evaluate(turn))
        return self.decisions[-1]

    def observe(self, **sample: Any) -> Decision:
        """Take a sample."""
        self.decisions.append(self.engine.observe(**sample))
        return self.decisions[-1]


@cache
def walked(name: str) -> tuple[tuple[Case, tuple[Decision, ...]], ...]:
    """Run every case of a pack; give each with all its decisions."""
    pack, program, file = loaded(name)
    done = []
    for case in file.cases:
        engine = Watched(program)
        assert run_case(case, pack, engine) == []
        done.append((case, tuple(engine.decisions)))
    return tuple(done)


def own_rules(name: str) -> list[Rule]:
    """Give the rules that stand in the pack's own file."""
    return [r for r in loaded(name)[0].rules if r.file.endswith(f"/{name}.yaml")]


def names_read(pack: Pack, node: Node) -> set[str]:
    """Give the signals that a condition reads, through detectors too."""
    found: set[str] = set()
    if node.op == "sig":
        found.add(node.name)
    if node.op == "out":
        use = next(d for d in pack.detectors if d.id == node.name.partition(".")[0])
        found.update(use.inputs.values())
    for child in node.args:
        found |= names_read(pack, child)
    return found.union(*(DERIVED.get(signal, set()) for signal in found))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.capability("issue 2 §4: packs base, latency, context, intent, kv-cache and chat; their cases hold")
def test_cases_hold(name):
    """Every case beside a shipped pack holds."""
    pack, program, file = loaded(name)
    assert [str(f) for f in run_cases(file, pack, lambda: Engine(program))] == []


@pytest.mark.capability("issue 2 §4: each rule of a shipped pack has a firing and a silent case")
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_fires_in_a_case(name):
    """Each rule of the pack's own file fires on some turn or sample of its cases."""
    fired = {rule for _, decisions in walked(name) for d in decisions for rule in d.fired}
    assert {r.id for r in own_rules(name)} <= fired


@pytest.mark.capability("issue 2 §4: each rule of a shipped pack has a firing and a silent case")
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_silent_in_a_case(name):
    """For each rule a case brings a signal that it reads, and it never matches."""
    pack = loaded(name)[0]
    for rule in own_rules(name):
        reads = names_read(pack, rule.when)
        silent = [
            case.name
            for case, decisions in walked(name)
            if any(reads & set(step.values) for step in case.steps)
            and all(rule.id != m.rule for d in decisions for m in d.matches)
        ]
        assert silent, rule.id


def possible(pack: Pack) -> set[tuple[str, str, str]]:
    """List everything the pack can ask for: source, action, parameters."""
    asked = [a for r in pack.rules for a in r.do] + [a for s in pack.states for a in (*s.do, *s.while_)]
    return {told(a) for a in asked}


def told(action: Action) -> tuple[str, str, str]:
    """Give an action as the host sees it, with who asked."""
    return action.source, action.name, str(sorted(action.params.items()))


@pytest.mark.capability("issue 2 §5: every action a shipped pack can emit changes what the host is told")
def test_every_action_reaches_the_host():
    """Each action of each rule and state goes out in some case, or stands in `suppressed` with a winner that does."""
    seen: set[tuple[str, str, str]] = set()
    for name in NAMES:
        for _, decisions in walked(name):
            for d in decisions:
                out = {a.name for a in d.actions}
                assert {s.winner for s in d.suppressed} <= out
                seen |= {told(a) for a in d.actions} | {told(s.action) for s in d.suppressed}
    wanted = {action for name in NAMES for action in possible(loaded(name)[0])}
    # Of equal actions of two sources the host is told one: the same word, so the same effect.
    heard = {(name, params) for _, name, params in seen}
    assert {(name, params) for _, name, params in wanted} <= heard
    assert {source for source, *_ in wanted} <= {source for source, *_ in seen}


@pytest.mark.parametrize("name", [n for n in NAMES if n != "base"])
def test_an_action_taken_away_is_missed(name):
    """Without the `do` of a rule the host is told less on the turn on which it fires."""
    pack, _, file = loaded(name)
    for rule in own_rules(name):
        for gone in rule.do:
            silenced = attrs.evolve(
                pack,
                rules=tuple(
                    attrs.evolve(r, do=tuple(a for a in r.do if a is not gone)) if r.id == rule.id else r
                    for r in pack.rules
                ),
            )
            assert first_difference(file, walked(name), build_program(silenced), rule.id), (rule.id, gone.name)


def first_difference(
    file: CaseFile, before: tuple[tuple[Case, tuple[Decision, ...]], ...], program: Program, rule: str
) -> bool:
    """Tell whether some decision on which the rule fires says something else under the other program."""
    for case, decisions in before:
        if not any(rule in d.fired for d in decisions):
            continue
        engine = Watched(program)
        run_case(case, program.pack, engine, file.file)
        for old, new in zip(decisions, engine.decisions, strict=True):
            if (old.actions, old.suppressed) != (new.actions, new.suppressed):
                return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_says_why(name):
    """A rule has a description that cites its source, a maturity, and a reason with its value and threshold."""
    pack = loaded(name)[0]
    for rule in own_rules(name):
        assert CITATION.search(rule.desc) or "by chance" in rule.desc, rule.id
        assert rule.tags[0] in ("stable", "incubating", "sandbox"), rule.id
        parts = list(ends(rule.when))
        detectors = {n.name.partition(".")[0] for n in parts if n.op == "out"}
        values = {n.name for n in parts if n.op == "sig"} | detectors
        assert any(f"{{{{ {value}" in rule.reason for value in values), rule.id
        thresholds = [f"params.{n.name}" for n in parts if n.op == "param"]
        assert all(name in rule.reason for name in thresholds), rule.id
        assert thresholds or re.search(r"at least \d of|one is|tolerated", rule.reason), rule.id
    for param in pack.params.values():
        assert CITATION.search(param.doc), param.name
        assert param.unit, param.name


def ends(node: Node) -> Iterator[Node]:
    """Give the operands of a condition."""
    if not node.args:
        yield node
    for child in node.args:
        yield from ends(child)


@pytest.mark.parametrize("name", NAMES)
def test_reasons_can_be_rendered(name):
    """On every turn of every case each reason is text without a hole."""
    for _, decisions in walked(name):
        for d in decisions:
            for reason in d.reasons:
                assert reason.text
                assert "{{" not in reason.text
            assert d.explain()


@pytest.mark.capability("issue 2 §4: `chat` has at least 12 rules and a row of at most 3 KB")
def test_chat_has_more_than_twelve_rules_in_a_small_row():
    """At least 12 rules; the row of a session takes at most 3 KB without vectors."""
    pack, program, _ = loaded("chat")
    assert len(pack.rules) >= 12
    assert program.rows[0].nbytes <= 3 * 1024
    assert pack.warnings == ()


def test_no_pack_judges_a_hosted_endpoint_by_an_absolute_first_token():
    """The only absolute bound on TTFT alone is the ceiling; the floor needs a baseline beside it."""
    pack = loaded("latency")[0]
    alone = [r.id for r in pack.rules if names_read(pack, r.when) == {"ttft_ms"} and "ttft.is_over" not in r.source]
    assert alone == ["ttft-over-ceiling"]

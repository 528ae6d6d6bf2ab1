"""Conflicts of actions: the stated table, whatever asks for what."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabilitykit.actions import GROUPS
from stabilitykit.decision import ACTIONS, Action
from stabilitykit.mitigations.plan import resolve_actions
from tests.naive.actions import resolve


def names(wanted):
    """Give the actions that stay and those that lose, by name."""
    kept, lost = resolve_actions([Action(n, {}) if isinstance(n, str) else n for n in wanted], ACTIONS)
    return [a.name for a in kept], [(s.action.name, s.winner) for s in lost]


@pytest.mark.capability("issue 2 §5: conflicts of actions are resolved by the stated table")
def test_the_table():
    """One context rewrite, one answer, reset drops what it makes void; evict before tier before quantize."""
    assert names(["insert_summary", "trim_context", "rollback_snapshot", "reset_context"])[0] == ["reset_context"]
    assert names(["switch_model", "canned_reply", "refuse_new"])[0] == ["refuse_new"]
    assert names(["repair_mask", "compensate_positions", "reset_context"])[0] == ["reset_context"]
    assert names(["repair_mask", "trim_context"])[0] == ["trim_context", "repair_mask"]
    assert names(["quantize_kv", "tier_kv", "evict_kv"])[0] == ["evict_kv", "tier_kv", "quantize_kv"]


def test_one_name_once():
    """Equal ones merge, of different ones the earlier wins, unless many may stand."""
    one, two = Action("throttle", {"max_concurrency": 1}), Action("throttle", {"max_concurrency": 2})
    assert names([one, two, one]) == (["throttle"], [("throttle", "throttle")])
    queues = [Action("send_to_review", {"queue": q}) for q in "aba"]
    assert names(queues) == (["send_to_review", "send_to_review"], [])


def test_random_wishes():
    """Two thousand random lists: the plan is the oracle's, it is stable, and no group or name stands twice."""
    rng = random.Random(5)
    for _ in range(2_000):
        wanted = [Action(n, {"k": rng.choice([1, 1, 2])}) for n in rng.choices(sorted(ACTIONS), k=rng.randint(0, 8))]
        kept, lost = resolve_actions(wanted, ACTIONS)
        assert (
            [(a.name, dict(a.params)) for a in kept],
            [(s.action.name, dict(s.action.params), s.winner) for s in lost],
        ) == resolve(wanted, ACTIONS)
        assert resolve_actions(kept, ACTIONS) == (kept, ())
        groups = [ACTIONS[a.name].group for a in kept if ACTIONS[a.name].group]
        assert len(set(groups)) == len(groups)
        single = [a.name for a in kept if not ACTIONS[a.name].many]
        assert len(set(single)) == len(single)


def test_every_pair():
    """Whoever asks first, of two different actions the same one stays."""
    for a, b in itertools.combinations(ACTIONS, 2):
        assert names([a, b])[0] == names([b, a])[0]


REWRITES = ("reset_context", "rollback_snapshot", "trim_context", "insert_summary")
CONFLICTS = {
    *map(frozenset, itertools.combinations(REWRITES, 2)),
    *map(frozenset, itertools.combinations(("refuse_new", "canned_reply", "switch_model"), 2)),
    frozenset({"reset_context", "compensate_positions"}),
    frozenset({"reset_context", "repair_mask"}),
}
"""Every pair of actions that cannot both be carried out, as sentences of the design say it."""


@pytest.mark.capability("issue 5 §6: one priority and conflict table: no decision holds two conflicting actions")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.builds(Action, st.sampled_from(list(ACTIONS)), st.just({}) | st.just({"k": 1})), max_size=12))
def test_no_decision_holds_two_conflicting_actions(wanted):
    """Whatever is wanted: no pair of the conflicts stays, nothing goes without one, and somebody of each pair stays."""
    kept, lost = resolve_actions(wanted, ACTIONS)
    stay = {a.name for a in kept}
    assert not [pair for pair in CONFLICTS if pair <= stay]
    for loser in lost:
        assert loser.action.name == loser.winner or frozenset({loser.action.name, loser.winner}) in CONFLICTS
        assert loser.winner in stay or loser.action.name == loser.winner
    assert {a.name for a in wanted} == stay | {s.action.name for s in lost}
    order = [list(ACTIONS).index(a.name) for a in kept]
    assert order == sorted(order)


def test_the_table_is_the_conflicts():
    """Pairs that exclude each other by the action table are those, no more; and each group says why."""
    both = [frozenset({a, b}) for a, b in itertools.combinations(ACTIONS, 2) if len(names([a, b])[0]) < 2]
    assert set(both) == CONFLICTS
    assert {spec.group for spec in ACTIONS.values() if spec.group} == set(GROUPS)

"""The random packs and streams contain what they promise, and the oracle keeps its own promises on them."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from stabilitykit.rules.pack import Pack
from stabilitykit.turn import Turn
from tests.naive.conditions import nodes
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS, FAKES
from tests.naive.outcome import Outcome
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import CLEAN, Observation, Stream, random_stream

PACKS = 60


def play(pack: Pack, stream: Stream) -> list[Outcome]:
    """Run a stream on a new oracle."""
    engine = NaiveEngine(pack, detectors=FAKE_TWINS)
    return [
        engine.observe(**entry.arguments) if isinstance(entry, Observation) else engine.evaluate(entry)
        for entry in stream.entries
    ]


@pytest.mark.capability("issue 2 §6: the random packs use every operator, scope and field of a rule")
def test_packs_use_the_whole_language():
    """Every operator, scope and field of a rule occurs."""
    rules = [rule for seed in range(PACKS) for rule in random_pack(seed, detectors=FAKES).rules]
    ops = {node.op for rule in rules for node in nodes(rule.when)}
    assert ops == set(
        "sig out num param neg abs + - * / min max prev delta mean wmin wmax count cmp truth and or not rule".split()
    )
    assert {rule.scope for rule in rules} == {"session", "replica", "device"}
    assert {rule.on_missing for rule in rules} == {"hold", "skip", "fire"}
    for field in ("count", "keep_for", "cooldown", "do", "tags"):
        assert any(getattr(rule, field) for rule in rules), field


def test_references_are_in_topological_order():
    """A rule refers only to rules before it in `order`, whatever the order in the pack."""
    for seed in range(PACKS):
        pack = random_pack(seed)
        for place, rule_id in enumerate(pack.order):
            read = {n.name for n in nodes(pack.rule(rule_id).when) if n.op == "rule"}
            assert read <= set(pack.order[:place])


def test_guards_and_machines_occur_in_every_form():
    """Guards with every atom, `for`, `after`; every state can be entered."""
    packs = [random_pack(seed) for seed in range(PACKS)]
    transitions = [t for pack in packs for t in pack.transitions]
    assert {n.op for t in transitions if t.when for n in nodes(t.when)} == {"atleast", "rule", "and", "or", "not"}
    assert any(t.for_turns > 1 for t in transitions)
    assert any(t.after and t.when for t in transitions)
    assert all({s.name for s in p.states} - {p.initial} <= {t.to for t in p.transitions} for p in packs)


@pytest.mark.capability("issue 2 §6: valid, missing, NaN, infinite, boundary and tie inputs are each at least 5 %")
def test_every_kind_of_input_is_at_least_a_twentieth():
    """Valid, missing, NaN, infinite, boundary and tie inputs are all frequent."""
    modes: Counter[str] = Counter()
    for seed in range(PACKS):
        modes += random_stream(random_pack(seed), seed).modes
    assert min(modes[m] for m in ("valid", "missing", "nan", "infinite", "boundary", "tie")) >= 0.05 * modes.total()


def test_every_disorder_occurs():
    """Streams contain every fault that needs no arrays and no functions, several sessions and observations."""
    outcomes = []
    for seed in range(PACKS):
        pack = random_pack(seed, detectors=FAKES)
        outcomes += play(pack, random_stream(pack, seed))
    kinds = {kind for o in outcomes for kind, _ in o.faults}
    assert kinds == set(
        "invalid type_mismatch stale turn_conflict turn_gap signal_stale unit_suspect receipt_unknown".split()
    )
    assert {letter for o in outcomes for letter in o.verdicts.values()} == set("TUF")
    assert len({o.state for o in outcomes}) == 4
    assert any(o.suppressed for o in outcomes)
    assert any(o.wider_fired.get(scope) for o in outcomes for scope in ("replica", "device"))


@pytest.mark.parametrize("seed", range(10))
def test_equal_seeds_give_equal_outcomes(seed):
    """Nothing depends on anything but the seed and the order of calls."""
    first, second = (play(p := random_pack(seed, detectors=FAKES), random_stream(p, seed)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("seed", range(10))
def test_order_of_rules_in_the_file_never_decides(seed):
    """Verdicts, states and faults are the same for any order of the rules."""
    pack = random_pack(seed, detectors=FAKES)
    turned = attrs.evolve(pack, rules=pack.rules[::-1])
    stream = random_stream(pack, 1)
    for a, b in zip(play(pack, stream), play(turned, stream), strict=True):
        assert (a.state, a.verdicts, set(a.matches), set(a.fired), a.faults) == (
            b.state,
            b.verdicts,
            set(b.matches),
            set(b.fired),
            b.faults,
        )


@pytest.mark.parametrize("seed", range(10))
def test_a_peek_before_every_turn_comes_true(seed):
    """A peek changes nothing and says what the turn then gives."""
    pack = random_pack(seed, detectors=FAKES)
    stream = random_stream(pack, seed)
    engine = NaiveEngine(pack, detectors=FAKE_TWINS)
    for entry, expected in zip(stream.entries, play(pack, stream), strict=True):
        if isinstance(entry, Turn):
            assert engine.peek(entry) == expected
            assert engine.evaluate(entry) == expected
        else:
            assert engine.observe(**entry.arguments) == expected


def test_clean_streams_have_no_unusable_inputs():
    """A clean stream brings only numbers in their domains."""
    pack = random_pack(3)
    faults = {kind for o in play(pack, random_stream(pack, 3, modes=CLEAN)) for kind, _ in o.faults}
    assert not faults & {"invalid", "type_mismatch"}

"""Every verb in random order: the engine says what the oracle says, whatever happens to its memory in between."""

from __future__ import annotations

import random
from unittest import mock

import hypothesis
import hypothesis.stateful
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from stabilitykit import UsageError
from tests.engines import engine_of
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS, FAKES
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import MODES, Maker
from tests.test_differential import shown, wanted

TENANTS, NAMES = st.sampled_from(["", "t2"]), st.sampled_from(["a", "b", "c", "d"])


def attempt(call, *args, **kwargs):
    """Call; give what came back, or that it was misuse."""
    try:
        return call(*args, **kwargs)
    except UsageError:
        return "misuse"


class Verbs(RuleBasedStateMachine):
    """An engine and the oracle side by side."""

    @initialize(seed=st.integers(0, 100_000))
    def start(self, seed):
        """Choose a pack and a source of turns."""
        self.pack = random_pack(seed, detectors=FAKES, max_rules=8)
        self.maker = Maker(self.pack, random.Random(seed), MODES)
        self.engine = engine_of(self.pack)
        self.oracle = NaiveEngine(self.pack, detectors=FAKE_TWINS)

    @rule()
    def evaluate(self):
        """Take a turn: the next one, a late one, the same again."""
        turn = self.maker.turn()
        assert shown(self.engine.evaluate(turn)) == wanted(self.oracle.evaluate(turn), "session")

    @rule()
    def peek(self):
        """Ask without storing."""
        turn = self.maker.new_turn(("", "a"))
        assert shown(self.engine.peek(turn)) == wanted(self.oracle.peek(turn), "session")

    @rule()
    def observe(self):
        """Take a sample."""
        arguments = self.maker.observation().arguments
        assert shown(self.engine.observe(**arguments)) == wanted(self.oracle.observe(**arguments), "observe")

    @rule(tenant=TENANTS, source=NAMES, copy=NAMES)
    def fork(self, tenant, source, copy):
        """Branch a session."""
        got = attempt(self.engine.fork, source, copy, tenant=tenant)
        assert got == attempt(self.oracle.fork, source, copy, tenant=tenant)

    @rule(tenant=TENANTS, name=NAMES)
    def forget(self, tenant, name):
        """Drop a session."""
        assert self.engine.forget(name, tenant=tenant) == self.oracle.forget(name, tenant=tenant)

    @rule(tenant=TENANTS, name=NAMES)
    def move(self, tenant, name):
        """Export a session and bring it back."""
        blob = attempt(self.engine.export, name, tenant=tenant)
        assert (blob == "misuse") is ((tenant, name) not in self.oracle.sessions)
        if blob != "misuse":
            assert self.engine.restore(blob) == name

    @rule()
    def reload(self):
        """Load the same pack again."""
        with mock.patch("stabilitykit.engine.engine._load", return_value=self.pack):
            report = self.engine.reload("the same")
        assert (report.started, report.dropped) == (0, 0)


@pytest.mark.capability("issue 2 §6: every verb in random order: engine and oracle agree")
def test_verbs():
    """Evaluate, observe, peek, fork, forget, export, restore, reload; a hundred random histories of fifty steps."""
    hypothesis.stateful.run_state_machine_as_test(Verbs, settings=hypothesis.settings(stateful_step_count=50))
    assert issubclass(Verbs, RuleBasedStateMachine)

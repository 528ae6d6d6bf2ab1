"""Every action of the language reaches an adapter, and the receipt says what acted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabilitykit import Turn
from stabilitykit.actions import ACTIONS
from stabilitykit.errors import UsageError
from stabilitykit.integrations.carrying_out import Host
from stabilitykit.mitigations.directives import MITIGATIONS
from stabilitykit.mitigations.kv import Done
from tests.integrations.decisions import asking, slow


@pytest.mark.capability("issue 5 §6: every action of a decision reaches the host's adapter as its class")
@pytest.mark.parametrize("name", ACTIONS)
def test_each_action(tmp_path, name):
    """An adapter is handed the class of the action with its defaults, and the engine takes the receipt."""
    seen: list[Any] = []
    engine = asking(tmp_path, f"{{{name}: {{}}}}")
    receipt = Host({name: seen.append}).carry_out(slow(engine))
    assert (seen, receipt.done) == ([MITIGATIONS[name]()], (name,))
    assert engine.evaluate(Turn(session_id="c-1", applied=receipt)).faults == ()


def test_only_what_acted_is_in_the_receipt(tmp_path, caplog):
    """No adapter, one that says no, and one that fails: not done; the failure is in the log without its text."""
    engine = asking(tmp_path, "{throttle: {}}", "{evict_kv: {}}", "{repair_mask: {}}", "{emit_metric: {}}")

    def fail(asked):
        raise RuntimeError("what the user said")

    host = Host({"throttle": lambda asked: False, "evict_kv": fail, "emit_metric": lambda asked: None})
    assert host.carry_out(slow(engine)).done == ("emit_metric",)
    assert "action=evict_kv error=RuntimeError" in caplog.text
    assert "user" not in caplog.text


@pytest.mark.parametrize(
    ("given", "acted"),
    [
        (None, True), (True, True), (False, False), (np.bool_(False), False),
        (Done("evict_kv", True, {}), True), (Done("evict_kv", False, {"why": "nothing there"}), False),
    ],
)  # fmt: skip
def test_what_an_adapter_says(tmp_path, given, acted):
    """A bool, what has `is_done`, or nothing: only what really acted is in the receipt."""
    host = Host({"evict_kv": lambda asked: given})
    assert host.carry_out(slow(asking(tmp_path, "{evict_kv: {}}"))).done == (("evict_kv",) if acted else ())


def test_names():
    """An adapter for an action that nobody knows is a mistake of the host's."""
    with pytest.raises(UsageError, match="page_oncall"):
        Host({"page_oncall": print})
    assert isinstance(Host({"page_oncall": print}, declared=("page_oncall",)), Host)


def test_a_coroutine_is_no_act(tmp_path, caplog):
    """An asynchronous adapter has done nothing yet when it returns, and nobody waits for it: it did not act."""

    async def adapter(asked):
        raise AssertionError

    engine = asking(tmp_path, "{release_memory: {}}")
    assert Host({"release_memory": adapter}).carry_out(slow(engine)).done == ()
    assert "action=release_memory error=TypeError" in caplog.text

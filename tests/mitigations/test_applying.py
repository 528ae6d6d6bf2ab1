"""What stands between a decision and the actions on messages: nothing reaches the host's reply."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stabilitykit.actions import Action
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.applying import apply_decision

CHAT: list[Any] = [{"role": "user", "content": f"word {k} " * 30} for k in range(20)]


def applied(messages, lent, **params):
    """Apply `trim_context` as a decision would."""
    wanted: Any = SimpleNamespace(actions=(Action("trim_context", params),), session_id="s", turn_id=3, tenant="")
    return apply_decision(wanted, messages, lent)


def fail(*_: Any) -> Any:
    """Be a helper of the host that does not work."""
    raise RuntimeError("no tokenizer today")


@pytest.mark.capability("issue 5 §1: what the host lends may fail: the reply goes on as it was, the receipt says why")
@pytest.mark.parametrize(
    "lent",
    [
        {"context_window_tokens": 500, "count_tokens": fail},
        {"context_window_tokens": 500, "count_tokens": lambda text: float("nan")},
        {"context_window_tokens": 500, "embed": fail},
        {"context_window_tokens": float("nan")},
        {"context_window_tokens": float("inf")},
        {"context_window_tokens": "many"},
    ],
)
def test_a_helper_that_fails_costs_no_reply(lent):
    """The messages come back as they were, and nothing is claimed."""
    messages, receipt = applied(CHAT, lent)
    assert messages == CHAT
    assert receipt.done == ()
    assert receipt.details["trim_context"]["why"]
    assert "tokenizer" not in str(receipt)


def test_a_mistake_that_we_know_is_told():
    """The receipt says what is wrong with what was lent, in the words of the error."""
    wanted: Any = SimpleNamespace(
        actions=(Action("inject_state_tokens", {"format": "compact"}),), session_id="s", turn_id=3, tenant=""
    )
    messages, receipt = apply_decision(wanted, CHAT, {"values": {"step": "3"}, "nonce": "k3 f9!"})
    assert messages == CHAT
    assert "nonce" in receipt.details["inject_state_tokens"]["why"]


def test_odd_messages_cost_no_reply():
    """Neither does a list that is no conversation."""
    messages, receipt = applied([None, *CHAT], {"context_window_tokens": 500})
    assert (messages, receipt.done) == ([None, *CHAT], ())


def test_a_name_that_nothing_asks_for():
    """A misspelt loan is the host's mistake, and is told with what there is, before anything is done."""
    with pytest.raises(UsageError, match=r"no action asks for counter; what a host may lend: .*count_tokens"):
        applied(CHAT, {"counter": len})

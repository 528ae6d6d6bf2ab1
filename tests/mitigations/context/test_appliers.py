from __future__ import annotations

import pytest

from stabilitykit import Engine, Turn
from stabilitykit.mitigations.context.summary import is_anchor

SYSTEM = {"role": "system", "content": "You keep the log of a ship."}
ASK = {"role": "user", "content": "Where are we?"}


def voyage(days):
    """Give a conversation."""
    found = [SYSTEM]
    for k in range(days):
        found += [
            {"role": "user", "content": f"Day {k}: calm sea and the wind from the west."},
            {"role": "assistant", "content": f"Noted for day {k}, captain."},
        ]
    return [*found, ASK]


def decide(window, used, **more):
    """Give a decision of the context pack on one turn."""
    return Engine.load("context").evaluate(
        Turn(session_id="a", turn_id=1, input_tokens=used, output_tokens=0, context_window_tokens=window, **more)
    )


@pytest.mark.capability("issue 5 §1: decision.apply trims to a share of the window and gives a receipt with figures")
def test_trim_context():
    """A full window: half of it is kept, a summary leads, and the receipt says what was done."""
    engine = Engine.load("context")
    full = Turn(session_id="a", turn_id=1, input_tokens=980, output_tokens=0, context_window_tokens=1000)
    decision = engine.evaluate(full)
    given = voyage(60)
    messages, receipt = decision.apply(given)
    told = receipt.details["trim_context"]
    assert receipt.done == ("trim_context",)
    assert told["tokens_after"] <= 500 == told["budget_tokens"] < told["tokens_before"]
    assert told["dropped_messages"] == len(given) - len(messages) + 1
    assert told["is_fit"]
    assert told["prefix_tokens"] > 0
    assert (messages[0], messages[-1]) == (SYSTEM, ASK)
    assert is_anchor(messages[1])
    assert given == voyage(60)
    assert not any("calm" in str(value) for value in told.values())
    after = engine.evaluate(
        Turn(session_id="a", turn_id=2, input_tokens=490, output_tokens=0, context_window_tokens=1000, applied=receipt)
    )
    assert not after.fired


def test_the_host_knows_better():
    """Window, counter and summariser of the host take precedence."""
    decision = decide(1000, 980)
    messages, receipt = decision.apply(
        voyage(60), context_window_tokens=4000, count_tokens=len, summarise=lambda dropped, budget: "It was calm."
    )
    assert receipt.details["trim_context"]["budget_tokens"] == 2000
    assert messages[1]["content"] == "[SUMMARY]\nIt was calm."


def test_no_window_is_known():
    """A refusal without a window: not done, and the receipt says why."""
    decision = Engine.load("context").evaluate(Turn(session_id="a", turn_id=1, error="context_overflow"))
    messages, receipt = decision.apply(voyage(3))
    assert (messages, receipt.done) == (voyage(3), ())
    assert receipt.details["trim_context"] == {"why": "no context window is known"}


@pytest.mark.parametrize(("window", "why"), [(100_000, "it fits"), (4, "nothing may be dropped")])
def test_nothing_to_do(window, why):
    """A list that fits, or cannot be smaller, is left alone."""
    given = [SYSTEM, ASK]
    messages, receipt = decide(1000, 980).apply(given, context_window_tokens=window)
    assert (messages, receipt.done) == (given, ())
    assert receipt.details["trim_context"]["why"] == why


@pytest.mark.capability("issue 5 §1: insert_summary puts one summary behind the system prompt and drops nothing")
def test_insert_summary():
    """Twice applied there still is one."""
    decision = decide(1000, 800)
    messages, receipt = decision.apply(voyage(20))
    assert receipt.details["insert_summary"]["tokens_after"] < 1000
    assert receipt.done == ("insert_summary",)
    assert [is_anchor(m) for m in messages].index(True) == 1
    assert [m for m in messages if not is_anchor(m)] == voyage(20)
    again, _ = decision.apply(messages)
    assert sum(map(is_anchor, again)) == 1
    assert decision.apply([SYSTEM, ASK])[1].done == ()


@pytest.mark.capability("issue 5 §1: reset_context keeps the system prompt and the latest turns")
def test_reset_context():
    """A second refusal resets: the system prompt and the last turn are left."""
    engine = Engine.load("context")
    first, second = (
        engine.evaluate(Turn(session_id="a", turn_id=k, error="context_overflow", context_window_tokens=999))
        for k in (1, 2)
    )
    assert [a.name for a in first.actions] == ["trim_context"]
    messages, receipt = second.apply(voyage(9))
    assert messages == [SYSTEM, ASK]
    assert receipt.done == ("reset_context",)
    assert receipt.details["reset_context"]["dropped_messages"] == 18
    assert second.apply([SYSTEM, ASK])[1].done == ()

"""What the gate remembers belongs to one conversation of one tenant; the middleware's tests show the rest."""

from __future__ import annotations

import pytest

from stabilitykit import Turn
from stabilitykit.integrations.gate import Gate
from tests.integrations.decisions import asking, slow


@pytest.mark.capability("issue 5 §6: what a decision asks for reaches no session of the same id of another tenant")
def test_two_tenants(tmp_path):
    """One tenant's session is switched and throttled; the other's of its name is not."""
    actions = "{switch_model: {to: light}}", "{throttle: {max_concurrency: 1}}"
    gate, engine = Gate(), asking(tmp_path, *actions)
    gate.note(slow(engine, "c-1", tenant="one"))
    gate.note(engine.evaluate(Turn(session_id="c-1", tenant="two", itl_ms=10.0)))
    assert [gate.model("c-1", "big", tenant=tenant) for tenant in ("one", "two", "")] == ["light", "big", "big"]
    busy = [gate.enter("c-1", tenant=tenant) for tenant in ("one", "one", "two", "two")]
    assert [admission.retry_after_s for admission in busy] == [None, 1.0, None, None]
    assert [admission.model for admission in busy] == ["light", None, None, None]
    gate.leave("c-1", tenant="two")
    assert gate.enter("c-1", tenant="one").retry_after_s == 1.0
    gate.leave("c-1", tenant="one")
    assert gate.enter("c-1", tenant="one").retry_after_s is None


def test_a_canned_reply_of_one_tenant(tmp_path):
    """The other tenant's session of that name has no prepared text and is not degraded."""
    gate, engine = Gate(), asking(tmp_path, "{canned_reply: {name: sorry}}")
    gate.note(slow(engine, "c-1", tenant="one"))
    assert gate.enter("c-1", tenant="two").canned is None
    assert (gate.take_canned("c-1", tenant="two"), gate.state("c-1", tenant="two")) == (None, "")
    assert (gate.take_canned("c-1", tenant="one"), gate.state("c-1", tenant="one")) == ("sorry", "healthy")

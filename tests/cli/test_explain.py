"""`stabilitykit explain`."""

from __future__ import annotations

import pytest


@pytest.mark.capability("issue 2 §7: `explain`: one turn of a recording")
def test_one_turn(run, pack, log):
    """The turn is explained: state, rule, value, threshold, streak and what would have avoided it."""
    ran = run("explain", log, "--turn", "3", "--pack", pack)
    assert ran.code == 0
    assert "turn 3: session is broken (was warning)" in ran.out
    assert "would not match if itl_ms <= 60 ms" in ran.out


def test_several_sessions_need_a_name(run, pack, log):
    """A turn that exists twice needs --session; the beginning of an id is enough."""
    ran = run("explain", log, "-t", "1", "--pack", pack)
    assert ran.code == 2
    assert "c-1" in ran.err
    assert "c-2" in ran.err
    (found,) = run("explain", log, "-t", "1", "-s", "c-2", "--pack", pack, "--json").records
    assert (found["id"], found["turn_id"]) == ("c-2", 1)


def test_turn_that_is_not_there(run, pack, log):
    """A turn that the log does not have is wrong use."""
    ran = run("explain", log, "-t", "99", "--pack", pack)
    assert ran.code == 2
    assert "no turn 99" in ran.err

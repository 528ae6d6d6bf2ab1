"""`stabilitykit rules`."""

from __future__ import annotations

import pytest


@pytest.mark.capability("issue 2 §7: `rules ls` and `rules show`")
def test_ls(run, pack):
    """Every rule has a line with severity, scope and what it needs."""
    out = run("rules", "ls", "--pack", pack).out
    assert len(out.splitlines()) == 5
    assert "2 turns in a row" in out
    assert "replica-busy  info      replica  1 sample" in out


@pytest.mark.capability("issue 2 §7: `rules ls` and `rules show`")
def test_show(run, pack):
    """A rule is shown with condition, signals, actions and place."""
    out = run("rules", "show", "itl-slow", "--pack", pack).out
    for part in ("itl_ms > params.slow_itl", "throttle(max_concurrency=1)", "hold, at most 20 turns", f"{pack}:7"):
        assert part in out


def test_json(run, pack):
    """--json gives the same facts."""
    (found,) = run("rules", "show", "ttft-slow", "--pack", pack, "--json").records
    assert found["reads"] == ["ttft_ms"]
    (listed,) = run("rules", "ls", "--pack", pack, "--json").records
    assert found in listed["rules"]


def test_unknown_rule(run, pack):
    """An unknown rule is wrong use, with the nearest one."""
    ran = run("rules", "show", "itl-slw", "--pack", pack)
    assert ran.code == 2
    assert "did you mean `itl-slow`" in ran.err

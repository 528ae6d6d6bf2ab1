"""`stabilitykit signals`."""

from __future__ import annotations

import pytest

from stabilitykit.signals import CATALOGUE


@pytest.mark.capability("issue 2 §7: `signals`: the catalogue and a pack's own")
def test_catalogue(run):
    """Every signal has a line; who derives it is said, the others are the host's."""
    out = run("signals").out
    assert len(out.splitlines()) == len(CATALOGUE) + 1
    assert "derived from input_tokens and context_window_tokens" in out
    assert "host only" in out


@pytest.mark.capability("issue 2 §7: `signals`: the catalogue and a pack's own")
def test_declared_signals(run, pack):
    """--pack adds the signals that a pack declares."""
    pack.write_text(pack.read_text() + "signals:\n  mood: {unit: ratio, doc: how it feels}\n")
    (found,) = run("signals", "--pack", pack, "--json").records
    assert {s["name"] for s in found["signals"]} == {*CATALOGUE, "mood"}


def test_json_is_finite(run):
    """Domains without an end are null."""
    (found,) = run("signals", "--json").records
    by_name = {s["name"]: s for s in found["signals"]}
    assert by_name["embedding"]["hi"] is None
    assert by_name["kv_usage_ratio"]["hi"] == 1.0

"""Colours of states follow the machine."""

from __future__ import annotations

from stabilitykit.cli.tones import STYLES, tones
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack


def test_base():
    """The first state is good, the one that critical rules lead to is bad."""
    found = tones(load_pack("base", detectors=DETECTORS))
    assert (found["healthy"], found["broken"]) == ("good", "bad")
    assert len({*found.values()}) == 4


def test_every_tone_has_a_style():
    """No pack can meet a tone without a terminal style."""
    for name in ("base", "chat", "latency"):
        assert {*tones(load_pack(name, detectors=DETECTORS)).values()} <= {*STYLES}

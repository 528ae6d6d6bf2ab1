from __future__ import annotations

import pytest

from stabilitykit.signals import SignalSpec
from tests.rules.packs import HEAD, expect_problems, load


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ("unit: ms", SignalSpec("x", "ms", "session", "", "number", 0.0, 1e15)),
        ("unit: ratio, doc: share", SignalSpec("x", "ratio", "session", "share", "number", 0.0, 1.0)),
        ("unit: bool, scope: device", SignalSpec("x", "bool", "device", "", "bool", 0.0, 1.0)),
        ("unit: count, max: 10", SignalSpec("x", "count", "session", "", "count", 0.0, 10.0)),
        ("unit: tokens, min: 1 tokens", SignalSpec("x", "tokens", "session", "", "count", 1.0, 2.0**53)),
        ("unit: C, min: -20 C, max: 90 C", SignalSpec("x", "C", "session", "", "number", -20.0, 90.0)),
        ("unit: ms, max: 2 s", SignalSpec("x", "ms", "session", "", "number", 0.0, 2000.0)),
        ("unit: ratio, min: -1", SignalSpec("x", "ratio", "session", "", "number", -1.0, 1.0)),
        ("values: [calm, angry]", SignalSpec("x", "enum", "session", "", "enum", 0.0, 1.0, ("calm", "angry"))),
    ],
)
def test_a_signal_has_unit_scope_and_domain(tmp_path, fields, spec):
    """The unit decides about kind and default domain."""
    assert load(tmp_path, HEAD + f"signals:\n  x: {{{fields}}}\n").signals == {"x": spec}


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        ("SK309", "¦itl_ms: {unit: ms}"),
        ("SK202", "¦x: {doc: nothing}"),
        ("SK411", "x: {unit: ¦sec}"),
        ("SK411", "x: {unit: ¦turns}"),
        ("SK416", "x: {unit: ms, scope: ¦sesion}"),
        ("SK411", "x: {unit: ms, min: ¦5}"),
        ("SK410", "x: {unit: ms, min: ¦5 tokens}"),
        ("SK203", "x: {unit: ms, min: ¦low}"),
        ("SK203", "x: {unit: ms, min: ¦[1]}"),
        ("SK206", "x: {unit: ms, min: ¦9 ms, max: 3 ms}"),
        ("SK206", "x: {unit: ratio, max: ¦-1}"),
        ("SK203", "x: {unit: count, max: ¦1.5}"),
        ("SK201", "x: {unit: bool, ¦max: 1}"),
        ("SK201", "x: {values: [a, b], ¦unit: ms}"),
        ("SK206", "x: {values: ¦[]}"),
        ("SK309", "x: {values: [a, b, ¦a]}"),
        ("SK205", "x: {values: [a, ¦Big]}"),
        ("SK203", "x: {values: [a, ¦1]}"),
        ("SK203", "x: {values: ¦a}"),
        ("SK203", "x: ¦ms"),
    ],
)
def test_a_wrong_signal_is_located(tmp_path, code, signal):
    """One mistake gives one problem, and a condition that reads the signal none."""
    rule = "rules:\n  - {rule: a, when: x > 3 ms or itl_ms > 1 ms}\n"
    expect_problems(tmp_path, HEAD + f"signals:\n  {signal}\n" + (rule if "itl_ms" not in signal else ""), code)

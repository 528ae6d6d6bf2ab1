"""Loading 1,000 rules against parsing the same file with PyYAML's C loader."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from benchmarks.measure import Figure, significant, times
from benchmarks.workload import MACHINE, pack_text, rules
from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.conditions.syntax import parse_condition
from stabilitykit.rules.load import load_pack

RULE = """  - rule: {0}
    desc: a rule as people write it, with everything it may have
    when: {1}
    for: {2} turns
    keep_for: 2 turns
    severity: {3}
    do:
      - throttle: {{}}
    reason: "slower than it should be"
    tags: [stable, latency]
"""


def text() -> str:
    made = rules(1000)
    short = [line for line in pack_text(made).splitlines() if line.startswith("  - {rule:")]
    lines = []
    for rule, line in zip(made, short, strict=True):
        when = line.split('when: "')[1].split('"')[0]
        lines.append(RULE.format(rule.id, when, rule.streak, ("info", "warning", "critical")[rule.severity - 1]))
    return "stabilitykit: 1\npack: big\n" + MACHINE + "rules:\n" + "".join(lines)


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.yaml"
        path.write_text(text())
        source = path.read_bytes()
        pack = load_pack(str(path), detectors=DETECTORS)
        conditions = [rule.source for rule in pack.rules]
        load, theirs, parse, tables = times(
            [
                lambda: build_program(load_pack(str(path), detectors=DETECTORS)),
                lambda: yaml.load(source, Loader=yaml.CSafeLoader),
                lambda: [parse_condition(c) for c in conditions],
                lambda: build_program(pack),
            ],
            5,
        )
    note = f"{load / 1e6:.0f} ms against {theirs / 1e6:.0f} ms"
    part = f"parsing {parse / 1e6:.1f} ms, tables {tables / 1e6:.1f} ms"
    return [
        Figure("load_thousand_rules", "loading 1,000 rules / CSafeLoader", significant(load / theirs), 1.5, note),
        Figure(
            "load_conditions",
            "parsing conditions + tables / CSafeLoader",
            significant((parse + tables) / theirs),
            0.12,
            part,
        ),
    ]

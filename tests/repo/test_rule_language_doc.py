"""The page of the rule language is true: its worked examples and its cases run on the engine."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from stabilitykit.decision import ACTIONS, FAULT_KINDS
from stabilitykit.detectors import DETECTORS
from stabilitykit.engine import Engine
from stabilitykit.rules.case_run import run_cases
from stabilitykit.rules.cases import read_cases
from stabilitykit.rules.load import load_pack
from stabilitykit.turn import Turn
from tests.repo.test_documents import ROOT, blocks

PAGE = ROOT / "docs" / "reference" / "rule-language.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^\*\*Example (\d+), [^\n]*\n.*?^```yaml\n(rules:.*?)^```\n\n((?:\|[^\n]*\n)+)", re.M | re.S)
HEAD = "stabilitykit: 1\npack: example\n"
PROBE = '  - {{rule: {name}-{way}, when: "{when}", on_missing: {way}}}\n'


@attrs.frozen
class Example:
    """One worked example: the rules, and one list of cells for each row of the table."""

    number: int
    rules: str
    rows: dict[str, list[str]]

    def text(self) -> str:
        """Give the pack: the rules, and for each verdict in the table two rules that make it visible."""
        probes = ""
        for name in self.named("verdict of"):
            (when,) = re.findall(rf"rule: {name}\n +when: (.*)", self.rules)
            probes += "".join(PROBE.format(name=name, when=when, way=way) for way in ("skip", "fire"))
        rules = self.rules.replace("rules:\n", "rules:\n" + probes, 1)
        return HEAD + ("" if "machine:" in rules else "extends: [base]\n") + rules

    def named(self, kind: str) -> dict[str, list[str]]:
        """Give the rows of one kind (`rule`, `verdict of`, "" for signals) by the name in backticks."""
        pattern = re.compile(rf"{kind} ?`(\w[\w-]*)`" if kind else r"`(\w+)`")
        return {m[1]: cells for row, cells in self.rows.items() if (m := pattern.fullmatch(row))}


def examples() -> list[Example]:
    """Read every worked example of the page."""
    found = []
    for number, rules, table in EXAMPLE.findall(TEXT):
        lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
        found.append(Example(int(number), rules, {cells[0]: cells[1:] for cells in lines if cells[0] != "---"}))
    return found


EXAMPLES = examples()


def seen(decision, name: str) -> str:
    """Give how a rule stands after a turn: `.`, `M` or `M*`."""
    match = next((m for m in decision.matches if m.rule == name), None)
    return "." if match is None else "M*" if match.fired else "M"


def verdict(decision, name: str) -> str:
    """Give the verdict that the two rules over one condition make visible."""
    met = {m.rule for m in decision.matches}
    return "T" if f"{name}-skip" in met else "U" if f"{name}-fire" in met else "F"


@pytest.mark.capability(
    "issue 2 §3: the user's page of the rule language: 13 worked examples are what the engine decides"
)
def test_all_thirteen_examples_are_there():
    """The page has the worked examples 1 to 13, each once."""
    assert sorted(example.number for example in EXAMPLES) == list(range(1, 14))


@pytest.mark.capability(
    "issue 2 §3: the user's page of the rule language: 13 worked examples are what the engine decides"
)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.number))
def test_example(example, tmp_path):
    """Every cell of the table is what the engine decides."""
    path = tmp_path / "example.yaml"
    path.write_text(example.text(), encoding="utf-8")
    engine = Engine.load(str(path))
    signals, checked = example.named(""), 0
    for turn, _ in enumerate(example.rows["turn"]):
        given: dict[str, Any] = {name: float(cells[turn]) for name, cells in signals.items() if cells[turn] != "-"}
        decision = engine.evaluate(Turn(session_id="s", **given))
        found = {f"rule `{name}`": seen(decision, name) for name in example.named("rule")}
        found |= {f"verdict of `{name}`": verdict(decision, name) for name in example.named("verdict of")}
        found |= {"state": decision.state, "faults": " ".join(fault.kind for fault in decision.faults) or "."}
        found = {row: value for row, value in found.items() if row in example.rows}
        assert found == {row: example.rows[row][turn] for row in found}, f"turn {turn + 1}"
        checked += len(found)
    assert checked == sum(len(cells) for row, cells in example.rows.items() if row[0] != "`" and row != "turn")


def packs_with_cases() -> list[tuple[str, str]]:
    """Give each block of cases with the pack above it."""
    found, pack = [], ""
    for body in blocks(PAGE, "yaml"):
        if body.startswith("stabilitykit:"):
            pack = body
        elif body.startswith("cases:"):
            found.append((pack, body))
    return found


@pytest.mark.parametrize(("pack", "cases"), packs_with_cases(), ids=lambda text: text.splitlines()[1].strip())
def test_cases_hold(pack, cases, tmp_path):
    """Every case that the page shows holds for the pack above it."""
    path = tmp_path / "pack.yaml"
    path.write_text(pack, encoding="utf-8")
    checked = load_pack(str(path), detectors=DETECTORS)
    file = read_cases(cases.encode(), "cases", checked)
    assert not run_cases(file, checked, lambda: Engine.load(str(path)))


def test_lists_of_the_page_are_complete():
    """Faults and conflict groups on the page are those of the code, in order."""
    kinds = re.findall(r"^\| `(\w+)` \|", TEXT.partition("**Faults**")[2].partition("\n## ")[0], re.M)
    assert tuple(kinds) == FAULT_KINDS
    for group in {action.group for action in ACTIONS.values() if action.group}:
        (names,) = re.findall(rf"^\| `{group}` \| (.*) \|$", TEXT, re.M)
        ranked = sorted((action for action in ACTIONS.values() if action.group == group), key=lambda a: a.rank)
        assert names.replace("`", "").split() == [action.name for action in ranked]

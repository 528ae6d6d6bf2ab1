"""Bad packs are refused with the right code at the right place, and harm nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stabilitykit import Engine, Turn
from stabilitykit.errors import PackError, Problem, ReloadRefused
from tests.hostile.families import FAMILIES

FOLDER = Path(__file__).parent
PACKS = FOLDER / "packs"
EXPECTED: dict[str, list[Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text(encoding="utf-8"))
SPECIFIED = (
    "SK101 SK102 SK103 SK104 SK105 SK106 SK107 SK201 SK202 SK203 SK204 SK205 SK206 SK214 SK301 SK302 SK303 SK304 "
    "SK305 SK306 SK307 SK308 SK309 SK321 SK331 SK332 SK401 SK402 SK410 SK411 SK412 SK413 SK414 SK415 SK416 SK417 "
    "SK421 SK422 SK501 SK502 SK503 SK504 SK505 SK506 SK507 SK601 SK602 SK603 SK604 SK605"
).split()
SNIPPET = 200


def wanted(name: str) -> list[tuple[str, int, int]]:
    """Give code, line and column of every problem of a file."""
    entries = EXPECTED[name]
    return [tuple(e) for e in (entries if isinstance(entries[0], list) else [entries])]


def refused(source: Path) -> tuple[Problem, ...]:
    """Load a pack that must be refused; give its problems."""
    with pytest.raises(PackError) as caught:
        Engine.load(str(source), compiled=False)
    return caught.value.problems


@pytest.mark.capability("issue 2 §9: 393 bad packs, every error code, each refused at its line and column")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_bad_pack_is_refused_where_it_is_wrong(name):
    """Exactly the named problems, each with its line, a caret under the spot, and the nearest name if one is near."""
    found = refused(PACKS / name)
    assert [(p.code, p.line, p.col) for p in found] == wanted(name), "\n".join(map(str, found))
    for problem in found:
        shown = str(problem).splitlines()
        assert shown[0].startswith(f"{PACKS / name}:{problem.line}:{problem.col}: {problem.code} ")
        if problem.snippet.strip():
            assert shown[2].index("^") == problem.col + 3
        else:
            rows = (PACKS / name).read_text("utf-8", "replace").split("\n")
            assert "utf16" in name or problem.code == "SK604" or not 0 < len(rows[problem.line - 1].strip()) <= SNIPPET
    if "misspelt" in name:
        assert "did you mean `" in found[0].hint


def test_every_file_is_named_and_every_code_is_met():
    """No file lies around unread; each code of the specification has two files or families at least."""
    assert sorted(EXPECTED) == sorted(p.name for p in PACKS.glob("*.yaml"))
    met = [code for name in EXPECTED for code in {code for code, _, _ in wanted(name)}]
    met += [code for code, _ in FAMILIES.values()]
    assert len(EXPECTED) >= 220
    assert {code for code in SPECIFIED if met.count(code) < 2} == set()


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_hostile_file_is_refused(tmp_path, name):
    """Files that reach a limit say which; `python -m benchmarks.hostile` prints what each costs."""
    code, text = FAMILIES[name]
    path = tmp_path / "hostile.yaml"
    path.write_text(text(), encoding="utf-8")
    found = refused(path)
    assert found[0].code == code
    assert len(found) <= 50
    assert len("".join(map(str, found))) < 65_536


@pytest.mark.capability("issue 2 §9: bad packs leave a running engine as it was")
def test_a_running_engine_stays_as_it_was():
    """After every bad pack the engine decides as its twin that never saw one, under the same pack."""
    engine, twin = (Engine.load("base", compiled=False) for _ in range(2))
    for turn_id, name in enumerate(sorted(EXPECTED), 1):
        with pytest.raises(PackError):
            engine.reload(str(PACKS / name))
        turn = Turn(session_id="s", turn_id=turn_id, itl_ms=20.0 + turn_id % 7, ttft_ms=-1.0 if turn_id % 5 else 90.0)
        assert engine.evaluate(turn).to_dict() == twin.evaluate(turn).to_dict()
    assert engine.pack.fingerprint == twin.pack.fingerprint


@pytest.mark.parametrize("states", [["up"], ["up", "lost"]])
def test_a_state_that_vanishes_refuses_the_reload(tmp_path, states):
    """SK510 names the state; the old pack stays."""
    engine = Engine.load("base", compiled=False)
    path = tmp_path / "other.yaml"
    listed = ", ".join(f"{{state: {state}}}" for state in states)
    ways = "" if len(states) == 1 else "{from: up, to: lost, when: any critical}"
    text = f"stabilitykit: 1\npack: other\nmachine: {{initial: up, states: [{listed}], transitions: [{ways}]}}\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReloadRefused, match="SK510 state 'healthy'"):
        engine.reload(str(path))
    assert engine.pack.name == "base"
    assert engine.evaluate(Turn(session_id="s", turn_id=1)).state == "healthy"

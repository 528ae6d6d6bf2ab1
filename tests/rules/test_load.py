from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import tracemalloc

import pytest

from stabilitykit.errors import PackError
from stabilitykit.rules.load import load_pack
from tests.rules.packs import HEAD, SPECS, expect_problems, load, refused

EVERYTHING_WRONG = """stabilitykit: 1
pack: ¦Bad_Pack
extends: [base]
¦foo: 1
params:
  slow: {default: ¦80 mss}
  p: ¦{¦defalt: 5}
detectors:
  itl: {type: ¦braker}
  drift: {type: drift, ¦metod: plain, window: ¦5000}
signals:
  ¦itl_ms: {unit: ms}
rules:
  - rule: one
    when: itl_ms > ¦80
    for: ¦3
    severity: ¦critcal
    ¦sevrity: x
    do: [¦throttle, {¦trotle: {}}]
  - rule: two
    when: ¦itl_mz > 3 ms or ¦rule:nobody
  - rule: ¦one
    when: itl_ms > 80 ms
machine:
  override: true
  initial: up
  states: [{state: up}, {state: lost}]
  transitions:
    - ¦{from: up, to: lost}
"""


@pytest.mark.capability("issue 2 §3: all problems of a file at once, each with file:line:col and a caret")
def test_all_problems_of_a_file_are_reported_at_once(tmp_path):
    """Spelling, shape, names, units and machine in one go, by position, each with a caret under the spot."""
    codes = "SK205 SK201 SK411 SK202 SK201 SK302 SK201 SK206 SK309 SK411 SK412 SK416 SK201 SK203 SK304 SK301 SK305"
    found = expect_problems(tmp_path, EVERYTHING_WRONG, *codes.split(), "SK309", "SK504")
    for problem in found:
        shown = str(problem).splitlines()
        assert shown[0].startswith(f"{problem.file}:{problem.line}:{problem.col}: {problem.code} ")
        assert shown[2].index("^") == problem.col + 3
    hints = {p.code: p.hint for p in found}
    assert hints["SK302"] == "did you mean `breaker`?"
    assert hints["SK304"] == "did you mean `throttle`?"


def test_at_most_50_problems_of_a_file_are_reported(tmp_path):
    """The first 50 by position."""
    found = refused(tmp_path, HEAD + "".join(f"k{i}: 1\n" for i in range(80)))
    assert [p.line for p in found] == list(range(4, 54))


def test_the_example_of_the_design_loads(tmp_path):
    """Params, detectors, rules with every field, and an overridden machine."""
    text = HEAD + (
        "params:\n  slow_itl: {default: 80 ms, doc: slower than people read}\n"
        "detectors:\n  itl: {type: breaker, input: itl_ms, factor: 0.2}\n  drift: {type: drift, window: 5}\nrules:\n"
        "  - rule: itl-over-baseline\n    when: itl.is_over and itl_ms > params.slow_itl\n    for: 3 turns\n"
        "    keep_for: 2 turns\n    severity: critical\n    do:\n      - throttle: {}\n"
        '    reason: "ITL {{ itl_ms }} ms, baseline {{ itl.baseline_ms }} ms"\n    tags: [stable, latency]\n'
        "  - rule: topic-churn\n    when: drift.is_drift\n    count: {at_least: 2, in: 5 turns}\n"
        "    cooldown: 10 turns\n"
        "    do: [{send_to_review: {queue: intent}}]\n"
    )
    pack = load(tmp_path, text)
    assert (pack.name, [r.id for r in pack.rules]) == ("test", ["itl-over-baseline", "topic-churn"])
    assert pack.rule("topic-churn").count == (2, 5)
    assert [d.id for d in pack.detectors] == ["itl", "drift"]
    assert pack.warnings == ()


def test_shipped_packs_are_loaded_by_name():
    """A bare name is a shipped pack; the result does not depend on the working directory."""
    assert load_pack("base", detectors=SPECS) == load_pack(["base"], detectors=SPECS)


def test_problems_of_two_files_stay_apart(tmp_path):
    """Each file has its own list, in the order in which they were read."""
    below = "stabilitykit: 1\npack: below\nfoo: 1\n"
    found = refused(tmp_path, HEAD[:-2] + ", ./below.yaml]\nbar: 1\n", below=below)
    assert [(os.path.basename(p.file), p.code) for p in found] == [("test.yaml", "SK201"), ("below.yaml", "SK201")]


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\nb: *a\n",
        HEAD + "rules: [" + "{rule: a, when: x}," * 3000 + "]\n",
        HEAD + "rules:\n" + "".join(f"  - {{rule: r{i}, when: rule:r{i - 1}}}\n" for i in range(2000)),
        HEAD + "rules:\n  - {rule: a, when: '" + "(" * 3000 + "'}\n",
        HEAD + "rules:\n  - {rule: a, when: '" + "itl_ms > 1 ms or " * 900 + "itl_ms > 1 ms'}\n",
        HEAD + "params:\n" + "".join(f"  p{i}: {{default: {i} mss}}\n" for i in range(5000)),
        HEAD + "".join(f"k{i}: 1\n" for i in range(20_000)),
        HEAD + "detectors:\n" + "".join(f"  d{i}: {{type: breaker, x{i}: 1}}\n" for i in range(5000)),
        HEAD + "signals:\n" + "".join(f"  Signal{i}: {{unit: ms}}\n" for i in range(5000)),
    ],
    ids=range(9),
)
def test_a_hostile_file_costs_little(tmp_path, text):
    """Whatever is wrong, it is said in 100 MiB (and half a second: `python -m benchmarks.hostile`)."""
    tracemalloc.start()
    try:
        with pytest.raises(PackError) as error:
            load(tmp_path, text)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert len(error.value.problems) <= 50


def test_loading_imports_neither_pydantic_nor_numba():
    """A host that only loads a pack pays for what it uses; Jinja waits for a template that needs it."""
    code = (
        "import sys; from stabilitykit.rules.load import load_pack; load_pack('base', detectors={});"
        "print({'pydantic', 'numba', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("text", [HEAD, "nonsense"])
def test_the_collector_is_left_as_it_was(tmp_path, text):
    """A load pauses the cyclic collector and gives it back, whether it ends well or not, and only if it was on."""
    path = tmp_path / "pack.yaml"
    path.write_text(text, encoding="utf-8")
    for switch in (gc.enable, gc.disable):
        switch()
        was_on = gc.isenabled()
        try:
            with contextlib.suppress(PackError):
                load_pack(path, detectors=SPECS)
            assert gc.isenabled() is was_on
        finally:
            gc.enable()

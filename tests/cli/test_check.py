"""`stabilitykit check`."""

from __future__ import annotations

import json

import pytest


@pytest.mark.capability("issue 2 §7: `check`: problems, memory per session, `--signals`")
def test_sound_pack(run, pack):
    """A sound pack ends with 0 and says what it costs."""
    ran = run("check", pack)
    assert ran.code == 0
    assert "4 rules, 0 detectors, 4 states" in ran.out
    assert "a session takes" in ran.out
    assert "a replica takes" in ran.out
    assert "device" not in ran.out


@pytest.mark.capability("issue 2 §7: `check`: problems, memory per session, `--signals`")
def test_bad_pack_shows_every_problem(run, pack):
    """Each problem comes with its place, a caret and a hint; the command ends with 2."""
    pack.write_text(pack.read_text().replace("itl_ms > params", "itl_sm > params").replace("warning", "warnin"))
    pack.write_text(pack.read_text().replace("severity: info", "severity: infoo"))
    ran = run("check", pack)
    assert ran.code == 2
    assert f"{pack}:9:11: SK301" in ran.out
    assert "^^^^^^" in ran.out
    assert "did you mean `itl_ms`?" in ran.out
    assert "SK416" in ran.out


def test_warning_is_a_finding(run, pack):
    """A guard that no rule can satisfy ends with 1."""
    machine = (
        "machine:\n  override: true\n  initial: healthy\n  states: [{state: healthy}, {state: broken}]\n"
        "  transitions:\n    - {from: [healthy], to: broken, when: any critical}\n"
        "    - {from: [broken], to: healthy, after: 5 turns}\n"
    )
    pack.write_text(pack.read_text().replace("severity: critical", "severity: warning") + machine)
    ran = run("check", pack)
    assert ran.code == 1
    assert "warning: no rule is critical" in ran.out


@pytest.mark.capability("issue 2 §7: `check`: problems, memory per session, `--signals`")
def test_rules_that_a_log_cannot_make_run(run, pack, log):
    """--signals names them and the signals they lack."""
    ran = run("check", pack, "--signals", log)
    assert ran.code == 1
    assert "can never run recall-poor: without recall_ratio" in ran.out
    assert "itl-slow" not in ran.out


def test_json(run, pack, log):
    """--json gives one object with problems, memory and rules that never run."""
    (found,) = run("check", pack, "--signals", log, "--json").records
    (one,) = found["packs"]
    assert one["problems"] == []
    assert one["memory"]["session"]["row_bytes"] > 0
    assert one["blind"] == [{"rule": "recall-poor", "missing": ["recall_ratio"], "never": True, "near": []}]


def test_json_of_a_bad_pack(run):
    """A pack that does not exist is a problem in JSON too."""
    ran = run("check", "no-such-pack", "--json")
    assert ran.code == 2
    assert ran.records[0]["packs"][0]["problems"][0]["code"] == "SK321"


def test_shipped_packs_have_no_problems(run):
    """Without arguments all shipped packs are checked; none is bad."""
    ran = run("check")
    assert ran.code in (0, 1)
    assert "chat: " in ran.out


@pytest.mark.capability("issue 3 §3: `check --signals`: rules that a recording can never make run, near names, exit 1")
def test_near_names_of_a_log(run, tmp_path):
    """A rule is blind through its detector too; a column of nearly that name is shown; what is derived is there."""
    log = tmp_path / "log.jsonl"
    row = '{"session_id": "a", "itl_msec": 30, "input_tokens": 90, "cached_tokens": 80, "colour": "blue"}\n'
    log.write_text(row, encoding="utf-8")
    ran = run("check", "chat", "--signals", log)
    assert ran.code == 1
    assert (
        "can never run itl-over-baseline: without itl_ms (did you mean its column itl_msec? a mapping says so)"
        in ran.out
    )
    assert "can never run topic-break: without embedding\n" in ran.out
    assert "kv-hit-collapse" not in ran.out
    (found,) = run("check", "chat", "--signals", log, "--json").records
    assert {"rule": "itl-elevated", "missing": ["itl_ms"], "never": True, "near": ["itl_msec"]} in found["packs"][0][
        "blind"
    ]


@pytest.mark.capability("issue 3 §3: `check --signals`: rules that a recording can never make run, near names, exit 1")
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_log_that_makes_every_rule_run(run, pack, tmp_path, kind):
    """With all signals of a pack in the log nothing is blind, whatever the format: 0."""
    signals = {"itl_ms": 30, "ttft_ms": 300, "recall_ratio": 0.9, "waiting_requests": 1}
    log = tmp_path / f"log.{kind}"
    text = {
        "jsonl": json.dumps({"session_id": "a", **signals}) + "\n",
        "csv": ",".join(["session_id", *signals]) + "\n" + ",".join(["a", *map(str, signals.values())]) + "\n",
    }
    log.write_text(text[kind], encoding="utf-8")
    ran = run("check", pack, "--signals", log)
    assert (ran.code, "never" in ran.out) == (0, False)


@pytest.mark.capability("issue 3 §3: `check` warns where a rule's first tag is no maturity")
def test_a_first_tag_that_is_no_maturity(run, pack):
    """It is a finding, with the nearest; a rule without tags claims nothing, and inherited ones are not ours."""
    pack.write_text(pack.read_text().replace("severity: info", "severity: info\n    tags: [stabel, load]"))
    ran = run("check", pack)
    assert ran.code == 1
    assert "the first tag of `replica-busy` is no maturity (did you mean `stable`?)" in ran.out
    pack.write_text(pack.read_text().replace("stabel", "incubating"))
    assert run("check", pack).code == 0

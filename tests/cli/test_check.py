"""`stabilitykit check`."""

from __future__ import annotations

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
    assert one["blind"] == [{"rule": "recall-poor", "missing": ["recall_ratio"], "never": True}]


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

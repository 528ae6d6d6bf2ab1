"""`stabilitykit test`."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest


@pytest.mark.capability("issue 2 §7: `test`: cases, `--junit`")
def test_cases_that_hold(run, pack):
    """All cases hold: 0."""
    ran = run("test", pack)
    assert ran.code == 0
    assert "2 cases hold" in ran.out


@pytest.mark.capability("issue 2 §7: `test`: cases, `--junit`")
def test_case_that_fails(run, pack):
    """A case that fails is named with its place and the difference: 1."""
    cases = pack.with_name("demo.test.yaml")
    cases.write_text(cases.read_text().replace("state: healthy", "state: warning"))
    ran = run("test", pack)
    assert ran.code == 1
    assert f"{cases}:7: one slow turn does not: state is healthy, not warning" in ran.out
    assert "1 of 2 cases fail" in ran.out


def test_bad_case_file(run, pack):
    """A case file with a mistake is located: 2."""
    cases = pack.with_name("demo.test.yaml")
    cases.write_text(cases.read_text().replace("itl_ms", "itl_sm", 1))
    ran = run("test", pack)
    assert ran.code == 2
    assert "SK301" in ran.err
    assert "did you mean `itl_ms`" in ran.err


def test_pack_without_cases(run, pack):
    """A misnamed case file must not keep a build green for ever: no cases are a finding."""
    pack.with_name("demo.test.yaml").unlink()
    ran = run("test", pack)
    assert ran.code == 1
    assert "no case file" in ran.out


@pytest.mark.capability("issue 2 §7: `test`: cases, `--junit`")
def test_junit(run, pack, tmp_path):
    """--junit writes what a CI reads; control characters do not break it."""
    cases = pack.with_name("demo.test.yaml")
    text = cases.read_text().replace("state: healthy", "state: warning").replace("two slow", "<two> & slow")
    cases.write_text(text)
    out = tmp_path / "out.xml"
    assert run("test", pack, "--junit", out).code == 1
    (suite,) = ET.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [c.get("name") for c in suite] == ["<two> & slow turns break it", "one slow turn does not"]
    assert suite[1][0].get("message") == "state is healthy, not warning"


def test_json(run, pack):
    """--json gives each case with its failures."""
    (found,) = run("test", pack, "--json").records
    assert [c["failures"] for c in found["packs"][0]["cases"]] == [[], []]

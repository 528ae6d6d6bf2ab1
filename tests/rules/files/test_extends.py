from __future__ import annotations

import os

import pytest

from stabilitykit.errors import PackError
from stabilitykit.rules.files import extends
from stabilitykit.rules.load import load_pack
from tests.rules.packs import HEAD, SPECS, expect_problems, load, refused

PART = "stabilitykit: 1\npack: {0}\nrules:\n  - rule: {0}\n    when: itl_ms > 80 ms\n"


@pytest.mark.capability("issue 2 §3: `extends` and `override`")
def test_files_are_linearised_depth_first_each_once(tmp_path):
    """A file reached twice is read once, at its first place; the pack itself is last."""
    a = "stabilitykit: 1\npack: a\nextends: [./c.yaml]\n"
    b = "stabilitykit: 1\npack: b\nextends: [./c.yaml]\n"
    text = "stabilitykit: 1\npack: test\nextends: [./a.yaml, ./b.yaml, base]\n"
    pack = load(tmp_path, text, a=a, b=b, c=PART.format("c"))
    assert [os.path.basename(f) for f in pack.files] == ["c.yaml", "a.yaml", "b.yaml", "base.yaml", "test.yaml"]
    assert pack.name == "test"


def test_a_name_is_a_shipped_pack_and_a_path_contains_a_slash(tmp_path):
    """`x.yaml` without a slash is neither, and the hint says how to write it."""
    (problem,) = expect_problems(tmp_path, "stabilitykit: 1\npack: test\nextends: [¦a.yaml]\n", "SK321")
    assert problem.hint == "a path contains `/`: `./a.yaml`"
    (problem,) = expect_problems(tmp_path, "stabilitykit: 1\npack: test\nextends: [¦bse]\n", "SK321")
    assert problem.hint == "did you mean `base`?"


@pytest.mark.parametrize("entry", ["/etc/passwd", "../outside.yaml", "./sub/../../outside.yaml", '"./a\\x01.yaml"'])
def test_extends_never_leaves_the_folder_of_the_first_file(tmp_path, entry):
    """Absolute paths, paths that climb out and hidden characters are refused."""
    (tmp_path / "outside.yaml").write_text(PART.format("outside"), encoding="utf-8")
    inner = tmp_path / "inner"
    inner.mkdir()
    found = refused(inner, f"stabilitykit: 1\npack: test\nextends: [base, {entry}]\n")
    assert [p.code for p in found] == ["SK102" if "x01" in entry else "SK321"]
    assert found[0].line == 3


def test_climbing_inside_the_root_is_fine(tmp_path):
    """`..` is allowed as long as the real path stays under the root."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("stabilitykit: 1\npack: a\nextends: [../b.yaml]\n", encoding="utf-8")
    pack = load(tmp_path, "stabilitykit: 1\npack: test\nextends: [base, ./sub/a.yaml]\n", b=PART.format("b"))
    assert [r.id for r in pack.rules] == ["b"]


def test_a_symlink_out_of_the_root_is_refused(tmp_path):
    """Links are resolved before the check; one that stays inside is followed."""
    (tmp_path / "outside.yaml").write_text(PART.format("outside"), encoding="utf-8")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "out.yaml").symlink_to(tmp_path / "outside.yaml")
    expect_problems(inner, "stabilitykit: 1\npack: test\nextends: [base, ¦./out.yaml]\n", "SK321")
    (inner / "real.yaml").write_text(PART.format("real"), encoding="utf-8")
    (inner / "in.yaml").symlink_to(inner / "real.yaml")
    assert load(inner, "stabilitykit: 1\npack: test\nextends: [base, ./in.yaml]\n").rules[0].id == "real"


def test_a_wider_root_can_be_given(tmp_path):
    """`root=` replaces the folder of the pack file."""
    (tmp_path / "a.yaml").write_text(PART.format("a"), encoding="utf-8")
    inner = tmp_path / "inner"
    inner.mkdir()
    path = inner / "test.yaml"
    path.write_text("stabilitykit: 1\npack: test\nextends: [base, ../a.yaml]\n", encoding="utf-8")
    with pytest.raises(PackError, match="SK321"):
        load_pack(path, detectors=SPECS)
    assert load_pack(path, detectors=SPECS, root=tmp_path).rules[0].id == "a"


def test_a_circle_is_printed(tmp_path):
    """A pack that extends itself through another is refused, with the way round."""
    a = "stabilitykit: 1\npack: a\nextends: [./test.yaml]\n"
    (problem,) = refused(tmp_path, "stabilitykit: 1\npack: test\nextends: [base, ./a.yaml]\n", a=a)
    assert problem.code == "SK321"
    assert problem.file.endswith("a.yaml")
    assert problem.message.count("->") == 2


def test_a_chain_and_a_set_are_bounded(tmp_path):
    """Thirty-three files behind one another are refused before Python's stack is in danger."""
    for i in range(40):
        (tmp_path / f"f{i}.yaml").write_text(
            f"stabilitykit: 1\npack: f\nextends: [./f{i + 1}.yaml]\n", encoding="utf-8"
        )
    found = refused(tmp_path, "stabilitykit: 1\npack: test\nextends: [base, ./f0.yaml]\n")
    assert [p.code for p in found] == ["SK321"]
    assert "32" in found[0].message


def test_a_folder_or_device_is_no_pack(tmp_path):
    """Only regular files are opened."""
    (tmp_path / "d").mkdir()
    (problem,) = expect_problems(tmp_path, "stabilitykit: 1\npack: test\nextends: [base, ¦./d]\n", "SK321")
    assert "regular" in problem.message
    with pytest.raises(PackError, match="regular"):
        load_pack("/dev/zero", detectors=SPECS)


def test_sources_that_do_not_exist_are_refused(tmp_path):
    """A wrong name, a wrong path, a path with NUL and no source at all are SK321."""
    sources: list[str | list[str]] = ["bse", str(tmp_path / "no.yaml"), "a\0/b.yaml", []]
    for source in sources:
        with pytest.raises(PackError, match="SK321"):
            load_pack(source, detectors=SPECS)


def test_several_sources_are_laid_over_one_another(tmp_path):
    """The last of a list names the pack; each path has its own folder as root."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.yaml").write_text(PART.format(name), encoding="utf-8")
    pack = load_pack(["base", tmp_path / "a" / "a.yaml", tmp_path / "b" / "b.yaml"], detectors=SPECS)
    assert pack.name == "b"
    assert [r.id for r in pack.rules] == ["a", "b"]


def test_a_missing_file_does_not_make_names_unknown(tmp_path):
    """When a file of the set cannot be read, only what is surely wrong is reported."""
    text = HEAD.replace("base", "¦bse") + "rules:\n  - rule: a\n    when: rule:of-bse\n    ¦foo: 1\n"
    expect_problems(tmp_path, text, "SK321", "SK201")


def test_problems_of_an_extended_file_name_that_file(tmp_path):
    """The path shown is relative like the one of the file that says it."""
    (problem,) = refused(tmp_path, HEAD[:-2] + ", ./a.yaml]\n", a=PART.format("a") + "    foo: 1\n")
    assert problem.file == str(tmp_path / "a.yaml")
    assert (problem.code, problem.line) == ("SK201", 6)


def test_a_file_of_a_newer_language_leaves_names_open(tmp_path):
    """What a newer file declares is not known, so nothing is said to be missing."""
    newer = "stabilitykit: 2\npack: newer\n"
    text = HEAD.replace("base]", "base, ./newer.yaml]") + "rules:\n  - {rule: a, when: rule:of-newer}\n"
    (problem,) = refused(tmp_path, text, newer=newer)
    assert problem.code == "SK204"


def test_extends_that_is_no_list_of_texts_leaves_names_open(tmp_path):
    """One mistake, not one for every name that the missing files would have declared."""
    text = "stabilitykit: 1\npack: test\nextends: ¦base\nrules:\n  - {rule: a, when: rule:of-base}\n"
    expect_problems(tmp_path, text, "SK203")


def test_a_file_that_cannot_be_opened_says_why(tmp_path, monkeypatch):
    """The operating system's own words, without the path twice."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(extends, "open", refuse, raising=False)
    with pytest.raises(PackError, match="it cannot be read: Permission denied"):
        load(tmp_path, HEAD)


def test_nul_never_reaches_the_file_system(tmp_path):
    """The reader refuses it already; a path that held it would still be refused."""
    target = extends._Target(str(tmp_path / "a.yaml"), "a.yaml", str(tmp_path))
    assert extends._resolve("./a\0b", target) == ("a path cannot contain NUL", "")

"""The documents are true: their Python runs, their packs load, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "README.zh-CN.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "generated" not in p.parts),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w-]+(?:\.test)?\.(?:yaml|jsonl|csv|log))`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name_of(path):
    """Name a document by its place in the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks(path, language):
    """Give the fenced blocks of one language, in order."""
    return [body for word, body in FENCE.findall(path.read_text(encoding="utf-8")) if word == language]


def with_blocks(language, wanted=""):
    """Give the documents that have such a block."""
    return [p for p in DOCUMENTS if any(body.startswith(wanted) for body in blocks(p, language))]


def save_files(path, folder):
    """Save the files a document shows: named in the paragraph before the block, or a pack by its name."""
    text = path.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        if named := FILE.search(text[: fence.start()].rstrip().rpartition("\n\n")[2]):
            (folder / named[1]).write_text(fence[2], encoding="utf-8")
        elif pack := re.search(r"^pack: (\S+)$", fence[2], re.MULTILINE):
            (folder / f"{pack[1]}.yaml").write_text(fence[2], encoding="utf-8")


@pytest.mark.capability("issue 2 §1: every Python block of README and docs runs as it stands")
@pytest.mark.parametrize("path", with_blocks("python"), ids=name_of)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    """All Python blocks of a document run, one after the other, beside the files it shows."""
    monkeypatch.chdir(tmp_path)
    save_files(path, tmp_path)
    namespace = {"__name__": "document"}
    for body in blocks(path, "python"):
        exec(compile(body, name_of(path), "exec"), namespace)
    assert len(namespace) > 2


@pytest.mark.capability("issue 2 §1: every command that the docs show runs as it stands")
@pytest.mark.parametrize("path", with_blocks("sh", "stabilitykit "), ids=name_of)
def test_commands_run(path, tmp_path):
    """Every `stabilitykit` command of a document ends well, beside the files it shows and those its Python writes."""
    save_files(path, tmp_path)
    if "np.savez(" in (written := "".join(blocks(path, "python"))):
        subprocess.run([sys.executable, "-c", written], cwd=tmp_path, check=True)
    commands = [line.split() for body in blocks(path, "sh") for line in body.splitlines() if line.startswith("stabil")]
    for program, *words in commands:
        command = [str(Path(sys.executable).parent / program), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", with_blocks("yaml", "stabilitykit:"), ids=name_of)
def test_packs_in_documents_load(path, tmp_path):
    """Every whole pack shown in a document is one that loads without a warning about itself."""
    from stabilitykit.detectors import DETECTORS
    from stabilitykit.rules.load import load_pack

    for number, body in enumerate(blocks(path, "yaml")):
        if body.startswith("stabilitykit:"):
            file = tmp_path / f"{number}.yaml"
            file.write_text(body, encoding="utf-8")
            warnings = load_pack(str(file), detectors=DETECTORS).warnings
            assert not [warning for warning in warnings if warning.startswith(str(file))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    """Every relative link names a file of the repository (or a page that `make docs` generates)."""
    targets = [t.partition("#")[0] for t in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in t]
    gone = [t for t in targets if t and "generated/" not in t and not (path.parent / t).exists()]
    assert not gone


def test_readmes_show_what_is_printed(root, capsys):
    """The output under the quickstart is what it prints."""
    for name in ("README.md", "README.zh-CN.md"):
        exec(blocks(root / name, "python")[0], {"__name__": "document"})
        assert blocks(root / name, "text")[0] == capsys.readouterr().out


@pytest.mark.capability("issue 2 §1: README in English and Chinese show the same code and sections")
def test_readmes_say_the_same(root):
    """Both languages show the same code and the same number of sections."""
    english, chinese = root / "README.md", root / "README.zh-CN.md"
    for language in ("python", "yaml", "sh", "text"):
        code = [re.sub(r"\s*#.*", "", "".join(blocks(p, language))) for p in (english, chinese)]
        assert code[0] == code[1]
    heads = [re.findall(r"^#+ ", p.read_text(encoding="utf-8"), re.MULTILINE) for p in (english, chinese)]
    assert heads[0] == heads[1]


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_readmes_lead_to_every_page(root, readme):
    """A newcomer finds each page: the README names it, or the list of how-tos that the README names does."""
    named = {target.partition("#")[0] for target in LINK.findall((root / readme).read_text(encoding="utf-8"))}
    assert "docs/how-to/index.md" in named
    listed = set((root / "docs" / "how-to" / "index.md").read_text(encoding="utf-8").split())
    rooms = [root / "docs" / room for room in ("how-to", "explanation", "tutorial")]
    pages = [p for room in rooms for p in room.glob("*.md") if p.stem != "index"]
    assert not [name_of(p) for p in pages if name_of(p) not in named and p.stem not in listed]

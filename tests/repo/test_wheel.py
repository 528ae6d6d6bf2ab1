"""What a user installs: the wheel carries code, types, packs and the recording."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LOAD = """
import json, stabilitykit
from importlib.resources import files
engine = stabilitykit.Engine.load("chat")
decision = engine.evaluate(stabilitykit.Turn(session_id="c-1", ttft_ms=100.0))
recordings = files("stabilitykit") / "data" / "recordings"
print(json.dumps({"file": stabilitykit.__file__, "state": decision.state,
                  "recordings": sorted(p.name for p in recordings.iterdir())}))
"""


def run(*command, cwd):
    """Run a command to its end and give what it printed."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    """Build the wheel from the tree as it stands."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, root, cwd=folder)
    (built,) = folder.glob("stabilitykit-*-py3-none-any.whl")
    return built


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """Install the wheel into a new environment; its dependencies are borrowed from this one."""
    home = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel, cwd=home)
    (site,) = home.glob("lib/python*/site-packages")
    # A path file adds a folder without reading the path files in it: this checkout stays out.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


@pytest.mark.capability("issue 2 §1: the wheel holds the packs, the recording and py.typed")
def test_wheel_holds_what_it_should(wheel, root):
    """Every pack, every data file and the type marker are in the wheel; tests and docs are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    packs = {f"stabilitykit/_packs/{p.name}" for p in (root / "rules").glob("*.yaml")}
    data = {p.relative_to(root).as_posix() for p in (root / "stabilitykit" / "data").rglob("*") if p.is_file()}
    wanted = packs | {name for name in data if "__pycache__" not in name} | {"stabilitykit/py.typed"}
    assert packs
    assert wanted <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"stabilitykit"}


def test_wheel_asks_for_the_core_packages_only(wheel):
    """Without an extra, a user gets exactly the seven core packages."""
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    lines = archive.read(metadata).decode().splitlines()
    plain = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    core = {line.split(">")[0].lower() for line in plain if "extra ==" not in line}
    assert core == {"attrs", "jinja2", "numba", "numpy", "pydantic", "pyyaml", "structlog"}


@pytest.mark.capability("issue 2 §1: the wheel works in a fresh environment, packs and recording included")
def test_wheel_works_in_a_fresh_environment(fresh, tmp_path):
    """In a new environment the default pack loads, a turn is decided, the recording is there."""
    said = json.loads(run(fresh, "-I", "-c", LOAD, cwd=tmp_path))
    assert Path(said["file"]).is_relative_to(fresh.parent.parent)
    assert said["state"] == "healthy"
    assert "llamacpp_smollm2.jsonl" in said["recordings"]


@pytest.mark.capability("issue 2 §1: an editable checkout finds its packs")
def test_editable_install_works_from_anywhere(root, tmp_path):
    """An editable install loads the packs of the checkout, whatever the working directory."""
    said = json.loads(run(sys.executable, "-I", "-c", LOAD, cwd=tmp_path))
    assert Path(said["file"]).is_relative_to(root)
    assert said["state"] == "healthy"


def test_console_script_is_declared(root):
    """The command is `stabilitykit`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"stabilitykit": "stabilitykit.cli:main"}

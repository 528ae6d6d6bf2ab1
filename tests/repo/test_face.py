"""The package's face: what `import stabilitykit` offers, and what it does not cost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest

import stabilitykit

HEAVY = ("numba", "llvmlite", "numpy", "pydantic", "jinja2", "yaml", "structlog")


@pytest.mark.parametrize("name", stabilitykit.__all__)
def test_every_export_is_importable(name):
    """Each name of __all__ can be reached, under its own name."""
    value = getattr(stabilitykit, name)
    assert name == "__version__" or value.__name__ == name


def test_exports_are_listed_once_and_visible_to_dir():
    """__all__ has no doubles, and dir() shows all of it before first use."""
    assert len(set(stabilitykit.__all__)) == len(stabilitykit.__all__)
    assert set(stabilitykit.__all__) <= set(dir(stabilitykit))


def test_unknown_name_is_an_attribute_error():
    """A name that does not exist fails as in any module."""
    with pytest.raises(AttributeError, match="no attribute 'Enigne'"):
        _ = stabilitykit.Enigne


@pytest.mark.capability("issue 2 §8: `import stabilitykit` loads none of its dependencies, and the engine no numba")
def test_import_loads_nothing_heavy():
    """`import stabilitykit` imports none of the packages it depends on."""
    code = "import json, sys, stabilitykit; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not set(HEAVY) & set(json.loads(out))


@pytest.mark.capability("issue 2 §8: `import stabilitykit` loads none of its dependencies, and the engine no numba")
def test_engine_can_be_imported_without_numba():
    """Loading the Engine class does not import numba: that is for warm-up or the first turn."""
    code = "import sys; from stabilitykit import Engine, Turn; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_version_has_one_source(root):
    """The version is written in stabilitykit/__init__.py alone."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", stabilitykit.__version__)


def test_changelog_knows_the_version(root):
    """The changelog has a section for the version in the tree."""
    release = stabilitykit.__version__.partition(".dev")[0]
    assert f"## {release}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")

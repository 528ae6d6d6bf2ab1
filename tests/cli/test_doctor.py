"""`stabilitykit doctor`."""

from __future__ import annotations

import pytest

from stabilitykit import __version__
from stabilitykit.kernels.compile import is_available
from stabilitykit.rules.shipped import shipped_names


@pytest.mark.capability("issue 2 §7: `doctor`")
def test_facts(run):
    """Versions, compiler, cache and packs, as text and as JSON."""
    assert "compiler" in run("doctor").out
    (found,) = run("doctor", "--json").records
    assert found["versions"]["stabilitykit"] == __version__
    assert found["compiler"]["available"] == is_available()
    assert found["packs"]["shipped"] == list(shipped_names())


@pytest.mark.capability("issue 2 §7: `doctor`")
def test_cache_that_cannot_be_used(run, monkeypatch, tmp_path):
    """An unusable cache is seen."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STABILITYKIT_CACHE_DIR", str(tmp_path / "file"))
    (found,) = run("doctor", "--json").records
    assert found["cache"]["usable"] is False

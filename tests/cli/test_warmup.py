"""`stabilitykit warmup`."""

from __future__ import annotations

import pytest

from stabilitykit.kernels.compile import is_available


@pytest.mark.capability("issue 2 §6: `warmup` for image builds")
def test_warmup(run):
    """It says whether packs are compiled: 0, or 1 where there is no compiler."""
    ran = run("warmup", "base", "--json")
    assert ran.code == (0 if is_available() else 1)
    assert ran.records[0]["packs"][0]["compiled"] == is_available()


def test_without_a_compiler(run, monkeypatch):
    """Without a compiler it says so and ends with 1."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    ran = run("warmup", "base")
    assert ran.code == 1
    assert "not compiled" in ran.out


def test_without_a_safe_cache(run, monkeypatch, tmp_path):
    """A cache directory that cannot be used is a warning."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("STABILITYKIT_CACHE_DIR", str(blocker))
    assert "no safe cache directory" in run("warmup", "base").err

"""A cache directory of its own and an empty memory of compiled code for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabilitykit.kernels import compile as compiling


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the (not yet made) cache directory of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("STABILITYKIT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process forget what it has compiled."""
    monkeypatch.setattr(compiling, "_DETECTORS", {})
    monkeypatch.setattr(compiling, "_ENTRIES", {})

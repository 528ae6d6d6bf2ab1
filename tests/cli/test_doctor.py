"""`stabilitykit doctor`."""

from __future__ import annotations

import pytest

from stabilitykit import __version__
from stabilitykit.kernels.compile import is_available
from stabilitykit.rules.shipped import shipped_names
from tests.servers.llamacpp import ServerSettings


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


@pytest.mark.capability("issue 4 §5: doctor --server URL: facts, warnings, flags; exit 1 with something to set")
def test_server(run, llama):
    """A live server with two slots of 1,024 tokens: the flags that give each conversation 8,192; fewer will do."""
    url = f"http://127.0.0.1:{llama(ServerSettings(n_ctx=2048, n_parallel=2)).port}"
    ran = run("doctor", "--server", url)
    assert ran.code == 1
    assert "context: a slot of 2 has 1024 tokens" in ran.out
    assert "set -c 16384 -np 2" in ran.out
    ran = run("doctor", "--server", url, "--context", "1024", "--no-ask", "--json")
    assert ran.code == 0
    (found,) = ran.records
    assert found["server"]["slots"] == 2
    assert found["server"]["says_timings"] is None
    assert found["advice"] == []


def test_no_server(run):
    """Nobody there is exit 2 with the address."""
    ran = run("doctor", "--server", "http://127.0.0.1:1")
    assert ran.code == 2
    assert "127.0.0.1:1" in ran.err

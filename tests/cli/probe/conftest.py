"""A real server for probes: two slots, the tiny random model."""

from __future__ import annotations

import pytest

from tests.servers.llamacpp import ServerSettings


@pytest.fixture(scope="session")
def address(llama, tiny_gguf):
    """Give the address of a running llama.cpp server."""
    server = llama(ServerSettings(n_ctx=4096, n_parallel=2, model=str(tiny_gguf)))
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def probe(run, address, tmp_path):
    """Call ``probe`` for two conversations of three turns; gives what it did."""

    def call(*more, output="probe", url=address):
        return run(
            "probe", url, "--sessions", 2, "--turns", 3, "--max-tokens", 8, "--scrape-every", 0.05,
            "-o", tmp_path / output, *more,
        )  # fmt: skip

    return call

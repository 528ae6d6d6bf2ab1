from __future__ import annotations

import re
import shlex

import pytest

from benchmarks.record.vllm_server import FLAGS
from stabilitykit.sources.server_advice import advise
from stabilitykit.sources.server_facts import look
from tests.servers.llamacpp import ServerSettings

PAGES = ("llamacpp", "vllm", "sglang", "tgi", "ollama")
RUN, NOT_RUN = "Tested: `make test` starts a real server", "Tested: not run by our tests."


def page(root, name):
    """Give the text of a page, and the words of its configuration."""
    text = (root / "docs" / "deploy" / f"{name}.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```text\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    return text, shlex.split(command)


@pytest.mark.capability("issue 4 §5: one tested configuration for each server in docs/deploy; llama.cpp's runs live")
def test_llamacpp(root, llama):
    """The flags of the page, given to a real server, leave the doctor nothing to say."""
    text, words = page(root, "llamacpp")
    assert RUN in text
    assert {"--metrics", "--slots", "--no-context-shift"} < set(words)
    settings = ServerSettings(n_ctx=int(words[words.index("-c") + 1]), n_parallel=int(words[words.index("-np") + 1]))
    facts = look(f"http://127.0.0.1:{llama(settings).port}")
    assert advise(facts, wanted_tokens=8192) == []
    assert f"{facts.context_tokens:,} tokens" in text


def test_vllm(root):
    """The flags of the page that are no sizes are those that `make live-vllm` starts a real server with."""
    text, words = page(root, "vllm")
    assert "by `make live-vllm`" in text
    flags = {word for word in words if word.startswith("--enable-")}
    assert len(flags) == 3
    assert flags <= set(FLAGS)


@pytest.mark.parametrize("name", PAGES[2:])
def test_the_others_say_that_they_were_not_run(root, name):
    """A page whose server no test starts says so, and names what the doctor would ask for."""
    text, words = page(root, name)
    assert NOT_RUN in text
    assert len(words) > 2


def test_every_page_is_known(root):
    """No page stands aside."""
    assert {p.stem for p in (root / "docs" / "deploy").glob("*.md")} == {"index", *PAGES}

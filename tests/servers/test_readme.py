"""What the README shows to be fed from a server, with the real client of the openai package and a real llama.cpp."""

from __future__ import annotations

import re

import pytest

from tests.repo.test_documents import blocks
from tests.servers.llamacpp import ServerSettings

openai = pytest.importorskip("openai")
ADDRESS = "http://localhost:8000/v1"


@pytest.fixture
def shown(root, llama, capsys):
    """Give what the README has defined once it has been fed from a server with a window of 512 tokens."""
    address = f"http://127.0.0.1:{llama(ServerSettings(n_ctx=512)).port}/v1"
    namespace: dict = {}
    exec(blocks(root / "README.md", "python")[0], namespace)
    (fed,) = blocks(root / "README.md", "py")
    assert ADDRESS in fed
    exec(compile(fed.replace(ADDRESS, address), "README.md", "exec"), namespace)
    yield namespace
    namespace["client"].close()


@pytest.mark.capability("issue 2 §1: the README is fed from a real server, acts on its refusal, and is answered again")
def test_from_a_server_to_an_action(shown, capsys):
    """A healthy turn; then a prompt over the window is refused, trimmed by `decision.apply`, and answered."""
    chat = shown["chat"]
    assert (chat.decision.state, chat.decision.turn_id, chat.decision.faults) == ("healthy", 1, ())
    assert "ChatCompletionChunk" in capsys.readouterr().out
    messages = []
    for order in range(60):
        messages += [{"role": "user", "content": f"Where is order {order}?"}]
        messages += [{"role": "assistant", "content": f"Order {order} is on its way to the customer."}]
    messages += [{"role": "user", "content": "Where is order 7?"}]
    with pytest.raises(openai.BadRequestError):
        chat.chat.completions.create(model="any", messages=messages, max_tokens=8)
    messages, chat.applied = chat.decision.apply(messages)
    assert chat.applied.done == ("trim_context",)
    reply = chat.chat.completions.create(model="any", messages=messages, max_tokens=8)
    assert reply.usage.prompt_tokens < 512
    assert (chat.decision.turn_id, chat.decision.fired, chat.applied) == (3, (), None)


def test_both_readmes_show_it(root):
    """The Chinese README has the same code, its comments apart."""
    shown = [re.sub(r"\s*# .*", "", "".join(blocks(root / f"README{n}.md", "py"))) for n in ("", ".zh-CN")]
    assert shown[0] == shown[1] != ""

"""LiteLLM's real router with two deployments of one group, switched by real decisions; the replies are its mocks."""

from __future__ import annotations

import asyncio
import sys

import pytest

from stabilitykit import Engine, Turn
from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.gate import Gate
from stabilitykit.integrations.litellm import deployment_switch

GROUP = [
    {"model_name": "chat", "litellm_params": {"model": "openai/big", "api_key": "none", "mock_response": "big"}},
    {
        "model_name": "chat",
        "litellm_params": {"model": "openai/big-int8", "api_key": "none", "mock_response": "light"},
        "model_info": {"stability": "light"},
    },
]
ASKED = [{"role": "user", "content": "Salut"}]


@pytest.fixture
def litellm(monkeypatch):
    """Import the package (170 MB with its prices and providers, hence no part of `make test`) without its network."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    package = pytest.importorskip("litellm", reason="litellm is not installed: pip install 'stabilitykit[litellm]'")
    monkeypatch.setattr(package, "callbacks", [])
    return package


async def answers(router, session, count=6, **more):
    """Ask several times; which deployment answered."""
    metadata = {"session_id": session, **more}
    replies = [await router.acompletion(model="chat", messages=ASKED, metadata=metadata) for _ in range(count)]
    return {reply.choices[0].message.content for reply in replies}


@pytest.mark.capability("issue 5 §6: LiteLLM: switch_model moves a conversation to the INT8 deployment, and back")
@pytest.mark.filterwarnings("ignore")
def test_switch(litellm):
    """Broken: the light deployment, each time; another conversation and the same one recovered: the usual one."""
    gate, engine = Gate(), Engine.load("chat")
    litellm.callbacks = [deployment_switch(gate)]
    router = litellm.Router(model_list=GROUP)

    def tell(error, turns):
        for _ in range(turns):
            gate.note(engine.evaluate(Turn(session_id="c-1", error=error)))

    async def run():
        assert await answers(router, "c-1") == {"big"}
        tell("server", 2)
        tell("none", 1)
        assert await answers(router, "c-1") == {"light"}
        assert await answers(router, "c-2") == {"big"}
        stream = await router.acompletion(model="chat", messages=ASKED, stream=True, metadata={"session_id": "c-1"})
        assert "".join([c.choices[0].delta.content or "" async for c in stream]) == "light"
        tell("none", 8)
        assert gate.model("c-1", "chat") == "chat"
        assert await answers(router, "c-1") == {"big"}

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore")
def test_two_tenants(litellm):
    """One tenant's conversation is switched; the other's of its id, and the default tenant's, stay."""
    gate, engine = Gate(), Engine.load("chat")
    litellm.callbacks = [deployment_switch(gate)]
    router = litellm.Router(model_list=GROUP)
    for error in ("server", "server", "none"):
        gate.note(engine.evaluate(Turn(session_id="c-1", tenant="one", error=error)))

    async def run():
        assert await answers(router, "c-1", tenant="one") == {"light"}
        assert await answers(router, "c-1", tenant="two") == {"big"}
        assert await answers(router, "c-1") == {"big"}

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore")
def test_nothing_to_switch_to(litellm, caplog):
    """A group without the wanted deployment answers with what it has; so does a call of no conversation."""
    gate, engine = Gate(), Engine.load("chat")
    litellm.callbacks = [deployment_switch(gate)]
    router = litellm.Router(model_list=GROUP[:1])
    for error in ("server", "server", "none"):
        gate.note(engine.evaluate(Turn(session_id="c-1", error=error)))

    async def run():
        assert await answers(router, "c-1", 2) == {"big"}
        both = litellm.Router(model_list=GROUP)
        reply = await both.acompletion(model="chat", messages=ASKED)
        assert reply.choices[0].message.content in ("big", "light")

    asyncio.run(run())
    assert "deployment_missing wanted=light" in caplog.text


@pytest.mark.filterwarnings("ignore")
def test_without_asyncio(litellm):
    """The synchronous router asks no callback: the host asks the gate for the group's name."""
    gate, engine = Gate(), Engine.load("chat")
    router = litellm.Router(model_list=[GROUP[0], {**GROUP[1], "model_name": "light"}])
    for error in ("server", "server", "none"):
        gate.note(engine.evaluate(Turn(session_id="c-1", error=error)))
    for session, wanted in (("c-1", "light"), ("c-2", "big")):
        reply = router.completion(model=gate.model(session, "chat"), messages=ASKED)
        assert reply.choices[0].message.content == wanted


def test_without_the_package(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "litellm.integrations.custom_logger", None)
    with pytest.raises(MissingExtra, match=r"stabilitykit\[litellm\]"):
        deployment_switch(Gate())

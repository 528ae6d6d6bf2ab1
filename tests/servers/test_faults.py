"""Faults that are caused on a real llama.cpp server, heard by a TurnRecorder, and called by the shipped pack."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import queue
import signal
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from benchmarks.record.client import count_tokens, post_json, slot_window
from stabilitykit import Engine
from stabilitykit.sources.openai import TurnRecorder
from tests.servers.llamacpp import LlamaServer, ServerSettings

CHAT = "/v1/chat/completions"
WITH_EMBEDDINGS = """\
stabilitykit: 1
pack: smollm2
extends: [chat]
detectors:
  drift: {{override: true, type: intent_drift, dim: 576, k: 3.0, mu0: {mean:.4f}, s0: {deviation:.4f}}}
"""
GARDEN = (
    "When should I plant the tomatoes?",
    "How often do tomatoes need water?",
    "Do the tomatoes need much sun?",
    "Which soil is best for the tomatoes?",
    "When can I pick the first tomatoes?",
)
QUESTIONS = (
    "How big is the blue backpack?",
    "Is the backpack waterproof?",
    "How much does the backpack weigh?",
    "Does the backpack have a pocket for a laptop?",
    "Is the small backpack cheaper than the blue backpack?",
    "Which colours does the small backpack come in?",
)


class Host:
    """A host of one conversation: it counts what it sends, listens, and asks the engine."""

    def __init__(self, server, pack="chat", tokens=12, **more):
        self.port, self.tokens = server.port, tokens
        self.engine = Engine.load(pack)
        options = {"count_tokens": lambda sent: count_tokens(self.port, sent), **more}
        self.recorder = TurnRecorder(context_window_tokens=slot_window(self.port), **options)
        self.messages = []

    def send(self, messages):
        """Send messages; gives the call that is open, the connection and the response."""
        body = {
            "messages": messages, "max_tokens": self.tokens, "temperature": 0, "stream": True, "logprobs": True,
            "top_logprobs": 20, "stream_options": {"include_usage": True},
        }  # fmt: skip
        call = self.recorder.request("c-1", self.messages)
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json"})
        return call, link, link.getresponse()

    def say(self, text, *, cut=0, **more):
        """Ask, with the first ``cut`` messages dropped on the way; gives the decision."""
        self.messages.append({"role": "user", "content": text})
        call, link, response = self.send(self.messages[cut:])
        with closing(link):
            if response.status == 200:
                said = b"".join(call.watch(iter(lambda: response.read1(4096), b"")))
                chunks = [json.loads(line[6:]) for line in said.split(b"\n") if line.startswith(b"data: {")]
                words = [choice["delta"].get("content") or "" for c in chunks for choice in c["choices"]]
                self.messages.append({"role": "assistant", "content": "".join(words)})
            else:
                call.response(response.read(), status=response.status)
        return self.engine.evaluate(call.turn(**more))

    def fires(self, text, **more):
        """Ask; gives the rules that fire, but for the one that says that these answers are short on purpose."""
        return set(self.say(text, **more).fired) - {"answer-cut"}


@pytest.mark.capability("issue 3 §2: llama.cpp live: a context that fills is called twice before the server refuses")
def test_context(llama, tiny_gguf):
    """Forty tokens more a turn in a window of 512: filling, full, refused, in this order, and nothing before."""
    host = Host(llama(ServerSettings(n_ctx=512, model=str(tiny_gguf))))
    fired = [host.fires("tell me more about it please " * 6) for _ in range(12)]
    wanted = ["context-filling", "context-full", "context-overflow"]
    assert [rule for rules in fired for rule in sorted(rules) if rule in wanted] == wanted
    assert not any(fired[:3])


@pytest.mark.capability("issue 3 §2: llama.cpp live: a prompt whose beginning is dropped on the way is called")
def test_truncation(llama, tiny_gguf):
    """From turn 4 on a proxy keeps the last message only, as Ollama does silently; the server's usage tells."""
    host = Host(llama(ServerSettings(n_ctx=2048, model=str(tiny_gguf))))
    assert not any(host.fires(f"{question} " * 3) for question in QUESTIONS[:3])
    assert host.fires(QUESTIONS[3], cut=6) & {"memory-lost", "history-truncated"}


@pytest.mark.capability(
    "issue 3 §2: llama.cpp live: real top-20 lists: histories that are mixed up make the answer jump"
)
def test_logprobs(llama):
    """Two conversations; after six turns each, the server is sent the one's and the other's history in turn."""
    server = llama(ServerSettings(n_ctx=512))
    histories = [
        [
            {"role": role, "content": text}
            for _ in range(6)
            for role, text in (("user", "Is it so?"), ("assistant", word))
        ]
        for word in ("Yes", "No")
    ]
    for order, is_jump in (((0, 0), False), ((0, 1), True)):
        host, fired = Host(server, tokens=2), set()
        for number in range(6):
            host.messages = list(histories[order[number % 2]])
            fired |= host.fires("Is it so?")
        assert fired == ({"distribution-jump"} if is_jump else set())


@pytest.mark.capability("issue 3 §2: llama.cpp live: the server's own embeddings: a break of the topic is called")
def test_drift(llama, tmp_path):
    """What is usual was measured on a talk about tomatoes; four questions about a backpack, then one about an opera."""
    port = llama(ServerSettings(n_ctx=512, embeddings=True)).port

    def embedded(text):
        vector = post_json(port, "/v1/embeddings", {"input": text})["data"][0]["embedding"]
        return np.asarray(vector) / np.linalg.norm(vector)

    usual = [1 - a @ b for a, b in itertools.pairwise(map(embedded, GARDEN))]
    pack = tmp_path / "smollm2.yaml"
    pack.write_text(WITH_EMBEDDINGS.format(mean=np.mean(usual), deviation=np.std(usual)), encoding="utf-8")
    host = Host(llama(ServerSettings(n_ctx=512)), str(pack), tokens=4)
    assert not any(host.fires(text, embedding=embedded(text)) for text in QUESTIONS[:4])
    opera = "Who wrote the opera about the queen of the night?"
    assert host.fires(opera, embedding=embedded(opera)) == {"topic-break"}


@pytest.mark.capability(
    "issue 3 §2: llama.cpp live: a server stopped within a stream hangs; continued, it is well again"
)
def test_hang(tiny_gguf):
    """SIGSTOP within an answer: connections are still taken, no token comes. The host's clock runs on by 15 s."""
    ahead = [0.0]
    with LlamaServer(ServerSettings(n_ctx=2048, model=str(tiny_gguf)), "stopped") as server:
        host = Host(server, tokens=16, clock=lambda: time.perf_counter() + ahead[0])
        assert not any(host.fires(question) for question in QUESTIONS[:4])
        child = server._child
        assert child is not None
        host.tokens = 300
        call, link, response = host.send(host.messages)
        pieces: queue.Queue[bytes] = queue.Queue()
        reader = threading.Thread(target=pour, args=(response, pieces))
        with closing(link):
            reader.start()
            call.feed(pieces.get(timeout=30))
            os.kill(child.pid, signal.SIGSTOP)
            try:
                is_silent = drain(pieces, call)
                ahead[0] = 15.0
                hung = host.engine.peek(call.turn())
            finally:
                os.kill(child.pid, signal.SIGCONT)
            reader.join(timeout=60)
            while not pieces.empty():
                call.feed(pieces.get())
            call.end()
        assert is_silent
        assert hung.state == "broken"
        assert "stream-hung" in [match.rule for match in hung.matches]
        assert call.turn().error == "none"
        assert not {"stream-hung", "stream-stalled"} & set(host.engine.evaluate(call.turn()).fired)


def pour(response, pieces):
    """Put the pieces of a response into a queue as they come."""
    while piece := response.read1(256):
        pieces.put(piece)


def drain(pieces, call):
    """Feed what still comes until nothing has come for half a second; tells whether that was so."""
    for _ in range(200):
        try:
            call.feed(pieces.get(timeout=0.5))
        except queue.Empty:
            return True
    return False

"""The pack `overload` on a real server that is given more than it can take."""

from __future__ import annotations

import json
import threading
import urllib.request

import pytest

from stabilitykit import Engine
from stabilitykit.sources.probes import OpenRequests
from stabilitykit.sources.prometheus import PageReader
from tests.servers.llamacpp import ServerSettings

ONE_SLOT = ServerSettings(n_ctx=2048)


def tokens(port, requests, length):
    """Stream an answer of so many tokens, telling when it begins; gives its chunks."""
    asked = {
        "prompt": "Count: one two three",
        "n_predict": length,
        "temperature": 0,
        "stream": True,
        "ignore_eos": True,
    }
    body, kind = json.dumps(asked).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/completion", body, kind)
    with requests.open() as one, urllib.request.urlopen(request, timeout=120) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                one.first_token()
                yield line


@pytest.mark.capability(
    "issue 4 §2: a real server of one slot with three requests: waiting as its page and the host see it"
)
def test_two_requests_wait_for_the_slot_of_a_third(llama):
    """The host's open requests call it after 800 ms; the page counts those that wait; both end with it."""
    server = llama(ONE_SLOT)
    url = f"http://127.0.0.1:{server.port}/metrics"
    requests, engine, reader = OpenRequests(), Engine.load(["overload", "latency"]), PageReader(replica="r1")
    stream = tokens(server.port, requests, 120)
    next(stream)
    others = [threading.Thread(target=lambda: list(tokens(server.port, requests, 2))) for _ in range(2)]
    for other in others:
        other.start()
    matched, waiting = set(), []
    for number, _ in enumerate(stream):
        if number % 10 == 0:
            decision = engine.observe(replica="r1", **requests.signals())
            matched |= {match.rule for match in decision.matches}
            waiting += [
                sample.signals["waiting_requests"] for sample in reader.read(urllib.request.urlopen(url).read())
            ]
    for other in others:
        other.join()
    assert "requests-wait" in matched
    assert max(waiting) == 2.0
    signals = requests.signals()
    assert signals == {"pending_requests": 0, "oldest_wait_ms": 0.0}
    assert "requests-wait" not in {m.rule for m in engine.observe(replica="r1", **signals).matches}

from __future__ import annotations

import math
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.record.client import post_json
from stabilitykit import Engine
from stabilitykit.errors import RecordError
from stabilitykit.sources import PRODUCERS
from stabilitykit.sources.prometheus import PageReader, scrape
from stabilitykit.sources.prometheus.names import DERIVED, TABLE
from tests.servers.llamacpp import ServerSettings

SETTINGS = ServerSettings(n_ctx=2048)


class Answers(BaseHTTPRequestHandler):
    """A server that misbehaves by path."""

    def do_GET(self):
        """Answer."""
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/metrics")
            self.end_headers()
        elif self.path == "/great":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x 1\n" * (5 << 20))
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"vllm:num_requests_running 1\n")
        elif self.path == "/metrics":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"vllm:num_requests_running 1\n")
        else:
            self.send_error(404)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def address():
    """Give the address of that server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/moved", "HTTP 302"), ("/great", "more than 16 MiB"), ("/none", "HTTP 404"), ("/cut", "cut off")],
)
def test_bad_answers(address, path, reason):
    """A redirect is not followed, an endless page not read, an error named: each with its address."""
    with pytest.raises(RecordError, match=reason) as raised:
        scrape(address + path)
    assert str(raised.value).startswith(address + path)


def test_out_of_time(address):
    """The time is for the whole answer."""
    ticks = iter([0.0, 100.0, 200.0])
    with pytest.raises(RecordError, match="not complete in time"):
        scrape(address + "/metrics", 5.0, clock=lambda: next(ticks))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://127.0.0.1:1/metrics", "http://[::1"]
)
def test_addresses_that_do_not_answer(url):
    """No file, no other scheme, no server, no address."""
    with pytest.raises(RecordError):
        scrape(url, 0.5)


@pytest.mark.capability("issue 4 §2: a scrape that fails is a problem of the reader and moves nothing")
def test_a_failed_scrape_is_no_exception():
    """The engine goes on; the reason stands in `problems`."""
    reader = PageReader()
    assert reader.scrape_into(Engine.load("base"), "http://127.0.0.1:1/metrics", timeout_s=0.5) == []
    assert "127.0.0.1:1" in reader.problems[0].reason


@pytest.mark.capability("issue 4 §2: a live llama.cpp server, scraped before and after requests, gives what it did")
def test_live_llamacpp(llama):
    """Tokens a second, gaps, hit ratio and load of a real server agree with the answers it gave."""
    server = llama(SETTINGS)
    url = f"http://127.0.0.1:{server.port}/metrics"
    reader, engine, times = PageReader(replica="r1", clock=lambda: next(clock)), Engine.load("base"), []
    clock = iter([0.0, 10.0])
    assert reader.scrape_into(engine, url)[0].scope == "replica"
    for number in range(3):
        ask = {"prompt": "one two three four five six " * 6 + str(number), "n_predict": 8, "temperature": 0}
        times.append(post_json(server.port, "/completion", ask)["timings"])
    (sample,) = reader.read(scrape(url))
    assert not reader.problems
    assert sample.signals["running_requests"] == sample.signals["waiting_requests"] == 0.0
    predicted, cached = sum(t["predicted_n"] for t in times), sum(t["cache_n"] for t in times)
    assert sample.signals["generated_tokens_per_s"] == pytest.approx(predicted / 10.0)
    assert sample.signals["prefix_hit_ratio"] == pytest.approx(cached / (cached + sum(t["prompt_n"] for t in times)))
    assert 0.5 < sample.signals["prefix_hit_ratio"] < 1.0
    assert sample.signals["mean_itl_ms"] == pytest.approx(sum(t["predicted_ms"] for t in times) / predicted, rel=0.01)


def test_the_list_of_signals_is_what_the_table_gives():
    """PRODUCERS names the signals of the table, no others."""
    assert set(PRODUCERS["prometheus"]) == {row.signal for row in TABLE} | {row.signal for row in DERIVED}


def test_endless_timeout():
    """A timeout that no socket can count is a long one: who refuses is a problem, no exception."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        reader = PageReader()
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}/metrics"
        for timeout_s in (math.inf, 1e300, math.nan, -1.0):
            assert reader.scrape_into(Engine.load("overload"), address, timeout_s) == []
            assert reader.problem_count == 1

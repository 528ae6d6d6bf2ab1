from __future__ import annotations

import io
import json
import math
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stabilitykit.cli.probe import run as probe_run
from stabilitykit.cli.probe.prompts import shipped_prompts
from stabilitykit.engine import Engine
from stabilitykit.engine.replay import replay
from stabilitykit.sample import Sample
from stabilitykit.sources.recording import LogFile
from tests.servers.llamacpp import ServerSettings


@pytest.mark.capability("issue 4 §5: probe URL: multi-turn load with one fixed prompt set, whose hash it names")
@pytest.mark.capability("issue 4 §5: probe: p50, p90, p99 of first token and gaps, tokens/s, cache hits, state counts")
def test_a_live_server(probe, tmp_path):
    """Two conversations of three turns with a real llama.cpp: every figure is there and fits the others."""
    ran = probe()
    assert ran.code == 0, ran.err
    told = json.loads((tmp_path / "probe.json").read_text())
    figures = told["figures"]
    assert (figures["asked"], figures["answered"], told["is_complete"]) == (6, 6, True)
    assert told["server"] == "llama.cpp"
    assert told["prompts"]["sha256"] == shipped_prompts().sha256
    for name in ("ttft_ms", "itl_ms", "prefill_ms"):
        assert 0 <= figures[name]["p50"] <= figures[name]["p90"] <= figures[name]["p99"] <= figures[name]["max"]
    assert figures["output_tokens"] <= 6 * 8
    assert figures["output_tokens_per_s"] == pytest.approx(figures["output_tokens"] / figures["seconds"])
    assert 0 < figures["cache_hit_ratio"] < 1
    assert sum(told["summary"]["states"]["session"].values()) == 6
    for word in ("p99", "tokens/s", "cache hits", "session states"):
        assert word in ran.out


@pytest.mark.capability("issue 4 §5: probe of a real model, SmolLM2 on llama.cpp: prefixes are reused")
def test_a_real_model(run, llama, tmp_path):
    """The second turn takes the first one's prompt and answer from the cache."""
    url = f"http://127.0.0.1:{llama(ServerSettings(n_ctx=2048)).port}"
    ran = run("probe", url, "--sessions", 1, "--turns", 2, "--max-tokens", 6, "-o", tmp_path / "real")
    assert ran.code == 0, ran.err
    first, second = json.loads((tmp_path / "real.json").read_text())["per_turn"]
    assert second["cached_tokens"] >= first["input_tokens"]
    assert second["input_tokens"] > first["input_tokens"]


@pytest.mark.capability("issue 4 §5: probe: the first request after load is excluded and reported apart")
def test_the_first_request_is_apart(probe, tmp_path):
    """It is timed, but it is no turn of the recording and in no quantile."""
    assert "the first request, not counted above" in probe().out
    told = json.loads((tmp_path / "probe.json").read_text())
    assert told["first_request"]["rt_ms"] > 0
    assert told["figures"]["ttft_ms"]["count"] == 6
    assert "warm-up" not in (tmp_path / "probe.jsonl").read_text()


@pytest.mark.capability("issue 4 §5: probe: writes a replayable recording; replayed, it is decided as it was live")
def test_the_recording_replays(probe, tmp_path):
    """The same pack gives each turn the same state again; the page of metrics was scraped beside it."""
    probe()
    told = json.loads((tmp_path / "probe.json").read_text())
    entries = list(LogFile(tmp_path / "probe.jsonl").entries())
    steps = list(replay(Engine.load("llamacpp", ttl_s=None), entries))
    states = [s.decision.state for s in steps if s.decision.scope == "session"]
    assert states == [turn["state"] for turn in told["per_turn"]]
    samples = [e for e in entries if isinstance(e, Sample)]
    assert {"running_requests", "waiting_requests"} <= set(samples[0].signals)
    times = [e.timestamp_s for e in entries]
    assert all(math.isfinite(at) for at in times)
    assert max(times) - min(times) < 60


@pytest.mark.capability("issue 4 §5: probe: the HTML report has the latency heat map and the shares")
def test_the_report(probe, tmp_path):
    """One file, with the heat map, the shares of each conversation, and their charts."""
    probe()
    page = (tmp_path / "probe.html").read_text()
    heat = page.partition("When gaps were long")[2].partition("</section>")[0]
    assert heat.count("<rect") > 3
    shares = page.partition("What answers wait for")[2].partition("</section>")[0]
    assert re.findall(r"probe-\d", shares) == sorted(re.findall(r"probe-\d", shares))
    assert len(re.findall(r"\d+ %", shares)) >= 2
    assert page.count("<article") >= 2
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.capability("issue 4 §5: probe: exits 1 when an objective is violated")
def test_an_objective_is_violated(probe, tmp_path):
    """One that holds and one that cannot: exit 1, and both are named with their values."""
    ran = probe("--slo", "ttft_ms.p99 < 60 s", "--slo", "itl_ms.mean < 1 us")
    assert ran.code == 1
    assert re.search(r"ttft_ms.p99 < 60 s: [\d.,]+, met", ran.out)
    assert re.search(r"itl_ms.mean < 1 us: [\d.,]+, violated", ran.out)
    told = json.loads((tmp_path / "probe.json").read_text())["objectives"]
    assert [o["is_met"] for o in told] == [True, False]


def test_an_objective_on_what_no_one_measures(probe):
    """A llama.cpp server tells no queue time: that is not "met"."""
    ran = probe("--slo", "queue_ms.max < 100")
    assert ran.code == 1
    assert "never measured, violated" in ran.out


@pytest.mark.capability("issue 4 §5: probe: real context overflow is called; exits 1 when a state is violated")
def test_context_overflow(run, llama, tiny_gguf, tmp_path):
    """A window that three turns outgrow: the refusal is recorded, the conversation breaks, exit 1."""
    server = llama(ServerSettings(n_ctx=512, model=str(tiny_gguf)))
    ran = run(
        "probe", f"http://127.0.0.1:{server.port}", "--sessions", 1, "--turns", 12, "--max-tokens", 64,
        "--scrape-every", 0, "-o", tmp_path / "small",
    )  # fmt: skip
    told = json.loads((tmp_path / "small.json").read_text())
    assert told["figures"]["errors"] == {"context_overflow (HTTP 400)": 3}
    assert told["per_turn"][-1]["state"] == "broken"
    assert ran.code == 1
    assert "context_overflow" in ran.out


def test_fail_on_a_milder_state(run, llama, tiny_gguf, tmp_path):
    """``--fail-on`` names the mildest state that is too bad; one that the pack has not is refused."""
    server = llama(ServerSettings(n_ctx=512, model=str(tiny_gguf)))
    url = f"http://127.0.0.1:{server.port}"
    options = ("--sessions", 1, "--turns", 1, "--max-tokens", 4, "-o", tmp_path / "one")
    assert run("probe", url, *options).code == 0
    assert run("probe", url, *options, "--fail-on", "healthy").code == 1
    ran = run("probe", url, *options, "--fail-on", "brken")
    assert ran.code == 2
    assert "broken" in ran.err


class Scripted(ThreadingHTTPServer):
    """Answers as its ``script`` says, a status and bytes each time, the last for ever; status 0 is silence."""

    script: list
    over: threading.Event


class Troubled(BaseHTTPRequestHandler):
    """Reads its server's script."""

    server: Scripted

    def do_GET(self):
        """Say that nothing is here but a model."""
        self.reply(200, b'{"data": [{"id": "m"}]}') if self.path == "/v1/models" else self.reply(404, b"")

    def do_POST(self):
        """Take the next of the script."""
        self.rfile.read(int(self.headers["Content-Length"]))
        script = self.server.script
        status, body = script.pop(0) if len(script) > 1 else script[0]
        self.reply(status, body)

    def reply(self, status, body):
        """Send it."""
        if status == 0:
            self.server.over.wait(30.0)
            return
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def troubled():
    """Give a function that starts such a server."""
    running = []

    def start(*script):
        server = Scripted(("127.0.0.1", 0), Troubled)
        server.script, server.over = list(script), threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in running:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


GOOD = b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ((429, b"slow down"), "rate_limited (HTTP 429)"),
        ((503, b"<html>"), "server (HTTP 503)"),
        ((200, b'data: {"choices": [{"delta": {"content": "Hi'), "server (HTTP 200)"),
        ((401, b'{"error": "no key"}'), "refused (HTTP 401)"),
    ],
    ids=["429", "503", "cut", "401"],
)
def test_a_server_in_trouble(probe, troubled, reply, word):
    """What it refuses or cuts is counted by kind; nothing answered is exit 1, and there is no traceback."""
    ran = probe(url=troubled(reply))
    assert ran.code == 1
    assert word in ran.out
    assert "Traceback" not in ran.out + ran.err
    assert "no page of metrics" in ran.err


def test_half_of_it_fails(probe, troubled, tmp_path):
    """A server that refuses one request: the others are measured, the conversation goes on."""
    probe(url=troubled((200, GOOD), (429, b""), (200, GOOD)))
    figures = json.loads((tmp_path / "probe.json").read_text())["figures"]
    assert (figures["asked"], figures["answered"], figures["errors"]) == (6, 5, {"rate_limited (HTTP 429)": 1})


def test_content_in_parts(probe, troubled, tmp_path):
    """Mistral's content is a list of parts: the answer is counted, and its text goes into the history."""
    parts = json.dumps({"choices": [{"delta": {"content": [{"type": "text", "text": "Hi"}]}, "finish_reason": "stop"}]})
    assert probe(url=troubled((200, f"data: {parts}\n\ndata: [DONE]\n\n".encode()))).code == 0
    figures = json.loads((tmp_path / "probe.json").read_text())["figures"]
    assert (figures["asked"], figures["answered"], figures["stream_faults"]) == (6, 6, 0)


def test_a_silent_server(probe, troubled):
    """One that takes the request and says nothing is given up after ``--timeout``."""
    ran = probe("--timeout", 0.1, url=troubled((0, b"")))
    assert ran.code == 1
    assert "timeout, 6 times" in ran.out


def test_no_server(probe):
    """Nobody there: exit 2 and the reason."""
    ran = probe(url="http://127.0.0.1:9")
    assert ran.code == 2
    assert "127.0.0.1:9" in ran.err


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "http://host:port"])
def test_no_address(probe, url):
    """What is no address of a web server is said at once."""
    ran = probe(url=url)
    assert ran.code == 2
    assert "no address of a server" in ran.err


def test_wrong_use(probe, tmp_path):
    """A key that is not there, a folder that is not there."""
    assert "NO_SUCH_KEY" in probe("--key-from", "NO_SUCH_KEY").err
    assert "no directory" in probe(output="gone/probe").err


@pytest.mark.capability("issue 4 §5: probe: Ctrl-C ends cleanly and writes what it has")
def test_interrupted(probe, monkeypatch, tmp_path):
    """After the second answer: two turns are written, the code says that it was interrupted."""
    take, seen = probe_run.Watched.take, []

    def interrupted(self, told):
        take(self, told)
        seen.append(told)
        if sum(not isinstance(t, Sample) for t in seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(probe_run.Watched, "take", interrupted)
    ran = probe()
    assert ran.code == 130
    told = [text for text in ran.err.splitlines() if not text.startswith("wrote")]
    assert told == ["stabilitykit: interrupted: 2 of 6 turns"]
    told = json.loads((tmp_path / "probe.json").read_text())
    assert (told["is_complete"], len(told["per_turn"])) == (False, 2)
    assert len(list(LogFile(tmp_path / "probe.jsonl").entries())) == len(seen)


def test_json(probe):
    """The figures are one object on stdout, without the list of turns."""
    (told,) = probe("--json").records
    assert told["figures"]["answered"] == 6
    assert "per_turn" not in told


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        """Say so."""
        return True


@pytest.mark.capability("issue 4 §5: probe: a live table on a terminal")
def test_the_live_table(probe, monkeypatch):
    """On a terminal the table is drawn while the load runs, beside the result."""
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen)
    assert "first token, ms" in probe().out
    shown = screen.getvalue()
    for words in ("first token, ms", "gap between tokens", "tokens/s", "cache hits", "conversations now: healthy"):
        assert words in shown

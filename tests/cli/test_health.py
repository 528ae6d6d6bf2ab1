from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.record.client import post_json
from tests.servers.llamacpp import ServerSettings

SETTINGS = ServerSettings(n_ctx=2048)


@pytest.fixture
def pages():
    """Give a server of metrics whose pages are a list: each is shown once, the last for ever."""
    shown: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        """Shows the next page."""

        def do_GET(self):
            """Answer."""
            text = (shown.pop(0) if len(shown) > 1 else shown[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        shown.append(f"http://127.0.0.1:{server.server_port}")
        yield shown
        server.shutdown()
        thread.join()


def bands(ran):
    """Give the bands of the JSON by indicator."""
    return {row["indicator"]: row["band"] for row in ran.records[0]["indicators"]}


def vllm(usage, seconds, count, preempted=0, queue=0):
    """Write a page."""
    return (
        f"vllm:kv_cache_usage_perc {usage}\nvllm:request_prefill_time_seconds_sum {seconds}\n"
        f"vllm:request_prefill_time_seconds_count {count}\nvllm:num_preemptions_total {preempted}\n"
        f"vllm:num_requests_running 10\nvllm:num_requests_waiting {queue}\n"
    )


@pytest.mark.capability("issue 4 §5: health URL: indicators, values, bands, evidence, the command that shows it")
def test_a_server(run, pages, monkeypatch):
    """The second look decides: prefill of the interval, preemptions between; exit 1 at risk."""
    waited: list[float] = []
    monkeypatch.setattr("stabilitykit.cli.health.time.sleep", waited.append)
    url = pages.pop()
    pages += [vllm(0.5, 10.0, 100, 3), vllm(0.93, 14.0, 110, 5)]
    ran = run("health", url, "--interval", "2", "--json")
    assert ran.code == 1
    assert waited == [2.0]
    assert bands(ran) == {
        "KV fragmentation": "unknown", "prefill": "risk", "KV usage": "warning", "preemptions": "warning",
        "waiting / running": "healthy", "prefix hits": "unknown",
    }  # fmt: skip
    found = {row["indicator"]: row for row in ran.records[0]["indicators"]}
    assert found["prefill"]["value"] == pytest.approx(400.0)
    assert found["preemptions"]["value"] == 2.0
    assert (found["prefill"]["evidence"], found["KV usage"]["evidence"]) == ("in 2 s", "now")


def test_one_look(run, pages):
    """Without an interval means are of all that the server did, and preemptions unknown; no risk, exit 0."""
    url = pages.pop()
    pages.append(vllm(0.5, 10.0, 100, 3))
    ran = run("health", url, "--interval", "0", "--json")
    assert ran.code == 0
    assert (bands(ran)["prefill"], bands(ran)["preemptions"]) == ("healthy", "unknown")
    text = run("health", url, "--interval", "0").out
    assert "since the server started" in text
    assert "A1.2" not in text


def test_the_command_shows_what_it_says(run, pages):
    """What stands in the last column, run in a shell, prints the metrics behind the value."""
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("no curl or no bash here")
    url = pages.pop()
    pages.append(vllm(0.5, 10.0, 100))
    rows = run("health", url, "--interval", "0", "--json").records[0]["indicators"]
    (shown_by,) = [row["shown_by"] for row in rows if row["indicator"] == "prefill"]
    done = subprocess.run(["bash", "-c", shown_by], capture_output=True, text=True, timeout=30)
    assert done.stdout == "vllm:request_prefill_time_seconds_sum 10.0\nvllm:request_prefill_time_seconds_count 100\n"


@pytest.mark.capability("issue 4 §5: health of a live llama.cpp server")
def test_a_live_server(run, llama):
    """A real server after one request: nobody waits, hits are known, prefill is not, and nothing is at risk."""
    server = llama(SETTINGS)
    for _ in range(2):
        ask = {"prompt": "one two three four five six seven", "n_predict": 4, "temperature": 0}
        post_json(server.port, "/completion", ask)
    ran = run("health", f"http://127.0.0.1:{server.port}", "--interval", "0", "--json")
    assert ran.code == 0
    assert bands(ran)["waiting / running"] == "healthy"
    assert bands(ran)["prefix hits"] in ("healthy", "warning")
    assert bands(ran)["prefill"] == "unknown"


@pytest.mark.capability("issue 4 §5: health RECORDING")
def test_a_recording(run, tmp_path):
    """The weighted mean of the turns and samples of each replica; the evidence counts them."""
    path = tmp_path / "log.jsonl"
    lines = [{"session_id": "c", "replica": "a", "prefill_ms": 100.0, "cached_tokens": 90, "input_tokens": 100}] * 3
    lines += [{"observe": {"replica": "b", "timestamp_s": 1.0, "kv_fragmentation_ratio": 0.5}}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ran = run("health", path, "--json")
    assert ran.code == 1
    found = {(row["replica"], row["indicator"]): row for row in ran.records[0]["indicators"]}
    assert found["a", "prefill"]["band"] == "healthy"
    assert found["a", "prefill"]["evidence"] == "mean of 3 values, greatest 100 ms"
    assert found["a", "prefix hits"]["value"] == pytest.approx(0.9)
    assert found["b", "KV fragmentation"]["band"] == "risk"
    assert "replica" in run("health", path).out.splitlines()[0]


def test_bounds_of_a_pack_of_ones_own(run, tmp_path):
    """`--pack` moves a bound, whatever its unit; what it does not say stays as shipped."""
    log, pack = tmp_path / "log.jsonl", tmp_path / "slow.yaml"
    log.write_text('{"session_id": "c", "prefill_ms": 500.0}\n', encoding="utf-8")
    pack.write_text(
        "stabilitykit: 1\npack: slow\ndesc: a slow host\nextends: [chat, limits]\nparams:\n"
        "  prefill_risk: {override: true, default: 2 s, doc: ours}\n",
        encoding="utf-8",
    )
    assert bands(run("health", log, "--json"))["prefill"] == "risk"
    rows = run("health", log, "--json", "--pack", pack).records[0]["indicators"]
    (prefill,) = [row for row in rows if row["indicator"] == "prefill"]
    assert (prefill["band"], prefill["risk"]) == ("warning", 2000.0)
    assert "prefill_risk: ours" in prefill["source"]


@pytest.mark.capability("issue 4 §5: health LOG")
def test_a_log(run, shared_data):
    """The statistics lines of a real vLLM with up to 846 waiting are a risk of its queue."""
    pytest.importorskip("re2", reason="google-re2 is not installed (extra logs)")
    ran = run("health", shared_data / "logs" / "vllm_stats_series.log", "--json")
    assert ran.code == 1
    assert bands(ran)["waiting / running"] == "risk"


@pytest.mark.parametrize("target", ["http://127.0.0.1:1", "nowhere.jsonl", "nowhere.log"])
def test_nothing_there(run, target):
    """No server, no file: exit 2 and a reason."""
    ran = run("health", target, "--interval", "0")
    assert ran.code == 2
    assert target.rpartition("/")[2] in ran.err


def test_nothing_known(run, pages):
    """A page without any indicator is not healthy."""
    url = pages.pop()
    pages.append("python_info 1\n")
    ran = run("health", url, "--interval", "0")
    assert ran.code == 2
    assert "none of the signals" in ran.err


def one_liners(root):
    """Give the shell blocks of the page."""
    text = (root / "docs" / "how-to" / "check-the-health-of-a-server.md").read_text(encoding="utf-8")
    return re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def told(script, address):
    """Run one of them against a server."""
    if not (shutil.which("curl") and shutil.which("awk") and shutil.which("bash")):
        pytest.skip("no curl, awk or bash here")
    script = re.sub(r"http://localhost:\d+", address, script)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ") for line in done.stdout.splitlines())


@pytest.mark.capability("issue 4 §5: the source's collection one-liner, corrected, stands in the how-to and is run")
def test_the_one_liner_for_vllm(root, pages, shared_data):
    """Mean prefill and greatest usage; a real page that publishes no prefill says so."""
    address = pages.pop()
    pages.append(vllm(0.5, 10.0, 100))
    assert told(one_liners(root)[0], address) == {"prefill_mean_ms": "100", "kv_usage_percent": "50"}
    pages[:] = [(shared_data / "prometheus" / "vllm_v0_and_v1_names.prom").read_text()]
    assert told(one_liners(root)[0], address) == {"prefill_mean_ms": "unknown", "kv_usage_percent": "0"}


@pytest.mark.capability("issue 4 §5: the source's collection one-liner, corrected, stands in the how-to and is run")
def test_the_one_liner_for_llamacpp(root, llama, run):
    """On a live server it agrees with `stabilitykit health`."""
    server = llama(SETTINGS)
    post_json(server.port, "/completion", {"prompt": "one two three four", "n_predict": 4, "temperature": 0})
    address = f"http://127.0.0.1:{server.port}"
    found = told(one_liners(root)[1], address)
    assert 0 < float(found["itl_mean_ms"]) < 10_000
    rows = run("health", address, "--interval", "0", "--json").records[0]["indicators"]
    (hits,) = [row["value"] for row in rows if row["indicator"] == "prefix hits"]
    assert float(found["prefix_hit_percent"]) == pytest.approx(100 * hits, abs=0.01)


@pytest.mark.parametrize(
    "arguments",
    [("http://[::1",), ("http://127.0.0.1:9", "--timeout", "inf"), ("http://127.0.0.1:9", "--timeout", "1e300"),
     ("http://127.0.0.1:9", "--interval", "inf")],
)  # fmt: skip
def test_wrong_use(run, arguments):
    """An address that is none, and times no socket can wait, are wrong use."""
    ran = run("health", *arguments)
    assert ran.code == 2
    assert "internal error" not in ran.err

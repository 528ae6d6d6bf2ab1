"""Write the output that ``docs/how-to/probe-a-server.md`` shows: probes of two real llama.cpp servers.

    python -m benchmarks.record.probe_page       # some minutes

The servers have the real SmolLM2 and one thread: one with a slot for each conversation, one with a slot for all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.record.server import LlamaServer, ServerSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "probe-a-server.md"
SERVERS = {"eight": ServerSettings(n_ctx=16384, n_parallel=8), "one": ServerSettings(n_ctx=2048, n_parallel=1)}
LOAD = ("--sessions", "8", "--turns", "4", "--max-tokens", "8")


def told(folder: str, *arguments: str) -> str:
    """Run a command line; gives what it prints on stdout."""
    command = [str(Path(sys.executable).with_name("stabilitykit")), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return done.stdout.strip("\n")


def shown(folder: str) -> dict[str, str]:
    """Run everything that the page shows."""
    printed = {}
    for name, settings in SERVERS.items():
        with LlamaServer(settings, name) as server:
            slo = ("--slo", "ttft_ms.p99 < 800")
            printed[name] = told(folder, "probe", f"http://127.0.0.1:{server.port}", *LOAD, *slo, "-o", name)
    return {
        "eight": printed["eight"],
        "diff": told(folder, "probe", "diff", "eight.json", "one.json"),
        "baseline": told(folder, "baseline", "eight.jsonl", "-o", "my-baseline.yaml"),
    }


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, output in shown(folder).items():
            lines = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
            head = f"<!-- {name}: written by benchmarks/record/probe_page.py -->\n```text\n"
            before, _, after = text.partition(head)
            text = f"{before}{head}{lines}```{after.partition('```')[2]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

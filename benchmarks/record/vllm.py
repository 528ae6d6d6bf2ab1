"""Record probes of a real vLLM server: a healthy load, one that outgrows the window, and one with 28 KV blocks.

    make live-vllm                                        # once: makes the environment with vLLM
    python -m benchmarks.record.vllm --out tests/golden

Every run is a `stabilitykit probe`; its recording and its figures are kept, and the table of `docs/deploy/vllm.md` is
written from them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record.vllm_server import VllmServer, VllmSettings

__all__ = ["RUNS", "Run", "figures_table"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "deploy" / "vllm.md"
_BEGIN, _END = "<!-- written by benchmarks/record/vllm.py -->\n", "<!-- to here -->\n"
ROOMY, CRAMPED = VllmSettings(), VllmSettings(window=512, blocks=28)


@dataclass(frozen=True)
class Run:
    """One probe: the server it is held with, and its options."""

    name: str
    server: VllmSettings
    options: tuple[str, ...]


RUNS = (
    Run("healthy", ROOMY, ("--sessions", "4", "--turns", "10", "--max-tokens", "24", "--scrape-every", "0.5")),
    Run("overflow", ROOMY, ("--sessions", "1", "--turns", "20", "--max-tokens", "96", "--scrape-every", "0.5")),
    Run("preempted", CRAMPED, ("--sessions", "8", "--turns", "2", "--max-tokens", "128", "--scrape-every", "0.5")),
)


def hold(run: Run, port: int, folder: Path) -> None:
    """Hold one probe; its exit code is a finding, not a failure of ours."""
    command = [str(Path(sys.executable).with_name("stabilitykit")), "probe", f"http://127.0.0.1:{port}", "--ignore-eos"]
    output = folder / f"vllm_{run.name}"
    done = subprocess.run([*command, *run.options, "--output", str(output), "--json"], cwd=ROOT, capture_output=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))
    output.with_suffix(".html").unlink()
    print(f"{run.name}: exit {done.returncode}", flush=True)


def figures_table(folder: Path) -> str:
    """Write what was seen as a table."""
    lines = [
        "| run | server | load | answered | cache hits | longest gap | preemptions | conversations end |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in RUNS:
        told = json.loads((folder / f"vllm_{run.name}.json").read_text(encoding="utf-8"))
        figures, plan = told["figures"], told["plan"]
        ends = {turn["session_id"]: turn["state"] for turn in told["per_turn"]}.values()
        states = ", ".join(f"{list(ends).count(state)} {state}" for state in dict.fromkeys(ends))
        lines.append(
            f"| {run.name} | {run.server.blocks or 'all'} blocks, window {run.server.window} "
            f"| {plan['sessions']} x {plan['turns']} turns of {plan['max_tokens']} tokens "
            f"| {figures['answered']} of {figures['asked']} | {100 * (figures['cache_hit_ratio'] or 0):.0f} % "
            f"| {figures['itl_ms']['max'] / 1e3:.2f} s | {preemptions(folder / f'vllm_{run.name}.jsonl'):.0f} "
            f"| {states} |"
        )
    return "\n".join(lines) + "\n"


def preemptions(recording: Path) -> float:
    """Give how many there were during a recording."""
    counts = preemption_counts(recording)
    return max(counts) - min(counts) if counts else 0.0


def preemption_counts(recording: Path) -> list[float]:
    """Give the server's count at each of the scrapes."""
    rows = [json.loads(line).get("observe", {}) for line in recording.read_text(encoding="utf-8").splitlines()]
    return [row["preemptions_count"] for row in rows if "preemptions_count" in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=[run.name for run in RUNS])
    options = parser.parse_args()
    folder = options.out.resolve()
    chosen = [run for run in RUNS if options.only in (None, run.name)]
    for settings in dict.fromkeys(run.server for run in chosen):
        with VllmServer(settings) as server:
            for run in (run for run in chosen if run.server == settings):
                hold(run, server.port, folder)
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(_BEGIN)
    PAGE.write_text(f"{head}{_BEGIN}{figures_table(folder)}{_END}{rest.split(_END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()

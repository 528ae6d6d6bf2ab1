"""``python -m benchmarks [name ...]``: each row in a process of its own; a table, and build/figures/*.json."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import attrs

from benchmarks import report
from benchmarks.measure import Figure

ROWS = (
    "peers", "detectors", "probes", "thousand_rules", "loading", "turn", "imports", "first_decision", "long_session",
    "session_memory", "vocabulary", "explaining", "cold_compile", "columnar", "drift", "log_lines", "stream",
    "decay", "marginal", "kv_policies", "trimming",
)  # fmt: skip
OUT = Path("build/figures")


def one(row: str) -> None:
    figures = importlib.import_module(f"benchmarks.{row}").run()
    print(json.dumps([attrs.asdict(f) for f in figures]))


def main(names: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    print(f"{'figure':58} {'value':>8} {'target':>8}")
    missed = 0
    for row in names or ROWS:
        done = subprocess.run([sys.executable, "-m", "benchmarks", "--row", row], stdout=subprocess.PIPE, check=False)
        if done.returncode:
            print(f"{row}: failed")
            missed += 1
            continue
        figures = [Figure(**f) for f in json.loads(done.stdout.decode().splitlines()[-1])]
        for f in figures:
            late = f.target is not None and f.value > f.target
            missed += late
            target = "" if f.target is None else f"{f.target:g}"
            print(f"{f.what:58} {f.value:8g} {target:>8}{' missed' if late else ''}  {f.note}", flush=True)
        (OUT / f"{row}.json").write_text(json.dumps({f.name: f.to_dict() for f in figures}, indent=1) + "\n")
    report.write()
    return int(missed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        one(sys.argv[2])
    else:
        raise SystemExit(main(sys.argv[1:]))

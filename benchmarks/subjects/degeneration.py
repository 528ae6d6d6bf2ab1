"""Recall and false calls of `degeneration`: real loops against ordinary answers, with the margins of its thresholds.

    python benchmarks/subjects/degeneration.py --data DIR [--json]

DIR holds `responses/degenerate_outputs.jsonl` (answers of broken servers, as text; skipped where absent). The other
answers are those of `tests/golden/answers.jsonl`, token ids of a real model. Printed:

reported   of the answers of broken servers that loop, how many are called, with characters and with words as tokens
recorded   of the recorded answers that loop (by hand), how many are called, and of the others how many
held out   the same on answers to other questions, which no threshold was chosen by
rivals     the same with a trivial detector whose threshold is the best one in hindsight: distinct tokens / tokens,
           and the share of the commonest token
by hand    greatest value of each measure among sound answers, smallest among loops
thresholds recall and false calls of repetition alone
across     stuck chat: the first turn called; 39 pairs of sound answers: the greatest similarity
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

from stabilitykit.detectors.degeneration import DEGENERATION
from stabilitykit.detectors.trace import trace

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
Row = dict[str, Any]


def characters(text: str) -> list[int]:
    return [ord(c) for c in text]


def words(text: str) -> list[int]:
    """Give words, single Chinese characters and signs: about what a tokenizer makes of them."""
    return [crc32(w.encode()) for w in re.findall(r"[一-鿿]|[^\W一-鿿]+|\s+|[^\w\s]", text)]


def judge(ids: list[int]) -> dict[str, float]:
    return trace(DEGENERATION, [{"output": ids}])[0]


def reported(path: Path) -> dict[str, Row]:
    """Judge the answers of broken servers."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    told = {}
    for row in rows:
        told[row["id"]] = {"kind": row["kind"]}
        for tokens in (characters, words):
            out = judge(tokens(row["text"]))
            told[row["id"]][tokens.__name__] = {
                "called": out["is_degenerate"] == 1,
                "period": out["cycle_period"],
                "repetition": round(out["repetition_ratio"], 3),
            }
    return told


def recorded(held: bool) -> tuple[list[Row], list[Row]]:
    """Give the answers of one half of the recording that loop, and those that do not."""
    labels = json.loads((GOLDEN / "answers_labels.json").read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (GOLDEN / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    single = [row for row in rows if row["kind"] in labels and row["kind"].startswith("held") is held]
    for row in single:
        row["told"] = judge(row["output_token_ids"])
    loops = [row for row in single if row["turn"] in labels[row["kind"]]]
    return loops, [row for row in single if row["turn"] not in labels[row["kind"]]]


def share(rows: list[Row], test: Any) -> str:
    return f"{sum(bool(test(row)) for row in rows)} of {len(rows)}"


def distinct(row: Row) -> float:
    ids = row["output_token_ids"]
    return len(set(ids)) / len(ids)


def commonest(row: Row) -> float:
    ids = row["output_token_ids"]
    return 1 - Counter(ids).most_common(1)[0][1] / len(ids)


def rival(measure: Any, loops: list[Row], sound: list[Row], others: list[Row], fine: list[Row]) -> Row:
    """Take the threshold below which a measure makes fewest errors, and use it on what is held out."""
    cuts = sorted({measure(row) for row in loops + sound})
    best = min(cuts, key=lambda c: sum(measure(r) > c for r in loops) + sum(measure(r) <= c for r in sound))
    called = lambda row: measure(row) <= best  # noqa: E731
    return {
        "recall": share(loops, called),
        "false calls": share(sound, called),
        "held-out recall": share(others, called),
        "held-out false calls": share(fine, called),
        "threshold": round(best, 3),
    }


def across(sound: list[Row]) -> Row:
    """Judge the stuck chat, and the sound answers as if they were one conversation."""
    rows = [json.loads(line) for line in (GOLDEN / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    stuck = trace(DEGENERATION, [{"output": r["output_token_ids"]} for r in rows if r["kind"] == "stuck"])
    other = trace(DEGENERATION, [{"output": r["output_token_ids"]} for r in sound])
    return {
        "stuck turns": len(stuck),
        "first called": next(i for i, t in enumerate(stuck, 1) if t["is_degenerate"] == 1),
        "similarity of stuck turns": [round(t["similarity_ratio"], 2) for t in stuck[1:]],
        "greatest similarity of sound answers": round(max(t["similarity_ratio"] for t in other[1:]), 3),
        "repeats of sound answers": max(t["repeats_count"] for t in other),
    }


def verdicts(loops: list[Row], sound: list[Row]) -> Row:
    """Count what the detector calls."""
    return {
        "recall": share(loops, lambda r: r["told"]["is_degenerate"] == 1),
        "by cycle alone": share(loops, lambda r: r["told"]["cycle_period"] > 0),
        "false calls": share(sound, lambda r: r["told"]["is_degenerate"] == 1),
        "cycles of sound answers": share(sound, lambda r: r["told"]["cycle_period"] > 0),
        "missed": [f"{r['kind']} {r['turn']}" for r in loops if r["told"]["is_degenerate"] != 1],
    }


def measure(data: Path | None) -> Row:
    loops, sound = recorded(held=False)
    others, fine = recorded(held=True)
    long = [r for r in sound if r["told"]["repetition_ratio"] == r["told"]["repetition_ratio"]]
    repetition = {
        limit: {
            "recall": share(loops, lambda r: r["told"]["repetition_ratio"] > limit),  # noqa: B023
            "false calls": share(sound, lambda r: r["told"]["repetition_ratio"] > limit),  # noqa: B023
        }
        for limit in (0.35, 0.4, 0.5, 0.6)
    }
    file = data / "responses" / "degenerate_outputs.jsonl" if data else None
    return {
        "reported": reported(file) if file and file.exists() else "absent",
        "recorded": verdicts(loops, sound),
        "held out": verdicts(others, fine),
        "rivals": {f.__name__: rival(f, loops, sound, others, fine) for f in (distinct, commonest)},
        "by hand": {
            "repetition, sound": round(max(r["told"]["repetition_ratio"] for r in long), 3),
            "repetition, loops": round(min(r["told"]["repetition_ratio"] for r in loops), 3),
            "cycle, sound": max(r["told"]["cycle_period"] for r in sound),
            "probability of the last token, sound": sorted(peaks(sound))[len(sound) // 2],
            "probability of the last token, loops": sorted(peaks(loops))[len(loops) // 2],
        },
        "thresholds": {str(k): v for k, v in repetition.items()},
        "across": across([r for r in sound if r["kind"] == "ordinary"]),
    }


def peaks(rows: list[Row]) -> list[float]:
    return [round(trace(DEGENERATION, [{"logprobs": r["top_logprobs"]}])[0]["peak_ratio"], 3) for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = measure(options.data)
    if options.json:
        print(json.dumps(table, ensure_ascii=False))
        return
    for part, rows in table.items():
        print(part)
        for name, row in rows.items() if isinstance(rows, dict) else [("", rows)]:
            print(f"  {name}: {row}")


if __name__ == "__main__":
    main()

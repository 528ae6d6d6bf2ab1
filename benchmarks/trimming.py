"""Trimming against bm25s' tokenise, index and score; and a trim with an index that is kept against a cold one."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import Figure, significant, times
from stabilitykit.mitigations.context import ContextIndex, Policy, trim

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "benchmarks" / "record" / "prompts.json"
TURNS, BUDGET, MORE, SHORT, ROUNDS = 700, 0.25, 50, 4, 9
QUERY = "What did she say about the old harbour and the ferry last summer?"


def conversation() -> list[dict[str, str]]:
    """Take 700 turns of a LoCoMo dialogue, or of the recorded prompts where there is no shared data."""
    path = Path(os.environ.get("STABILITYKIT_SHARED", ROOT.parent / "shared")) / "data/context/locomo_evidence.jsonl"
    if path.exists():
        texts = [t["text"] for line in path.open() for t in json.loads(line)["turns"]]
    else:
        texts = [text for one in json.loads(RECORDED.read_text()).values() for text in one["user"]]
    texts = [texts[k % len(texts)] for k in range(TURNS - 1)]
    return [{"role": "user" if k % 2 else "assistant", "content": t} for k, t in enumerate([*texts, QUERY])]


def run() -> list[Figure]:
    chat, policy = conversation(), Policy()
    whole, short = ContextIndex(), chat[:SHORT]
    whole.sync(chat)
    tokens, few = int(whole.tokens.sum()), int(whole.tokens[:SHORT].sum())
    budget = int(BUDGET * tokens)

    def cold() -> None:
        """As every trim without an index: nothing is known of the words of this conversation or of another."""
        trim(chat, budget, policy=policy)

    def tiny() -> None:
        for _ in range(MORE):
            trim(short, few // 2, policy=policy)

    def known() -> tuple[list[dict[str, str]], ContextIndex]:
        index = ContextIndex()
        trim(chat, budget, policy=policy, index=index)
        return list(chat), index

    ready = [known() for _ in range(ROUNDS + 1)]

    def warm() -> None:
        """Two turns more, as a host has them, and again; some of these trims need a new cut."""
        grown, index = ready.pop()
        for k in range(0, 2 * MORE, 2):
            grown += chat[k : k + 2]
            trim(grown, budget, policy=policy, index=index)

    if find_spec("bm25s") is None:
        return []
    import bm25s

    texts = [m["content"] for m in chat]

    def rival() -> None:
        index = bm25s.BM25()
        index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
        index.get_scores(bm25s.tokenize([QUERY], return_ids=False, show_progress=False)[0])

    first, later, small, theirs = times([cold, warm, tiny, rival], ROUNDS)
    note = f"{tokens} tokens in {TURNS} turns; {first / 1e6:.1f} ms, {first / tokens / 1e3:.2f} us a token"
    grown_note = f"{later / MORE / 1e3:.0f} us, the mean of {MORE}, new cuts included"
    return [
        Figure("trim_cold", "trimming, tokenising included / bm25s", significant(first / theirs), 0.3, note),
        Figure(
            "trim_warm", "two more messages in 700 / a cold trim", significant(later / MORE / first), 0.1, grown_note
        ),
        Figure("trim_tiny", f"trimming {SHORT} messages to half, us", significant(small / MORE / 1e3)),
    ]

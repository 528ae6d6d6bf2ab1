"""Trimming against bm25s' tokenise, index and score; and a trim with an index that is kept against a cold one."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import Figure, significant, times
from stabilitykit.mitigations.context import ContextIndex, Policy, trim, words

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "benchmarks" / "record" / "prompts.json"
TURNS, BUDGET = 700, 0.25
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
    chat = conversation()
    whole = ContextIndex()
    whole.sync(chat)
    tokens = int(whole.tokens.sum())
    budget, policy = int(BUDGET * tokens), Policy()

    def known() -> None:
        trim(chat, budget, policy=policy)

    def cold() -> None:
        """As the first conversation of a process: no word was seen before."""
        words._shared = words.Vocabulary()
        trim(chat, budget, policy=policy)

    warm_index = ContextIndex()
    trim(chat, budget, policy=policy, index=warm_index)
    grown = list(chat)

    def warm() -> None:
        """Two turns more, as a host has them."""
        grown.extend(chat[len(grown) % TURNS :][:2] or chat[:2])
        trim(grown, budget, policy=policy, index=warm_index)

    if find_spec("bm25s") is None:
        return []
    import bm25s

    texts = [m["content"] for m in chat]

    def rival() -> None:
        index = bm25s.BM25()
        index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
        index.get_scores(bm25s.tokenize([QUERY], return_ids=False, show_progress=False)[0])

    first, again, later, theirs = times([cold, known, warm, rival], 9)
    note = f"{tokens} tokens in {TURNS} turns; {first / 1e6:.1f} ms, {first / tokens / 1e3:.2f} us a token"
    seen = f"{again / 1e6:.1f} ms; every word was seen before by the process, bm25s reads them anew"
    grown_note = f"{later / 1e3:.0f} us, the median: most of these trims need no new cut"
    return [
        Figure("trim_cold", "trimming, tokenising included / bm25s", significant(first / theirs), 0.3, note),
        Figure("trim_known", "the same, its words known / bm25s", significant(again / theirs), None, seen),
        Figure("trim_warm", "two more messages in 700 / a cold trim", significant(later / again), 0.1, grown_note),
    ]

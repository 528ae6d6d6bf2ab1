"""Conversations with questions whose evidence is known, and what is left of the evidence when a method has cut them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.subjects.context_choice import Setting, constants
from benchmarks.subjects.minilm import vectors_of
from benchmarks.subjects.report import Line
from stabilitykit.mitigations.context import ContextIndex, Policy, trim, worth

SHARES = (0.10, 0.25, 0.50)
DRAWS = 1000
FULL = Policy(low_water=1.0)
"""A cut that uses its budget, as the others do: the default leaves a quarter of it to the next turns."""
TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff]+|[^\w\s]")


def count_tokens(text: str) -> int:
    return len(TOKEN.findall(text))


@attrs.frozen
class Talk:
    """A conversation, its questions and where their evidence stands."""

    name: str
    messages: list[dict[str, Any]]
    questions: list[str]
    evidence: list[list[int]]
    index: ContextIndex
    vectors: NDArray[np.float64] | None = None
    asked: Mapping[str, NDArray[np.float64]] = {}

    @property
    def tokens(self) -> int:
        return int(self.index.tokens.sum())


def talks(path: Path, each: int, embed: bool) -> list[Talk]:
    """Read LoCoMo (categories 1 to 4: the fifth asks what was never said) or CMRC."""
    found = []
    for row in map(json.loads, path.open(encoding="utf-8")):
        turns = row["turns"]
        speakers = list(dict.fromkeys(t.get("speaker", "") for t in turns))
        texts = [_said(t) for t in turns]
        roles = ["user" if t.get("speaker", "") == speakers[0] else "assistant" for t in turns]
        messages = [{"role": r, "content": text} for r, text in zip(roles, texts, strict=True)]
        place = {t["id"]: k for k, t in enumerate(turns)}
        asked = [q for q in row["questions"] if q.get("category", 1) < 5]
        questions = [q["question"] for q in asked]
        known = vectors_of([*texts, *questions]) if embed else None
        by_text = {} if known is None else dict(zip([*texts, *questions], known, strict=True))
        index = ContextIndex(count_tokens, message_tokens=each)
        index.sync(messages)
        found.append(
            Talk(
                row["id"],
                messages,
                questions,
                [[place[e] for e in q["evidence"]] for q in asked],
                index,
                known,
                by_text,
            )
        )
    return found


def _said(turn: Mapping[str, Any]) -> str:
    head = f"{turn['speaker']}: " if turn.get("speaker") else ""
    return head + turn["text"] + (f" [{turn['caption']}]" if turn.get("caption") else "")


Keep = Callable[[Talk, str, int], set[int]]
"""What a method keeps of a conversation, for a question, in so many tokens."""


def ours(by: Mapping[str, Setting], weights: Mapping[str, tuple[float, ...]] | None = None, **more: Any) -> Keep:
    """Cut as ``trim`` does, each conversation with its own constants and weights; ``with_model`` lends it MiniLM."""
    with_model = more.pop("with_model", False)

    def keep(talk: Talk, question: str, budget: int) -> set[int]:
        own = {} if weights is None else {"worth_weights": weights[talk.name]}
        talk.index.embed = (lambda texts: np.array([talk.asked[t] for t in texts])) if with_model else None
        asked = {"role": "user", "content": question}
        room = budget + talk.index.count(asked)  # the others need not keep what is asked
        talk.index.cut = None
        with constants(by.get(talk.name, {})) as fields:
            policy = attrs.evolve(FULL, **{**fields, **own, **more})
            kept = trim([*talk.messages, asked], room, policy=policy, index=talk.index).kept
        talk.index.sync(talk.messages)
        return set(kept) - {len(talk.messages)}

    return keep


def once(keep: Keep) -> Keep:
    """Ask a method that does not look at the question once for each conversation and budget."""
    known: dict[tuple[str, int], set[int]] = {}

    def kept(talk: Talk, question: str, budget: int) -> set[int]:
        if (talk.name, budget) not in known:
            known[talk.name, budget] = keep(talk, question, budget)
        return known[talk.name, budget]

    return kept


def score(
    of: str, method: str, kind: str, found: Sequence[Talk], keep: Keep, *, is_shuffled: bool = False, every: int = 1
) -> Line:
    """Give the evidence kept at each share, with intervals over conversations; ``every`` takes each n-th question."""
    hits = np.zeros((len(SHARES), len(found)))
    wanted = np.zeros(len(found))
    for n, talk in enumerate(found):
        answers = talk.evidence
        if is_shuffled:
            order = np.random.default_rng(5).permutation(len(answers))
            answers = [answers[k] for k in order]
        for question, places in list(zip(talk.questions, answers, strict=True))[::every]:
            wanted[n] += len(places)
            for s, share in enumerate(SHARES):
                kept = keep(talk, question, int(share * talk.tokens))
                hits[s, n] += sum(p in kept for p in places)
    return line_of(of, method, kind, {f"{100 * s:g} %": (h, wanted) for s, h in zip(SHARES, hits, strict=True)})


Ratios = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""For each figure two numbers a conversation, whose sums are divided."""


def line_of(of: str, method: str, kind: str, ratios: Ratios) -> Line:
    """Give figures in %, with intervals over conversations."""
    figures, intervals = {}, {}
    for name, (part, whole) in ratios.items():
        drawn = np.random.default_rng(7).integers(0, len(whole), (DRAWS, len(whole)))
        shares = 100 * part[drawn].sum(axis=1) / np.maximum(whole[drawn].sum(axis=1), 1)
        low, high = np.quantile(shares, [0.025, 0.975])
        figures[name] = float(100 * part.sum() / whole.sum())
        intervals[name] = (float(low), float(high))
    return Line(of, method, kind, figures, intervals)


def fit_worth(found: Sequence[Talk]) -> tuple[float, ...]:
    """Fit the expected number of questions about a message (Poisson, log-linear, a little ridge)."""
    rows, counts = [], []
    for talk in found:
        asked = np.zeros(len(talk.messages))
        for places in talk.evidence:
            np.add.at(asked, places, 1.0)
        rows.append(worth.features(talk.index))
        counts.append(asked)
    x, y = np.concatenate(rows), np.concatenate(counts)
    spread = x.std(axis=0)
    z = np.c_[np.ones(len(x)), (x - x.mean(axis=0)) / spread]

    def loss(b: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        e = np.exp(z @ b)
        ridge = np.r_[0.0, b[1:]]
        return float((e - y * (z @ b)).sum() + 3 * ridge @ ridge), z.T @ (e - y) + 6 * ridge

    b = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    return tuple(float(v) for v in b[1:] / spread)

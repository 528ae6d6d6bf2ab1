"""Trimming: how much of what a later question needs is still there at 10, 25 and 50 % of the tokens?

DIR holds `context/`. Every answer of ours is one of `stabilitykit.mitigations.context.trim` on OpenAI-style messages,
with the data's own token count. What is fitted (what a message is worth by itself, the chance of an identifier) is
fitted without the conversation or trajectory that is scored; CMRC, whose texts are no dialogues, sees the shipped
constants, whose weights saw none of it. The bootstrap draws conversations.

Not held out: a handful of constants (window share, weights of the fusion, shares of neighbours, k1 and b, the share of
the last thing said) were chosen by hand while looking at these same files, so figures near a target flatter us.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.subjects import context_rivals as rivals
from benchmarks.subjects.minilm import vectors_of
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.mitigations.context import ContextIndex, Policy, identifiers, trim, worth
from stabilitykit.mitigations.context.messages import read_units
from stabilitykit.mitigations.context.scoring import said_in

TITLE = "Trimming a conversation (what later questions and calls need, in % of evidence kept)"
SHARES = (0.10, 0.25, 0.50)
DRAWS, FOLDS = 1000, 5
FULL = Policy(low_water=1.0)
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


def ours(policy: Policy | Mapping[str, Policy], with_model: bool = False) -> Keep:
    def keep(talk: Talk, question: str, budget: int) -> set[int]:
        own = policy if isinstance(policy, Policy) else policy[talk.name]
        talk.index.embed = (lambda texts: np.array([talk.asked[t] for t in texts])) if with_model else None
        asked = {"role": "user", "content": question}
        room = budget + talk.index.count(asked)  # the others need not keep what is asked
        talk.index.cut = None
        kept = trim([*talk.messages, asked], room, policy=own, index=talk.index).kept
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


def score(of: str, method: str, kind: str, found: Sequence[Talk], keep: Keep, is_shuffled: bool = False) -> Line:
    """Give the evidence kept at each share, with intervals over conversations."""
    hits = np.zeros((len(found), len(SHARES)))
    wanted = np.zeros(len(found))
    for n, talk in enumerate(found):
        answers = talk.evidence
        if is_shuffled:
            order = np.random.default_rng(5).permutation(len(answers))
            answers = [answers[k] for k in order]
        wanted[n] = sum(map(len, answers))
        for question, places in zip(talk.questions, answers, strict=True):
            for s, share in enumerate(SHARES):
                kept = keep(talk, question, int(share * talk.tokens))
                hits[n, s] += sum(p in kept for p in places)
    return _line(of, method, kind, hits, wanted)


def _line(of: str, method: str, kind: str, hits: NDArray[np.float64], wanted: NDArray[np.float64]) -> Line:
    names = [f"{100 * share:g} %" for share in SHARES]
    drawn = np.random.default_rng(7).integers(0, len(wanted), (DRAWS, len(wanted)))
    shares = 100 * hits[drawn].sum(axis=1) / np.maximum(wanted[drawn].sum(axis=1), 1)[:, None]
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    total = 100 * hits.sum(axis=0) / wanted.sum()
    intervals = {n: (float(a), float(b)) for n, a, b in zip(names, low, high, strict=True)}
    return Line(of, method, kind, dict(zip(names, map(float, total), strict=True)), intervals)


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


def dialogues(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score LoCoMo, leaving one conversation out of what is fitted."""
    path = data / "context" / "locomo_evidence.jsonl"
    has_model = vectors_of([]) is not None
    found = talks(path, 4, has_model)
    left_out = {t.name: fit_worth([o for o in found if o is not t]) for t in found}
    seeing = {name: attrs.evolve(FULL, worth_weights=w) for name, w in left_out.items()}
    blind = {name: attrs.evolve(policy, is_blind=True) for name, policy in seeing.items()}

    def line(method: str, kind: str, keep: Keep, **more: bool) -> Line:
        return score("LoCoMo", method, kind, found, keep, **more)

    lines = [
        line("keep-last", "trivial", rivals.last),
        line("random", "trivial", rivals.random),
        *([line("LangChain trim_messages", "reference", rivals.langchain)] if rivals.has_langchain() else []),
        line("half window, rest BM25", "source", rivals.half_window),
        line(
            "half window, 3 anchors and the rest by softmax diagonal",
            "source",
            once(ours(attrs.evolve(Policy.of_source(), low_water=1.0))),
        ),
        line("BM25 + neighbours", "reference", rivals.bm25_neighbours),
        line("blind idf / sqrt(tokens)", "reference", rivals.blind_idf),
        line("trim, query-blind", "ours", once(ours(blind))),
        line("trim", "ours", ours(seeing)),
        line("trim", "check", ours(seeing), is_shuffled=True),
    ]
    notes = [
        f"LoCoMo: {len(found)} conversations, categories 1-4. Worth of a message fitted on all of them (the shipped "
        f"constants): {', '.join(f'{n} {w:.3g}' for n, w in zip(worth.FEATURES, fit_worth(found), strict=True))}. "
        "The check asks one question and looks for another's evidence: what is left is what any question would find.",
    ]
    by = {(one.method, one.kind): list(one.figures.values()) for one in lines}
    mine, their = by["trim", "ours"], by["BM25 + neighbours", "reference"]
    targets = [
        Target(f"LoCoMo {100 * s:g} %: points over BM25 + neighbours", wanted, a - b)
        for s, wanted, a, b in zip(SHARES, (3.0, 4.0, 5.0), mine, their, strict=True)
    ]
    mine, their = by["trim, query-blind", "ours"], by["blind idf / sqrt(tokens)", "reference"]
    targets += [
        Target(f"LoCoMo {100 * s:g} %, query-blind: points over idf / sqrt(tokens)", 5.0, a - b)
        for s, a, b in zip(SHARES, mine, their, strict=True)
    ]
    if has_model:
        reference = line("BM25 + MiniLM, neighbours", "reference", rivals.hybrid)
        model = line("trim with MiniLM", "ours", ours(seeing, with_model=True))
        lines += [reference, model]
        mine, their = list(model.figures.values()), list(reference.figures.values())
        targets.append(Target("LoCoMo 10 % with MiniLM: points over the reference hybrid", 0.0, mine[0] - their[0]))
        targets.append(Target("LoCoMo 25 % with MiniLM: points over the reference hybrid", 2.0, mine[1] - their[1]))
    else:
        notes.append(
            "MiniLM is not installed here (see benchmarks/record/embed.py): its lines and targets are left out."
        )
    return lines, targets, notes


def chinese(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score CMRC, whose messages are sentences."""
    found = talks(data / "context" / "cmrc_evidence_zh.jsonl", 0, False)
    lines = [
        score("CMRC", "keep-last", "trivial", found, rivals.last),
        score("CMRC", "BM25 of bigrams + neighbours", "reference", found, rivals.bm25_neighbours),
        score("CMRC", "trim", "ours", found, ours(FULL)),
        score("CMRC", "trim", "check", found, ours(FULL), is_shuffled=True),
    ]
    reached = lines[2].figures.values()
    targets = [
        Target(f"CMRC {100 * s:g} %: evidence kept", wanted, r)
        for s, wanted, r in zip(SHARES, (96.0, 99.0, 99.5), reached, strict=True)
    ]
    return lines, targets, []


@attrs.frozen
class Point:
    """A tool call of a trajectory: what was said before, and where its arguments had been said."""

    name: str
    messages: list[dict[str, Any]]
    values: list[str]
    sources: list[list[int]]


def points(data: Path) -> Iterator[Point]:
    for row in map(json.loads, (data / "context" / "tau_airline_tools.jsonl").open(encoding="utf-8")):
        messages = [_openai(m) for m in row["messages"]]
        for at in sorted({n["at"] for n in row["needs"] if n["at"] >= 8}):
            needs = [n for n in row["needs"] if n["at"] == at]
            sources = [[s - 1 for s in n["sources"]] for n in needs]
            yield Point(str(row["task_id"]), messages[1:at], [n["value"] for n in needs], sources)


def _openai(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
        for c in message.get("tool_calls") or []
    ]
    return {**message, "tool_calls": calls} if calls else {k: v for k, v in message.items() if k != "tool_calls"}


def fit_identifiers(found: Sequence[Point]) -> tuple[float, ...]:
    """Fit the chance of an identifier to be an argument of the next call (logistic, a little ridge)."""
    rows, needed = [], []
    for point in found:
        index = ContextIndex(count_tokens)
        index.sync(point.messages)
        units = read_units(point.messages)
        mentions = said_in(index, point.messages, units)
        rows.append(identifiers.features(mentions, len(units)))
        needed += [any(value in mention for value in point.values) for mention in mentions]
    x, y = np.concatenate(rows), np.array(needed, float)

    def loss(b: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = x @ b
        ridge = np.r_[0.0, b[1:]]
        return float((np.logaddexp(0, z) - y * z).sum() + ridge @ ridge), x.T @ (1 / (1 + np.exp(-z)) - y) + 2 * ridge

    return tuple(float(v) for v in minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


ByTask = Callable[[Point, int], set[int]]


def score_tools(method: str, kind: str, found: Sequence[Point], keep: ByTask) -> tuple[Line, float]:
    """Give the arguments still to be found, and the share of cuts that broke a pair of call and result (%)."""
    names = sorted({p.name for p in found})
    hits, wanted = np.zeros((len(names), len(SHARES))), np.zeros(len(names))
    broken = 0
    for point in found:
        n = names.index(point.name)
        wanted[n] += len(point.sources)
        total = sum(count_tokens(rivals.text(m)) + 4 for m in point.messages)
        for s, share in enumerate(SHARES):
            kept = keep(point, int(share * total))
            hits[n, s] += sum(any(k in kept for k in places) for places in point.sources)
            broken += any(0 < len(kept & set(u.members)) < len(u.members) for u in read_units(point.messages))
    return _line("tau", method, kind, hits, wanted), 100 * broken / (len(found) * len(SHARES))


def tools(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score the tool dialogues; folds are grouped by task, for the trajectories of one task are alike."""
    found = list(points(data))
    fold = {name: k % FOLDS for k, name in enumerate(sorted({p.name for p in found}))}
    fitted = {
        k: attrs.evolve(FULL, identifier_weights=fit_identifiers([p for p in found if fold[p.name] != k]))
        for k in range(FOLDS)
    }

    def mine(point: Point, budget: int) -> set[int]:
        index = ContextIndex(count_tokens)
        return set(trim(point.messages, budget, policy=fitted[fold[point.name]], index=index).kept)

    shuffled = np.random.default_rng(3).permutation(len(found))
    unlike = {id(p): found[k] for p, k in zip(found, shuffled, strict=True)}
    scored = [
        score_tools("keep-last, message by message", "trivial", found, rivals.last_messages),
        score_tools("identifiers a token, whole units", "reference", found, rivals.identifier_density),
        score_tools("trim", "ours", found, mine),
        score_tools("trim of another dialogue", "check", found, lambda p, b: mine(unlike[id(p)], b)),
    ]
    lines = [line for line, _ in scored]
    targets = [
        Target(f"tau {100 * s:g} %: arguments kept", wanted, r)
        for s, wanted, r in zip(SHARES, (55.0, 80.0, 94.0), lines[2].figures.values(), strict=True)
    ]
    targets.append(Target("tau: cuts with a broken pair, %", 0.0, scored[2][1], at_least=False))
    weights = zip(("constant", *identifiers.FEATURES), fit_identifiers(found), strict=True)
    notes = [
        f"tau: {len(found)} calls of {len(fold)} tasks; keep-last broke a pair in {scored[0][1]:.1f} % of cuts.",
        "Chance of an identifier, fitted on all (the shipped constants): "
        + ", ".join(f"{n} {w:.3g}" for n, w in weights)
        + ".",
    ]
    return lines, targets, notes


def run(data: Path) -> Report:
    """Compare on dialogues, on Chinese texts and on tool dialogues."""
    parts = [dialogues(data), chinese(data), tools(data)]
    chosen = (
        "Not held out: window share, fusion weights, shares of neighbours, k1, b and the share of the last thing said "
    )
    notes = [chosen + "were chosen by hand on these same files.", *(x for p in parts for x in p[2])]
    return Report([x for p in parts for x in p[0]], [x for p in parts for x in p[1]], notes)

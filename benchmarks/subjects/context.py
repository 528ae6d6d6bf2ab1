"""Trimming: how much of what a later question needs is still there at 10, 25 and 50 % of the tokens?

DIR holds `context/`. Every answer of ours is one of `stabilitykit.mitigations.context.trim` on OpenAI-style messages,
with the data's own token count, and may use its budget up as the others may. Nothing is scored on what it was fitted to
or chosen on: the constants that stand for a conversation were chosen on the other half of the conversations (of tau: of
the tasks), what a message or an identifier is worth was fitted without it. CMRC has the constants of words from LoCoMo,
and those of Chinese sentences from the other half of its texts. The bootstrap draws conversations, texts or tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.subjects import context_choice as choice
from benchmarks.subjects import context_rivals as rivals
from benchmarks.subjects.context_choice import Setting
from benchmarks.subjects.context_talks import SHARES, Keep, Talk, fit_worth, once, ours, score, talks
from benchmarks.subjects.context_tools import tools
from benchmarks.subjects.minilm import vectors_of
from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.mitigations.context import Policy, worth

TITLE = "Trimming a conversation (what later questions and calls need, in % of evidence kept)"
EVERY = 2
"""Constants are chosen on each second question."""

Weights = Mapping[str, tuple[float, ...]]


def crossed(
    found: Sequence[Talk],
    grid: Mapping[str, Sequence[Any]],
    known: Mapping[str, Setting] | None = None,
    *,
    is_fitted: bool = True,
    **more: Any,
) -> dict[str, Setting]:
    """Choose constants on each half of the conversations for those of the other."""
    chosen: dict[str, Setting] = {}
    for own, other in ((found[::2], found[1::2]), (found[1::2], found[::2])):
        weights = left_out(own) if is_fitted else None

        def gain(setting: Setting, own: Sequence[Talk] = own, weights: Weights | None = weights) -> float:
            keep = ours({t.name: setting for t in own}, weights, **more)
            return sum(score("", "", "ours", own, keep, every=EVERY).figures.values())

        setting = choice.choose(grid, gain, known[other[0].name] if known else None)
        chosen |= {t.name: setting for t in other}
    return chosen


def left_out(found: Sequence[Talk]) -> Weights:
    """Fit what a message is worth without the conversation it is for."""
    return {t.name: fit_worth([o for o in found if o is not t]) for t in found}


def dialogues(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score LoCoMo."""
    has_model = vectors_of([]) is not None
    found = talks(data / "context" / "locomo_evidence.jsonl", 4, has_model)
    fitted = left_out(found)
    chosen = crossed(found, choice.WORDS)

    def line(method: str, kind: str, keep: Keep, **more: bool) -> Line:
        return score("LoCoMo", method, kind, found, keep, **more)

    source = Policy.of_source()
    lines = [
        line("keep-last", "trivial", rivals.last),
        line("random", "trivial", rivals.random),
        *([line("LangChain trim_messages", "reference", rivals.langchain)] if rivals.has_langchain() else []),
        line("half window, rest BM25", "source", rivals.half_window),
        line(
            "half window, 3 anchors and the rest by softmax diagonal",
            "source",
            once(ours({}, window_share=source.window_share, scorer="source", worth_weight=0.0, window_weight=0.0)),
        ),
        line("BM25 + neighbours", "reference", rivals.bm25_neighbours),
        line("blind idf / sqrt(tokens)", "reference", rivals.blind_idf),
        line("trim, query-blind", "ours", once(ours(chosen, fitted, is_blind=True))),
        line("trim, constants as shipped", "ours", ours({}, fitted)),
        line("trim", "ours", ours(chosen, fitted)),
        line("trim", "check", ours(chosen, fitted), is_shuffled=True),
    ]
    by = {(one.method, one.kind): list(one.figures.values()) for one in lines}
    targets = [
        *_over(
            by["trim", "ours"], by["BM25 + neighbours", "reference"], (3.0, 4.0, 5.0), "points over BM25 + neighbours"
        ),
        *_over(
            by["trim, query-blind", "ours"],
            by["blind idf / sqrt(tokens)", "reference"],
            (5.0, 5.0, 5.0),
            "query-blind, points over idf / sqrt(tokens)",
        ),
    ]
    notes = [
        f"LoCoMo: {len(found)} conversations, categories 1-4. Constants, chosen on the others: "
        + "; ".join(dict.fromkeys(map(choice.told, chosen.values())))
        + ". Worth of a message fitted on all (the shipped constants): "
        + ", ".join(f"{n} {w:.3g}" for n, w in zip(worth.FEATURES, fit_worth(found), strict=True))
        + ". The check asks one question and looks for another's evidence: it finds what any question would find.",
    ]
    if not has_model:
        notes.append(
            "MiniLM is not installed here (see benchmarks/record/embed.py): its lines and targets are left out."
        )
        return lines, targets, notes
    meant = crossed(found, choice.MODEL, chosen, with_model=True)
    reference = line("BM25 + MiniLM, neighbours", "reference", rivals.hybrid)
    model = line("trim with MiniLM", "ours", ours(meant, fitted, with_model=True))
    mine, their = (list(one.figures.values()) for one in (model, reference))
    targets += _over(mine, their, (0.0, 2.0), "with MiniLM, points over the reference hybrid")
    return [*lines, reference, model], targets, notes


def _over(mine: Sequence[float], their: Sequence[float], wanted: Sequence[float], what: str) -> list[Target]:
    return [
        Target(f"LoCoMo {100 * s:g} %: {what}", w, a - b)
        for s, w, a, b in zip(SHARES, wanted, mine, their, strict=False)
    ]


def chinese(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score CMRC, whose messages are sentences."""
    found = talks(data / "context" / "cmrc_evidence_zh.jsonl", 0, False)
    chosen = crossed(found, choice.CHINESE, is_fitted=False)
    lines = [
        score("CMRC", "keep-last", "trivial", found, rivals.last),
        *(
            [score("CMRC", "LangChain trim_messages", "reference", found, rivals.langchain)]
            if rivals.has_langchain()
            else []
        ),
        score("CMRC", "half window, rest BM25", "source", found, rivals.half_window),
        score("CMRC", "BM25 of bigrams + neighbours", "reference", found, rivals.bm25_neighbours),
        score("CMRC", "trim, constants as shipped", "ours", found, ours({})),
        score("CMRC", "trim", "ours", found, ours(chosen)),
        score("CMRC", "trim", "check", found, ours(chosen), is_shuffled=True),
    ]
    reached = lines[-2].figures.values()
    targets = [
        Target(f"CMRC {100 * s:g} %: evidence kept", wanted, r)
        for s, wanted, r in zip(SHARES, (96.0, 99.0, 99.5), reached, strict=True)
    ]
    told = "; ".join(dict.fromkeys(map(choice.told, chosen.values())))
    return lines, targets, [f"CMRC: {len(found)} texts. Constants, chosen on the others: {told}."]


def run(data: Path) -> Report:
    """Compare on dialogues, on Chinese texts and on tool dialogues."""
    parts = [dialogues(data), chinese(data), tools(data)]
    notes = [
        "Not chosen here, but set: the latest turns get a sixteenth of the room and 0.05 of the score, three anchors "
        "are kept; LoCoMo asks about any time alike, so that this costs recall there.",
        *(x for p in parts for x in p[2]),
    ]
    return Report([x for p in parts for x in p[0]], [x for p in parts for x in p[1]], notes)

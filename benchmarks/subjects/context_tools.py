"""Tool dialogues: are the arguments of the next call still there, and does every call still have its result?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.subjects import context_choice as choice
from benchmarks.subjects import context_rivals as rivals
from benchmarks.subjects.context_choice import Setting, constants
from benchmarks.subjects.context_talks import FULL, SHARES, count_tokens, line_of
from benchmarks.subjects.report import Line, Target
from stabilitykit.mitigations.context import ContextIndex, identifiers, trim
from stabilitykit.mitigations.context.messages import read_units
from stabilitykit.mitigations.context.results import said_in

Weights = tuple[float, ...]


@attrs.frozen(eq=False)
class Point:
    """A tool call of a trajectory: what was said before, and where its arguments had been said."""

    task: str
    messages: list[dict[str, Any]]
    values: list[str]
    sources: list[list[int]]


def points(data: Path) -> list[Point]:
    """Read the calls; the first ones, behind fewer than eight messages, have nothing to cut."""
    found = []
    for row in map(json.loads, (data / "context" / "tau_airline_tools.jsonl").open(encoding="utf-8")):
        messages = [_openai(m) for m in row["messages"]]
        for at in sorted({n["at"] for n in row["needs"] if n["at"] >= 8}):
            needs = [n for n in row["needs"] if n["at"] == at]
            sources = [[s - 1 for s in n["sources"]] for n in needs]
            found.append(Point(str(row["task_id"]), messages[1:at], [n["value"] for n in needs], sources))
    return found


def _openai(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
        for c in message.get("tool_calls") or []
    ]
    return {**message, "tool_calls": calls} if calls else {k: v for k, v in message.items() if k != "tool_calls"}


def fit_identifiers(found: Sequence[Point]) -> Weights:
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


Keep = Callable[[Point, int], dict[int, str]]
"""What a method leaves of a dialogue in so many tokens: the text of each message of which anything is left."""


def whole(keep: Callable[[Point, int], set[int]]) -> Keep:
    """Adapt a method that keeps messages whole."""
    return lambda point, budget: {k: rivals.text(point.messages[k]) for k in keep(point, budget)}


def ours(by: Mapping[str, tuple[Setting, Weights]], **more: Any) -> Keep:
    """Cut as ``trim`` does, each task with its own constants and weights."""

    def keep(point: Point, budget: int) -> dict[int, str]:
        setting, weights = by[point.task]
        with constants(setting) as fields:
            policy = attrs.evolve(FULL, identifier_weights=weights, **{**fields, **more})
            done = trim(point.messages, budget, policy=policy, index=ContextIndex(count_tokens))
        return dict(zip(done.kept, map(rivals.text, done.messages), strict=True))

    return keep


def score(method: str, kind: str, found: Sequence[Point], keep: Keep) -> Line:
    """Give the arguments that still stand in what is left, and what was left; intervals over tasks."""
    tasks = {task: n for n, task in enumerate(sorted({p.task for p in found}))}
    hits, used, room, broken, cuts, wanted = (np.zeros((len(SHARES), len(tasks))) for _ in range(6))
    for point in found:
        n = tasks[point.task]
        cost = rivals.costs(point)
        units = read_units(point.messages)
        for s, share in enumerate(SHARES):
            budget = int(share * cost.sum())
            left = keep(point, budget)
            hits[s, n] += sum(
                any(value in left.get(k, "") for k in places)
                for value, places in zip(point.values, point.sources, strict=True)
            )
            wanted[s, n] += len(point.values)
            broken[s, n] += any(0 < len(left.keys() & set(u.members)) < len(u.members) for u in units)
            cuts[s, n] += 1
            used[s, n] += sum(count_tokens(text) + 4 for text in left.values())
            room[s, n] += budget
    ratios = {f"{100 * share:g} %": (hits[s], wanted[s]) for s, share in enumerate(SHARES)}
    ratios["cuts with a broken pair"] = (broken.sum(axis=0), cuts.sum(axis=0))
    ratios["tokens used of the budget"] = (used.sum(axis=0), room.sum(axis=0))
    return line_of("tau", method, kind, ratios)


def other_values(found: Sequence[Point]) -> list[Point]:
    """Ask for values that were said, but drawn by chance: what any value would find."""
    draw = np.random.default_rng(3)
    made = []
    for point in found:
        texts = [rivals.text(m) for m in point.messages]
        said = sorted({v for text in texts for v in identifiers.values_of(text) if len(v) >= 5})
        values = [said[k] for k in draw.integers(0, len(said), len(point.values))]
        sources = [[k for k, text in enumerate(texts) if value in text] for value in values]
        made.append(attrs.evolve(point, values=values, sources=sources))
    return made


def halves(found: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """Divide by task: the trajectories of one task are alike."""
    even = set(sorted({p.task for p in found})[::2])
    return [p for p in found if p.task in even], [p for p in found if p.task not in even]


def chosen_on(found: Sequence[Point]) -> tuple[Setting, Weights]:
    """Choose the constants, with weights that see one half of the tasks when the other is scored; then fit on all."""
    parts = halves(found)
    fitted: dict[Any, dict[str, Weights]] = {}

    def gain(setting: Setting) -> float:
        by = fitted.get(setting["FADING"])
        if by is None:
            with constants(setting):
                pairs = [(fit_identifiers(a), b) for a, b in (parts, parts[::-1])]
            by = fitted[setting["FADING"]] = {p.task: weights for weights, other in pairs for p in other}
        line = score("", "ours", found[::6], ours({task: (setting, weights) for task, weights in by.items()}))
        return sum(list(line.figures.values())[: len(SHARES)])

    setting = choice.choose(choice.VALUES, gain)
    with constants(setting):
        return setting, fit_identifiers(found)


def tools(data: Path) -> tuple[list[Line], list[Target], list[str]]:
    """Score the tool dialogues, each half of the tasks with what was chosen and fitted on the other."""
    found = points(data)
    by: dict[str, tuple[Setting, Weights]] = {}
    notes = []
    for own, other in (halves(found), halves(found)[::-1]):
        chosen = chosen_on(own)
        by |= {p.task: chosen for p in other}
        notes.append(f"tau, chosen on {len({p.task for p in own})} tasks: {choice.told(chosen[0])}.")
    shipped: dict[str, tuple[Setting, Weights]] = {task: ({}, weights) for task, (_, weights) in by.items()}
    lines = [
        score("keep-last, message by message", "trivial", found, whole(rivals.last_messages)),
        score("half window, rest BM25", "source", found, whole(rivals.half_window_messages)),
        *(
            [score("LangChain trim_messages", "reference", found, whole(rivals.langchain_messages))]
            if rivals.has_langchain()
            else []
        ),
        score("BM25 + neighbours, whole units", "reference", found, whole(rivals.bm25_units)),
        score("identifiers a token, whole units", "reference", found, whole(rivals.identifier_density)),
        score("trim, results whole", "ours", found, ours(by, is_whole=True)),
        score("trim, constants as shipped", "ours", found, ours(shipped)),
        score("trim", "ours", found, ours(by)),
        score("trim", "check", other_values(found), ours(by)),
    ]
    mine = lines[-2].figures
    targets = [
        Target(f"tau {name}: arguments kept", wanted, mine[name])
        for name, wanted in zip((f"{100 * s:g} %" for s in SHARES), (55.0, 80.0, 94.0), strict=True)
    ]
    targets.append(Target("tau: cuts with a broken pair, %", 0.0, mine["cuts with a broken pair"], at_least=False))
    weights = zip(("constant", *identifiers.FEATURES), fit_identifiers(found), strict=True)
    notes += [
        f"tau: {len(found)} calls of {len(by)} tasks. An argument counts when it stands, character by character, in "
        "what is left of a message that had it. The check asks for values of the same dialogue drawn by chance.",
        "Chance of an identifier, fitted on all (the shipped constants): "
        + ", ".join(f"{n} {w:.3g}" for n, w in weights)
        + ".",
    ]
    return lines, targets, notes

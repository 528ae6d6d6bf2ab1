"""Behaviours of log lines, each thread scored with what was not written from it alone.

    python benchmarks/accuracy.py logs --data DIR [--json]

DIR/logs/engine_log_lines.jsonl holds lines with the judgement of the whole thread. Scored are the lines whose own text
is evidence of it (tests/data/logs/evidence.jsonl, ids and reasons). Templates are written by hand, so leaving a thread
out means leaving out every template that only this thread could have taught: one that neither the server's own source
prints nor another thread quotes. `sources not counted` leaves out those as well that a source prints. The bounds of the
series come from the packs, not from these lines.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.subjects.report import Line, Report, Target
from stabilitykit import Engine
from stabilitykit.sources.logs import Line as LogLine
from stabilitykit.sources.logs import Matcher, Series, Template, shipped_templates

TITLE = "Log lines to behaviours, threads left out"
EVIDENCE = Path(__file__).resolve().parents[2] / "tests" / "data" / "logs" / "evidence.jsonl"
ROUNDS, SEED = 1_000, 7
WORDS = re.compile(r"error|fail|warn|exception|time[d ]*out|fatal", re.IGNORECASE)
HEALTHY = "healthy"
Row = Mapping[str, Any]
Told = dict[str, set[str]]
"""Behaviours by line; ``healthy`` for a line that is known and says nothing bad; empty where we abstain."""


def taught(template: Template, thread: str, *, count_sources: bool = True) -> bool:
    """Tell whether a template could have been written without this thread."""
    return not template.threads or set(template.threads) != {thread} or (count_sources and bool(template.sources))


def threads_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group the lines, in order."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["source"]].append(row)
    return found


def ours(rows: Sequence[Row], *, count_sources: bool = True) -> Told:
    """Templates for what a line says, the rules of the pack `logs` for what a series says."""
    told: Told = {}
    engine = Engine.load("logs")
    tags = {
        rule.id: rule.tags[2].replace("-", "_")
        for rule in engine.pack.rules
        if rule.id.startswith(("series", "request"))
    }
    templates = shipped_templates()
    for thread, lines in threads_of(rows).items():
        matcher = Matcher([t for t in templates if taught(t, thread, count_sources=count_sources)])
        told |= read_thread(engine, tags, matcher, thread, lines)
    return told


def read_thread(engine: Engine, tags: Mapping[str, str], matcher: Matcher, thread: str, rows: Sequence[Row]) -> Told:
    """Read the lines of one thread."""
    told: Told = {}
    series, periodic = Series(thread), list[str]()
    for row in rows:
        line = LogLine(1, row["line"].encode(), matcher.match(row["line"].encode()))
        told[row["id"]] = set(line.behaviours)
        if any(found.template.is_periodic for found in line.found):
            periodic.append(row["id"])
        sample = series.take(line)
        if sample is None or line.behaviours:
            continue
        decision = engine.observe(replica=thread, timestamp_s=sample.timestamp_s, **sample.signals)
        for reason in decision.reasons:
            if reason.rule in tags:  # the lines before, too, that made it so many in a row
                for name in [row["id"], *periodic[-reason.need : -1]]:
                    told[name].add(tags[reason.rule])
    for row in rows:
        is_known = bool(matcher.match(row["line"].encode()))
        if not told[row["id"]] and is_known and not (row["id"] in periodic and len(periodic) == 1):
            told[row["id"]].add(HEALTHY)
    return told


def first_match(rows: Sequence[Row]) -> Told:
    """Do as the source does (A3.3): the first pattern that matches wins, with .92; else nothing, with .1."""
    templates = sorted(shipped_templates(), key=lambda t: (t.family, t.id))
    told: Told = {}
    for thread, lines in threads_of(rows).items():
        patterns = [(re.compile(t.regex), t) for t in templates if taught(t, thread)]
        for row in lines:
            text = row["line"].encode()
            first = next((t for pattern, t in patterns if pattern.search(text)), None)
            told[row["id"]] = set(list(first.behaviours)[:1]) if first and first.behaviours else {HEALTHY}
    return told


def commonest(rows: Sequence[Row], thread: str) -> str:
    """Give the behaviour that most lines of the other threads have."""
    return Counter(r["behavior"] for r in rows if r["source"] != thread and r["behavior"] != HEALTHY).most_common(1)[0][
        0
    ]


def flag_all(rows: Sequence[Row]) -> Told:
    """Call every line the commonest behaviour of the other threads."""
    return {row["id"]: {commonest(rows, row["source"])} for row in rows}


def flag_none(rows: Sequence[Row]) -> Told:
    """Call every line healthy."""
    return {row["id"]: {HEALTHY} for row in rows}


def keyword(rows: Sequence[Row]) -> Told:
    """Call a line with an alarming word the commonest behaviour, any other healthy."""
    return {row["id"]: {commonest(rows, row["source"]) if WORDS.search(row["line"]) else HEALTHY} for row in rows}


def figures(rows: Sequence[Row], told: Told) -> dict[str, float]:
    """Count (line, behaviour) pairs: over all lines, then over behaviours alone, where `healthy` is no hit."""
    said = sum(len(told[r["id"]]) for r in rows)
    right = sum(r["behavior"] in told[r["id"]] for r in rows)
    bad = [r for r in rows if r["behavior"] != HEALTHY]
    named = sum(len(told[r["id"]] - {HEALTHY}) for r in rows)
    hit = sum(r["behavior"] in told[r["id"]] for r in bad)
    return {
        "precision": right / said if said else 0.0,
        "recall": right / len(rows) if rows else 0.0,
        "precision, behaviours": hit / named if named else 0.0,
        "recall, behaviours": hit / len(bad) if bad else 0.0,
    }


def intervals(rows: Sequence[Row], told: Told) -> dict[str, tuple[float, float]]:
    """Bootstrap whole threads."""
    rng, groups = random.Random(SEED), list(threads_of(rows).values())
    drawn = [
        figures([row for group in rng.choices(groups, k=len(groups)) for row in group], told) for _ in range(ROUNDS)
    ]
    return between(drawn)


def between(drawn: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Give the 95 % interval of each figure."""
    low, high = round(0.025 * ROUNDS), round(0.975 * ROUNDS) - 1
    return {name: (v[low], v[high]) for name in drawn[0] if (v := sorted(d[name] for d in drawn))}


def permuted(of: str, rows: Sequence[Row], told: Told) -> Line:
    """Judge with the labels dealt out anew, beside chance: the share of the class that is said; threads are drawn."""
    rng, groups = random.Random(SEED), list(threads_of(rows).values())

    def dealt(drawn: Sequence[Row]) -> dict[str, float]:
        labels = [row["behavior"] for row in drawn]
        share = Counter(labels)
        said = [share[name] / len(drawn) for row in drawn for name in told[row["id"]]]
        rng.shuffle(labels)
        mixed = [{**row, "behavior": label} for row, label in zip(drawn, labels, strict=True)]
        return {"precision": figures(mixed, told)["precision"], "by chance": sum(said) / max(len(said), 1)}

    found = [dealt(rows) for _ in range(200)]
    means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    drawn = [dealt([row for group in rng.choices(groups, k=len(groups)) for row in group]) for _ in range(ROUNDS)]
    return Line(of=of, method="permuted labels", kind="check", figures=means, intervals=between(drawn))


def run_all(rows: Sequence[Row], scored: Sequence[Row]) -> dict[str, Told]:
    """Run every method; a series needs the lines as well that are not scored."""
    return {
        "flag nothing": flag_none(scored),
        "flag everything": flag_all(scored),
        "keyword": keyword(scored),
        "first match wins, .92 or .1": first_match(scored),
        "templates and series": ours(rows),
        "templates and series, sources not counted": ours(rows, count_sources=False),
    }


def run_report(rows: Sequence[Row], scored: Sequence[Row]) -> Report:
    """Score."""
    told = run_all(rows, scored)
    kinds = dict.fromkeys(told, "ours") | dict.fromkeys(list(told)[:3], "trivial") | {list(told)[3]: "source"}
    of = f"{len(scored)} lines of {len(threads_of(scored))} threads"
    lines = [
        Line(of=of, method=name, kind=kinds[name], figures=figures(scored, said), intervals=intervals(scored, said))
        for name, said in told.items()
    ]
    best = figures(scored, told["templates and series"])
    check = permuted(of, scored, told["templates and series"])
    lines.append(check)
    excess = check.figures["precision"] - check.figures["by chance"]
    return Report(
        lines=lines,
        targets=[
            Target("lines whose own text is evidence", 110, len(scored)),
            Target("precision", 0.97, best["precision"]),
            Target("recall", 0.85, best["recall"]),
            Target("precision, behaviours alone", 0.97, best["precision, behaviours"]),
            Target("recall, behaviours alone", 0.85, best["recall, behaviours"]),
            Target("precision with permuted labels, above chance", 0.02, excess, at_least=False),
        ],
        notes=[
            "A periodic status line that stands alone is no series: there we abstain. "
            "The reference pages name no other method."
        ],
    )


def run(data: Path) -> Report:
    """Score the lines of a folder of real data; a line without a verdict of its own counts."""
    rows = [json.loads(line) for line in (data / "logs" / "engine_log_lines.jsonl").read_text("utf-8").splitlines()]
    verdicts = {e["id"]: e["is_evidence"] for e in map(json.loads, EVIDENCE.read_text("utf-8").splitlines())}
    return run_report(rows, [row for row in rows if verdicts.get(row["id"], True)])

"""The record of a rollout, counted: what the arms decided, how it went, and whether they differ.

The unit of every comparison is the conversation, for that is what was drawn into an arm: the turns of one are alike,
and a test that counted them singly would see differences where there are none.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from stabilitykit.errors import RecordError
from stabilitykit.rollout.arms import CONTROL, GREATEST, TREATMENT
from stabilitykit.rollout.compare import (
    Difference,
    fisher_exact,
    holm,
    mcnemar_exact,
    sessions_for_means,
    sessions_for_shares,
    two_means,
    two_proportions,
)

__all__ = ["Arm", "Comparison", "Report", "read_report"]

ARMS = (CONTROL, TREATMENT)
_LONGEST = 1 << 20
_BEGINNING = b'{"kind": "'
"""Of every line that a ``Rollout`` writes."""
FAILED = "not ok"
"""The comparison that the verdict is made of: conversations with at least one turn that was not ok."""


@attrs.define
class Arm:
    """What one arm decided: conversations, turns, states and actions; of bad turns, how many it acted on.

    ``applied`` counts the actions that the host carried out, by its receipts.
    """

    sessions: set[str] = attrs.field(factory=set)
    turns: int = 0
    states: Counter[str] = attrs.field(factory=Counter)
    actions: Counter[str] = attrs.field(factory=Counter)
    applied: Counter[str] = attrs.field(factory=Counter)
    acted: set[str] = attrs.field(factory=set)
    acted_turns: set[tuple[str, int]] = attrs.field(factory=set)
    bad: int = 0
    bad_acted: int = 0


@attrs.frozen
class Comparison:
    """One finding in both arms.

    Parameters
    ----------
    name
        The tag, or ``not ok``.
    kind
        ``share`` of conversations in which it was seen at least once, or ``mean`` of the conversations' means.
    sessions, values
        Conversations that have it, and its value, of control and treatment.
    difference
        Treatment minus control, with its interval; the p-value is Fisher's for a share, a permutation's for a mean.
    z_p
        The p-value of the two-proportion z-test, for a share.
    corrected_p
        The p-value after Holm's correction for all comparisons of the report.
    sessions_needed
        Conversations that each arm needs to show a difference as great as the one seen, four times in five.
    """

    name: str
    kind: str
    sessions: tuple[int, int]
    values: tuple[float, float]
    difference: Difference
    z_p: float
    sessions_needed: float
    corrected_p: float = math.nan


@attrs.frozen
class Report:
    """The whole rollout; ``torn_lines`` were cut off by a crash or a full disk, and are not counted."""

    mode: str
    arms: Mapping[str, Arm]
    turns: int
    differing_turns: int
    paired_p: float
    comparisons: tuple[Comparison, ...]
    alpha: float
    torn_lines: int = 0

    @property
    def verdict(self) -> str:
        """How the treatment did: ``better``, ``worse``, ``no difference shown``; ``shadow`` or ``no outcomes``."""
        if self.mode == "shadow":
            return "shadow"
        main = next((c for c in self.comparisons if (c.name, c.kind) == (FAILED, "share")), None)
        if main is None:
            return "no outcomes"
        if not main.corrected_p < self.alpha:
            return "no difference shown"
        return "better" if main.difference.value < 0 else "worse"


def read_report(path: str | os.PathLike[str], *, alpha: float = 0.05) -> Report:
    """Read and count a record; a line that a crash or a full disk has torn is left out.

    Raises
    ------
    RecordError
        A line that no ``Rollout`` writes, or two modes in one file.
    """
    arms = {arm: Arm() for arm in ARMS}
    seen: dict[str, dict[str, dict[str, list[float]]]] = {arm: defaultdict(lambda: defaultdict(list)) for arm in ARMS}
    mode, turns, differing, torn = "", 0, 0, 0
    for place, line in _lines(path):
        if line is None:
            torn += 1
            continue
        try:
            if line["kind"] == "rollout":
                if mode not in ("", line["mode"]):
                    raise RecordError(f"{place}: a {line['mode']} rollout after a {mode} one: one file each")
                mode = line["mode"]
            elif line["kind"] == "turn":
                turns += 1
                differing += _count_turn(arms, line)
            else:
                _count_outcome(seen[line["arm"]], line)
                arms[line["arm"]].applied.update(line["applied"])
                if line["ok"] is False:
                    _count_bad([arms[line["arm"]]] if mode == "ab" else [*arms.values()], line)
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{place}: no line of a rollout ({type(error).__name__})") from None
    if not mode:
        raise RecordError(f"{os.fspath(path)}: no rollout is recorded here")
    only = [len(arms[a].acted - arms[b].acted) for a, b in ((CONTROL, TREATMENT), (TREATMENT, CONTROL))]
    paired = mcnemar_exact(*only) if mode == "shadow" else math.nan
    comparisons = _compare(seen[CONTROL], seen[TREATMENT], alpha) if mode == "ab" else ()
    return Report(mode, arms, turns, differing, paired, comparisons, alpha, torn)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    for number, text in enumerate(_texts(path), 1):
        place = f"{os.fspath(path)}:{number}"
        if len(text) > _LONGEST:
            raise RecordError(f"{place}: a line of more than 1 MiB")
        if not text:  # two that wrote at once both ended a torn one
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            if text.startswith(_BEGINNING) or _BEGINNING.startswith(text):
                yield place, None
                continue
            raise RecordError(f"{place}: no JSON") from None
        if not isinstance(line, dict):
            raise RecordError(f"{place}: no JSON object")
        yield place, line


def _texts(path: str | os.PathLike[str]) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as file:
            while text := file.readline(_LONGEST + 1):
                if not text.endswith(b"\n") and len(text) <= _LONGEST:
                    return  # cut off by a crash
                yield text.removesuffix(b"\n")
    except OSError as error:
        raise RecordError(f"{os.fspath(path)}: {error.strerror or type(error).__name__}") from None


def _count_turn(arms: Mapping[str, Arm], line: Mapping[str, Any]) -> bool:
    decided = line["decided"]
    for arm, told in decided.items():
        counted = arms[arm]
        counted.turns += 1
        counted.sessions.add(line["session"])
        counted.states[told["state"]] += 1
        counted.actions.update(told["actions"])
        if told["actions"]:
            counted.acted.add(line["session"])
            counted.acted_turns.add((line["session"], line["turn"]))
    return len(decided) == 2 and decided[CONTROL] != decided[TREATMENT]


def _count_bad(arms: Iterable[Arm], line: Mapping[str, Any]) -> None:
    for arm in arms:
        arm.bad += 1
        arm.bad_acted += (line["session"], line["turn"]) in arm.acted_turns


def _count_outcome(seen: dict[str, dict[str, list[float]]], line: Mapping[str, Any]) -> None:
    findings = dict(line["tags"])
    if line["ok"] is not None:
        findings[FAILED] = not line["ok"]
    for name, value in findings.items():
        if not isinstance(value, int | float) or not abs(value) <= GREATEST:
            raise TypeError("a finding that is no number")
        kind = "share" if isinstance(value, bool) else "mean"
        seen[f"{kind} {name}"][line["session"]].append(float(value))


def _compare(
    control: Mapping[str, Mapping[str, list[float]]], treatment: Mapping[str, Mapping[str, list[float]]], alpha: float
) -> tuple[Comparison, ...]:
    found = []
    for key in sorted(set(control) & set(treatment), key=lambda key: (not key.endswith(f" {FAILED}"), key)):
        kind, _, name = key.partition(" ")
        a, b = list(control[key].values()), list(treatment[key].values())
        found.append(_of_shares(name, a, b, alpha) if kind == "share" else _of_means(name, a, b, alpha))
    corrected = holm([c.difference.p for c in found])
    return tuple(attrs.evolve(c, corrected_p=p) for c, p in zip(found, corrected, strict=True))


def _of_shares(name: str, control: list[list[float]], treatment: list[list[float]], alpha: float) -> Comparison:
    hits = [sum(any(values) for values in arm) for arm in (control, treatment)]
    of = (len(control), len(treatment))
    z = two_proportions(hits[0], of[0], hits[1], of[1])
    exact = attrs.evolve(z, p=fisher_exact(hits[0], of[0], hits[1], of[1]))
    shares = (hits[0] / of[0], hits[1] / of[1])
    return Comparison(name, "share", of, shares, exact, z.p, sessions_for_shares(*shares, alpha=alpha))


def _of_means(name: str, control: list[list[float]], treatment: list[list[float]], alpha: float) -> Comparison:
    a, b = ([statistics.fmean(values) for values in arm] for arm in (control, treatment))
    means = (statistics.fmean(a), statistics.fmean(b))
    if min(len(a), len(b)) < 2:
        lone = Difference(means[1] - means[0], math.nan, math.nan, 1.0)
        return Comparison(name, "mean", (len(a), len(b)), means, lone, math.nan, math.nan)
    difference = two_means(a, b)
    spread = math.sqrt((statistics.variance(a) + statistics.variance(b)) / 2)
    needed = sessions_for_means(spread, difference.value, alpha=alpha)
    return Comparison(name, "mean", (len(a), len(b)), means, difference, math.nan, needed)

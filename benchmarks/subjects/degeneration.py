"""Recall and false calls of `degeneration`: answers of broken servers and real loops against ordinary answers.

    python benchmarks/accuracy.py degeneration --data DIR

DIR holds `responses/degenerate_outputs.jsonl` (answers of broken servers, as text). The other answers are token ids of
a real model (tests/golden): `tuned`, by which thresholds were chosen, and `held out`, both labelled by hand; and
`ordinary`, one answer to each of up to 1,000 other questions. A small model loops in some of these too. Which do is
said by a rule that shares nothing with the detector, `goes_round`, chosen by its agreement with the hand labels.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zlib import compress, crc32

import numpy as np

from benchmarks.subjects.report import Line, Report, Target
from stabilitykit.detectors.degeneration import DEGENERATION
from stabilitykit.detectors.trace import Instance, compiled_kernel

TITLE = "Answers that go round in circles"
GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
MARK = re.compile(r"<[|｜][^<>]*[|｜]>")
SIGN = re.compile(MARK.pattern + r"|[一-鿿]|[^\W一-鿿]+|\s+|[^\w\s]")
SPECIAL = 1 << 30
"""First id of special tokens in tokens made from text."""
PHRASE, TIMES, COVERED = 4, 3, 0.5
DRAWS = 500

Ids = Sequence[int]


def words(text: str) -> list[int]:
    """Give words, single Chinese characters, signs and special tokens: about what a tokenizer makes of them."""
    return [crc32(w.encode()) % SPECIAL + SPECIAL * bool(MARK.fullmatch(w)) for w in SIGN.findall(text)]


def characters(text: str) -> list[int]:
    """Give characters, but special tokens whole."""
    parts = re.split(f"({MARK.pattern})", text)
    return [i for k, part in enumerate(parts) for i in (words(part) if k % 2 else map(ord, part))]


def goes_round(ids: Ids) -> bool:
    """Tell whether phrases of four tokens that are said three times without overlap cover half of an answer."""
    places = defaultdict(list)
    for i in range(len(ids) - PHRASE + 1):
        places[tuple(ids[i : i + PHRASE])].append(i)
    covered: set[int] = set()
    for starts in places.values():
        apart = starts[:1]
        for start in starts:
            if start >= apart[-1] + PHRASE:
                apart.append(start)
        if len(apart) >= TIMES:
            covered.update(i for start in starts for i in range(start, start + PHRASE))
    return len(covered) >= COVERED * len(ids)


class Answer:
    """Token ids and whether they are degenerate; what the detector says of them."""

    def __init__(self, ids: Ids, is_bad: bool, special: tuple[int, int] = (0, 17)) -> None:
        self.ids, self.is_bad, self._special = ids, is_bad, special

    @property
    def told(self) -> dict[str, float]:
        """The detector's outputs for the answer alone."""
        instance = Instance(DEGENERATION, dict(zip(("special_from", "special_to"), self._special, strict=True)), _run())
        return instance.update({"output": self.ids})


@cache
def _run() -> Callable[..., int]:
    return compiled_kernel(DEGENERATION)


def rows() -> list[dict[str, Any]]:
    """Give the recorded answers that have hand labels, and the stuck chat."""
    return [json.loads(line) for line in (GOLDEN / "answers.jsonl").read_text(encoding="utf-8").splitlines()]


def labelled(is_held: bool) -> list[Answer]:
    """Give one half of the answers labelled by hand."""
    labels = json.loads((GOLDEN / "answers_labels.json").read_text(encoding="utf-8"))
    mine = [r for r in rows() if r["kind"] in labels and r["kind"].startswith("held") is is_held]
    return [Answer(r["output_token_ids"], r["turn"] in labels[r["kind"]]) for r in mine]


def ordinary() -> list[Answer]:
    """Give the answers to other questions, labelled by `goes_round`."""
    with np.load(GOLDEN / "ordinary_answers.npz") as file:
        parts = np.split(file["ids"].astype(np.int64), np.cumsum(file["length"])[:-1])
    return [Answer(ids.tolist(), goes_round(ids.tolist())) for ids in parts]


def reported(data: Path, tokens: Callable[[str], list[int]]) -> list[Answer]:
    """Give the answers of broken servers, all of them bad."""
    lines = (data / "responses" / "degenerate_outputs.jsonl").read_text(encoding="utf-8").splitlines()
    return [Answer(tokens(json.loads(line)["text"]), True, (SPECIAL, 2 * SPECIAL)) for line in lines]


def repeated(answer: Answer) -> float:
    """Give 1 - distinct tokens / tokens."""
    return 1 - len(set(answer.ids)) / len(answer.ids)


def commonest(answer: Answer) -> float:
    """Give the share of the commonest token."""
    return Counter(answer.ids).most_common(1)[0][1] / len(answer.ids)


def compression(answer: Answer) -> float:
    """Give bytes / compressed bytes, as Whisper does with text to find loops."""
    raw = np.unique(answer.ids, return_inverse=True)[1].astype(np.uint16).tobytes()
    return len(raw) / len(compress(raw))


def ours(answer: Answer) -> float:
    """Give 1 for what `degeneration` calls: a loop, or special tokens that leaked."""
    told = answer.told
    return float(told["is_degenerate"] == 1 or told["special_count"] > 0)


METHODS: tuple[tuple[str, str, Callable[[Answer], float]], ...] = (
    ("tokens that are repeated", "trivial", repeated),
    ("share of the commonest token", "trivial", commonest),
    ("zlib ratio (Whisper's test)", "reference", compression),
    ("degeneration", "ours", ours),
)


def best_cut(score: Callable[[Answer], float], answers: Iterable[Answer]) -> float:
    """Give the value above which a score makes fewest errors."""
    told = [(score(a), a.is_bad) for a in answers]
    return min(sorted({s for s, _ in told}), key=lambda cut: sum((s > cut) is not bad for s, bad in told))


def figures(calls: np.ndarray, is_bad: np.ndarray) -> dict[str, float]:
    """Give the share of bad answers that are called, and how many of 1,000 sound ones."""
    return {
        "recall": float(calls[is_bad].mean()) if is_bad.any() else float("nan"),
        "false calls in 1,000": 1000 * float(calls[~is_bad].mean()) if (~is_bad).any() else float("nan"),
    }


def line(of: str, name: str, kind: str, score: Callable[[Answer], float], cut: float, answers: list[Answer]) -> Line:
    """Judge answers by one method; intervals over draws of answers, each its own conversation."""
    calls, is_bad = np.array([score(a) > cut for a in answers]), np.array([a.is_bad for a in answers])
    rng = np.random.default_rng(31)
    groups = [np.flatnonzero(is_bad), np.flatnonzero(~is_bad)]
    drawn = []
    for _ in range(DRAWS):
        at = np.concatenate([rng.choice(g, len(g)) for g in groups if len(g)])
        drawn.append(list(figures(calls[at], is_bad[at]).values()))
    reached = figures(calls, is_bad)
    return Line(of, name, kind, reached, between(reached, drawn))


def between(names: Iterable[str], drawn: Sequence[Sequence[float]]) -> dict[str, tuple[float, float]]:
    """Give the 95 % interval of each figure."""
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def permuted(answers: list[Answer]) -> Line:
    """Judge against labels in random order: recall and false calls must be alike; intervals over drawn answers."""
    calls, is_bad = np.array([ours(a) > 0.5 for a in answers]), np.array([a.is_bad for a in answers])
    rng = np.random.default_rng(32)
    found = [figures(calls, rng.permutation(is_bad)) for _ in range(DRAWS)]
    means = {name: float(np.mean([f[name] for f in found])) for name in found[0]}
    drawn = []
    for _ in range(DRAWS):
        at = rng.integers(len(calls), size=len(calls))
        drawn.append(list(figures(calls[at], rng.permutation(is_bad[at])).values()))
    return Line("all", "degeneration, labels permuted", "check", means, between(means, drawn))


def margins(answers: list[Answer]) -> Line:
    """Give how far sound answers and loops are from the thresholds."""
    sound, bad = ([a.told for a in answers if a.is_bad is is_bad] for is_bad in (False, True))
    known = [t["repetition_ratio"] for t in sound if t["repetition_ratio"] == t["repetition_ratio"]]
    return Line("labelled by hand", "margins", "ours", {
        "greatest repetition, sound": max(known),
        "least repetition, loops": min(t["repetition_ratio"] for t in bad),
        "cycles, sound": float(sum(t["cycle_period"] > 0 for t in sound)),
        "cycles, loops": float(sum(t["cycle_period"] > 0 for t in bad)),
    })  # fmt: skip


def across(answers: list[Answer]) -> Line:
    """Judge the stuck chat turn by turn, and sound answers as if they were one conversation."""
    stuck, calm = Instance(DEGENERATION, None, _run()), Instance(DEGENERATION, None, _run())
    turns = [stuck.update({"output": r["output_token_ids"]}) for r in rows() if r["kind"] == "stuck"]
    sound = [calm.update({"output": a.ids}) for a in answers if not a.is_bad]
    return Line("across turns", "degeneration", "ours", {
        "turns of the stuck chat": float(len(turns)),
        "first called": float(next(i for i, t in enumerate(turns, 1) if t["is_degenerate"] == 1)),
        "greatest similarity, sound": max(t["similarity_ratio"] for t in sound[1:]),
        "repeats, sound": max(t["repeats_count"] for t in sound),
    })  # fmt: skip


def rule_agreement(answers: list[Answer]) -> str:
    """Say how the brute-force rule and the hand labels agree."""
    told = [(goes_round(a.ids), a.is_bad) for a in answers]
    return (
        f"The brute-force rule finds {sum(r and b for r, b in told)} of the {sum(b for _, b in told)} answers that "
        f"loop by hand, and {sum(r and not b for r, b in told)} of the {sum(not b for _, b in told)} others."
    )


def run(data: Path) -> Report:
    """Measure all."""
    tuned, held, usual = labelled(False), labelled(True), ordinary()
    sets: Mapping[str, list[Answer]] = {
        "broken servers (words as tokens) and ordinary answers": reported(data, words) + usual_sound(usual),
        "broken servers (characters as tokens) and ordinary answers": reported(data, characters) + usual_sound(usual),
        "ordinary answers": usual, "held out": held, "tuned": tuned,
    }  # fmt: skip
    lines = []
    for of, answers in sets.items():
        for name, kind, score in METHODS:
            cut = 0.5 if score is ours else best_cut(score, tuned)
            lines.append(line(of, name, kind, score, cut, answers))
    shown = next(x for x in lines if x.method == "degeneration")
    sound = len(usual_sound(usual))
    lines += [permuted(reported(data, words) + usual), margins(tuned + held), across(tuned)]
    targets = (
        Target("recall on answers of broken servers", 0.9, shown.figures["recall"]),
        Target("false calls in 1,000 ordinary answers", 0.0, shown.figures["false calls in 1,000"], at_least=False),
        Target("sound ordinary answers", 1000.0, float(sound)),
    )
    notes = (
        f"Ordinary: {len(usual)} answers, {len(usual) - sound} of which loop. No false call among {sound} would "
        f"say that the rate is below {3000 / sound:.1f} in 1,000 (95 %, rule of three).",
        rule_agreement(tuned + held),
        f"Broken servers: {len(reported(data, words))} answers. The source documents have no method of their own.",
    )
    return Report(lines, targets, notes)


def usual_sound(answers: list[Answer]) -> list[Answer]:
    """Give the answers that do not loop."""
    return [a for a in answers if not a.is_bad]

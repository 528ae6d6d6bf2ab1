"""What the peers are given: 20 signals, 40 rules of which 13 need a streak, 4 states, 1,000 sessions.

The rules are drawn at random: comparisons with ``and`` or ``or``, met about once in fifty turns,
those with a streak once in four. The helper is what a user of a stateless rule engine writes.
"""

from __future__ import annotations

import random
from statistics import NormalDist
from typing import Any, NamedTuple

SESSIONS = 1000
SEVERITIES = ("", "info", "warning", "critical")
STATES = ("healthy", "warning", "degraded", "broken")
ACTIONS = ((), ("trim_context",), ("trim_context", "switch_model"), ("reset_context", "send_to_review"))

SIGNALS = {
    "ttft_ms": "ms", "itl_ms": "ms", "tpot_ms": "ms", "rt_ms": "ms", "queue_ms": "ms", "prefill_ms": "ms",
    "stream_age_ms": "ms", "decode_tokens_per_s": "tokens/s", "sent_tokens": "tokens", "input_tokens": "tokens",
    "output_tokens": "tokens", "cached_tokens": "tokens", "reasoning_tokens": "tokens", "session_tokens": "tokens",
    "context_window_tokens": "tokens", "kv_idle_turns": "", "state_transition_us": "us",
    "context_usage_ratio": "%", "recall_ratio": "%", "kv_hit_ratio": "%",
}  # fmt: skip
"""Name and unit; a % is a ratio a hundred times as large."""
NAMES = tuple(SIGNALS)


class Rule(NamedTuple):
    id: str
    severity: int
    word: str
    comparisons: tuple[tuple[str, str, float], ...]
    streak: int


def scale(name: str) -> float:
    return 0.01 if SIGNALS[name] == "%" else 1.0


def rules(count: int = 40) -> list[Rule]:
    r = random.Random(11)
    made = []
    for i in range(count):
        size, streak = 1 + i % 3, i % 3 == 2
        word = r.choice(("and", "or")) if size > 1 else "and"
        chance = 0.25 if streak else 0.02
        each = chance ** (1 / size) if word == "and" else chance / size
        comparisons = []
        for name in r.sample(NAMES, size):
            z = round(10 * NormalDist().inv_cdf(1 - each), 3)
            comparisons.append((name, *((">", 50 + z) if r.random() < 0.5 else ("<", 50 - z))))
        made.append(
            Rule(
                f"r{i:03d}",
                1 + r.choice((0, 0, 0, 1, 1, 2)),
                word,
                tuple(comparisons),
                r.choice((3, 4, 5)) if streak else 1,
            )
        )
    return made


def expression(rule: Rule, and_: str = " and ", or_: str = " or ") -> str:
    """A condition as every language with infix comparisons writes it."""
    parts = [f"{name} {sign} {limit * scale(name)!r}" for name, sign, limit in rule.comparisons]
    return (and_ if rule.word == "and" else or_).join(parts)


def pack_text(made: list[Rule]) -> str:
    """The same rules and the same machine in our language."""
    lines = ["stabilitykit: 1", "pack: peers", "rules:"]
    for rule in made:
        when = f" {rule.word} ".join(f"{n} {s} {v:.3f} {SIGNALS[n]}".strip() for n, s, v in rule.comparisons)
        streak = f", for: {rule.streak} turns" if rule.streak > 1 else ""
        lines.append(f'  - {{rule: {rule.id}, when: "{when}", severity: {SEVERITIES[rule.severity]}{streak}}}')
    return "\n".join([*lines, MACHINE])


MACHINE = """machine:
  initial: healthy
  states:
    - state: healthy
    - {state: warning, while: [{trim_context: {}}]}
    - {state: degraded, while: [{trim_context: {}}, {switch_model: {to: light}}]}
    - {state: broken, while: [{reset_context: {}}, {send_to_review: {queue: q}}]}
  transitions:
    - {from: [healthy, warning, degraded], to: broken, when: any critical}
    - {from: [healthy, warning], to: degraded, when: any warning}
    - {from: healthy, to: warning, when: any info}
    - {from: broken, to: degraded, when: none critical for 3 turns}
    - {from: degraded, to: warning, when: none warning for 3 turns}
    - {from: warning, to: healthy, when: none info for 3 turns}
"""


def turns(count: int = 20_000) -> list[tuple[int, dict[str, Any]]]:
    """Session and values: each signal of each session wanders around 50 with a deviation of 10."""
    r = random.Random(7)
    now = [[r.gauss(0, 1) for _ in NAMES] for _ in range(SESSIONS)]
    made = []
    for t in range(count):
        mine = now[t % SESSIONS]
        for k in range(len(NAMES)):
            mine[k] = 0.8 * mine[k] + 0.6 * r.gauss(0, 1)
        made.append((t % SESSIONS, {n: round(50 + 10 * z, 4) * scale(n) for n, z in zip(NAMES, mine, strict=True)}))
    return made


class Helper:
    """Streaks and states of one session, for peers that have neither."""

    __slots__ = ("clean", "state", "streak")

    def __init__(self, count: int) -> None:
        self.streak = [0] * count
        self.state = self.clean = 0

    def step(self, made: list[Rule], raw) -> tuple[int, tuple[str, ...], list[str]]:
        fired, level, streak = [], 0, self.streak
        for i, met in enumerate(raw):
            rule = made[i]
            if rule.streak > 1:
                if not met:
                    streak[i] = 0
                    continue
                streak[i] += 1
                if streak[i] < rule.streak:
                    continue
            elif not met:
                continue
            fired.append(rule.id)
            if rule.severity > level:
                level = rule.severity
        return (*self.move(level), fired)

    def move(self, level: int) -> tuple[int, tuple[str, ...]]:
        if level > self.state:
            self.state, self.clean = level, 0
        elif level < self.state:
            self.clean += 1
            if self.clean >= 3:
                self.state, self.clean = self.state - 1, 0
        else:
            self.clean = 0
        return self.state, ACTIONS[self.state]


def generated(made: list[Rule]):
    """What a generator of plain Python gives: one if/else a rule, streaks and the machine inline."""
    lines = ["def decide(session, d):", " streak = session.streak; fired = []; level = 0"]
    lines += [f" {name} = d[{name!r}]" for name in NAMES]
    for i, rule in enumerate(made):
        lines.append(f" if {expression(rule)}:")
        pad = "  "
        if rule.streak > 1:
            lines += [f"  streak[{i}] += 1", f"  if streak[{i}] >= {rule.streak}:"]
            pad = "   "
        lines += [f"{pad}fired.append({rule.id!r})", f"{pad}if level < {rule.severity}: level = {rule.severity}"]
        if rule.streak > 1:
            lines.append(f" else: streak[{i}] = 0")
    lines.append(" return (*session.move(level), fired)")
    space: dict = {}
    exec("\n".join(lines), space)
    return space["decide"]

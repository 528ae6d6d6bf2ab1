"""What an event of the decay automaton costs: fed in blocks of interleaved sessions, and turn by turn in an engine;
against the same matcher on rendered labels with ``re``, and against the automaton in plain Python."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measure import Figure, over, significant, times
from stabilitykit import Engine, Turn
from stabilitykit.detectors.decay_pattern import DECAY_PATTERN
from stabilitykit.detectors.stream import Stream

TURNS, SESSIONS, WINDOW, KEPT = 20_000, 100, 8, 256
PACK = """\
stabilitykit: 1
pack: decay
desc: the automaton alone
detectors:
  decay: {type: decay_pattern, input: decode_tokens_per_s}
rules:
  - rule: decaying
    desc: falls turn after turn
    when: decay.is_ramping
    reason: "{{ decay.slope }}"
machine:
  initial: healthy
  states: [{state: healthy}, {state: warning}]
  transitions:
    - {from: healthy, to: warning, when: any warning}
    - {from: warning, to: healthy, when: none for 2 turns}
"""
RAMPING = re.compile(r"(?:^|;)F(?:;[hH])*$")
RAMPED = re.compile(r"(?:^|;)F(?:;[FhH])*$")
STUCK = re.compile(r"(?:^|;)F(?:;[hH])*;[uU](?:;[hu])*$")


class Mean:
    """Change and level of one session, in plain Python."""

    def __init__(self):
        self.last, self.usual, self.seen = None, 0.0, 0
        self.changes: deque[float] = deque(maxlen=WINDOW)
        self.values: deque[float] = deque(maxlen=WINDOW)

    def take(self, value, state):
        """Give the mean change, and whether the level is back; None while unknown."""
        last, self.last = self.last, value
        if last is None or last <= 0:
            return None
        if state == 0:
            usual = self.values[0] if len(self.values) == WINDOW else last if not self.seen else None
            if usual is not None:
                self.seen += 1
                self.usual += max(0.05, 1 / self.seen) * (usual - self.usual)
        self.changes.append((value - last) / last)
        self.values.append(value)
        if len(self.changes) < WINDOW:
            return None
        return sum(self.changes) / WINDOW, sum(self.values) / WINDOW >= 0.95 * self.usual


class Python:
    """The automaton as anybody would write it."""

    def __init__(self):
        self.mean, self.state, self.waited = Mean(), 0, 0

    def take(self, value):
        told = self.mean.take(value, self.state)
        if told is None:
            return self.state
        slope, back = told
        if slope < -0.05:
            self.state = 1
        elif self.state == 1:
            self.state = 2 if slope > -0.01 else 1
        elif self.state == 2 and (back or self.waited >= 50):
            self.state = 0
        self.waited = self.waited + 1 if self.state == 2 else 0
        return self.state


class Labels:
    """The same with labels: each turn is rendered, and the text of the session is matched."""

    def __init__(self):
        self.mean, self.state, self.waited = Mean(), 0, 0
        self.labels: deque[str] = deque(maxlen=KEPT)

    def take(self, value):
        told = self.mean.take(value, self.state)
        if told is None:
            return self.state
        slope, back = told
        over = back or self.waited >= 50
        self.labels.append("F" if slope < -0.05 else "uU"[over] if slope > -0.01 else "hH"[over])
        text = ";".join(self.labels)
        self.state = 2 if STUCK.search(text) else 1 if RAMPED.search(text) or RAMPING.search(text) else 0
        self.waited = self.waited + 1 if self.state == 2 else 0
        return self.state


def rates():
    """Draw the rates of interleaved sessions: level, with a ramp now and then."""
    rng = np.random.default_rng(5)
    length = TURNS // SESSIONS
    level = np.ones((SESSIONS, length))
    for row in level:
        for at in rng.integers(20, length - 20, 2):
            row[at : at + 6] *= 0.85 ** np.arange(1, 7)
            row[at + 6 : at + 14] *= 0.85**6
    return (60 * level * np.exp(rng.normal(scale=0.03, size=level.shape))).T.reshape(-1)


def run() -> list[Figure]:
    values = rates()
    names = [f"s{k % SESSIONS}" for k in range(TURNS)]
    listed = values.tolist()
    pairs = list(zip(names, listed, strict=True))
    assert walk(Python, pairs) == walk(Labels, pairs)
    turns = [Turn(session_id=name, decode_tokens_per_s=value) for name, value in pairs]
    with TemporaryDirectory() as folder:
        path = Path(folder, "decay.yaml")
        path.write_text(PACK, encoding="utf-8")
        single, batch = Engine.load(str(path)), Engine.load(str(path))
    columns = {"decode_tokens_per_s": values}
    where = np.arange(TURNS, dtype=np.int32) % SESSIONS
    fed = Stream(DECAY_PATTERN)
    told = fed.feed(where, values)["state"]
    assert (told[~np.isnan(told)] == np.array(walk(Python, pairs))[~np.isnan(told)]).all()
    stream, evaluated, bulk, labels, plain = times(
        [
            lambda: fed.feed(where, values),
            over(turns, single.evaluate),
            lambda: batch.replay(columns, session=names),
            lambda: walk(Labels, pairs),
            lambda: walk(Python, pairs),
        ],
        9,
    )
    each = TURNS * 1e3

    def against(one: float, other: float) -> str:
        return f"{one / each:.3f} us against {other / each:.2f} us"

    return [
        Figure(
            "decay_stream", "decay automaton: Stream.feed, 100 sessions / matcher on labels (re)",
            significant(stream / labels), 0.05, against(stream, labels),
        ),
        Figure(
            "decay_batch", "decay automaton: Stream.feed, 100 sessions / Python automaton",
            significant(stream / plain), 0.01, against(stream, plain),
        ),
        Figure(
            "decay_evaluate", "decay automaton with rule and machine: evaluate / matcher on labels (re)",
            significant(evaluated / labels), None, against(evaluated, labels),
        ),
        Figure(
            "decay_replay", "decay automaton with rule and machine: columnar replay / Python automaton",
            significant(bulk / plain), None, against(bulk, plain),
        ),
    ]  # fmt: skip


def walk(kind, pairs):
    """Run one automaton a session; gives the states."""
    sessions: defaultdict[str, Any] = defaultdict(kind)
    return [sessions[name].take(value) for name, value in pairs]

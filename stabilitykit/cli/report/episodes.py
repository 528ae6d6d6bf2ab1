"""The table of matches: one row for each stretch of turns or samples on which a rule matched."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from stabilitykit.cli.timeline import label
from stabilitykit.decision import Decision, Reason
from stabilitykit.engine.explain import shown

__all__ = ["Episode", "Episodes"]


@attrs.define(eq=False)
class Episode:
    """A rule that matched on consecutive turns of one session; the reason is that of its greatest margin."""

    subject: str
    scope: str
    first: int
    last: int
    state: int
    fired: bool
    reason: Reason
    streak: int
    actions: list[tuple[str, str, str]]

    @property
    def when(self) -> str:
        """The turns or samples, in words."""
        what = "turn" if self.scope == "session" else "sample"
        return f"{what} {self.first}" if self.first == self.last else f"{what}s {self.first}-{self.last}"

    @property
    def value(self) -> str:
        """The value compared, with its unit."""
        return _quantity(self.reason.value, self.reason)

    @property
    def threshold(self) -> str:
        """Comparison and threshold."""
        return f"{self.reason.op} {_quantity(self.reason.threshold, self.reason)}"

    @property
    def margin(self) -> str:
        """Distance past the threshold; "" where it means nothing."""
        return "" if self.reason.unit in ("bool", "enum") else _quantity(self.reason.margin, self.reason)

    @property
    def run(self) -> str:
        """The longest streak and the one wanted."""
        return "" if self.streak < 0 else f"{self.streak}/{self.reason.need}"


class Episodes:
    """Collects episodes while a replay runs.

    Parameters
    ----------
    most
        Rows kept; all are counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[tuple[str, object], dict[str, Episode]] = {}
        self.rows: list[Episode] = []
        self.count = 0

    def add(self, decision: Decision, number: int, state: int) -> None:
        """Note what matches on one turn or sample."""
        key = (decision.scope, decision.session_id)
        mine = [m for m in decision.matches if m.scope == decision.scope]
        if not mine:
            self._open.pop(key, None)
            return
        fired = {m.rule for m in mine if m.fired}
        before, now = self._open.get(key, {}), {}
        actions = list(_actions(decision))
        for k, reason in enumerate(r for r in decision.reasons if r.scope == decision.scope):
            wanted = [a for a in actions if a[1] == f"rule:{reason.rule}" or (k == 0 and a[1].startswith("state:"))]
            episode = before.get(reason.rule)
            if episode is None or (reason.rule in fired and episode.fired):
                episode = Episode(
                    label(decision.session_id) or "default", decision.scope, number, number, state,
                    reason.rule in fired, reason, reason.streak, [],
                )  # fmt: skip
                self.count += 1
                if len(self.rows) < self._most:
                    self.rows.append(episode)
            _extend(episode, reason, number, state, reason.rule in fired, wanted)
            now[reason.rule] = episode
        self._open[key] = now


def _extend(
    episode: Episode, reason: Reason, number: int, state: int, fired: bool, actions: list[tuple[str, str, str]]
) -> None:
    episode.last = number
    episode.state = max(episode.state, state)
    episode.fired = episode.fired or fired
    episode.streak = max(episode.streak, reason.streak)
    if not episode.reason.margin >= reason.margin:  # NaN too
        episode.reason = reason if reason.margin == reason.margin else episode.reason
    episode.actions += [a for a in actions if a not in episode.actions]


def _actions(decision: Decision) -> Iterator[tuple[str, str, str]]:
    """Give name, source and parameters of each action."""
    for a in decision.actions:
        yield a.name, a.source, ", ".join(f"{k}={v}" for k, v in a.params.items())


def _quantity(value: float, reason: Reason) -> str:
    return "unknown" if math.isnan(value) else shown(value, reason.unit, reason.signal)

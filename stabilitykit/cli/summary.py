"""What a replay came to: counted while it runs, printed at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stabilitykit.cli.output import SEVERITY_STYLES, Part, line
from stabilitykit.cli.tones import STYLES, tones
from stabilitykit.engine.replay import Step
from stabilitykit.rules.pack import Pack

__all__ = ["Summary"]


class Summary:
    """Counts of a replay.

    Attributes
    ----------
    turns, samples
        Entries walked.
    worst
        For each scope, the index of the most severe state that was reached.
    """

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self.states = [s.name for s in pack.states]
        self.turns = self.samples = 0
        self.final: dict[tuple[str, object], str] = {}
        self.in_state: Counter[tuple[str, str]] = Counter()
        self.fired: Counter[str] = Counter()
        self.matched: Counter[str] = Counter()
        self.faults: Counter[tuple[str, str]] = Counter()

    def add(self, step: Step) -> None:
        """Count one step."""
        decision = step.decision
        if decision.scope == "session":
            self.turns += 1
        else:
            self.samples += 1
        self.final[decision.scope, decision.session_id] = decision.state
        self.in_state[decision.scope, decision.state] += 1
        for match in decision.matches:
            if match.scope == decision.scope:
                self.matched[match.rule] += 1
                self.fired[match.rule] += match.fired
        for fault in decision.faults:
            self.faults[fault.kind, fault.signal] += 1

    def reached(self, state: str) -> bool:
        """Tell whether any session, replica or device was in a state."""
        return any(name == state and count for (_, name), count in self.in_state.items())

    @property
    def sessions(self) -> int:
        """Number of conversations."""
        return sum(scope == "session" for scope, _ in self.final)

    def to_dict(self, bad_lines: int) -> dict[str, Any]:
        """Give the summary as JSON values."""
        return {
            "pack": self._pack.name,
            "fingerprint": self._pack.fingerprint,
            "turns": self.turns,
            "samples": self.samples,
            "sessions": self.sessions,
            "bad_lines": bad_lines,
            "states": {
                scope: {name: self.in_state[scope, name] for name in self.states if self.in_state[scope, name]}
                for scope in dict.fromkeys(scope for scope, _ in self.in_state)
            },
            "rules": {rule: {"matched": n, "fired": self.fired[rule]} for rule, n in self.matched.most_common()},
            "faults": [{"kind": k, "signal": s, "count": n} for (k, s), n in self.faults.most_common()],
        }

    def show(self) -> None:
        """Print the summary."""
        line()
        line((_count(self.turns, "turn"), "bold"), f" of {_count(self.sessions, 'session')}", *self._samples())
        for scope in ("session", "replica", "device"):
            self._show_scope(scope)
        for rule, count in self.matched.most_common():
            severity = self._pack.rule(rule).severity
            name: Part = (rule, SEVERITY_STYLES[severity])
            line("  ", name, f": {_count(self.fired[rule], 'time')} fired, matched {count}")
        for (kind, signal), count in self.faults.most_common():
            line("  fault ", (" ".join(p for p in (kind, signal) if p), "magenta"), f": {_count(count, 'time')}")

    def _samples(self) -> Sequence[Part]:
        return [f", {_count(self.samples, 'sample')}"] if self.samples else []

    def _show_scope(self, scope: str) -> None:
        if scope != "session" and not any(r.scope == scope for r in self._pack.rules):
            return
        entries = "turns" if scope == "session" else "samples"
        parts: list[Part] = []
        for name in self.states:
            count = self.in_state[scope, name]
            if count:
                parts += [", " if parts else "", (name, STYLES[tones(self._pack)[name]]), f" {count}"]
        if parts:
            line(f"  {scope} states by {entries}: ", *parts)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"

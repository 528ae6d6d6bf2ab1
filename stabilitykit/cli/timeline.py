"""The timeline of a replay in text: what happened, turn by turn; turns without news share a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from stabilitykit.cli.output import SEVERITY_STYLES, Part, line, plain
from stabilitykit.cli.tones import STYLES, tones
from stabilitykit.decision import Decision, Fault, Reason
from stabilitykit.engine.explain import reason_line
from stabilitykit.engine.replay import Step
from stabilitykit.rules.pack import Pack

__all__ = ["Timeline", "label"]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_WIDE = 24


def label(session_id: object) -> str:
    """Give a short name of a session: printable, the first part of a UUID."""
    text = plain(session_id.hex() if isinstance(session_id, bytes) else session_id)
    if _UUID.match(text):
        return text[:8]
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


@attrs.define
class _Quiet:
    """A run of turns of one session without news: no change, no new match."""

    first: int
    last: int
    state: str


class Timeline:
    """Prints steps as they come.

    Parameters
    ----------
    pack
        The pack that decides.
    every
        Print each turn, quiet ones too.
    """

    def __init__(self, pack: Pack, *, every: bool = False) -> None:
        self._styles = {name: STYLES[tone] for name, tone in tones(pack).items()}
        self._every = every
        self._quiet: dict[object, _Quiet] = {}
        self._matching: dict[object, frozenset[str]] = {}
        self._is_begun = False

    def show(self, step: Step) -> None:
        """Print one step, or remember it as quiet."""
        decision = step.decision
        if decision.scope != "session":
            if decision.state != decision.previous or decision.fired or self._every:
                self._print(decision, frozenset())
            return
        before = self._matching.get(decision.session_id, frozenset())
        now = frozenset(m.rule for m in decision.matches if m.scope == "session")
        self._matching[decision.session_id] = now
        is_news = decision.state != decision.previous or now - before or decision.fired or decision.faults
        if is_news or self._every:
            self._flush(decision.session_id)
            self._print(decision, before if not self._every and decision.state == decision.previous else frozenset())
            return
        run = self._quiet.get(decision.session_id)
        if run is not None and run.state == decision.state:
            run.last = decision.turn_id
            return
        self._flush(decision.session_id)
        self._quiet[decision.session_id] = _Quiet(decision.turn_id, decision.turn_id, decision.state)

    def close(self) -> None:
        """Print the quiet turns that are left."""
        for session_id in list(self._quiet):
            self._flush(session_id)

    def _begin(self) -> None:
        """Print once what the lines mean."""
        if self._is_begun:
            return
        self._is_begun = True
        line((f"{'conversation':<12} {'turn':<13} state, and why (turns without news share a line)", "bold"))
        line((" " * 13 + "* rule: fires now; 5/3: its condition held on 5 turns, 3 are needed", "dim"))
        line((" " * 13 + "do: what the host is told; fault: telemetry that was no use", "dim"))

    def _flush(self, session_id: object) -> None:
        run = self._quiet.pop(session_id, None)
        if run is None:
            return
        self._begin()
        turns = f"turn {run.first}" if run.first == run.last else f"turns {run.first}-{run.last}"
        line((f"{label(session_id):<12} ", "dim"), f"{turns:<13} ", (run.state, self._styles[run.state]))

    def _print(self, decision: Decision, known: frozenset[str]) -> None:
        self._begin()
        name = label(decision.session_id) or "default"
        where = f"turn {decision.turn_id}" if decision.scope == "session" else decision.scope
        parts: list[Part] = [(f"{name:<12} ", "dim"), f"{where:<13} "]
        if decision.previous != decision.state:
            parts += [(decision.previous, self._styles[decision.previous]), " → "]
        parts.append((decision.state, self._styles[decision.state]))
        line(*parts)
        for details in _details(decision, known):
            line(" " * 13, *details)


def _details(decision: Decision, known: frozenset[str]) -> Iterator[Sequence[Part]]:
    """Say why and what to do; rules that only go on matching were named before."""
    fired = set(decision.fired)
    for reason in decision.reasons:
        if reason.scope == decision.scope and (reason.rule in fired or reason.rule not in known):
            yield _reason(reason, reason.rule in fired)
    actions = ", ".join(f"{a.name}({', '.join(f'{k}={v}' for k, v in a.params.items())})" for a in decision.actions)
    if actions:
        yield [("do ", "bold"), plain(actions)]
    if decision.faults:
        yield [("fault ", "magenta"), ", ".join(_fault(f) for f in decision.faults)]


def _reason(reason: Reason, is_fired: bool) -> Sequence[Part]:
    run = "" if reason.streak < 0 else f", {reason.streak}/{reason.need}"
    if 0 <= reason.streak < reason.need:
        run = ", kept"
    mark = "* " if is_fired else "  "
    return [(f"{mark}{reason.rule}", SEVERITY_STYLES[reason.severity]), f": {plain(reason_line(reason))}{run}"]


def _fault(fault: Fault) -> str:
    return plain(" ".join(part for part in (fault.kind, fault.signal) if part))

"""Running cases: any engine that evaluates turns and observes samples will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import attrs
import numpy as np

from stabilitykit.decision import Action, Fault, Match, Receipt
from stabilitykit.rules.cases import Case, CaseFile, Expectation, Step
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.turn import Turn

__all__ = ["CaseEngine", "CaseFailure", "Outcome", "run_case", "run_cases"]

SESSION = "case"


class Outcome(Protocol):
    """What a case looks at in a decision."""

    @property
    def state(self) -> str:
        """State of the session (of an observe: of that scope)."""

    @property
    def matches(self) -> Iterable[Match]:
        """Rules that match; those that fired say so."""

    @property
    def actions(self) -> Iterable[Action]:
        """Actions that go out."""

    @property
    def faults(self) -> Iterable[Fault]:
        """Bad telemetry."""

    @property
    def scopes(self) -> Mapping[str, str]:
        """States of the wider scopes."""


class CaseEngine(Protocol):
    """An engine with no memory of other cases."""

    def evaluate(self, turn: Turn) -> Outcome:
        """Take a turn."""

    def observe(self, **sample: Any) -> Outcome:
        """Take a sample."""


@attrs.frozen
class CaseFailure:
    """One expectation that does not hold."""

    case: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.case}: {self.message}"


def run_cases(cases: CaseFile, pack: Pack, make_engine: Callable[[], CaseEngine]) -> list[CaseFailure]:
    """Run every case of a file, each on a fresh engine.

    Parameters
    ----------
    pack
        The pack that the engine has loaded.
    make_engine
        Makes an engine without memory.
    """
    return [f for case in cases.cases for f in run_case(case, pack, make_engine(), cases.file)]


def run_case(case: Case, pack: Pack, engine: CaseEngine, file: str = "<cases>") -> list[CaseFailure]:
    """Run one case and give what does not hold."""
    wanted = {e.turn for e in case.expect}
    outcomes: dict[int, Outcome] = {}
    turn_id = number = 0
    signals = {**CATALOGUE, **pack.signals}
    for step in case.steps:
        for k in range(step.repeat):
            if step.is_sample:
                outcome = engine.observe(**step.fields, **_arrays(step.values, signals))
                if not number:
                    outcomes[0] = outcome
                continue
            number += 1
            applied = Receipt(SESSION, turn_id, step.applied) if step.applied and k == 0 else None
            turn_id += 1 + (step.gap if k == 0 else 0)
            outcome = engine.evaluate(_turn(step, turn_id, applied, signals))
            outcomes[0] = outcome
            if number in wanted:
                outcomes[number] = outcome
    return [
        CaseFailure(case.name, f"{file}:{expected.line}", message)
        for expected in case.expect
        for message in _differences(expected, outcomes[expected.turn])
    ]


def _arrays(values: Mapping[str, Any], signals: Mapping[str, SignalSpec]) -> dict[str, Any]:
    return {
        name: np.asarray(value, dtype=signals[name].dtype) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _turn(step: Step, turn_id: int, applied: Receipt | None, signals: Mapping[str, SignalSpec]) -> Turn:
    values = _arrays(step.values, signals)
    own = {name: value for name, value in values.items() if name in CATALOGUE}
    extra = {name: value for name, value in values.items() if name not in CATALOGUE}
    return Turn(session_id=SESSION, turn_id=turn_id, applied=applied, extra=extra or None, **step.fields, **own)


def _differences(expected: Expectation, outcome: Outcome) -> list[str]:
    found: list[str] = []
    if expected.state is not None and outcome.state != expected.state:
        found.append(f"state is {outcome.state}, not {expected.state}")
    sets = (
        ("rules", expected.rules, {m.rule for m in outcome.matches}),
        ("fired", expected.fired, {m.rule for m in outcome.matches if m.fired}),
        ("actions", expected.actions, {a.name for a in outcome.actions}),
    )
    for what, wanted, actual in sets:
        if wanted is not None and wanted != actual:
            found.append(f"{what} are {_names(actual)}, not {_names(wanted)}")
    if expected.faults is not None and not _same_faults(expected.faults, outcome.faults):
        actual_faults = {f"{f.kind}: {f.signal}" if f.signal else f.kind for f in outcome.faults}
        wanted_faults = {f"{kind}: {signal}" if signal else kind for kind, signal in expected.faults}
        found.append(f"faults are {_names(actual_faults)}, not {_names(wanted_faults)}")
    for scope, state in expected.scopes.items():
        if outcome.scopes.get(scope) != state:
            found.append(f"the {scope} is {outcome.scopes.get(scope, 'not there')}, not {state}")
    return found


def _same_faults(wanted: Iterable[tuple[str, str]], faults: Iterable[Fault]) -> bool:
    actual = {(f.kind, f.signal) for f in faults}
    pairs = set(wanted)
    covered = all(kind in {k for k, _ in actual} if not signal else (kind, signal) in actual for kind, signal in pairs)
    return covered and all((k, s) in pairs or (k, "") in pairs for k, s in actual)


def _names(names: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"

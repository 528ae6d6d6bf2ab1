"""Cases of a pack (``x.test.yaml``): turns that come in, and what must be true after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.decision import FAULT_KINDS
from stabilitykit.rules.case_values import signal_value
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.reader import read
from stabilitykit.rules.files.scalars import show
from stabilitykit.rules.files.shape import check_map, check_required
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import CATALOGUE, SCOPES, SignalSpec

__all__ = ["Case", "CaseFile", "Expectation", "Step", "read_cases"]

MAX_REPEAT = 100_000
MAX_GAP = 1_000_000


@attrs.frozen
class Step:
    """One entry of ``turns``: a turn, several equal ones, or a sample.

    Parameters
    ----------
    values
        Signals in their units: a number, a bool, the word of an enum, a tuple for an array;
        NaN (or a word that the enum lacks) is invalid; what is not here is missing.
    fields
        ``model``, ``replica``, ``device``, ``timestamp_s`` ... where given.
    is_sample
        True for ``observe``.
    repeat
        How many of them.
    gap
        Turn ids to skip before the first.
    applied
        Actions of the last decision that the host carried out.
    line
        Where it stands.
    """

    values: Mapping[str, Any]
    fields: Mapping[str, Any] = attrs.field(factory=dict)
    is_sample: bool = False
    repeat: int = 1
    gap: int = 0
    applied: tuple[str, ...] = ()
    line: int = 0


@attrs.frozen
class Expectation:
    """What must be true after a turn; ``None`` is not checked.

    Parameters
    ----------
    turn
        Number of an accepted turn; 0 is the last (without turns: the last sample).
    faults
        (kind, signal) pairs; "" stands for any signal.
    """

    turn: int = 0
    state: str | None = None
    rules: frozenset[str] | None = None
    fired: frozenset[str] | None = None
    actions: frozenset[str] | None = None
    faults: frozenset[tuple[str, str]] | None = None
    scopes: Mapping[str, str] = attrs.field(factory=dict)
    line: int = 0


@attrs.frozen
class Case:
    """One case: steps of one session, and expectations."""

    name: str
    steps: tuple[Step, ...]
    expect: tuple[Expectation, ...]
    line: int = 0

    @property
    def turns(self) -> int:
        """Number of turns of the session."""
        return sum(s.repeat for s in self.steps if not s.is_sample)


@attrs.frozen
class CaseFile:
    """A whole file of cases."""

    file: str
    cases: tuple[Case, ...]


def read_cases(source: bytes, file: str, pack: Pack, *, catalogue: Mapping[str, SignalSpec] = CATALOGUE) -> CaseFile:
    """Read a file of cases, checked against the pack it is about.

    Parameters
    ----------
    source
        The bytes of the file.
    file
        Its name for messages.
    pack
        The pack, loaded with its defaults.

    Raises
    ------
    PackError
        With every problem found, located.
    """
    findings = Findings()
    place = Place(read(source, file))
    top = check_map(findings, place, place.doc.root, keys.CASE_FILE, "a file of cases")
    if type(place.doc.root) is dict:
        check_required(findings, place, top, keys.CASE_FILE, "a file of cases")
    reader = _Reader(findings, pack, {**catalogue, **pack.signals})
    cases = top.get("cases")
    found = reader.cases(place.child("cases"), cases) if type(cases) is list else []
    findings.raise_all()
    return CaseFile(file, tuple(found))


class _Reader:
    """Checks cases against one pack."""

    def __init__(self, findings: Findings, pack: Pack, signals: Mapping[str, SignalSpec]) -> None:
        self.findings, self.pack, self.signals = findings, pack, signals
        self.rules = {r.id for r in pack.rules}
        self.states = [s.name for s in pack.states]

    def cases(self, place: Place, raw: list[Any]) -> list[Case]:
        """Read all cases; their names must differ."""
        found: dict[str, Case] = {}
        for index, entry in enumerate(raw):
            where = place.child(index)
            case = self._case(where, entry)
            if case is not None and case.name in found:
                message = f"a case of this name stands in line {found[case.name].line}"
                self.findings.add(where.child("name"), "SK309", message)
            elif case is not None:
                found[case.name] = case
        return list(found.values())

    def _case(self, place: Place, raw: Any) -> Case | None:
        fields = check_map(self.findings, place, raw, keys.CASE, "a case")
        if type(raw) is not dict:
            return None
        check_required(self.findings, place, fields, keys.CASE, "a case")
        name, turns, expect = (fields.get(k) for k in ("name", "turns", "expect"))
        if not isinstance(name, str) or type(turns) is not list or expect is None:
            return None
        steps = [self._step(place.child("turns", i), entry) for i, entry in enumerate(turns)]
        case = Case(name, tuple(s for s in steps if s), (), place.line)
        if not turns:
            self.findings.add(place.child("turns"), "SK202", "a case needs at least one turn or sample")
        listed = expect if isinstance(expect, list) else [expect]
        where = [
            place.child("expect", i) if isinstance(expect, list) else place.child("expect") for i in range(len(listed))
        ]
        if not listed:
            self.findings.add(place.child("expect"), "SK202", "a case must expect something")
        expectations = [self._expectation(w, e, case.turns) for w, e in zip(where, listed, strict=True)]
        return attrs.evolve(case, expect=tuple(e for e in expectations if e))

    def _step(self, place: Place, raw: Any) -> Step | None:
        if type(raw) is not dict:
            self.findings.add(place, "SK203", "an entry of `turns` is a mapping of signals")
            return None
        known = {k: v for k, v in raw.items() if k in keys.STEP}
        fields = check_map(self.findings, place, known, keys.STEP, "a turn")
        rest = {k: v for k, v in raw.items() if k not in keys.STEP}
        repeat = self._number(place, fields, "repeat", 1, 1, MAX_REPEAT)
        gap = self._number(place, fields, "gap", 0, 0, MAX_GAP)
        applied = fields.get("applied")
        if isinstance(applied, list):
            for index, name in enumerate(applied):
                self._known(place.child("applied", index), name, self.pack.actions, "SK304", "action")
        if "observe" in fields:
            return self._sample(place, fields, rest, repeat)
        values = self._values(place, rest, [*keys.STEP])
        identity = {k: fields[k] for k in keys.TURN_FIELDS if fields.get(k) not in (None, BAD)}
        done = tuple(applied) if isinstance(applied, list) else ()
        return Step(values, identity, False, repeat, gap, done, place.line)

    def _sample(self, place: Place, fields: Mapping[str, Any], rest: Mapping[str, Any], repeat: int) -> Step | None:
        others = [k for k in (*fields, *rest) if k not in ("observe", "repeat")]
        for key in others:
            message = "`observe` stands for a whole entry: only `repeat` may stand beside it"
            self.findings.add(place.child(key), "SK201", message, key=True)
        raw, where = fields["observe"], place.child("observe")
        if type(raw) is not dict:
            if raw is None:
                self.findings.add(where, "SK203", "`observe` must be a mapping of signals", key=True)
            return None
        known = {k: v for k, v in raw.items() if k in keys.OBSERVE_FIELDS}
        identity = check_map(self.findings, where, known, keys.OBSERVE_FIELDS, "`observe`")
        rest = {k: v for k, v in raw.items() if k not in keys.OBSERVE_FIELDS}
        values = self._values(where, rest, [*keys.OBSERVE_FIELDS])
        for name in values:
            if self.signals[name].scope == SCOPES[0]:
                message = f"`{name}` is a session's signal: it comes with a turn"
                self.findings.add(where.child(name), "SK301", message, key=True)
        return Step(values, {k: v for k, v in identity.items() if v not in (None, BAD)}, True, repeat, line=place.line)

    def _values(self, place: Place, raw: Mapping[str, Any], others: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, given in raw.items():
            spec = self.signals.get(name)
            if spec is None:
                near = (name, [*self.signals, *others])
                self.findings.add(place.child(name), "SK301", f"unknown signal {show(name)}", near=near, key=True)
                continue
            value = signal_value(self.findings, place.child(name), given, spec)
            if value is not None and value is not BAD:
                values[name] = value
        return values

    def _number(self, place: Place, fields: Mapping[str, Any], key: str, default: int, lo: int, hi: int) -> int:
        value = fields.get(key)
        if value is None or value is BAD:
            return default
        if not lo <= value <= hi:
            self.findings.add(place.child(key), "SK206", f"`{key}` is outside {lo} to {hi:,}")
            return default
        return int(value)

    def _known(self, place: Place, name: str, known: Any, code: str, what: str, *, key: bool = False) -> None:
        if name not in known:
            self.findings.add(place, code, f"the pack has no {what} {show(name)}", near=(name, known), key=key)

    def _expectation(self, place: Place, raw: Any, turns: int) -> Expectation | None:
        fields = check_map(self.findings, place, raw, keys.EXPECT, "`expect`")
        if type(raw) is not dict:
            return None
        if not any(v is not None for k, v in fields.items() if k != "turn"):
            self.findings.add(place, "SK202", "`expect` must say something about the decision")
        state = fields.get("state")
        if isinstance(state, str):
            self._known(place.child("state"), state, self.states, "SK501", "state")
        sets: dict[str, frozenset[str] | None] = {}
        for key, known, code, what in (
            ("rules", self.rules, "SK305", "rule"),
            ("fired", self.rules, "SK305", "rule"),
            ("actions", self.pack.actions, "SK304", "action"),
        ):
            names = fields.get(key)
            sets[key] = frozenset(names) if isinstance(names, list) else None
            for index, name in enumerate(names if isinstance(names, list) else ()):
                self._known(place.child(key, index), name, known, code, what)
        return Expectation(
            turn=self._turn(place, fields.get("turn"), turns),
            state=state if isinstance(state, str) else None,
            faults=self._faults(place.child("faults"), fields.get("faults")),
            scopes=self._scopes(place.child("scopes"), fields.get("scopes")),
            line=place.line,
            **sets,
        )

    def _turn(self, place: Place, raw: Any, turns: int) -> int:
        if raw is None or raw == "last" or raw is BAD:
            return 0
        if type(raw) is not int:
            self.findings.add(place.child("turn"), "SK203", "`turn` is `last` or a number")
        elif not 1 <= raw <= turns:
            self.findings.add(place.child("turn"), "SK206", f"the case has turns 1 to {turns}")
        else:
            return raw
        return 0

    def _faults(self, place: Place, raw: Any) -> frozenset[tuple[str, str]] | None:
        if not isinstance(raw, list):
            return None
        found: set[tuple[str, str]] = set()
        for index, entry in enumerate(raw):
            where = place.child(index)
            kind, signal = entry, ""
            if type(entry) is dict and len(entry) == 1:
                ((kind, signal),) = entry.items()
                self._known(where.child(kind), signal, self.signals, "SK301", "signal")
            if kind not in FAULT_KINDS:
                hint = did_you_mean(str(kind), FAULT_KINDS) or "one of " + ", ".join(FAULT_KINDS)
                self.findings.add(where, "SK416", "no kind of fault", hint=hint)
            found.add((str(kind), str(signal)))
        return frozenset(found)

    def _scopes(self, place: Place, raw: Any) -> dict[str, str]:
        scopes: dict[str, str] = {}
        for scope, state in (raw if type(raw) is dict else {}).items():
            self._known(place.child(scope), scope, SCOPES, "SK416", "scope", key=True)
            self._known(place.child(scope), state, self.states, "SK501", "state")
            scopes[str(scope)] = str(state)
        return scopes

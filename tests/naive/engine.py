"""The oracle: what a Decision must be, computed slowly and obviously from the specification.

Written without looking at the library's compiled pass, tables or engine. Decisions where the
specification leaves something open are listed in ``README.md`` beside this file.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import attrs

from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.rules.pack import Pack, Rule
from stabilitykit.turn import MISSING, Turn
from tests.naive.actions import by_severity, resolve
from tests.naive.conditions import Frame, Wider
from tests.naive.outcome import Event, Outcome
from tests.naive.plan import TIME, Plan
from tests.naive.scopes import Instance, Twins
from tests.naive.sessions import Identity, Session, check, identify, receipt_of
from tests.naive.values import derive, fingerprint, judge, moment

__all__ = ["NaiveEngine", "Outcome"]

WIDER = ("device", "replica")  # in the order they move
CONTEXT_ACTIONS = {"reset_context", "rollback_snapshot", "trim_context", "insert_summary"}
LETTERS = "FUT"
Given = Callable[[str], Any]


class NaiveEngine:
    """Evaluate turns with plain dicts and loops.

    Parameters
    ----------
    pack
        A checked pack.
    sample_ttl
        Seconds after which a replica's or device's sample is no longer read; ``None``: never.
    detectors
        Detector type to a factory of its naive twin, an object with
        ``update({setting: value}) -> {output: value}`` and ``reset()``.
    """

    def __init__(self, pack: Pack, *, sample_ttl: float | None = 60.0, detectors: Twins | None = None) -> None:
        self.pack, self.plan, self.ttl, self.twins = pack, Plan(pack), sample_ttl, detectors or {}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.wider: dict[tuple[str, str, str | None], Instance] = {}

    # the verbs

    def evaluate(self, turn: Turn) -> Outcome:
        """Take one turn."""
        given = check(turn, self.pack)
        key = (turn.tenant, turn.session_id)
        session = self.sessions.get(key) or Session(self.fresh("session"))
        content = (turn.revision, turn.model, [fingerprint(self.plan.specs[n], given(n)) for n in self.plan.compared])
        identity, faults = identify(session, turn, content)
        if identity is not Identity.ACCEPTED:
            return self.refused(session, identity)
        event = self.arrive(turn)
        event.faults |= faults
        event.instances["session"] = session.instance
        self.read_session(turn, session, event, given)
        for scope in self.plan.wider:
            self.read_wider(turn, scope, event, given)
        for scope in self.plan.wider:
            for use in self.plan.parts[scope].detectors:
                if use.widened:
                    event.faults |= set(event.instances[scope].update_detector(use, event.view))
            if scope in event.sampled:
                self.sample(scope, event)
        self.move_session(turn, session, event)
        session.accept(turn, content)
        session.outcome = self.outcome("session", event)
        self.sessions[key] = session
        return session.outcome

    def observe(
        self,
        *,
        replica: str | None = None,
        device: str | None = None,
        tenant: str = "",
        timestamp_s: float = MISSING,
        **signals: Any,
    ) -> Outcome:
        """Take one sample of a replica, a device, or both; it is no turn."""
        scopes = self.scopes_of(signals) or (["device"] if device is not None and replica is None else ["replica"])
        now_s, why = moment(timestamp_s)
        event = Event(self.served_by(tenant, replica, device), now_s=now_s)
        event.faults = {(why, TIME)} if why else set()
        event.view = {spec.name: None for spec in self.plan.parts["session"].signals}
        for scope in WIDER:
            instance = event.instances[scope]
            event.before[scope] = instance.machine.state
            if scope in scopes:
                if instance.is_older(now_s):
                    event.faults.add(("stale", ""))
                else:
                    self.take(scope, event, signals.get, now_s, None)
                    instance.is_observed = True
            self.look(scope, event)
        for scope in event.sampled:
            self.sample(scope, event)
        return self.outcome("replica" if "replica" in scopes else "device", event)

    def peek(self, turn: Turn) -> Outcome:
        """Say what a turn would give; store nothing."""
        check(turn, self.pack)
        key = (turn.tenant, turn.session_id)
        places = [("replica", turn.tenant, turn.replica), ("device", turn.tenant, turn.device)]
        session, wider = self.sessions.get(key), {place: self.wider.get(place) for place in places}
        try:
            if session is not None:
                self.sessions[key] = copy.deepcopy(session)
            self.wider |= {place: copy.deepcopy(instance) for place, instance in wider.items() if instance is not None}
            return self.evaluate(turn)
        finally:
            put_back(self.sessions, key, session)
            for place, instance in wider.items():
                put_back(self.wider, place, instance)

    def fork(self, session_id: str, new_session: str, *, tenant: str = "") -> None:
        """Let a second conversation go on from where one stands."""
        if (tenant, session_id) not in self.sessions or (tenant, new_session) in self.sessions:
            raise UsageError("fork: from an existing session to a new one")
        self.sessions[tenant, new_session] = copy.deepcopy(self.sessions[tenant, session_id])

    def forget(self, session_id: str, *, tenant: str = "") -> bool:
        """Drop a session; tell whether there was one."""
        return self.sessions.pop((tenant, session_id), None) is not None

    # who takes part

    def fresh(self, scope: str) -> Instance:
        """Give new memory of a scope."""
        return Instance.fresh(self.pack, self.plan.parts[scope], self.twins)

    def served_by(self, tenant: str, replica: str | None, device: str | None) -> dict[str, Instance]:
        """Find (or start) the memory of a replica and of a device of a tenant."""
        found = {}
        for scope, name in (("replica", replica), ("device", device)):
            place = (scope, tenant, name)
            if place not in self.wider:
                self.wider[place] = self.fresh(scope)
            found[scope] = self.wider[place]
        return found

    def scopes_of(self, signals: dict[str, Any]) -> list[str]:
        """Name the scopes that an observation samples."""
        for name in signals:
            if name not in self.plan.specs:
                raise UnknownSignal(name)
            if self.plan.specs[name].scope == "session":
                raise UsageError(f"{name} belongs to a turn")
        return sorted({self.plan.specs[name].scope for name in signals})

    def arrive(self, turn: Turn) -> Event:
        """Start the event of an accepted turn."""
        now_s, why = moment(turn.timestamp_s)
        event = Event(self.served_by(turn.tenant, turn.replica, turn.device), now_s=now_s)
        if why:
            event.faults.add((why, TIME))
        return event

    # what is known

    def read_session(self, turn: Turn, session: Session, event: Event, given: Given) -> None:
        """Judge the session's signals, and derive those that were not given."""
        event.before["session"] = session.instance.machine.state
        done, fault = receipt_of(turn, session)
        event.faults |= fault
        own_act = bool(done & CONTEXT_ACTIONS)
        for spec in self.plan.parts["session"].signals:
            value, why = judge(spec, given(spec.name))
            if why == "missing" and spec.name in self.plan.derived:
                value, why = judge(spec, derive(spec.name, given, session.input_before, own_act))
            event.view[spec.name] = value
            if why not in ("", "missing"):
                event.faults.add((why, spec.name))
        event.view[TIME] = event.now_s

    def read_wider(self, turn: Turn, scope: str, event: Event, given: Given) -> None:
        """Take the turn as a sample where it is one, then look at the last sample."""
        instance = event.instances[scope]
        event.before[scope] = instance.machine.state
        at_s, why = moment(getattr(turn, f"{scope}_sample_s"))
        if why:
            event.faults.add((why, f"{scope}_sample_s"))
        signals = self.plan.parts[scope].signals
        if instance.is_sample(any(judge(s, given(s.name))[1] != "missing" for s in signals), at_s):
            self.take(scope, event, given, at_s, event.now_s)
            instance.is_observed |= at_s is not None
        self.look(scope, event)

    def take(self, scope: str, event: Event, given: Given, at_s: float | None, else_s: float | None) -> None:
        """Store the signals of a new sample."""
        instance = event.instances[scope]
        for spec in self.plan.parts[scope].signals:
            instance.signals[spec.name], why = judge(spec, given(spec.name))
            if why not in ("", "missing"):
                event.faults.add((why, spec.name))
        instance.sampled_s = else_s if at_s is None else at_s
        instance.newest_s = instance.newest_s if at_s is None else at_s
        event.sampled.append(scope)

    def look(self, scope: str, event: Event) -> None:
        """Show the last sample of a scope to the narrower ones, unless it is too old."""
        instance = event.instances[scope]
        is_expired = instance.is_expired(event.now_s, self.ttl)
        for spec in self.plan.parts[scope].signals:
            event.view[spec.name] = None if is_expired else instance.signals.get(spec.name)

    # what moves

    def frame(self, scope: str, event: Event, signals: dict[str, Any]) -> Frame:
        """Give the conditions of a scope what they can read."""
        visible = {"session": ["device", "replica", "session"], "replica": ["device", "replica"], "device": ["device"]}
        outputs: dict[str, float | None] = {}
        levels: dict[str, int] = {}
        wider: dict[str, Wider] = {}
        for name in visible[scope]:
            instance = event.instances[name]
            outputs |= instance.outputs
            levels |= instance.levels
            if name != scope:
                wider[name] = Wider(instance.values, instance.is_expired(event.now_s, self.ttl))
        return Frame(scope, event.instances[scope].histories, signals, outputs, levels, wider)

    def sample(self, scope: str, event: Event) -> None:
        """Move the detectors, rules and machine of a replica or device by one sample."""
        part, instance = self.plan.parts[scope], event.instances[scope]
        signals = {**event.view, **instance.signals, TIME: instance.sampled_s}
        for use in part.detectors:
            if not use.widened:
                event.faults |= set(instance.update_detector(use, signals))
        self.move(scope, event, signals)

    def move_session(self, turn: Turn, session: Session, event: Event) -> None:
        """Move the session by one turn."""
        part, instance = self.plan.parts["session"], session.instance
        if session.is_other_model(turn.model):
            instance.change_model(part)
        done, _ = receipt_of(turn, session)
        for use in part.detectors:
            reactions = {use.spec.on_applied.get(action) for action in done}
            if "rebase" in reactions:
                instance.restart(use)
            if "skip" in reactions:
                instance.silence(use)
            else:
                event.faults |= set(instance.update_detector(use, event.view))
        self.move("session", event, event.view)

    def move(self, scope: str, event: Event, signals: dict[str, Any]) -> None:
        """Move what every scope has: watches, rules, sub-expressions, machine."""
        part, instance = self.plan.parts[scope], event.instances[scope]
        event.faults |= set(instance.watch(part, signals))
        event.moved[scope], faults = instance.move(self.pack, part, self.plan.reads, self.frame(scope, event, signals))
        event.faults |= set(faults)

    # what is answered

    def refused(self, session: Session, identity: Identity) -> Outcome:
        """Answer a turn that moves nothing."""
        stored = session.outcome
        assert isinstance(stored, Outcome)
        if identity is Identity.SAME:
            return stored
        if identity is Identity.CONFLICT:
            return attrs.evolve(stored, faults=sorted({*stored.faults, ("turn_conflict", "")}))
        return Outcome(stored.state, stored.state, faults=[("stale", "")], scopes=stored.scopes)

    def outcome(self, scope: str, event: Event) -> Outcome:
        """Collect the answer to an event in a scope."""
        own = ["session"] if scope == "session" else [s for s in ("replica", "device") if s in event.sampled]
        others = [s for s in ("replica", "device") if self.plan.parts[s].rules]
        shown = others if scope == "session" else [s for s in others if s in own or s == scope]
        fired = {s: self.fired(s, event) for s in ("session", "replica", "device")}
        actions, suppressed = resolve(self.wanted(event, fired, others), self.pack.actions)
        return Outcome(
            state=event.instances[scope].machine.state,
            previous=event.before[scope],
            matches=tuple(r.id for r in self.pack.rules if r.scope in own and self.is_matched(r, event)),
            fired=tuple(r.id for r in self.pack.rules if r.scope in own and r in fired[r.scope]),
            actions=actions,
            suppressed=suppressed,
            faults=sorted(event.faults),
            scopes={s: event.instances[s].machine.state for s in shown},
            verdicts={r.id: self.letter(r, event) for r in self.pack.rules if r.scope in event.moved},
            wider_matches={
                s: tuple(r.id for r in self.plan.parts[s].rules if self.is_matched(r, event)) for s in shown
            },
            wider_fired={s: tuple(r.id for r in fired[s]) for s in shown},
        )

    def fired(self, scope: str, event: Event) -> list[Rule]:
        """Give the rules of a scope that fired on this event, in pack order."""
        ids = event.moved[scope].fired if scope in event.moved else []
        return [rule for rule in self.plan.parts[scope].rules if rule.id in ids]

    def is_matched(self, rule: Rule, event: Event) -> bool:
        """Tell whether a rule matches as of the last move of its scope."""
        return event.instances[rule.scope].rules[rule.id].matched

    def letter(self, rule: Rule, event: Event) -> str:
        """Give a rule's verdict before `on_missing`."""
        return LETTERS[event.instances[rule.scope].rules[rule.id].verdict]

    def wanted(self, event: Event, fired: dict[str, list[Rule]], others: list[str]) -> list[Any]:
        """Collect what rules and states ask for, in the order in which conflicts are decided."""
        states = {state.name: state for state in self.pack.states}
        wanted = [action for scope in ("session", "replica", "device") for action in by_severity(fired[scope])]
        for scope in ("session", "replica", "device"):
            if scope in event.moved and event.moved[scope].entered:
                wanted += states[event.instances[scope].machine.state].do
        if "session" in event.moved:  # `while` goes to turns, and an observation is none
            for scope in ("session", *others):
                wanted += states[event.instances[scope].machine.state].while_
        return wanted


def put_back(places: dict[Any, Any], key: Any, memory: Any) -> None:
    """Store what was there before; nothing where nothing was."""
    places.pop(key, None)
    if memory is not None:
        places[key] = memory

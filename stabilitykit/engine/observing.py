"""Replicas and devices of one engine: found by name, moved by samples."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from stabilitykit.compiled import header as c
from stabilitykit.compiled.layout import TIMES
from stabilitykit.compiled.packing import read_value
from stabilitykit.decision import Decision, Fault
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.identity import check_id
from stabilitykit.engine.journal import Journal
from stabilitykit.engine.staleness import stale_signals
from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.session import Instance
from stabilitykit.signals import CATALOGUE, SCOPES, SignalSpec
from stabilitykit.turn import MISSING, Turn, is_missing

__all__ = ["Scopes"]

_TIME = SignalSpec("timestamp_s", "s", "session", "a time", "number", -math.inf, math.inf)

_NOBODY = ("", "")
_NEVER: tuple[float | None, list[Fault]] = (None, [])
"""The moment that was not given; nobody adds to its faults."""
_NAMES = ("", "replica", "device")
_MAY = (0, c.F_MAY_REPLICA, c.F_MAY_DEVICE)
_OLD = (0, c.F_REPLICA_OLD, c.F_DEVICE_OLD)
_FORCED = (0, c.F_REPLICA, c.F_DEVICE)
_LATE = (0, c.F_REPLICA_LATE, c.F_DEVICE_LATE)
_TAKEN = (0, c.B_REPLICA, c.B_DEVICE)


def moment(value: Any, field: str) -> tuple[float | None, list[Fault]]:
    """Read a time: None where it is not given or cannot order anything, then with a fault."""
    if value.__class__ is float:
        if -math.inf < value < math.inf:
            return value, []
        return None, [] if is_missing(value) else [Fault("invalid", field)]
    if value is None:
        return None, []
    number, fault = read_value(_TIME, value)
    if fault is not None:
        return None, [Fault("type_mismatch", field, fault.detail)]
    return (number, []) if math.isfinite(number) else (None, [Fault("invalid", field)])


def check_place(name: Any, scope: int) -> None:
    """Refuse a name of a replica or device that can never work."""
    if name is not None:
        check_id(name, _NAMES[scope])


class Scopes:
    """The replica and device instances of an engine, least recently used first.

    Parameters
    ----------
    sample_ttl_s
        Age after which a stored sample no longer counts (None: it always does).
    capacity
        Most instances held of each scope.
    """

    def __init__(self, sample_ttl_s: float | None, capacity: int = 4096) -> None:
        self.sample_ttl_s = sample_ttl_s
        self.capacity = capacity
        self.held: tuple[OrderedDict[Any, Instance], ...] = (OrderedDict(), OrderedDict(), OrderedDict())
        self._idle: Instance

    def find(self, live: Generation, scope: int, tenant: Any, name: Any, other: Any = None) -> Instance:
        """Find an instance, or give birth to it; the name None is the tenant's default one.

        ``other`` is the name that is looked for next: where it can never work nothing is born.
        """
        key = (tenant, name)
        shelf = self.held[scope]
        try:
            instance = shelf.get(key)
        except Exception:  # not even hashable: the check says so
            instance = None
        if instance is None or instance.rows is not live.rows[scope]:
            check_place(name, scope)
            check_place(other, 3 - scope)
            return self._unusual(live, scope, key, instance)
        shelf.move_to_end(key)
        return instance

    def _unusual(self, live: Generation, scope: int, key: tuple[Any, Any], old: Instance | None) -> Instance:
        shelf = self.held[scope]
        if old is not None:
            live.migrate(old, scope)
            shelf.move_to_end(key)
            return old
        while len(shelf) >= self.capacity:
            shelf.popitem(last=False)[1].release()
        instance = shelf[key] = _born(live, scope, key)
        return instance

    def _seen(self, live: Generation, scope: int, tenant: Any, name: Any) -> Instance:
        """Give a copy for a peek: an unknown one is not stored, a known one stays in its place."""
        key = (tenant, name)
        instance = self.held[scope].get(key)
        if instance is None:
            return _born(live, scope, key)
        live.migrate(instance, scope)
        return instance.copy()

    def place(
        self, live: Generation, turn: Turn, is_peek: bool = False
    ) -> tuple[Instance, Instance, int, Sequence[Fault]]:
        """Find the replica and device of a turn, and say what it may do to them."""
        if not live.is_wide:  # nobody reads a sample or its time
            if is_peek:
                return _born(live, 1, _NOBODY), _born(live, 2, _NOBODY), c.F_TURN, ()
            return self._idle, self._idle, c.F_TURN, ()
        if is_peek:
            replica = self._seen(live, 1, turn.tenant, turn.replica)
            device = self._seen(live, 2, turn.tenant, turn.device)
        else:
            replica = self.find(live, 1, turn.tenant, turn.replica, turn.device)
            device = self.find(live, 2, turn.tenant, turn.device)
        flags = c.F_TURN
        if turn.timestamp_s is MISSING and turn.replica_sample_s is MISSING and turn.device_sample_s is MISSING:
            flags |= 0 if replica.is_timed else c.F_MAY_REPLICA
            return replica, device, flags if device.is_timed else flags | c.F_MAY_DEVICE, ()
        now, faults = moment(turn.timestamp_s, "timestamp_s")
        for scope, instance, said in ((1, replica, turn.replica_sample_s), (2, device, turn.device_sample_s)):
            at, more = _NEVER if said is MISSING else moment(said, TIMES[scope])
            faults = [*faults, *more] if more else faults
            if instance.beats(at):
                flags |= _MAY[scope]
                if now is not None and self.is_old(now, now if at is None else at):
                    flags |= _LATE[scope]
            if now is not None and self.is_old(now, instance.taken_s):
                flags |= _OLD[scope]
        return replica, device, flags, faults

    def is_old(self, now: float | None, taken: float | None) -> bool:
        """Tell whether a sample taken then no longer counts."""
        return (
            self.sample_ttl_s is not None and now is not None and taken is not None and now - taken > self.sample_ttl_s
        )

    def moved(self, turn: Turn, code: int, replica: Instance, device: Instance) -> None:
        """Note the samples that a turn's pass has taken."""
        now, _ = moment(turn.timestamp_s, "")
        for scope, instance, said in ((1, replica, turn.replica_sample_s), (2, device, turn.device_sample_s)):
            if code & _TAKEN[scope]:
                at, _ = moment(said, "")
                instance.taken_s = now if at is None else at
                if at is not None:
                    instance.sampled_s = at
                    instance.is_timed = True

    def tell(self, live: Generation, names: tuple[Any, Any], decision: Decision, journal: Journal) -> None:
        """Log the states that a turn's samples have changed."""
        for scope, name in enumerate(names, 1):
            word = live.machine_word(decision, scope)
            if decision._code & _TAKEN[scope] and word >> 16 & 1:
                journal.changed(_made(live, decision.tenant, name, word, decision._snapshot, (), scope))

    def idle(self, live: Generation) -> Instance:
        """Give the instance that stands in where a pack has nothing of the wider scopes."""
        rows = live.rows[1] if live.rows[1].nbytes >= live.rows[2].nbytes else live.rows[2]
        self._idle = Instance(rows, rows.take())
        return self._idle

    def sampled(self, live: Generation, replica: Any, device: Any, signals: Mapping[str, Any]) -> set[int]:
        """Say whose sample these signals are.

        Raises
        ------
        UsageError
            A name that is no replica or device signal.
        """
        check_place(replica, 1)
        check_place(device, 2)
        found = {_scope_of(live, name) for name in signals}
        return found or {2 if replica is None and device is not None else 1}

    def observe(
        self,
        live: Generation,
        scopes: set[int],
        names: tuple[Any, Any, Any],
        timestamp_s: Any,
        signals: Mapping[str, Any],
        journal: Journal,
    ) -> Decision:
        """Take one sample in; an old one is ``stale`` and moves nothing."""
        tenant, replica_name, device_name = names
        instances = (self.find(live, 1, tenant, replica_name, device_name), self.find(live, 2, tenant, device_name))
        at, faults = moment(timestamp_s, "timestamp_s")
        flags = 0
        for scope, instance in enumerate(instances, 1):
            if scope in scopes and instance.is_late(at):
                faults.append(Fault("stale"))
            elif scope in scopes:
                flags |= _FORCED[scope]
            if self.is_old(at, instance.taken_s):
                flags |= _OLD[scope]
        faults = list(dict.fromkeys(faults)) + self._run(live, flags, instances, signals, at)
        for scope, instance in enumerate(instances, 1):
            if flags & _FORCED[scope]:
                instance.is_timed = True
                instance.taken_s = at
                instance.sampled_s = instance.sampled_s if at is None else at
        return self._decision(live, 1 if 1 in scopes else 2, flags, names, tuple(faults), journal)

    @staticmethod
    def _run(
        live: Generation, flags: int, instances: tuple[Instance, Instance], signals: Mapping[str, Any], at: float | None
    ) -> list[Fault]:
        faults: list[Fault] = []
        values: list[float] = []
        for scalar in live.program.scalars:
            taken = flags & _FORCED[SCOPES.index(scalar.spec.scope)]
            given = at if scalar.spec.name in TIMES else signals.get(scalar.spec.name) if taken else None
            number, fault = read_value(scalar.spec, given)
            values.append(number)
            if fault is not None:
                faults.append(fault)
        arrays = live.arrays.take([signals.get(name) for name in live.array_names])
        faults += [f for f in arrays if flags & _FORCED[_scope_of(live, f.signal)]]
        replica, device = instances
        live.pack_into(live.into, 0, 0, 0, replica.row, replica.vec_at, device.row, device.vec_at, flags, 0, 0, *values)
        if live.call(live.address) & c.B_FAULT:
            faults += live.pass_faults()
            faults += stale_signals(live, None, replica, device)
        return faults

    def _decision(
        self,
        live: Generation,
        scope: int,
        flags: int,
        names: tuple[Any, Any, Any],
        faults: tuple[Fault, ...],
        journal: Journal,
    ) -> Decision:
        p = live.program
        words = [int(live.out_words[p.out_at[k] + 4 * p.rules[k].words]) for k in range(3)]
        code = words[scope] & 0x1FFFF
        for k in (1, 2):
            if flags & _FORCED[k]:
                code |= _TAKEN[k]
        snapshot = live.snapshot()
        decision = _made(live, names[0], names[scope], code, snapshot, faults, scope)
        for k in (1, 2):
            if flags & _FORCED[k] and words[k] >> 16 & 1:
                journal.changed(_made(live, names[0], names[k], words[k], snapshot, (), k))
        return decision


def _made(
    live: Generation, tenant: Any, name: Any, code: int, snapshot: bytes, faults: tuple[Fault, ...], scope: int
) -> Decision:
    return tuple.__new__(Decision, (live, name or "", 0, code, snapshot, faults, b"", SCOPES[scope], tenant))


def _born(live: Generation, scope: int, key: tuple[Any, Any]) -> Instance:
    instance = Instance(live.rows[scope], live.rows[scope].take(), key=key)
    instance.need_vector()
    return instance


def _scope_of(live: Generation, name: str) -> int:
    spec = live.pack.signals.get(name) or CATALOGUE.get(name)
    if spec is None:
        wider = [n for n, s in {**CATALOGUE, **live.pack.signals}.items() if s.scope != SCOPES[0]]
        near = did_you_mean(name, wider)
        raise UnknownSignal(f"{name!r:.60} is no signal" + (f"; {near}" if near else ""))
    if spec.scope == "session":
        raise UsageError(f"{name!r} is no replica or device signal")
    return SCOPES.index(spec.scope)

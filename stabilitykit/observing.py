"""Replicas and devices of one engine: found by name, moved by samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from stabilitykit import compiled as c
from stabilitykit.decision import Decision, Fault
from stabilitykit.errors import UsageError
from stabilitykit.generation import Generation
from stabilitykit.identity import check_id
from stabilitykit.journal import Journal
from stabilitykit.packing import read_value
from stabilitykit.session import Instance
from stabilitykit.signals import CATALOGUE, SCOPES
from stabilitykit.turn import MISSING, Turn

__all__ = ["Scopes", "seconds"]

_NAMES = ("", "replica", "device")
_MAY = (0, c.F_MAY_REPLICA, c.F_MAY_DEVICE)
_OLD = (0, c.F_REPLICA_OLD, c.F_DEVICE_OLD)
_FORCED = (0, c.F_REPLICA, c.F_DEVICE)
_TAKEN = (0, c.B_REPLICA, c.B_DEVICE)


def seconds(value: Any) -> float | None:
    """Read a time; None where there is none that can order samples."""
    if value.__class__ is not float:
        number, _ = read_value(CATALOGUE["rt_ms"], value)
        value = number
    finite: bool = -1e300 < value < 1e300
    return float(value) if finite else None


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

    def find(self, live: Generation, scope: int, tenant: Any, name: Any) -> Instance:
        """Find an instance, or give birth to it; the name None is the tenant's default one."""
        key = (tenant, name)
        shelf = self.held[scope]
        instance = shelf.get(key)
        if instance is None or instance.rows is not live.rows[scope]:
            return self._unusual(live, scope, key, instance)
        shelf.move_to_end(key)
        return instance

    def _unusual(self, live: Generation, scope: int, key: tuple[Any, Any], old: Instance | None) -> Instance:
        if key[1] is not None:
            check_id(key[1], _NAMES[scope])
        shelf = self.held[scope]
        if old is not None:
            live.migrate(old, scope)
            shelf.move_to_end(key)
            return old
        while len(shelf) >= self.capacity:
            shelf.popitem(last=False)[1].release()
        rows = live.rows[scope]
        instance = Instance(rows, rows.take(), key=key)
        instance.need_vector()
        shelf[key] = instance
        return instance

    def place(self, live: Generation, turn: Turn) -> tuple[Instance, Instance, int]:
        """Find the replica and device of a turn, and say what it may do to them."""
        replica = self.find(live, 1, turn.tenant, turn.replica)
        device = self.find(live, 2, turn.tenant, turn.device)
        flags = c.F_TURN
        now = seconds(turn.timestamp_s)
        for scope, instance, sampled in (
            (1, replica, turn.replica_sample_s),
            (2, device, turn.device_sample_s),
        ):
            at = seconds(sampled)
            before = instance.sampled_s
            if at is None:
                if not instance.is_timed:
                    flags |= _MAY[scope]
            elif before is None or at > before:
                flags |= _MAY[scope]
            if self.sample_ttl_s is not None and now is not None and before is not None:
                if now - before > self.sample_ttl_s:
                    flags |= _OLD[scope]
        return replica, device, flags

    def moved(self, turn: Turn, code: int, replica: Instance, device: Instance) -> None:
        """Note the samples that a turn's pass has taken."""
        for scope, instance, sampled in (
            (1, replica, turn.replica_sample_s),
            (2, device, turn.device_sample_s),
        ):
            if code & _TAKEN[scope]:
                at = seconds(sampled)
                instance.is_timed = instance.is_timed or at is not None
                instance.sampled_s = at if at is not None else seconds(turn.timestamp_s)

    def idle(self, live: Generation) -> Instance:
        """Give the instance that stands in where a pack has nothing of the wider scopes."""
        rows = live.rows[1] if live.rows[1].nbytes >= live.rows[2].nbytes else live.rows[2]
        return Instance(rows, rows.take())

    def target(
        self, live: Generation, replica: Any, device: Any, signals: Mapping[str, Any]
    ) -> tuple[int, Any]:
        """Say whose sample these signals are: (scope, name).

        Raises
        ------
        UsageError
            A name that is no signal, or signals of two scopes in one sample.
        """
        scopes = {_scope_of(live, name) for name in signals}
        if len(scopes) > 1:
            raise UsageError("replica and device signals need an observe each")
        scope = scopes.pop() if scopes else ("device" if replica is None and device is not None else "replica")
        return (2, device) if scope == "device" else (1, replica)

    def sample(
        self,
        live: Generation,
        scope: int,
        instance: Instance,
        other: Instance,
        at: float | None,
        signals: Mapping[str, Any],
        journal: Journal,
    ) -> Decision:
        """Take one sample into an instance; an old one is ``stale`` and moves nothing."""
        name = instance.key[1]
        if at is not None and instance.sampled_s is not None and at <= instance.sampled_s:
            return self._stale(live, scope, instance, other)
        faults: list[Fault] = []
        values: list[float] = []
        for scalar in live.program.scalars:
            number, fault = read_value(scalar.spec, signals.get(scalar.spec.name))
            values.append(number)
            if fault is not None:
                faults.append(fault)
        code = self._call(live, scope, instance, other, _FORCED[scope], values)
        if code & c.B_FAULT:
            faults += live.pass_faults()
            faults += live.stale_signals(instance, *((instance, other) if scope == 1 else (other, instance)))
        instance.is_timed = True
        instance.sampled_s = at if at is not None else instance.sampled_s
        decision = self._decision(live, scope, name, tuple(faults))
        if decision._code >> 16 & 1:
            journal.changed(decision)
        return decision

    def _stale(self, live: Generation, scope: int, instance: Instance, other: Instance) -> Decision:
        self._call(live, scope, instance, other, 0, [MISSING] * len(live.program.scalars))
        return self._decision(live, scope, instance.key[1], (Fault("stale"),))

    @staticmethod
    def _call(
        live: Generation, scope: int, instance: Instance, other: Instance, flags: int, values: list[float]
    ) -> int:
        replica, device = (instance, other) if scope == 1 else (other, instance)
        live.forget_arrays()
        live.pack_into(
            live.into, 0, 0, 0, replica.row, replica.vec_at, device.row, device.vec_at, flags, 0, 0, *values
        )
        return live.call(live.address)

    @staticmethod
    def _decision(live: Generation, scope: int, name: Any, faults: tuple[Fault, ...]) -> Decision:
        at = live.program.out_at[scope] + 4 * live.program.rules[scope].words
        word = int(live.out_words[at])
        fields = (live, name or "", 0, word, live.snapshot(), faults, b"", SCOPES[scope])
        return tuple.__new__(Decision, fields)


def _scope_of(live: Generation, name: str) -> str:
    spec = live.pack.signals.get(name) or CATALOGUE.get(name)
    if spec is None or spec.scope == "session":
        raise UsageError(f"{name!r} is no replica or device signal")
    return spec.scope

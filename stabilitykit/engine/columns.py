"""Columnar replay: a log that lies in arrays, through the compiled pass in one call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.compiled.batch import ARGUMENTS, SIZES, run_batch
from stabilitykit.compiled.packing import read_value
from stabilitykit.compiled.program import ScalarInput
from stabilitykit.decision import Decision
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.identity import check_id
from stabilitykit.errors import UnknownSignal, UsageError
from stabilitykit.kernels.warmup import warm_up
from stabilitykit.session import Instance, Session
from stabilitykit.signals import CATALOGUE, SCOPES
from stabilitykit.turn import MISSING

if TYPE_CHECKING:
    from stabilitykit.engine import Engine

__all__ = ["Replayed", "replay_columns"]

_TIMES = ("timestamp_s", "replica_sample_s", "device_sample_s")
Names = str | Sequence[str] | NDArray[Any] | None


@attrs.frozen(eq=False)
class Replayed:
    """What columnar replay decided, turn by turn.

    Parameters
    ----------
    states
        Names of the states, least severe first.
    state, previous
        uint8[n]: index of the session's state after and before each turn.
    invalid
        bool[n]: a value was given and is outside its domain.
    """

    states: tuple[str, ...]
    state: NDArray[np.uint8]
    previous: NDArray[np.uint8]
    invalid: NDArray[np.bool_]
    _bits: Mapping[str, tuple[int, int, int]]
    _picked: NDArray[np.uint64]

    def matched(self, rule: str) -> NDArray[np.bool_]:
        """Tell for each turn whether a rule matched (of any scope, as ``Decision.matches``)."""
        return self._flag(rule, 0)

    def fired(self, rule: str) -> NDArray[np.bool_]:
        """Tell for each turn whether a rule fired."""
        return self._flag(rule, 1)

    def _flag(self, rule: str, which: int) -> NDArray[np.bool_]:
        if rule not in self._bits:
            raise UsageError(f"the pack has no rule {rule!r}")
        matched, fired, bit = self._bits[rule]
        word = self._picked[:, (matched, fired)[which]]
        return (word >> np.uint64(bit) & np.uint64(1)).astype(np.bool_)


def replay_columns(
    engine: Engine,
    columns: Mapping[str, Any],
    session: Names,
    turn: Sequence[int] | NDArray[Any] | None,
    replica: Names,
    device: Names,
    tenant: str,
) -> Replayed:
    """See ``Engine.replay``; the caller holds the engine's lock."""
    live = engine._live
    if engine._functions:
        raise UsageError("signal functions need turns: use stabilitykit.engine.replay.replay")
    count = _count(columns, live, (session, turn, replica, device))
    data = _inputs(live, columns, count)
    check_id(tenant, "tenant")
    sessions = _Sessions(engine, tenant, *_factored(session, count, "session"), turn)
    times = _times(engine, columns, count)
    served = [(scope, *_factored(given, count, SCOPES[scope])) for scope, given in ((1, replica), (2, device))]
    if live.is_wide and any(len(names) > engine._scopes.capacity for _, names, _ in served):
        # else the first ones would be dropped for the last ones
        raise UsageError(f"too many replicas or devices: the engine holds {engine._scopes.capacity} of each")
    wide = [_Instances(engine, scope, tenant, names, slots) for scope, names, slots in served]
    picks, bits = _picks(live)
    run = _Run(live, sessions, wide, times, data, picks)
    run.call()
    sessions.store(run)
    for instances in wide:
        instances.store()
    return Replayed(
        tuple(s.name for s in live.pack.states),
        (run.codes & 255).astype(np.uint8),
        (run.codes >> 8 & 255).astype(np.uint8),
        np.any(run.picked[:, : live.program.fault_words] != 0, axis=1).astype(np.bool_),
        bits,
        run.picked,
    )


# -- columns


def _count(columns: Mapping[str, Any], live: Generation, others: Sequence[Any]) -> int:
    given = [*columns.items(), *((None, o) for o in others if o is not None and not isinstance(o, str))]
    for name, column in given:
        if getattr(column, "ndim", 1) != 1 or not hasattr(column, "__len__"):
            what = "session, turn, replica and device" if name is None else name
            raise UsageError(f"{what} must be one-dimensional: one value for each turn")
    sizes = {len(column) for _, column in given}
    if len(sizes) != 1:
        raise UsageError("all columns must have one length" if sizes else "there are no columns")
    for name in columns:
        spec = CATALOGUE.get(name) or live.pack.signals.get(name)
        if name in _TIMES:
            continue
        if spec is None:
            raise UnknownSignal(f"no such signal: {name!r:.60}")
        if spec.kind == "array":
            raise UsageError(f"{name} is an array: use stabilitykit.engine.replay.replay")
    return sizes.pop()


def _inputs(live: Generation, columns: Mapping[str, Any], count: int) -> NDArray[np.float64]:
    """Give the matrix of inputs, turn by turn; NaN in a column of numbers is *not measured*."""
    scalars = live.program.scalars
    data = np.full((count, max(1, len(scalars))), MISSING)
    for k, scalar in enumerate(scalars):
        if scalar.spec.name in columns:
            try:
                data[:, k] = _numbers(np.asarray(columns[scalar.spec.name]), scalar)
            except (TypeError, ValueError):  # a ragged list, or values that no dictionary takes
                raise UsageError(f"{scalar.spec.name} must hold one plain value for each turn") from None
    return data


def _numbers(column: NDArray[Any], scalar: ScalarInput) -> NDArray[np.float64]:
    if column.dtype.kind in "fiub" and scalar.spec.kind != "enum":
        found = column.astype(np.float64)
        found[np.isnan(found)] = MISSING
        return found
    seen: dict[Any, float] = {}
    values = []
    for value in column.tolist():
        if value not in seen:
            seen[value] = MISSING if value != value else read_value(scalar.spec, value)[0]
        values.append(seen[value])
    return np.array(values, np.float64)


def _times(engine: Engine, columns: Mapping[str, Any], count: int) -> NDArray[np.float64]:
    """Give sample_ttl, then the three times of each turn; NaN where there is none."""
    times = np.full(1 + 3 * count, np.nan)
    ttl = engine._scopes.sample_ttl_s
    times[0] = math.inf if ttl is None else ttl
    for k, name in enumerate(_TIMES):
        if name in columns:
            try:
                found = np.array(columns[name], np.float64)
            except (TypeError, ValueError):
                raise UsageError(f"{name} must hold seconds") from None
            found[~(np.abs(found) < 1e300)] = np.nan
            times[1 + k :: 3] = found
    return times


def _factored(names: Names, count: int, what: str) -> tuple[list[str | None], NDArray[np.int64]]:
    """Give the different names, and for each turn which one it is."""
    if names is None or isinstance(names, str):
        if names is not None:
            check_id(names, what)
        return [names], np.zeros(count, np.int64)
    slots: dict[str, int] = {}
    listed = names.tolist() if isinstance(names, np.ndarray) else names
    try:
        found = np.fromiter((slots.setdefault(name, len(slots)) for name in listed), np.int64, count)
    except TypeError:
        raise UsageError(f"{what} must be a name, or one name for each turn") from None
    for name in slots:
        check_id(name, what)
    return list(slots), found


def _picks(live: Generation) -> tuple[NDArray[np.int32], dict[str, tuple[int, int, int]]]:
    """Choose the words of ``out`` to keep: invalid inputs, and per scope what matched and fired."""
    p = live.program
    picks = list(range(p.fault_words))
    bits: dict[str, tuple[int, int, int]] = {}
    for scope in range(3):
        words, at, first = p.rules[scope].words, p.out_at[scope], len(picks)
        picks += [at + w for w in range(words)] + [at + 2 * words + w for w in range(words)]
        for rule, bit in p.rules[scope].bits.items():
            bits[rule] = (first + (bit >> 6), first + words + (bit >> 6), bit & 63)
    return np.array(picks, np.int32), bits


# -- memory


class _Sessions:
    """The sessions of a replay: their rows side by side while it runs."""

    def __init__(self, engine: Engine, tenant: str, names: Sequence[Any], slots: NDArray[np.int64], turn: Any) -> None:
        self._engine, self._live = engine, engine._live
        self.slots = slots
        store = engine.sessions
        found = [store.find((tenant, name)) for name in names]
        if any(name is None for name in names):
            raise UsageError("session must be a name, or one name for each turn")
        if len(store) + found.count(None) > store.capacity:
            raise UsageError(f"{found.count(None)} new sessions do not fit: the engine holds {store.capacity}")
        last = np.array([-1 if s is None else s.last for s in found], np.int64)
        self.turns = _turn_ids(turn, slots, last)
        fresh = (Session(self._live.rows[0], 0, key=(tenant, name)) for name in names)
        self.held = [s if s is not None else f for s, f in zip(found, fresh, strict=True)]
        self._is_new = [s is None for s in found]
        self.rows = np.empty((len(names), self._live.program.rows[0].template.size))
        for k, session in enumerate(self.held):
            if self._is_new[k]:
                self.rows[k] = self._live.program.rows[0].template
            else:
                self._live.migrate(session, 0)
                self.rows[k] = session.rows.view(session.row)
        self.last_at = np.zeros(len(names), np.int64)
        self.last_at[slots] = np.arange(len(slots))  # the last assignment stays

    def store(self, run: _Run) -> None:
        """Bring rows and last decisions back into the engine."""
        live, store = self._live, self._engine.sessions
        for session, is_new in zip(self.held, self._is_new, strict=True):
            if not is_new:  # first of all: adding a session drops those that are too old
                session.seen = store.clock()
        for k in np.argsort(self.last_at, kind="stable").tolist():
            session, at = self.held[k], int(self.last_at[k])
            if self._is_new[k]:
                session.row = live.rows[0].take()
                store.add(session)
            else:
                store.touch(session)
            session.rows.view(session.row)[:] = self.rows[k]
            session.last, session.revision = int(self.turns[at]), 0
            code, snapshot = int(run.codes[at]), run.final[k].tobytes()
            matched = snapshot[8 * live.session_out :][: 8 * live.program.rules[0].words]
            memory = live.rule_memory(session.row) if any(matched) else b""
            fields = (live, session.key[1], session.last, code, snapshot, (), memory, "session", session.key[0])
            session.decision = tuple.__new__(Decision, fields)
            store.keep(session, live.keeps(code & 255))


def _turn_ids(turn: Any, slots: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(slots, kind="stable")
    sorted_slots = slots[order]
    is_first = np.r_[True, sorted_slots[1:] != sorted_slots[:-1]] if len(slots) else np.zeros(0, bool)
    if turn is None:
        starts = np.flatnonzero(is_first)
        rank = np.arange(len(slots)) - np.repeat(starts, np.diff(np.r_[starts, len(slots)]))
        ids = np.empty(len(slots), np.int64)
        ids[order] = rank + np.where(last < 0, 1, last + 1)[sorted_slots]
        return ids
    ids = np.asarray(turn)
    if ids.dtype.kind not in "iu" or (len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < 2**63):
        raise UsageError("turn must hold whole numbers from 0 on, below 2**63")
    ids = ids.astype(np.int64)
    before = np.r_[-1, ids[order][:-1]] if len(ids) else ids
    before = np.where(is_first, last[sorted_slots], before)
    if not (ids[order] > before).all():
        raise UsageError("the turns of a session must increase: use stabilitykit.engine.replay.replay for late ones")
    return ids


class _Instances:
    """The replicas or devices of a replay."""

    def __init__(
        self, engine: Engine, scope: int, tenant: str, names: Sequence[str | None], slots: NDArray[np.int64]
    ) -> None:
        live = engine._live
        self.slots = slots
        self.held: list[Instance] = []
        self.rows, self.seen = np.zeros((len(names), 1)), np.full((len(names), 3), np.nan)
        if not live.is_wide:
            return
        self.held = [engine._scopes.find(live, scope, tenant, name) for name in names]
        self.rows = np.array([i.rows.view(i.row) for i in self.held])
        known = [(i.sampled_s, i.taken_s, float(i.is_timed)) for i in self.held]
        self.seen = np.array([[np.nan if v is None else v for v in k] for k in known], np.float64)

    def store(self) -> None:
        """Bring rows and times back into the engine."""
        if not self.held:  # the pack has nothing of this scope
            return
        for instance, row, (sampled, taken, timed) in zip(self.held, self.rows, self.seen.tolist(), strict=True):
            instance.rows.view(instance.row)[:] = row
            instance.sampled_s = None if sampled != sampled else sampled
            instance.taken_s = None if taken != taken else taken
            instance.is_timed = timed == 1.0


class _Run:
    """The blocks of one call of the batch."""

    def __init__(
        self,
        live: Generation,
        sessions: _Sessions,
        wide: Sequence[_Instances],
        times: NDArray[np.float64],
        data: NDArray[np.float64],
        picks: NDArray[np.int32],
    ) -> None:
        count, p = len(data), live.program
        self._live = live
        self.codes = np.zeros(count, np.int64)
        self.picked = np.zeros((count, len(picks)), np.uint64)
        self.final = np.zeros((len(sessions.held), p.out_words + p.live))
        where = np.empty((count, 4), np.int64)
        where[:, 0], where[:, 1], where[:, 2], where[:, 3] = sessions.slots, wide[0].slots, wide[1].slots, -1
        where[sessions.last_at, 3] = np.arange(len(sessions.held))
        sizes = np.zeros(SIZES, np.int64)
        rows = (sessions.rows, wide[0].rows, wide[1].rows)
        sizes[:] = (count, len(p.scalars), len(picks), p.out_words, p.live, *(r.shape[1] for r in rows))
        self._mine: list[NDArray[Any]] = [
            sizes, rows[0], np.zeros(max(1, live.rows[0].vector), np.float32),
            rows[1], np.zeros(max(1, live.rows[1].vector), np.float32),
            rows[2], np.zeros(max(1, live.rows[2].vector), np.float32),
            wide[0].seen, wide[1].seen, where, times, np.ascontiguousarray(data[:, : len(p.scalars)]),
            picks, self.picked, self.codes, self.final,
        ]  # fmt: skip

    def call(self) -> None:
        """Run all turns."""
        live = self._live
        live.forget_arrays()
        warm = warm_up(run_batch, ARGUMENTS, ()) if live.is_compiled else None
        if warm is None:
            flat = [a.reshape(-1) for a in self._mine]
            blocks: list[Any] = [*live._plain, live.bound, live.bound, live.lengths, *flat]
            run_batch(*blocks)
            return
        fixed: list[Any] = [*live._fixed, *self._mine]
        addresses = np.array([a.ctypes.data for a in fixed], np.int64)
        warm.entry(addresses.ctypes.data)

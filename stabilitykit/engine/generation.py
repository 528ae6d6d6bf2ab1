"""One generation of an engine: a program, its buffers, and how its raw words are read."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stabilitykit.compiled import header as c
from stabilitykit.compiled.arrays import Arrays
from stabilitykit.compiled.packing import domain_of, gather, make_array_reader, make_packer
from stabilitykit.compiled.program import Program, Span
from stabilitykit.compiled.run import run_pass
from stabilitykit.decision import Action, Decision, Fault, Match, Reason, Receipt, Suppressed
from stabilitykit.engine.migrate import Migration
from stabilitykit.kernels.warmup import warm_up
from stabilitykit.mitigations.plan import resolve_actions
from stabilitykit.rules.tables import M_STREAK, MEMORY_WORDS, STREAK_WORDS
from stabilitykit.session import Memory, Rows, Session
from stabilitykit.signals import SCOPES

if TYPE_CHECKING:
    from stabilitykit.engine.evidence import Known

__all__ = ["Generation"]

_ROWS = len(c.FIXED)
_CONTROL = _ROWS + 6
_INPUTS = _CONTROL + c.CONTROL_WORDS


class Generation:
    """Runs the pass for one program; implements ``decision.Explainer``.

    Parameters
    ----------
    program
        The laid-out pack.
    number
        1 at load, one more at each reload.
    is_compiled
        False runs the same source as plain Python.
    """

    def __init__(self, program: Program, number: int, is_compiled: bool | None = None) -> None:
        self.program = program
        self.number = number
        self.pack = program.pack
        self.fingerprint = program.pack.fingerprint
        self.rows = tuple(Rows(layout.template, layout.vector) for layout in program.rows)
        self.is_wide = any(program.ti[k * c.SCOPE_HEADER + c.S_ACTIVE] for k in (1, 2))
        self.origin: Generation | None = None
        self._steps: tuple[Migration, ...] = ()
        self.session_out = program.out_at[0]
        self.is_many = program.rules[0].words > 1
        self._allocate(is_compiled)
        self._plans: dict[tuple[int, ...], tuple[tuple[Action, ...], tuple[Suppressed, ...]]] = {}
        self._names = tuple(s.name for s in self.pack.states)
        self._ruled = tuple(k for k in range(3) if k == 0 or program.rules[k].bits)
        self._matches = [
            [
                (table.bits[r.id], [Match(r.id, r.severity, r.scope, is_fired) for is_fired in (False, True)])
                for r in self.pack.rules
                if r.id in table.bits
            ]
            for table in program.rules
        ]
        worst = len(self._names) - 1
        self._kept = frozenset(k for k, s in enumerate(self.pack.states) if s.while_ or k == worst)

    def keeps(self, state: int) -> bool:
        """Tell whether sessions in a state are the last to be dropped: the worst, and all that act every turn."""
        return state in self._kept

    # -- buffers

    def _allocate(self, is_compiled: bool | None) -> None:
        p = self.program
        self.block = np.zeros(_INPUTS + len(p.scalars), np.int64)
        end = p.out_words + p.values.size
        self._shown = np.zeros(end + p.rules[0].copied)
        self.out = self._shown.view(np.uint64)
        self.x = self._shown[p.out_words : end]
        self.x[:] = p.values
        self.shown_memory: Callable[[], bytes] = _bytes(self._shown[end:]).tobytes
        self.out_words = _bytes(self.out).cast("Q")
        self.snapshot: Callable[[], bytes] = _bytes(self._shown[: p.out_words + p.live]).tobytes
        self.inputs, self.control = self.block[_INPUTS:].view(np.float64), self.block[_CONTROL:]
        self._scratch = (np.zeros(p.scratch[0], np.int32), np.zeros(p.scratch[1]))
        self.arrays = Arrays(p.arrays)
        self.bound, self.lengths = self.arrays.bound, self.arrays.lengths
        self.forget_arrays = self.arrays.forget
        self.into = _bytes(self.block)[8 * _ROWS :]
        self.pack_into = struct.Struct(f"=6Q3q{len(p.scalars)}d").pack_into
        self.pack_turn = make_packer(p.scalars, self.pack_into, self.into)
        self.read_arrays = make_array_reader([a.spec.name for a in p.arrays])
        self.array_names = tuple(a.spec.name for a in p.arrays)
        fixed: list[Any] = [
            self.control, self.x, self.inputs, p.ti, p.tf, p.tu, *self._scratch, self.out,
            None, *self.arrays.addresses, self.lengths,
        ]  # fmt: skip
        kernels = [d.spec.kernel for d in p.detectors]
        # None: numba is absent, switched off or broken, and the plain functions serve.
        self._warm = warm_up(run_pass, c.ARGUMENTS, kernels) if is_compiled is not False else None
        self.is_compiled = self._warm is not None
        self.call: Callable[[int], int] = self._call_plain
        self.address = 0
        self._plain: tuple[Any, ...] = (*fixed[:9], kernels)
        if self._warm is not None:
            fixed[9] = np.array([*self._warm.addresses, 0], np.int64)
            self._fixed = fixed
            for k, array in enumerate(fixed):
                self.block[k] = array.ctypes.data
            self.call, self.address = self._warm.entry, self.block.ctypes.data

    def _call_plain(self, _: int) -> int:
        head = self.block[_ROWS:_CONTROL].tolist()
        rows = []
        for scope in range(3):
            row, vec = head[2 * scope : 2 * scope + 2]
            rows.append(self.rows[scope].view(row))
            size = self.rows[scope].vector if vec else 0
            made = (ctypes.c_float * size).from_address(vec) if size else np.zeros(0, np.float32)
            rows.append(np.ctypeslib.as_array(made) if size else made)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):  # overflow gives unknown; it is no reason to warn
            blocks: list[Any] = [*self._plain, self.bound, self.bound, self.lengths, *rows]
            return int(run_pass(*blocks))

    def bring(
        self, turn: Any, session: Session, replica: Memory, device: Memory, flags: int, skip: int,
        values: list[float] | None, functions: Mapping[str, Callable[[Any], Any]],
    ) -> Sequence[Fault]:  # fmt: skip
        """Write a turn into the input block; gives the faults found on the way."""
        faults: Sequence[Fault] = ()
        if self.array_names:
            faults = self.bring_arrays(self.read_arrays(turn), session)
        head = (
            session.row, session.vec_at, replica.row, replica.vec_at, device.row, device.vec_at, flags, skip,
        )  # fmt: skip
        if values is None:
            try:
                self.pack_turn(turn, *head)
                return faults
            except Exception:  # a strange value: read them one by one
                values, found = gather(turn, self.program.scalars, functions)
                faults = [*faults, *found]
        self.pack_into(self.into, 0, *head, turn.revision, *values)
        return faults

    def bring_arrays(self, values: Sequence[Any], session: Session) -> Sequence[Fault]:
        """Bring a turn's arrays in: one value for each input, or none at all."""
        if values:
            session.need_vector()
            return self.arrays.take(values)
        if self.arrays.is_used:
            self.arrays.forget()
        return ()

    def is_same(self, turn: Any, session: Session, values: list[float] | None) -> bool:
        """Tell whether a turn says what the session's last turn said; moves nothing."""
        self.bring(turn, session, session, session, c.F_TURN | c.F_COMPARE, 0, values, {})
        return self.call(self.address) == 1

    # -- memory

    def follow(self, origin: Generation, steps: tuple[Migration, ...]) -> None:
        """Become the successor of a generation."""
        self.number = origin.number + 1
        self.origin, self._steps = origin, steps

    @property
    def depth(self) -> int:
        """How many earlier generations are still held."""
        return 0 if self.origin is None else 1 + self.origin.depth

    def migrate(self, memory: Memory, scope: int) -> None:
        """Bring a session or instance into this generation's rows, if it is not there yet."""
        if memory.rows is self.rows[scope] or self.origin is None:
            return
        self.origin.migrate(memory, scope)
        self._steps[scope].apply(memory, self.rows[scope])

    def restart(self, memory: Memory, spans: Sequence[Span]) -> None:
        """Give pieces of a row their first values again."""
        if not spans:
            return
        row, template = memory.rows.view(memory.row), memory.rows.template
        for span in spans:
            if span.kind == "vec":
                if memory.vec is not None:
                    memory.vec[span.at : span.at + span.size] = 0.0
            else:
                view = {"f8": np.float64, "u8": np.uint64, "u4": np.uint32, "u2": np.uint16}[span.kind]
                piece = slice(span.at, span.at + span.size)
                row.view(view)[piece] = template.view(view)[piece]

    def rule_memory(self, row: int) -> bytes:
        """Copy the session's streaks and histories, as the pass does where a rule matches."""
        tables = self.program.rules[0]
        start = int(self.program.ti[c.S_RULE_U8])
        words = self.rows[0].view(row).view(np.uint64)[start : start + tables.u8]
        streaks = [words[w * MEMORY_WORDS + M_STREAK :][:STREAK_WORDS] for w in range(tables.words)]
        return np.concatenate([*streaks, words[tables.history :]]).tobytes()

    # -- faults

    def spoken_faults(self, faults: Sequence[Fault], code: int) -> Sequence[Fault]:
        """Leave out faults of replica or device signals that were no sample: nobody looked at them."""
        taken = {"session": 1, "replica": code & c.B_REPLICA, "device": code & c.B_DEVICE}
        inputs: list[Any] = [*self.program.scalars, *self.program.arrays]
        scopes = {i.spec.name: i.spec.scope for i in inputs}
        return [f for f in faults if taken[scopes.get(f.signal, "session")]]

    def pass_faults(self) -> list[Fault]:
        """Name the invalid and suspect inputs of the call just made."""
        faults: list[Fault] = []
        words = self.program.fault_words
        for k, scalar in enumerate(self.program.scalars):
            if self.out_words[k >> 6] >> (k & 63) & 1:
                faults.append(Fault("invalid", scalar.spec.name, domain_of(scalar.spec)))
            if self.out_words[words + (k >> 6)] >> (k & 63) & 1:
                faults.append(Fault("unit_suspect", scalar.spec.name, "about a thousand times its usual size"))
        for k, a in enumerate(self.program.arrays, len(self.program.scalars)):
            if self.out_words[k >> 6] >> (k & 63) & 1:
                faults.append(Fault("invalid", a.spec.name))
        return faults

    def matched(self, scope: int) -> int:
        """Tell whether any rule of a scope matched in the call just made (its first word will do)."""
        at = self.program.out_at[scope]
        return sum(self.out_words[at + w] for w in range(self.program.rules[scope].words))

    # -- reading a Decision

    def words(self, decision: Decision, scope: int, group: int) -> int:
        """Give one group of a scope's words as an integer: 0 matched, 1 unknown, 2 fired, 3 expired."""
        size = self.program.rules[scope].words
        at = 8 * (self.program.out_at[scope] + group * size)
        return int.from_bytes(decision._snapshot[at : at + 8 * size], "little")

    def machine_word(self, decision: Decision, scope: int) -> int:
        """Give ``state | previous << 8 | entered << 16`` of a scope."""
        at = 8 * (self.program.out_at[scope] + 4 * self.program.rules[scope].words)
        return int.from_bytes(decision._snapshot[at : at + 8], "little")

    def values(self, decision: Decision) -> NDArray[np.float64]:
        """Give the value vector of a decision, literals included."""
        x = self.program.values.copy()
        x[: self.program.live] = np.frombuffer(decision._snapshot, np.float64)[self.program.out_words :]
        return x

    def _spoken(self, decision: Decision) -> tuple[int, ...]:
        """Scopes a decision speaks about: all of a turn's, or the one of an observe."""
        if decision.scope == "session":
            return self._ruled
        own = SCOPES.index(decision.scope)
        taken = (0, decision._code & c.B_REPLICA, decision._code & c.B_DEVICE)
        return tuple(k for k in (1, 2) if k == own or taken[k])

    def state(self, decision: Decision) -> str:
        """Name the state the turn ended in."""
        return self._names[decision._code & 255]

    def previous(self, decision: Decision) -> str:
        """Name the state before the turn."""
        return self._names[decision._code >> 8 & 255]

    def scopes(self, decision: Decision) -> Mapping[str, str]:
        """Name the states of the wider scopes."""
        return {
            SCOPES[k]: self._names[self.machine_word(decision, k) & 255]
            for k in self._spoken(decision)
            if k > 0 and self.program.rules[k].bits
        }

    def matches(self, decision: Decision) -> tuple[Match, ...]:
        """List the rules that match, session first, in pack order."""
        found: list[Match] = []
        if decision._code & c.B_STALE:
            return ()
        for scope in self._spoken(decision):
            matched = self.words(decision, scope, 0)
            if matched:
                fired = self.words(decision, scope, 2)
                found += [pair[fired >> bit & 1] for bit, pair in self._matches[scope] if matched >> bit & 1]
        return tuple(found)

    def plan(self, decision: Decision) -> tuple[tuple[Action, ...], tuple[Suppressed, ...]]:
        """Give the actions and those that lost a conflict; the same facts give the same plan."""
        if decision._code & c.B_STALE:
            return (), ()
        spoken = self._spoken(decision)
        key = (spoken[0], *(v for k in spoken for v in (self.words(decision, k, 2), self.machine_word(decision, k))))
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) > 4096:
                self._plans.clear()  # another thread may read at this moment: nothing is looked up twice
            plan = self._plans[key] = resolve_actions(self._wanted(decision, spoken), self.pack.actions)
        return plan

    def _wanted(self, decision: Decision, spoken: Sequence[int]) -> list[Action]:
        wanted: list[Action] = []
        severity = {"critical": 0, "warning": 1, "info": 2}
        for scope in spoken:
            fired, bits = self.words(decision, scope, 2), self.program.rules[scope].bits
            rules = [r for r in self.pack.rules if r.id in bits and fired >> bits[r.id] & 1]
            for rule in sorted(rules, key=lambda r: severity[r.severity]):
                wanted += rule.do
        machines = [self.machine_word(decision, k) for k in spoken]
        for word in machines:
            if word >> 16 & 1:
                wanted += self.pack.states[word & 255].do
        if spoken[0] == 0:  # `while` goes to turns only
            for word in machines:
                wanted += self.pack.states[word & 255].while_
        return wanted

    @cached_property
    def known(self) -> Known:
        """Signals by name, and what is made of each: asked for only when a decision explains itself."""
        from stabilitykit.engine.explain import known_names

        return known_names(self.pack)

    def reasons(self, decision: Decision) -> tuple[Reason, ...]:
        """Say why each rule matches."""
        from stabilitykit.engine.explain import reasons

        return reasons(self, decision)

    def explain(self, decision: Decision) -> str:
        """Render the whole decision as text."""
        from stabilitykit.engine.explain import render

        return render(self, decision)

    def to_dict(self, decision: Decision) -> dict[str, Any]:
        """Render the whole decision as JSON values."""
        from stabilitykit.engine.explain import to_dict

        return to_dict(self, decision)

    def apply(self, decision: Decision, messages: Sequence[Any], lent: Mapping[str, Any]) -> tuple[list[Any], Receipt]:
        """Carry out the text-level actions."""
        from stabilitykit.mitigations.applying import apply_decision

        slot = self.program.slots.get("context_window_tokens")
        window = math.nan if slot is None else float(self.values(decision)[slot])
        known = {} if math.isnan(window) else {"context_window_tokens": int(window)}
        return apply_decision(decision, messages, {**known, **lent})


def _bytes(array: NDArray[Any]) -> memoryview:
    """See an array as bytes."""
    return memoryview(array).cast("B")  # type: ignore[arg-type]  # arrays say so from Python 3.12 on

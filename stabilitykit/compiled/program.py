"""A pack laid out: where every value, every piece of memory and every table stands.

The value vector holds one block a scope (its signals, detector outputs, terms and references)
and then the literals, so a replica's block is saved and recalled as one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.compiled import header as c
from stabilitykit.compiled.layout import TIMES, ArrayInput, Blocks, RowGrower, RowLayout, ScalarInput, Span, walk
from stabilitykit.errors import PackError, Problem
from stabilitykit.kernels.blob import Blob
from stabilitykit.machine import build_machine_tables, machine_words
from stabilitykit.rules.lower import CONSTANTS, Lowering
from stabilitykit.rules.pack import DetectorUse, Pack
from stabilitykit.rules.tables import MEMORY_WORDS, RuleTables, build_rule_tables
from stabilitykit.signals import CATALOGUE, SCOPES, TIME, SignalSpec

__all__ = ["ArrayInput", "Program", "RowLayout", "ScalarInput", "Span", "build_program", "walk"]

# A derived signal: its kind for the kernel and the signals it is made of.
DERIVED: tuple[tuple[str, int, tuple[str, str, str]], ...] = (
    ("kv_hit_ratio", 0, ("cached_tokens", "input_tokens", "input_tokens")),
    ("session_tokens", 1, ("input_tokens", "output_tokens", "output_tokens")),
    ("context_usage_ratio", 2, ("input_tokens", "output_tokens", "context_window_tokens")),
    ("is_history_truncated", 3, ("sent_tokens", "input_tokens", "input_tokens")),
)


@attrs.frozen(eq=False)
class Program:
    """Everything one generation of the engine needs to evaluate turns of a pack."""

    pack: Pack
    scalars: tuple[ScalarInput, ...]
    arrays: tuple[ArrayInput, ...]
    rows: tuple[RowLayout, RowLayout, RowLayout]
    rules: tuple[RuleTables, RuleTables, RuleTables]
    out_at: tuple[int, int, int]
    out_words: int
    fault_words: int
    live: int
    slots: dict[str, int]
    node_slots: dict[tuple[int, str], int]
    rule_slots: dict[str, int]
    values: NDArray[np.float64]
    ti: NDArray[np.int32]
    tf: NDArray[np.float64]
    tu: NDArray[np.uint64]
    scratch: tuple[int, int]
    detectors: tuple[DetectorUse, ...]
    skip_on: dict[str, int]


def build_program(pack: Pack, *, row_limit: int = 16384, vector_limit: int = 65536) -> Program:
    """Lay a checked pack out.

    Raises
    ------
    PackError
        SK604 when a row or a vector block is over its limit (bytes).
    """
    return _Builder(pack).build(row_limit, vector_limit)


class _Builder:
    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.blocks = Blocks()
        self.blob = Blob(c.HEADER)
        self.slots: dict[str, int] = {}
        self.scalars: list[ScalarInput] = []
        self.arrays: list[ArrayInput] = []
        self.detectors = sorted(pack.detectors, key=lambda d: (SCOPES.index(d.scope), d.widened))
        self.detector_table: list[int] = []
        self.unit_at: list[int] = []
        self.content = 0
        self.times = [-1, -1, -1]

    def build(self, row_limit: int, vector_limit: int) -> Program:
        self._collect_inputs()
        for detector in self.detectors:
            for output in detector.spec.outputs:
                self.slots[f"{detector.id}.{output.name}"] = self.blocks(SCOPES.index(detector.scope))
        lowering = Lowering(
            self.blocks,
            self.slots,
            frozenset(d.id for d in self.detectors if d.spec.model_bound),
            frozenset(_references(self.pack)),
        )
        rules_by_id = {rule.id: rule for rule in self.pack.rules}
        for rule_id in self.pack.order:
            lowering.rule(rules_by_id[rule_id])
        head = self.blob.header
        head[c.G_WORDS] = fault_words = (len(self.scalars) + len(self.arrays) + 63) // 64
        rules: list[RuleTables] = []
        rows: list[RowLayout] = []
        out_at: list[int] = []
        out = 2 * fault_words
        for scope in range(3):
            hb = scope * c.SCOPE_HEADER
            program = lowering.scopes[scope]
            tables = build_rule_tables(program, self.blob, hb + c.S_RULES, self.blocks.resolve)
            build_machine_tables(
                [s.name for s in self.pack.states], self.pack.transitions, self.pack.rules,
                tables.bits, tables.words, self.blob, hb + c.S_GUARDS,
            )  # fmt: skip
            head[hb + c.S_OUT] = out
            out_at.append(out)
            out += 4 * tables.words + 1
            rules.append(tables)
        for scope in range(3):
            rows.append(self._lay_out(scope, rules[scope], lowering))
            self._check_limit(SCOPES[scope], rows[-1], row_limit, vector_limit)
        self._write_inputs()
        head[c.G_DETECTORS] = self.blob.ints(self.detector_table)
        values = np.full(sum(self.blocks.sizes) or 1, np.nan)
        # Behind the words and the values: a copy of the session's streaks, made when a rule matches.
        head[c.G_COPY], head[c.G_COPY_SIZE] = out + values.size, rules[0].copied
        for value, slot in lowering.constants.items():
            values[self.blocks.resolve(slot)] = value
        ti, tf, tu = self.blob.arrays()
        atoms, levels = max(t.atoms for t in rules), max(t.levels for t in rules)
        return Program(
            pack=self.pack, scalars=tuple(self.scalars), arrays=tuple(self.arrays),
            rows=(rows[0], rows[1], rows[2]), rules=(rules[0], rules[1], rules[2]),
            out_at=(out_at[0], out_at[1], out_at[2]), out_words=out, fault_words=fault_words,
            live=self.blocks.start(CONSTANTS),
            slots={name: self.blocks.resolve(slot) for name, slot in self.slots.items()},
            node_slots={key: self.blocks.resolve(slot) for key, slot in lowering.node_slots.items()},
            rule_slots={i: self.blocks.resolve(s) for i, s in lowering.rule_slots.items() if s >= 0},
            values=values, ti=ti, tf=tf, tu=tu,
            scratch=(levels + max(atoms, 64 * max(t.words for t in rules)) + 64, atoms + 64),
            detectors=tuple(self.detectors), skip_on=self._skips(),
        )  # fmt: skip

    # -- inputs

    def _collect_inputs(self) -> None:
        read = set(_signals(self.pack))
        aux: set[str] = set()
        for name, _, parts in DERIVED:
            if name in read:
                aux.update(parts)
        lengths = _array_lengths(self.detectors)
        for scope in SCOPES:
            for name, spec in {**CATALOGUE, **self.pack.signals}.items():
                if spec.scope != scope or (name not in read and name not in aux):
                    continue
                if spec.kind == "array":
                    self.arrays.append(ArrayInput(spec, lengths.get(name, 0)))
                    continue
                self.slots[name] = self.blocks(SCOPES.index(scope))
                self.scalars.append(ScalarInput(spec, name in self.pack.signals, name in read))
        self._collect_times()

    def _collect_times(self) -> None:
        """Put the times that detectors read behind the signals: they are no content, and no sample."""
        self.content = len(self.scalars)
        timed = [d for d in self.detectors if TIME in d.inputs.values()]
        scopes = {_time_scope(d) for d in timed}
        for scope in sorted({0, *scopes}) if timed else ():
            self.slots[TIMES[scope]] = self.blocks(scope)
            self.times[scope] = len(self.scalars)
            spec = SignalSpec(TIMES[scope], "s", "session", "a time", "number", -np.inf, np.inf)
            self.scalars.append(ScalarInput(spec, False, False))

    def _write_inputs(self) -> None:
        head = self.blob.header
        head[c.G_INPUTS], head[c.G_CONTENT] = len(self.scalars), self.content
        self.unit_at += [-1] * (len(self.scalars) - self.content)
        head[c.G_INPUT] = self.blob.ints(
            v
            for s, at in zip(self.scalars, self.unit_at, strict=True)
            for v in (self.blocks.resolve(self.slots[s.spec.name]), at, int(s.reported))
        )
        head[c.G_DOMAIN] = self.blob.floats(v for s in self.scalars for v in (s.spec.lo, s.spec.hi))
        head[c.G_ARRAYS] = len(self.arrays)
        head[c.G_KINDS] = self.blob.ints(_array_kind(a.spec) for a in self.arrays)

    # -- memory

    def _lay_out(self, scope: int, tables: RuleTables, lowering: Lowering) -> RowLayout:
        head, hb = self.blob.header, scope * c.SCOPE_HEADER
        row = RowGrower()
        row.take("content", "u8", 1)
        mine = [k for k, s in enumerate(self.scalars[: self.content]) if s.spec.scope == SCOPES[scope]]
        head[hb + c.S_TIME] = self.times[scope]
        words = (len(self.scalars) + len(self.arrays) + 63) // 64
        known = row.take("known", "u8", words)
        row.take("present", "u8", words)
        reported = row.take("reported", "u8", words)
        head[hb + c.S_IN], head[hb + c.S_IN_END] = (mine[0], mine[-1] + 1) if mine else (0, 0)
        head[hb + c.S_KNOWN] = known
        if scope == 0:
            self._write_derived(row)
        self._unit_watch(row, mine)
        block = self.blocks.sizes[scope]
        head[hb + c.S_BLOCK], head[hb + c.S_BLOCK_SIZE] = self.blocks.start(scope), block
        head[hb + c.S_SAVED] = row.take("saved", "f8", block if scope else 0, np.nan)
        vector = self._place_detectors(scope, row)
        program = lowering.scopes[scope]
        head[hb + c.S_RULE_F8] = f8 = row.take("", "f8", tables.f8, np.nan)
        head[hb + c.S_RULE_U8] = u8 = row.take("", "u8", tables.u8)
        for name, kind, at, size in tables.memory:
            row.spans.append(Span(name, kind, at + (f8 if kind == "f8" else u8), size))
        machine = row.take("", "u8", machine_words(len(self.pack.transitions)))
        head[hb + c.S_MACHINE] = machine
        row.spans.append(Span("machine:state", "state", machine, 1))
        row.spans.append(Span("machine:dwell", "u8", machine + 1, 1))
        for k, transition in enumerate(self.pack.transitions):
            row.spans.append(Span(transition.memory or f"transition:{k}", "u8", machine + 2 + k, 1))
        expiring = [self.blocks.resolve(self.slots[self.scalars[k].spec.name]) for k in mine]
        expiring += [self.blocks.resolve(s) for s in program.remembering]
        head[hb + c.S_EXPIRING] = self.blob.ints(expiring)
        head[hb + c.S_EXPIRING_END] = head[hb + c.S_EXPIRING] + len(expiring)
        head[hb + c.S_ACTIVE] = c.RULED if scope == 0 or tables.bits else int(block > 0)
        template = row.template()
        names = [s.name for s in self.pack.states]
        template.view(np.uint64)[machine] = names.index(self.pack.initial)
        model = [s for s in row.spans if s.name in self._model_bound]
        model += [
            Span("", kind, at + (f8 if kind == "f8" else u8 + tables.words * MEMORY_WORDS), size)
            for kind, at, size in program.model_bound
        ]
        return RowLayout(
            template, tuple(s for s in row.spans if s.name), vector, machine, known, reported,
            tuple(model), self._rebase(row),
        )  # fmt: skip

    @property
    def _model_bound(self) -> set[str]:
        return {f"{d.memory or d.id}:{kind}" for d in self.detectors if d.spec.model_bound for kind in _KINDS}

    def _rebase(self, row: RowGrower) -> dict[str, tuple[Span, ...]]:
        found: dict[str, list[Span]] = {}
        for d in self.detectors:
            for action, reaction in d.spec.on_applied.items():
                if reaction == "rebase":
                    names = {f"{d.memory or d.id}:{kind}" for kind in _KINDS}
                    found.setdefault(action, []).extend(s for s in row.spans if s.name in names)
        return {action: tuple(spans) for action, spans in found.items()}

    def _skips(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for k, d in enumerate(self.detectors):
            for action, reaction in d.spec.on_applied.items():
                if reaction == "skip":
                    found[action] = found.get(action, 0) | 1 << k
        return found

    def _write_derived(self, row: RowGrower) -> None:
        head = self.blob.header
        index = {s.spec.name: k for k, s in enumerate(self.scalars)}
        rows = [
            (kind, index[name], *(index[p] for p in parts))
            for name, kind, parts in DERIVED
            if name in index and self.scalars[index[name]].reported
        ]
        head[c.G_DERIVED] = self.blob.ints(v for r in rows for v in r)
        head[c.S_DERIVED], head[c.S_DERIVED_END] = 0, len(rows)
        head[c.S_PREVIOUS] = row.take("derived:previous", "f8", int(any(r[0] == 3 for r in rows)), np.nan)

    def _unit_watch(self, row: RowGrower, mine: Sequence[int]) -> None:
        for k in mine:
            spec = self.scalars[k].spec
            watched = self.scalars[k].reported and spec.unit in ("ms", "us")
            self.unit_at.append(row.take(f"unit:{spec.name}", "f8", 2) if watched else -1)
            if watched:
                row.init[self.unit_at[-1]] = np.nan

    def _place_detectors(self, scope: int, row: RowGrower) -> int:
        """Give each detector its slices; u4 and u2 slices stand in whole 8-byte units."""
        head, hb = self.blob.header, scope * c.SCOPE_HEADER
        vector = 0
        array_at = {a.spec.name: k for k, a in enumerate(self.arrays)}
        first = len(self.detector_table) // c.DETECTOR_FIELDS
        wide = first
        for d in self.detectors:
            if d.scope != SCOPES[scope]:
                continue
            layout = d.spec.layout(d.settings)
            name = d.memory or d.id
            f8 = row.take(f"{name}:f8", "f8", layout.f8)
            row.init.update({f8 + k: v for k, v in enumerate(layout.f8_init)})
            u4 = 2 * row.take("", "u8", (layout.u4 + 1) // 2)
            u2 = 4 * row.take("", "u8", (layout.u2 + 3) // 4)
            row.spans += [Span(f"{name}:u4", "u4", u4, layout.u4), Span(f"{name}:u2", "u2", u2, layout.u2)]
            row.spans.append(Span(f"{name}:vec", "vec", vector, layout.vec))
            named = [TIMES[_time_scope(d)] if s == TIME else s for s in d.inputs.values()]
            inputs = [
                array_at[s] if s in array_at else (self.blocks.resolve(self.slots[s]) if s else -1) for s in named
            ]
            out = self.blocks.resolve(self.slots[f"{d.id}.{d.spec.outputs[0].name}"])
            io = self.blob.ints([*inputs, out])
            config = self.blob.floats(d.spec.config(d.settings))
            kernel = self.detectors.index(d)
            self.detector_table += [kernel, f8, u4, u2, vector, config, io, out, len(d.spec.outputs)]
            vector += layout.vec
            wide += int(not d.widened)
        last = len(self.detector_table) // c.DETECTOR_FIELDS
        head[hb + c.S_DET], head[hb + c.S_DET_END] = first, wide
        head[hb + c.S_WIDE], head[hb + c.S_WIDE_END] = wide, last
        return vector

    def _check_limit(self, scope: str, row: RowLayout, row_limit: int, vector_limit: int) -> None:
        found = []
        if row.nbytes > row_limit:
            found.append(f"a {scope} row takes {row.nbytes} bytes, the limit is {row_limit}")
        if 4 * row.vector > vector_limit:
            found.append(f"a {scope}'s vectors take {4 * row.vector} bytes, the limit is {vector_limit}")
        if found:
            raise self._refusal(found, "SK604")

    def _refusal(self, found: Sequence[str], code: str) -> PackError:
        file = self.pack.files[-1] if self.pack.files else self.pack.name
        return PackError([Problem(file, 1, 1, code, text) for text in found])


_SKIPPING = 62
"""The mask of detectors to skip is one signed word."""
_KINDS = ("f8", "u4", "u2", "vec")


def _time_scope(detector: DetectorUse) -> int:
    """Say whose time a detector reads: a widened one moves with turns, so the turn's."""
    return 0 if detector.widened else SCOPES.index(detector.scope)


def _array_kind(spec: SignalSpec) -> int:
    if spec.dtype == "int64":
        return c.K_INTEGERS
    return c.K_LOGS if spec.unit == "nats" else c.K_FLOATS


def _references(pack: Pack) -> Iterator[str]:
    for rule in pack.rules:
        yield from (n.name for n in walk(rule.when) if n.op == "rule")


def _signals(pack: Pack) -> Iterator[str]:
    for rule in pack.rules:
        yield from (n.name for n in walk(rule.when) if n.op == "sig")
    for d in pack.detectors:
        yield from (s for s in d.inputs.values() if s)


def _array_lengths(detectors: Sequence[DetectorUse]) -> dict[str, int]:
    """Find the arrays whose length a detector fixes with a setting called ``dim``."""
    return {s: int(d.settings["dim"]) for d in detectors if "dim" in d.settings for s in d.inputs.values() if s}

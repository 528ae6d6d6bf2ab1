"""Typed values and blocks of LLVM assembly: the arithmetic of kernels, one instruction at a time.

Kinds of values: ``i64`` (every integer of Python), ``u64`` and ``i32`` (of NumPy), ``f64``, ``f32``,
``i1``; ``*f8`` and its like are pointers, named as the blocks of the pass; a tuple is a struct.
"""

from __future__ import annotations

import ast
import struct
from typing import Any, NamedTuple

__all__ = ["BLOCKS", "Builder", "Unsupported", "Value", "constant", "join", "llvm"]

Kind = Any
"""A word, or a tuple of words."""


class Unsupported(Exception):
    """The source says something that this front end does not know; numba may."""


class Value(NamedTuple):
    """An operand: its text, its kind, and its number when it is a literal integer."""

    text: str
    kind: Kind
    literal: int | None = None


_LLVM = {"i64": "i64", "u64": "i64", "i32": "i32", "i1": "i1", "f64": "double", "f32": "float", "void": "void"}
_RANK = {"i1": 0, "i32": 1, "i64": 2, "f32": 3, "f64": 4}
BLOCKS = {
    "f8": ("double", "f64"), "f4": ("float", "f32"), "u8": ("i64", "u64"), "i8": ("i64", "i64"),
    "u4": ("i32", "i64"), "u2": ("i16", "i64"), "i4": ("i32", "i64"), "pf4": ("ptr", "*f4"), "pi8": ("ptr", "*i8"),
}  # fmt: skip
"""Kind of a block -> type of an element in memory, kind of it in a register."""
_WIDEN = {"u4": "zext", "u2": "zext", "i4": "sext"}
_INTEGER = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl",
}  # fmt: skip
_FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_ORDER = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


def llvm(kind: Kind) -> str:
    """Give LLVM's name of a kind."""
    if isinstance(kind, tuple):
        return f"{{{', '.join(map(llvm, kind))}}}"
    return "ptr" if kind[0] == "*" else _LLVM[kind]


def join(a: Kind, b: Kind) -> Kind:
    """Give the kind that holds both, as numba unifies them."""
    if a == b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(join, a, b))
    if a not in _RANK or b not in _RANK:
        if {a, b} == {"u64", "i1"}:
            return "u64"
        raise Unsupported(f"{a} with {b}")
    if "f32" in (a, b):
        return "f64"
    return a if _RANK[a] > _RANK[b] else b


def constant(value: Any) -> Value:
    """Give the operand of a number of Python or NumPy."""
    if isinstance(value, bool):
        return Value(str(int(value)), "i1")
    kind = {"int": "i64", "float": "f64", "float64": "f64", "float32": "f32", "uint64": "u64", "int64": "i64"}.get(
        type(value).__name__
    )
    if kind is None:
        raise Unsupported(f"a constant of {type(value).__name__}")
    if kind[0] == "f":  # a float, too, is written as the bits of a double
        return Value(f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}", kind)
    if not -(2**63) <= value < 2**64:
        raise Unsupported("an integer of more than 64 bits")
    return Value(str(int(value)), kind, int(value) if kind == "i64" else None)


class _Block:
    def __init__(self, label: str) -> None:
        self.label = label
        self.lines: list[str] = []
        self.is_closed = False
        self.is_reached = False


class Builder:
    """Grows one function, block by block; variables live on the stack until LLVM lifts them.

    Parameters
    ----------
    fast
        Freedoms of float arithmetic, as LLVM spells them.
    declared
        The module's declarations by name, to add to.
    """

    def __init__(self, fast: str, declared: dict[str, str]) -> None:
        self._fast = fast
        self._declared = declared
        self._count = 0
        self.slots: list[str] = []
        self.blocks: list[_Block] = []
        self.now = self.enter(self.block("body"))
        self.now.is_reached = True

    # -- blocks

    def block(self, name: str) -> _Block:
        """Make a block; it stands where it is entered."""
        self._count += 1
        return _Block(f"{name}.{self._count}")

    def enter(self, block: _Block) -> _Block:
        """Go on in a block."""
        self.blocks.append(block)
        self.now = block
        return block

    def end(self, text: str) -> None:
        """Close the current block; what follows a closed block is never run."""
        if not self.now.is_closed:
            self.now.lines.append(text)
            self.now.is_closed = True

    def is_open(self) -> bool:
        """Tell whether some way through the function leads to here."""
        return self.now.is_reached and not self.now.is_closed

    def jump(self, to: _Block) -> None:
        """Close the current block by going on in another."""
        to.is_reached |= self.is_open()
        self.end(f"br label %{to.label}")

    def branch(self, condition: Value, yes: _Block, no: _Block) -> None:
        """Close the current block by going on in one of two."""
        yes.is_reached |= self.is_open() and condition.text != "0"
        no.is_reached |= self.is_open() and condition.text != "1"
        self.end(f"br i1 {condition.text}, label %{yes.label}, label %{no.label}")

    def do(self, text: str) -> None:
        """Add an instruction without result."""
        if not self.now.is_closed:
            self.now.lines.append(text)

    def emit(self, text: str, kind: Kind) -> Value:
        """Add an instruction with a result."""
        self._count += 1
        name = f"%t{self._count}"
        self.do(f"{name} = {text}")
        return Value(name, kind)

    def text(self) -> str:
        """Give the body of the function."""
        first = "\n".join(f"  {line}" for line in (*self.slots, f"br label %{self.blocks[0].label}"))
        rest = (f"{b.label}:\n" + "\n".join(f"  {line}" for line in b.lines) for b in self.blocks)
        return "\n".join(["entry:", first, *rest])

    # -- memory

    def slot(self, kind: Kind) -> str:
        """Reserve a place on the stack."""
        self._count += 1
        self.slots.append(f"%s{self._count} = alloca {llvm(kind)}")
        return f"%s{self._count}"

    def load(self, pointer: Value, index: Value) -> Value:
        """Read an element of a block."""
        name, (memory, kind), at = self._element(pointer, index)
        got = self.emit(f"load {memory}, ptr {at}", kind)
        return self.emit(f"{_WIDEN[name]} {memory} {got.text} to i64", kind) if name in _WIDEN else got

    def store(self, pointer: Value, index: Value, value: Value) -> None:
        """Write an element of a block."""
        name, (memory, kind), at = self._element(pointer, index)
        got = self.convert(value, kind)
        if name in _WIDEN:
            got = self.emit(f"trunc i64 {got.text} to {memory}", kind)
        self.do(f"store {memory} {got.text}, ptr {at}")

    def moved(self, pointer: Value, index: Value) -> Value:
        """Give the block that starts some elements further."""
        # Not inbounds: the block may be null, as an array that is absent on this turn is.
        return Value(self._element(pointer, index, "")[2], pointer.kind)

    def _element(self, pointer: Value, index: Value, word: str = " inbounds") -> tuple[str, tuple[str, str], str]:
        if pointer.kind[0] != "*" or pointer.kind[1:] not in BLOCKS:
            raise Unsupported(f"an index into {pointer.kind}")
        name = pointer.kind[1:]
        at = self.convert(index, "i64").text
        found = BLOCKS[name]
        return name, found, self.emit(f"getelementptr{word} {found[0]}, ptr {pointer.text}, i64 {at}", "i64").text

    # -- arithmetic

    def convert(self, value: Value, kind: Kind) -> Value:
        """Give a value in another kind; between integers of 64 bits nothing changes."""
        a, text = value.kind, value.text
        if a == kind or {a, kind} == {"i64", "u64"}:
            return Value(text, kind, value.literal)
        if isinstance(kind, tuple) and isinstance(a, tuple):
            made = Value("undef", kind)
            for k, (have, want) in enumerate(zip(a, kind, strict=True)):
                part = self.convert(self.part(value, k, have), want)
                made = self.with_part(made, k, part)
            return made
        if value.literal is not None and kind in ("f64", "f32"):
            return Value(constant(float(value.literal)).text, kind)
        if kind == "i1":
            return self.compare(ast.NotEq(), value, Value("0", "i64", 0))
        step = {
            ("i1", "f"): "uitofp", ("i1", "i"): "zext", ("i1", "u"): "zext", ("i32", "i"): "sext",
            ("i32", "f"): "sitofp", ("i64", "f"): "sitofp", ("u64", "f"): "uitofp", ("i64", "i"): "trunc",
            ("u64", "i"): "trunc", ("f32", "f"): "fpext", ("f64", "f"): "fptrunc", ("f32", "i"): "fptosi",
            ("f64", "i"): "fptosi", ("f64", "u"): "fptoui", ("f32", "u"): "fptoui",
        }.get((a, kind[0]))  # fmt: skip
        if step is None:
            raise Unsupported(f"{a} as {kind}")
        if step.startswith("fpto"):  # defined for NaN and numbers too large, where Python raises
            name = f"llvm.{step}.sat.{llvm(kind)}.{a}"
            self._declared[name] = f"declare {llvm(kind)} @{name}({llvm(a)})"
            return self.emit(f"call {llvm(kind)} @{name}({llvm(a)} {text})", kind)
        return self.emit(f"{step} {llvm(a)} {text} to {llvm(kind)}", kind)

    def part(self, value: Value, k: int, kind: Kind) -> Value:
        """Give an element of a tuple."""
        return self.emit(f"extractvalue {llvm(value.kind)} {value.text}, {k}", kind)

    def with_part(self, value: Value, k: int, part: Value) -> Value:
        """Give a tuple with one element replaced."""
        return self.emit(f"insertvalue {llvm(value.kind)} {value.text}, {llvm(part.kind)} {part.text}, {k}", value.kind)

    def together(self, a: Value, b: Value) -> tuple[Value, Value, Kind]:
        """Bring two numbers to one kind; a literal goes with an unsigned word."""
        if "u64" in (a.kind, b.kind):
            other = b if a.kind == "u64" else a
            if other.kind != "u64" and (other.literal is None or other.literal < 0):
                raise Unsupported(f"u64 with {other.kind}")
            return Value(a.text, "u64"), Value(b.text, "u64"), "u64"
        kind = join(a.kind, b.kind)
        return self.convert(a, kind), self.convert(b, kind), kind

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Compute with two numbers; integers wrap, a float divided by zero is infinite."""
        a, b, kind = self.together(a, b)
        if kind in ("i1", "i32") and not (kind == "i1" and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor)):
            a, b, kind = self.convert(a, "i64"), self.convert(b, "i64"), "i64"
        if isinstance(op, ast.Div) and kind in ("i64", "u64"):
            a, b, kind = self.convert(a, "f64"), self.convert(b, "f64"), "f64"
        if isinstance(kind, str) and kind[0] == "f" and type(op) in _FLOAT:
            return self.emit(f"{_FLOAT[type(op)]}{self._fast} {llvm(kind)} {a.text}, {b.text}", kind)
        if kind in ("i64", "u64", "i1") and type(op) in _INTEGER:
            return self.emit(f"{_INTEGER[type(op)]} {llvm(kind)} {a.text}, {b.text}", kind)
        if kind in ("i64", "u64") and isinstance(op, ast.RShift):
            return self.emit(f"{'ashr' if kind == 'i64' else 'lshr'} i64 {a.text}, {b.text}", kind)
        if kind == "i64" and isinstance(op, ast.Mod | ast.FloorDiv):
            return self._floor(op, a, b)
        raise Unsupported(f"{type(op).__name__} of {kind}")

    def _floor(self, op: ast.operator, a: Value, b: Value) -> Value:
        """Divide as Python does, towards minus infinity; by zero gives zero."""
        zero = Value("0", "i64", 0)
        none = self.compare(ast.Eq(), b, zero)
        by = self.choose(none, Value("1", "i64"), b)
        quotient = self.emit(f"sdiv i64 {a.text}, {by.text}", "i64")
        rest = self.emit(f"srem i64 {a.text}, {by.text}", "i64")
        mixed = self.compare(ast.Lt(), self.binary(ast.BitXor(), rest, by), zero)
        off = self.binary(ast.BitAnd(), mixed, self.compare(ast.NotEq(), rest, zero))
        if isinstance(op, ast.Mod):
            made = self.choose(off, self.binary(ast.Add(), rest, by), rest)
        else:
            made = self.choose(off, self.binary(ast.Sub(), quotient, Value("1", "i64")), quotient)
        return self.choose(none, zero, made)

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """Compare two numbers; NaN is unequal to everything."""
        a, b, kind = self.together(a, b)
        if type(op) not in _ORDER or isinstance(kind, tuple) or kind[0] == "*":
            raise Unsupported(f"{type(op).__name__} of {kind}")
        order = _ORDER[type(op)]
        if kind[0] == "f":
            return self.emit(f"fcmp {'une' if order == 'ne' else 'o' + order} {llvm(kind)} {a.text}, {b.text}", "i1")
        sign = "" if order in ("eq", "ne") else "u" if kind in ("u64", "i1") else "s"
        return self.emit(f"icmp {sign}{order} {llvm(kind)} {a.text}, {b.text}", "i1")

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        """Give one of two numbers of one kind."""
        kind = llvm(yes.kind)
        return self.emit(f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}", yes.kind)

    def invert(self, value: Value) -> Value:
        """Flip every bit."""
        if value.kind == "u64":
            return self.emit(f"xor i64 {value.text}, -1", "u64")
        value = self.convert(value, "i64")
        return self.emit(f"xor i64 {value.text}, -1", "i64")

    def negate(self, value: Value) -> Value:
        """Change the sign."""
        if value.kind in ("f64", "f32"):
            return self.emit(f"fneg{self._fast} {llvm(value.kind)} {value.text}", value.kind)
        if value.literal is not None:
            return constant(-value.literal)
        value = self.convert(value, "i64")
        return self.emit(f"sub i64 0, {value.text}", "i64")

"""Kernels as LLVM assembly, straight from their syntax trees.

The language of kernels is so small (numbers, blocks of numbers, ``if``, ``for``, ``while``, calls of
each other) that its types need no solving: one walk down a function gives them, a second one when
a variable turned out to be wider. That takes a thirtieth of the time of numba, which remains the
compiler of everything that is not in here: an unknown construct raises ``Unsupported``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from stabilitykit.kernels.calls import CALLS, INTRINSIC
from stabilitykit.kernels.fingerprint import is_kernel
from stabilitykit.kernels.ir import Builder, Unsupported, Value, constant, join, llvm
from stabilitykit.kernels.source import tree_of

__all__ = ["Module"]

_WIDE = ' noinline "prefer-vector-width"="512" "min-legal-vector-width"="512"'


class Module:
    """Grows the assembly of a function and of all that it calls."""

    def __init__(self) -> None:
        self._done: dict[tuple[Callable[..., Any], tuple[Any, ...]], tuple[str, Any]] = {}
        self.declared: dict[str, str] = {}
        self.bodies: list[str] = []

    def add(self, fn: Callable[..., Any], kinds: tuple[Any, ...]) -> tuple[str, Any]:
        """Translate a kernel for arguments of these kinds, once; gives its symbol and the kind of its result.

        Raises
        ------
        Unsupported
            A construct outside the language of kernels, or no source to read.
        """
        key = (fn, kinds)
        if key not in self._done:
            assert isinstance(fn, FunctionType)
            tree = tree_of(fn)
            if tree is None or len(tree.args.args) != len(kinds):
                raise Unsupported(f"{fn.__qualname__}: no source, or not its arguments")
            if fn.__code__.co_freevars:
                raise Unsupported(f"{fn.__qualname__}: variables of an enclosing function")
            symbol = f"{fn.__name__}.{len(self._done)}"
            self._done[key] = (symbol, None)  # a recursion would find no kind
            work = _Function(self, fn, tree, kinds)
            try:
                text = work.translate(symbol)
            except Unsupported as problem:
                raise Unsupported(f"{fn.__qualname__}, line {work.line}: {problem}") from None
            self._done[key] = (symbol, work.result)
            self.bodies.append(text)
        return self._done[key]

    def text(self) -> str:
        """Give the module."""
        return "\n".join([*self.declared.values(), *self.bodies])


class _Function:
    def __init__(self, module: Module, fn: FunctionType, tree: ast.FunctionDef, kinds: tuple[Any, ...]) -> None:
        self.module, self.fn, self.tree, self.kinds = module, fn, tree, kinds
        self.variables: dict[str, Any] = {a.arg: k for a, k in zip(tree.args.args, kinds, strict=True)}
        self.result: Any = None
        self.line = 0
        options = getattr(fn, "__kernel_options__", {})
        self.fast = "".join(f" {word}" for word in options.get("fastmath", ()))

    def translate(self, symbol: str) -> str:
        """Walk the function until no variable gets wider; gives its assembly."""
        while True:
            before = (dict(self.variables), self.result)
            self.b = Builder(self.fast, self.module.declared)
            self.places = {name: self.b.slot(kind) for name, kind in self.variables.items()}
            self.loops: list[tuple[Any, Any]] = []
            for a, kind in zip(self.tree.args.args, self.kinds, strict=True):
                self._assign(a.arg, Value(f"%a.{a.arg}", kind))
            self._run(self.tree.body)
            if self.result is None:
                self.result = "void"
            if self.result != "void" and self.b.is_open():
                raise Unsupported("a way to the end without a result")
            self.b.end("ret void" if self.result == "void" else "unreachable")
            if before == (self.variables, self.result):
                break
        given = ", ".join(f"{llvm(k)} %a.{a.arg}" for a, k in zip(self.tree.args.args, self.kinds, strict=True))
        words = f"nounwind{_WIDE if hasattr(self.fn, '__kernel_wide__') else ''}"
        return f"define internal {llvm(self.result)} @{symbol}({given}) {words} {{\n{self.b.text()}\n}}"

    # -- statements

    def _run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.line = statement.lineno
            visit = getattr(self, f"_do_{type(statement).__name__}", None)
            if visit is None:
                raise Unsupported(type(statement).__name__)
            visit(statement)

    def _do_Expr(self, node: ast.Expr) -> None:  # noqa: N802 - named after the node
        if isinstance(node.value, ast.Call):
            self.value(node.value)
        elif not isinstance(node.value, ast.Constant):
            raise Unsupported("an expression without effect")

    def _do_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                for part, value in zip(target.elts, self._parts(node.value, len(target.elts)), strict=True):
                    self._put(part, value)
            else:
                self._put(target, self.value(node.value))

    def _do_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        target = node.target
        if isinstance(target, ast.Subscript):
            block, index = self.value(target.value), self.value(target.slice)
            old = self.b.load(block, index)
            self.b.store(block, index, self.b.binary(node.op, old, self.value(node.value)))
        else:
            assert isinstance(target, ast.Name)
            self._assign(target.id, self.b.binary(node.op, self._read(target.id), self.value(node.value)))

    def _do_If(self, node: ast.If) -> None:  # noqa: N802
        yes, no, after = self.b.block("then"), self.b.block("else"), self.b.block("after")
        self.b.branch(self._truth(node.test), yes, no)
        for block, body in ((yes, node.body), (no, node.orelse)):
            self.b.enter(block)
            self._run(body)
            self.b.jump(after)
        self.b.enter(after)

    def _do_While(self, node: ast.While) -> None:  # noqa: N802
        self._loop(lambda: self._truth(node.test), lambda: None, node)

    def _do_For(self, node: ast.For) -> None:  # noqa: N802
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
            raise Unsupported("a loop over something else than a range")
        bounds = [self.b.convert(self.value(a), "i64") for a in call.args]
        first = bounds[0] if len(bounds) > 1 else constant(0)
        last = bounds[min(1, len(bounds) - 1)]
        step = bounds[2] if len(bounds) > 2 else constant(1)
        if step.literal is None or step.literal == 0 or not isinstance(node.target, ast.Name):
            raise Unsupported("a range with a step that is not a literal")
        name, count = node.target.id, self.b.slot("i64")
        order = ast.Lt() if step.literal > 0 else ast.Gt()
        self.b.do(f"store i64 {first.text}, ptr {count}")

        def test() -> Value:
            now = self.b.emit(f"load i64, ptr {count}", "i64")
            return self.b.compare(order, now, last)

        def advance() -> None:
            now = self.b.emit(f"load i64, ptr {count}", "i64")
            self.b.do(f"store i64 {self.b.emit(f'add nsw i64 {now.text}, {step.text}', 'i64').text}, ptr {count}")

        self._loop(test, advance, node, lambda: self._assign(name, self.b.emit(f"load i64, ptr {count}", "i64")))

    def _loop(
        self,
        test: Callable[[], Value],
        advance: Callable[[], None],
        node: ast.For | ast.While,
        start: Callable[[], None] = lambda: None,
    ) -> None:
        if node.orelse:
            raise Unsupported("else of a loop")
        head, body, more, after = (self.b.block(name) for name in ("head", "loop", "more", "after"))
        self.b.jump(head)
        self.b.enter(head)
        self.b.branch(test(), body, after)
        self.b.enter(body)
        start()
        self.loops.append((more, after))
        self._run(node.body)
        self.loops.pop()
        self.b.jump(more)
        self.b.enter(more)
        advance()
        self.b.jump(head)
        self.b.enter(after)

    def _do_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.b.jump(self.loops[-1][0])

    def _do_Break(self, node: ast.Break) -> None:  # noqa: N802
        self.b.jump(self.loops[-1][1])

    def _do_Pass(self, node: ast.Pass) -> None:  # noqa: N802
        pass

    def _do_Return(self, node: ast.Return) -> None:  # noqa: N802
        if node.value is None:
            self.result = "void" if self.result is None else join(self.result, "void")
            self.b.end("ret void")
            return
        value = self.value(node.value)
        self.result = value.kind if self.result is None else join(self.result, value.kind)
        value = self.b.convert(value, self.result)
        self.b.end(f"ret {llvm(value.kind)} {value.text}")

    # -- variables

    def _put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            self.b.store(self.value(target.value), self.value(target.slice), value)
        else:
            raise Unsupported(f"{type(target).__name__} as a target")

    def _assign(self, name: str, value: Value) -> None:
        known = self.variables.get(name)
        kind = value.kind if known is None else join(known, value.kind)
        self.variables[name] = kind
        if name in self.places and known == kind:
            value = self.b.convert(value, kind)
            self.b.do(f"store {llvm(kind)} {value.text}, ptr {self.places[name]}")

    def _read(self, name: str) -> Value:
        if name in self.variables:
            place = self.places.get(name, "undef")  # not yet placed: only the kinds of this walk count
            return self.b.emit(f"load {llvm(self.variables[name])}, ptr {place}", self.variables[name])
        if name in self.fn.__globals__:
            return constant(self.fn.__globals__[name])
        raise Unsupported(f"{name} is not known here")

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        visit = getattr(self, f"_of_{type(node).__name__}", None)
        if visit is None:
            raise Unsupported(type(node).__name__)
        found: Value = visit(node)
        return found

    def _truth(self, node: ast.expr) -> Value:
        if isinstance(node, ast.BoolOp):
            return self._both(node, self._truth)
        return self.b.convert(self.value(node), "i1")

    def _parts(self, node: ast.expr, count: int) -> list[Value]:
        if isinstance(node, ast.Tuple):
            return [self.value(part) for part in node.elts]
        whole = self.value(node)
        if not isinstance(whole.kind, tuple) or len(whole.kind) != count:
            raise Unsupported("another number of values")
        return [self.b.part(whole, k, kind) for k, kind in enumerate(whole.kind)]

    def _of_Constant(self, node: ast.Constant) -> Value:  # noqa: N802
        return constant(node.value)

    def _of_Name(self, node: ast.Name) -> Value:  # noqa: N802
        return self._read(node.id)

    def _of_Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802
        return constant(self._static(node))

    def _of_Subscript(self, node: ast.Subscript) -> Value:  # noqa: N802
        return self.b.load(self.value(node.value), self.value(node.slice))

    def _of_BinOp(self, node: ast.BinOp) -> Value:  # noqa: N802
        return self.b.binary(node.op, self.value(node.left), self.value(node.right))

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:  # noqa: N802
        if isinstance(node.op, ast.Not):
            return self.b.emit(f"xor i1 {self._truth(node.operand).text}, 1", "i1")
        value = self.value(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        return self.b.negate(value) if isinstance(node.op, ast.USub) else self.b.invert(value)

    def _of_Compare(self, node: ast.Compare) -> Value:  # noqa: N802
        left = self.value(node.left)
        found: Value | None = None
        for op, right in zip(node.ops, map(self.value, node.comparators), strict=True):
            one = self.b.compare(op, left, right)
            found = one if found is None else self.b.binary(ast.BitAnd(), found, one)
            left = right
        assert found is not None
        return found

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:  # noqa: N802
        return self._both(node, self._condition)

    def _condition(self, node: ast.expr) -> Value:
        value = self.value(node)
        if value.kind != "i1":  # Python gives the operand itself, whose kind depends on the way taken
            raise Unsupported(f"'and' or 'or' that gives {value.kind}")
        return value

    def _both(self, node: ast.BoolOp, operand: Callable[[ast.expr], Value]) -> Value:
        place, after = self.b.slot("i1"), self.b.block("both")
        for k, part in enumerate(node.values):
            value = operand(part)
            self.b.do(f"store i1 {value.text}, ptr {place}")
            if k + 1 < len(node.values):
                more = self.b.block("next")
                self.b.branch(value, *((more, after) if isinstance(node.op, ast.And) else (after, more)))
                self.b.enter(more)
        self.b.jump(after)
        self.b.enter(after)
        return self.b.emit(f"load i1, ptr {place}", "i1")

    def _of_IfExp(self, node: ast.IfExp) -> Value:  # noqa: N802
        yes, no, after = self.b.block("yes"), self.b.block("no"), self.b.block("either")
        self.b.branch(self._truth(node.test), yes, no)
        ends = []
        for block, part in ((yes, node.body), (no, node.orelse)):
            self.b.enter(block)
            value = self.value(part)
            ends.append((value, self.b.now))
        kind = join(ends[0][0].kind, ends[1][0].kind)
        place = self.b.slot(kind)
        for value, block in ends:
            self.b.now = block
            self.b.do(f"store {llvm(kind)} {self.b.convert(value, kind).text}, ptr {place}")
            self.b.jump(after)
        self.b.enter(after)
        return self.b.emit(f"load {llvm(kind)}, ptr {place}", kind)

    def _of_Tuple(self, node: ast.Tuple) -> Value:  # noqa: N802
        parts = [self.value(part) for part in node.elts]
        made = Value("undef", tuple(part.kind for part in parts))
        for k, part in enumerate(parts):
            made = self.b.with_part(made, k, part)
        return made

    # -- calls

    def _static(self, node: ast.expr) -> Any:
        """Give what a name means at compile time."""
        if isinstance(node, ast.Name) and node.id not in self.variables:
            space = self.fn.__globals__
            return (
                space[node.id]
                if node.id in space
                else getattr(space["__builtins__"], node.id, None)
                or (space["__builtins__"][node.id] if isinstance(space["__builtins__"], dict) else None)
            )
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._static(node.value)
            if owner is not math and owner is not np:  # anything else can change under the cache
                raise Unsupported(f"an attribute of {node.value.id}")
            return getattr(owner, node.attr, None)
        return None

    def _of_Call(self, node: ast.Call) -> Value:  # noqa: N802
        if node.keywords:
            raise Unsupported("a keyword argument")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            return CALLS["view"](self, [self.value(node.func.value)], self._static(node.args[0]))
        target = self._static(node.func)
        name = INTRINSIC.get(target) if getattr(target, "__hash__", None) else None
        values = [self.value(a) for a in node.args]
        if name is not None:
            return CALLS[name](self, values, target)
        if not is_kernel(target):
            raise Unsupported(f"a call of {ast.unparse(node.func)}")
        values = [self.b.convert(v, "i64") if v.kind in ("i1", "i32") else v for v in values]
        symbol, result = self.module.add(target, tuple(v.kind for v in values))
        if result is None:
            raise Unsupported("recursion")
        given = ", ".join(f"{llvm(v.kind)} {v.text}" for v in values)
        if result == "void":
            self.b.do(f"call void @{symbol}({given})")
            return Value("undef", "void")
        return self.b.emit(f"call {llvm(result)} @{symbol}({given})", result)

"""The syntax tree of a function that is already running, and proof that it is that function's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

__all__ = ["tree_of"]


def tree_of(fn: FunctionType) -> ast.FunctionDef | None:
    """Give a function's syntax tree; None when its source is absent or was changed since the import."""
    code = fn.__code__
    known = _functions(code.co_filename).get((code.co_name, code.co_firstlineno))
    # An edited file, a rewriting importer: only the same bytecode is the same function.
    return known[0] if known is not None and known[1] == code.co_code and known[2] == _numbers(code) else None


@cache
def _functions(path: str) -> dict[tuple[str, int], tuple[ast.FunctionDef, bytes, object]]:
    """Read a module once: each function's tree and bytecode by name and first line."""
    try:
        tree = ast.parse(Path(path).read_bytes())
        codes = {(c.co_name, c.co_firstlineno): c for c in _codes(compile(tree, path, "exec", dont_inherit=True))}
    except (OSError, SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            code = codes.get((node.name, first))
            if code is not None:
                found[node.name, first] = (node, code.co_code, _numbers(code))
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _numbers(code: CodeType) -> object:
    return (repr([c for c in code.co_consts if not isinstance(c, CodeType | str)]), code.co_names, code.co_varnames)

"""Templates of reasons: checked against a whitelist when a pack loads, rendered in a sandbox.

A template may print names, choose with ``if`` and format with a few filters. Loops, calls,
arithmetic and attribute chains are refused before anything runs: a sandbox alone does not stop
``'A' * 10**9``. Jinja is imported when the first template needs it; the usual template, text
with plain ``{{ name }}`` in it, is checked without parsing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stabilitykit.rules.conditions.lexer import SyntaxProblem

if TYPE_CHECKING:
    from jinja2 import nodes

__all__ = ["MAX_OUTPUT", "MAX_PARSED", "MAX_SOURCE", "UNKNOWN", "check_template", "must_be_parsed", "render"]

MAX_SOURCE = 2_000
MAX_PARSED = 65_536
"""Characters of all the templates of a pack that do more than print names."""
MAX_OUTPUT = 4_096
MAX_NODES = 200
MAX_DEPTH = 16
MAX_DIGITS = 12

_PRINTS = ("Template", "Output", "TemplateData", "Name", "Getattr", "Filter", "Const")
_CHOOSES = ("If", "Compare", "Operand", "And", "Or", "Not")
_ALLOWED = frozenset((*_PRINTS, *_CHOOSES))
_FILTERS = ("default", "lower", "ms", "pct", "round", "upper")
_PLAIN = re.compile(
    r"(?<!\{)\{\{\s*([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)\s*"
    r"(?:\|\s*(?:round(?:\(\s*(?:[0-9]|1[0-2])\s*\))?|pct|ms|upper|lower)\s*)*\}\}"
)
_MANY_PIECES = 40
_JINJA_WORDS = frozenset(["and", "else", "false", "if", "in", "is", "none", "not", "or", "true"])


class _Unknown:
    """How a value that is unknown on this turn prints and compares: as nothing in particular."""

    def __str__(self) -> str:
        return "unknown"

    def __bool__(self) -> bool:
        return False

    def _never(self, _other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _never
    __hash__ = object.__hash__


UNKNOWN = _Unknown()
"""Give this to ``render`` for a value that is unknown."""


def check_template(source: str, names: frozenset[str]) -> list[SyntaxProblem]:
    """Check a template.

    Parameters
    ----------
    source
        Its text.
    names
        What it may print: ``itl_ms``, ``itl.baseline_ms``, ``params.slow``.

    Returns
    -------
    list of SyntaxProblem
        Empty when the template is sound.
    """
    if len(source) > MAX_SOURCE:
        return [_refused(f"a template has at most {MAX_SOURCE:,} characters")]
    used = _plain_names(source)
    if used is not None:
        return [_unknown_name(name, at, names) for name, at in used if name not in names]
    return [_located(source, p, names) for p in _walk(source) if isinstance(p, SyntaxProblem) or p not in names]


def must_be_parsed(source: str) -> bool:
    """Tell whether checking a template needs Jinja, which takes microseconds a character."""
    return _plain_names(source) is None


def _plain_names(source: str) -> list[tuple[str, int]] | None:
    """Give (name, offset) of a template that only prints names; ``None`` when it does more."""
    rest = _PLAIN.sub("", source)
    if "{{" in rest or "{%" in rest or "{#" in rest:
        return None
    found = [(m[1], m.start(1)) for m in _PLAIN.finditer(source)]
    if len(found) > _MANY_PIECES or any(name in _JINJA_WORDS for name, _ in found):
        return None
    return found


def _located(source: str, found: SyntaxProblem | str, names: frozenset[str]) -> SyntaxProblem:
    if isinstance(found, SyntaxProblem):
        return found
    pattern = re.escape(found).replace(r"\.", r"\s*\.\s*")
    match = re.search(rf"(?<![\w.]){pattern}(?![\w])", source)
    return _unknown_name(found, match.start() if match else 0, names)


def _unknown_name(name: str, offset: int, names: frozenset[str]) -> SyntaxProblem:
    hint = "one of " + ", ".join(sorted(names)[:8]) if names else ""
    return SyntaxProblem("SK308", offset, len(name), f"`when` does not read `{name}`", hint, (name, names))


def _refused(message: str, offset: int = 0) -> SyntaxProblem:
    return SyntaxProblem("SK605", offset, 1, message)


def _line_offset(source: str, line: int) -> int:
    return sum(len(text) for text in source.splitlines(keepends=True)[: line - 1])


def _walk(source: str) -> Iterator[SyntaxProblem | str]:
    """Give every name a template prints, and every problem with its syntax tree."""
    from jinja2 import TemplateError, nodes

    try:
        tree: nodes.Node = _environment().parse(source)
    except TemplateError as error:
        offset = _line_offset(source, getattr(error, "lineno", 1))
        yield _refused(f"not a template: {error.message or 'syntax error'}", offset)
        return
    except RecursionError:
        yield _refused("a template nests too deep")
        return
    stack = [(tree, 0)]
    seen = 0
    while stack:
        node, depth = stack.pop()
        seen += 1
        if seen > MAX_NODES or depth > MAX_DEPTH:
            yield _refused(f"a template has at most {MAX_NODES} parts, {MAX_DEPTH} inside one another")
            return
        refusal = _refusal(node)
        if refusal:
            yield _refused(refusal, _line_offset(source, node.lineno))
        elif isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
            yield f"{node.node.name}.{node.attr}"
        elif isinstance(node, nodes.Name):
            yield node.name
        else:
            stack += [(child, depth + 1) for child in reversed(list(node.iter_child_nodes()))]


def _refusal(node: nodes.Node) -> str:
    """Say why a node is not allowed, "" when it is."""
    kind = type(node).__name__
    if kind not in _ALLOWED:
        return f"a template cannot hold `{kind.lower()}`: it prints names, filters them, and chooses with `if`"
    if kind == "Getattr" and type(node.node).__name__ != "Name":  # type: ignore[attr-defined]
        return "a template reads `detector.output` or `params.name`, nothing deeper"
    if kind == "Filter":
        return _filter_refusal(node)
    return ""


def _filter_refusal(node: Any) -> str:
    if node.name not in _FILTERS:
        return f"unknown filter `{node.name}`; there are {', '.join(_FILTERS)}"
    constants = [getattr(a, "value", None) for a in node.args]
    if node.kwargs or node.dyn_args or node.dyn_kwargs or None in constants:
        return f"filter `{node.name}` takes constants only"
    if len(node.args) != (1 if node.name == "default" else 0) and not (node.name == "round" and len(node.args) == 1):
        return f"filter `{node.name}` takes {'one constant' if node.name == 'default' else 'no argument'}"
    if node.name == "round" and any(type(c) is not int or not 0 <= c <= MAX_DIGITS for c in constants):
        return f"`round` takes 0 to {MAX_DIGITS} digits"
    return ""


def _round(value: Any, digits: int = 0) -> Any:
    if not isinstance(value, (int, float)):
        return value
    return round(value, digits) if digits else round(value)


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Build the sandbox: no globals, no tests, our filters, names that must exist."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        def getattr(self, obj: Any, attribute: str) -> Any:
            # Plain look-up: an output called `items` is a value, never a method of dict.
            return obj[attribute] if isinstance(obj, Mapping) else self.undefined(obj=obj, name=attribute)

    # Reasons are plain text: whoever puts them into HTML escapes them there.
    env = Sandbox(undefined=StrictUndefined, autoescape=False)
    env.globals.clear()
    env.tests.clear()
    env.filters = {
        "default": lambda value, other: other if value is UNKNOWN else value,
        "lower": lambda value: str(value).lower(),
        "ms": lambda value: f"{value:.1f} ms" if isinstance(value, (int, float)) else value,
        "pct": lambda value: f"{100 * value:.1f} %" if isinstance(value, (int, float)) else value,
        "round": _round,
        "upper": lambda value: str(value).upper(),
    }
    return env


@lru_cache(maxsize=4096)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


def render(source: str, values: Mapping[str, Any]) -> str:
    """Render a checked template.

    Parameters
    ----------
    source
        Its text, checked by ``check_template`` before.
    values
        Values by name; outputs in a mapping by detector, params in one under ``params``.

    Returns
    -------
    str
        At most 4,096 characters.

    Examples
    --------
    >>> render("ITL {{ itl_ms | round(1) }} ms, baseline {{ itl.baseline_ms }}",
    ...        {"itl_ms": 120.04, "itl": {"baseline_ms": UNKNOWN}})
    'ITL 120.0 ms, baseline unknown'
    """
    return str(_compiled(source).render(values))[:MAX_OUTPUT]

"""What a YAML scalar means: the core schema of YAML 1.2, less everything that YAML 1.1 reads differently.

A plain ``no``, ``010``, ``12:30`` or ``1_000`` means one thing to one YAML reader and another
thing to the next, so here it means nothing: it must be quoted.
"""

from __future__ import annotations

import math
import re

__all__ = ["CONTROL", "SAFE_FIRST", "ScalarError", "plain_key", "plain_value", "show"]

_WORDS: dict[str, bool | int | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{str(digit): digit for digit in range(10)},  # no rule is needed for the commonest numbers
}
_BOOLISH = frozenset(
    form for word in ("yes", "no", "on", "off", "y", "n") for form in (word, word.capitalize(), word.upper())
)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF|nan|NaN|NAN)\Z")
_BARE_INF = frozenset(("nan", "NaN", "NAN", "inf", "Inf", "INF", "infinity", "Infinity"))
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_DOUBTFUL = re.compile(
    r"[-+]?0[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?\Z"  # 010
    r"|[-+]?0[xob][0-9a-fA-F_]+\Z"  # 0x1F
    r"|[-+]?(\.|[0-9])[0-9]*_[0-9_.]*([eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+\.[0-9]*_[0-9_]*\Z"  # 1_000
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z"  # 12:30
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}.*)?\Z"  # a date
)
_INT_DIGITS = 20
_FIRST = frozenset("0123456789+-.")
SAFE_FIRST = frozenset("abcdeghjklmpqrsuvwxzABCDEGHJKLMPQRSUVWXZ")
"""First letters of plain scalars that are text to everyone (not those of no, yes, true, inf ...)."""

CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that hide what a text says: controls, bidi marks, invisible and private separators."""


class ScalarError(ValueError):
    """A plain scalar that is refused."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


def show(text: str) -> str:
    """Quote foreign text for a message: short, on one line, nothing invisible."""
    short = text if len(text) <= 40 else text[:37] + "..."
    is_plain = short.isprintable() and not CONTROL.search(short)
    return f"`{short}`" if is_plain else f"`{ascii(short)[1:-1]}`"


def _doubtful(text: str) -> ScalarError:
    return ScalarError("SK105", f"{show(text)} is ambiguous in YAML", f'quote it: "{text[:40]}"')


def _number(text: str) -> int | float | None:
    """Read a number of the core schema, or give None when the text is no number."""
    if _INT.match(text):
        value = int(text) if len(text) <= _INT_DIGITS else 1 << 63
        if not -(1 << 63) <= value < 1 << 63:
            raise ScalarError("SK106", f"{show(text)} does not fit into 64 bits")
        return value
    if _FLOAT.match(text):
        number = float(text)
        if not math.isfinite(number):
            raise ScalarError("SK106", f"{show(text)} overflows a 64-bit float")
        return number
    if _DOUBTFUL.match(text):
        raise _doubtful(text)
    if _NOT_FINITE.match(text):
        raise ScalarError("SK106", f"{show(text)} is not a finite number")
    return None


def plain_value(text: str) -> str | int | float | bool | None:
    """Resolve a plain (unquoted) scalar.

    Raises
    ------
    ScalarError
        SK105 when YAML versions disagree about it, SK106 when it is a number out of range.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _FIRST:
        number = _number(text)
        return text if number is None else number
    if text in _BOOLISH or text in _BARE_INF or text in ("=", "<<"):
        raise _doubtful(text)
    return text


def plain_key(text: str) -> str:
    """Check a plain key, which must be text to every reader; ``y`` and ``n`` are names here."""
    if text == "<<":
        raise ScalarError("SK104", "merge keys are not allowed", "write the fields out, or use `extends`")
    if text in ("y", "n"):
        return text
    if not isinstance(plain_value(text), str):
        raise ScalarError("SK105", f"the key {show(text)} is not text to YAML", f'quote it: "{text[:40]}"')
    return text

"""Marker v1: one JSON line a turn in the host's own log, and back (A1.3, A3.1).

Seventeen fields in one order; unknown is ``null``. The first eight are those of the source document: its context ratio
is really two numbers, so ``context_usage_ratio`` is the window used here and the KV cache's occupancy stays with the
replica (``kv_usage_ratio``). Ratios, rates and times have three decimals, rounded as Python's ``format`` does.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from stabilitykit.engine.generation import Generation
from stabilitykit.errors import RecordError, UsageError
from stabilitykit.turn import Turn, is_missing
from stabilitykit.turn_record import TurnRecord

if TYPE_CHECKING:
    from stabilitykit.decision import Decision

__all__ = [
    "FIELDS",
    "LAYOUT",
    "VERSION",
    "Marker",
    "check_uuid4",
    "finite",
    "format_marker",
    "marker_of",
    "parse_marker",
    "render",
]

VERSION = 1
LAYOUT: Mapping[str, str] = {
    "session_id": "text", "turn_id": "turn", "input_tokens": "count", "context_usage_ratio": "decimal",
    "is_history_truncated": "bool", "decode_ms_prev": "decimal", "kv_hit_ratio": "decimal",
    "intent_drift_score": "score", "timestamp_s": "decimal", "model": "text", "output_tokens": "count",
    "ttft_ms": "decimal", "itl_ms": "decimal", "kl_shift_nats": "decimal", "finish_reason": "text", "state": "text",
    "pack_fingerprint": "text",
}  # fmt: skip
"""Kind of each field, in the order of the marker."""
FIELDS = tuple(LAYOUT)
_SAFE = 2**53 - 1
"""Greater whole numbers lose digits in a reader that knows only doubles: they are written as text."""
_TURN = ("input_tokens", "context_usage_ratio", "is_history_truncated", "kv_hit_ratio", "output_tokens", "ttft_ms",
         "itl_ms", "finish_reason")  # fmt: skip
_HEAD = "stabilitykit.marker"
_LINE = re.compile(r"stabilitykit\.marker v\d{1,6} \{")
_PLACE = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_MAX_LINE = 8_192
_MAX_TEXT = 8 * _MAX_LINE
"""Characters of a line that are read where a JSON logger has wrapped the marker."""
_MAX_TRIES = 16
"""Braces before a wrapped marker that are tried as the beginning of the logger's object."""
_MAX_DIGITS = 20


@attrs.frozen(kw_only=True)
class Marker:
    """One marker; ``None`` is unknown."""

    session_id: str
    turn_id: int
    input_tokens: int | None = None
    context_usage_ratio: float | None = None
    is_history_truncated: bool | None = None
    decode_ms_prev: float | None = None
    kv_hit_ratio: float | None = None
    intent_drift_score: float | None = None
    timestamp_s: float | None = None
    model: str | None = None
    output_tokens: int | None = None
    ttft_ms: float | None = None
    itl_ms: float | None = None
    kl_shift_nats: float | None = None
    finish_reason: str | None = None
    state: str | None = None
    pack_fingerprint: str | None = None

    @property
    def turn(self) -> Turn:
        """The turn that the marker tells of.

        Raises
        ------
        RecordError
            A value that no Turn may have.
        """
        record: dict[str, Any] = {"session_id": self.session_id, "turn_id": self.turn_id, "model": self.model}
        record |= {name: getattr(self, name) for name in _TURN}
        if self.timestamp_s is not None:
            record["timestamp_s"] = self.timestamp_s
        floats = {name for name, kind in LAYOUT.items() if kind in ("decimal", "score")}
        return TurnRecord.parse({k: float(v) if k in floats and v is not None else v for k, v in record.items()})


def marker_of(
    turn: Turn, decision: Decision | None = None, *, decode_ms_prev: float | None = None,
    values: Mapping[str, float] | None = None,
) -> Marker:  # fmt: skip
    """Make the marker of a turn.

    Parameters
    ----------
    turn
        As it was evaluated.
    decision
        What was decided; gives the turn id where the turn has none, the state and the pack.
    decode_ms_prev
        Decoding time of the turn before, when the host knows it (``MarkerLog`` remembers it).
    values
        ``intent_drift_score`` and ``kl_shift_nats`` of the host's own; without it what the pack's detectors measured.

    Raises
    ------
    UsageError
        Neither turn nor decision has a turn id.
    """
    turn_id = turn.turn_id if turn.turn_id is not None else decision.turn_id if decision is not None else None
    if turn_id is None:
        raise UsageError("a marker needs a turn id: give the turn one, or the decision")
    told = {name: _plain(getattr(turn, name)) for name in (*_TURN, "timestamp_s")}
    scores = {**_measured(decision), **(values or {})}
    drift = finite(scores.get("intent_drift_score"))
    return Marker(
        session_id=turn.session_id,
        turn_id=turn_id,
        model=turn.model,
        decode_ms_prev=finite(decode_ms_prev),
        intent_drift_score=None if drift is None else min(1.0, max(-1.0, drift)),
        kl_shift_nats=finite(scores.get("kl_shift_nats")),
        state=decision.state if decision is not None else None,
        pack_fingerprint=decision.fingerprint if decision is not None else None,
        **told,
    )


def _measured(decision: Decision | None) -> dict[str, float]:
    """Find what the pack's detectors of drift and divergence said on the turn."""
    live = decision._view if decision is not None else None
    if decision is None or not isinstance(live, Generation):
        return {}
    found: dict[str, float] = {}
    values, slots = live.values(decision), live.program.slots
    for use in live.pack.detectors:
        if use.spec.type == "intent_drift" and f"{use.id}.distance" in slots and f"{use.id}.threshold" in slots:
            # Negative: closer to what was said before than a change of subject would be (A3.1).
            found["intent_drift_score"] = values[slots[f"{use.id}.distance"]] - values[slots[f"{use.id}.threshold"]]
        elif use.spec.type == "kl_shift" and f"{use.id}.kl_nats" in slots:
            found["kl_shift_nats"] = values[slots[f"{use.id}.kl_nats"]]
    return {name: float(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, str):
        return value
    return bool(value) if isinstance(value, bool) else finite(value)


def finite(value: Any) -> Any:
    """Give a number that JSON has, ``None`` for NaN, the infinities and what is none."""
    try:
        return value if value is not None and math.isfinite(value) else None
    except (OverflowError, TypeError):  # a whole number that no float64 holds; no number at all
        return None


def render(name: str, value: Any) -> str:
    """Write one field as JSON.

    Examples
    --------
    >>> render("kv_hit_ratio", 0.0625), render("turn_id", 2**53), render("model", None), render("itl_ms", float("nan"))
    ('0.062', '"9007199254740992"', 'null', 'null')
    """
    kind = LAYOUT[name]
    if value is None or (kind in ("decimal", "score", "count") and finite(value) is None):
        return "null"
    if kind == "text":
        return json.dumps(str(value))
    if kind == "bool":
        return "true" if value else "false"
    if kind == "turn":
        return str(value) if abs(value) <= _SAFE else f'"{value}"'
    if kind == "score":
        value = min(1.0, max(-1.0, value))
    text = str(int(value)) if kind == "count" else format(value, ".3f")
    return "0.000" if text == "-0.000" else text


def format_marker(marker: Marker, template: str | None = None) -> str:
    r"""Write a marker as one line.

    Parameters
    ----------
    template
        Text with ``{{ field }}``; a field appears as JSON, so a quote or a line break in an id stays inside its string.
        Without it the line that ``parse_marker`` reads.

    Raises
    ------
    UsageError
        The template names a field there is not, or breaks the line.
    RecordError
        A turn id or a length that ``parse_marker`` would refuse.

    Examples
    --------
    >>> format_marker(Marker(session_id='c"\n', turn_id=7, itl_ms=38.04), "id={{ session_id }} itl={{ itl_ms }}")
    'id="c\\"\\n" itl=38.040'
    """
    if type(marker.turn_id) is not int or abs(marker.turn_id) >= 10**_MAX_DIGITS:
        raise RecordError(f"turn_id: no whole number of at most {_MAX_DIGITS} digits")
    if template is None:
        inside = ", ".join(f'"{name}": {render(name, getattr(marker, name))}' for name in FIELDS)
        line = f"{_HEAD} v{VERSION} {{{inside}}}"
        if len(line) > _MAX_LINE:
            raise RecordError(f"a marker has at most {_MAX_LINE:,} characters: an id or a name in it is too long")
        return line
    if not template.isprintable():
        raise UsageError("a template of a marker is one line of printable text")
    unknown = [name for name in _PLACE.findall(template) if name not in LAYOUT]
    if unknown or "{" in _PLACE.sub("", template).replace("{ ", ""):
        raise UsageError(f"a marker has no field {unknown[0]!r}" if unknown else "a template holds `{{ field }}` only")
    return _PLACE.sub(lambda match: render(match[1], getattr(marker, match[1])), template)


def parse_marker(line: str | bytes, *, strict_ids: bool = False) -> Marker | None:
    """Read a marker out of a log line, whatever stands before it; ``None`` when the line holds none.

    Of several the last counts: the host writes it behind what its users have said.

    Fields that are missing are unknown, fields this version does not have are passed over: so a reader of a later
    version reads this one, and this one reads what a later version has kept.

    Raises
    ------
    RecordError
        A marker with a bad field; ``strict_ids``: a session id that is no UUID of version 4.
    """
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    record = _last(text[:_MAX_TEXT])
    if record is None:
        return None
    marker = Marker(**{name: _read(name, record.get(name)) for name in FIELDS})
    if strict_ids:
        check_uuid4(marker.session_id)
    return marker


def _last(text: str) -> dict[str, Any] | None:
    """Find the fields of the last marker; what stands inside the texts of one is none."""
    found, is_broken, at = None, False, 0
    while match := _LINE.search(text, at, _MAX_LINE):
        begun = match.end() - 1
        is_wrapped = text.startswith('{\\"', begun)
        read = _in_json(text, match.start()) if is_wrapped else _decoded(text[:_MAX_LINE], begun)
        if read is None:
            is_broken, at = True, match.end()
        else:
            found, at = read[0] or found, read[1]
    if found is None and is_broken:
        raise RecordError("a marker that is no JSON object")
    return found


def _decoded(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Decode the object that begins here; gives its end too."""
    try:
        record, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return record, end


def _in_json(text: str, before: int) -> tuple[dict[str, Any] | None, int] | None:
    """Read a marker that a JSON logger has written as a string of its object, which begins before the marker."""
    for brace in itertools.islice(re.finditer(r"\{", text[:before]), _MAX_TRIES):
        read = _decoded(text, brace.start())
        if read is not None and read[1] > before:
            texts = [value for value in read[0].values() if isinstance(value, str) and value.startswith(_HEAD)]
            return _last(texts[-1]) if texts else None, read[1]
    return None


_TYPES: Mapping[str, tuple[Any, ...]] = {
    "text": (str,), "bool": (bool,), "count": (int,), "turn": (int, str), "decimal": (int, float),
    "score": (int, float),
}  # fmt: skip


def _read(name: str, given: Any) -> Any:
    kind = LAYOUT[name]
    if given is None and name not in ("session_id", "turn_id"):
        return None
    if not isinstance(given, _TYPES[kind]) or (isinstance(given, bool) and kind != "bool"):
        raise RecordError(f"{name}: not a {kind}")
    if kind == "turn" and isinstance(given, str):
        if not re.fullmatch(rf"-?\d{{1,{_MAX_DIGITS}}}", given, re.ASCII):
            raise RecordError(f"{name}: not a whole number")
        return int(given)
    if kind == "count" and finite(given) is None:
        raise RecordError(f"{name}: too great")
    if kind == "turn" and abs(given) >= 10**_MAX_DIGITS:
        raise RecordError(f"{name}: too great")
    if kind not in ("decimal", "score"):
        return given
    try:
        value = finite(float(given))
    except OverflowError:
        raise RecordError(f"{name}: too great") from None
    return min(1.0, max(-1.0, value)) if kind == "score" and value is not None else value


def check_uuid4(session_id: str) -> None:
    """Check that an id is a UUID of version 4, written the usual way.

    Raises
    ------
    RecordError
        It is not; the message does not show it.
    """
    try:
        given = uuid.UUID(session_id)
    except (ValueError, AttributeError):
        raise RecordError("session_id: not a UUID") from None
    if given.version != 4 or str(given) != session_id.lower():
        raise RecordError("session_id: not a UUID of version 4")

"""Foreign JSON into a Turn: one record, every mistake located."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

import attrs
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from stabilitykit.decision import Receipt
from stabilitykit.errors import RecordError
from stabilitykit.signals import CATALOGUE, SignalSpec
from stabilitykit.turn import Turn, is_missing

__all__ = ["TurnRecord"]

_IDENTITY: dict[str, Any] = {
    "session_id": (str, ...),
    "turn_id": (int | None, None),
    "revision": (int, 0),
    "tenant": (str, ""),
    "replica": (str | None, None),
    "device": (str | None, None),
    "model": (str | None, None),
    "timestamp_s": (float | None, None),
    "replica_sample_s": (float | None, None),
    "device_sample_s": (float | None, None),
    "extra": (dict[str, Any] | None, None),
}


def _kind(spec: SignalSpec) -> Any:
    if spec.kind == "enum":
        return str | None
    if spec.kind == "bool":
        return bool | float | None  # 0 and 1 too
    if spec.kind == "array":
        return list[int] | None if spec.dtype == "int64" else list[float | None] | None
    return float | None


class _Applied(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    session_id: str
    turn_id: int
    done: list[str]
    tenant: str | None = None


@cache
def _model() -> type[BaseModel]:
    fields = _IDENTITY | {s.name: (_kind(s), None) for s in CATALOGUE.values()}
    fields["applied"] = (_Applied | None, None)
    # Strict: "38" is no number and true is no turn id, here as in the engine.
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=True)
    return create_model("TurnRecord", __config__=config, **fields)


class TurnRecord:
    """The gate for records from outside: JSON lines, queues, other languages.

    Values keep what the record says, NaN included: whether a value is valid is decided where the
    pack is known. A field that is null or absent is missing. Unknown names are errors, because a
    misspelt signal would otherwise be silently missing.
    """

    @staticmethod
    def parse(record: str | bytes | Mapping[str, Any]) -> Turn:
        """Give the Turn of one record.

        Parameters
        ----------
        record
            JSON text, or the mapping it stands for.

        Raises
        ------
        RecordError
            Not JSON (with line and column), or not a turn (with the path of each mistake).

        Examples
        --------
        >>> TurnRecord.parse('{"session_id": "c-1", "turn_id": 1, "itl_ms": 38.5}')
        Turn(session_id='c-1', turn_id=1, itl_ms=38.5)
        >>> TurnRecord.parse('{"session_id": "c-1", "itl_sm": 38.5}')
        Traceback (most recent call last):
            ...
        stabilitykit.errors.RecordError: itl_sm: no such field; did you mean itl_ms?
        """
        if not isinstance(record, Mapping):
            try:
                record = json.loads(record)
            except json.JSONDecodeError as error:
                raise RecordError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise RecordError(f"not JSON: {type(error).__name__}") from None
        if not isinstance(record, Mapping):
            raise RecordError(f"a turn is an object, not {type(record).__name__}")
        try:
            checked = _model().model_validate(dict(record))
        except ValidationError as error:
            # A field that may be of two kinds is told once.
            lines = {
                e["loc"][:1] if e["loc"][-1] in ("bool", "float") else e["loc"]: _located(e) for e in error.errors()
            }
            raise RecordError("; ".join(lines.values())) from None
        given = {name: getattr(checked, name) for name in checked.model_fields_set}
        applied = given.pop("applied", None)
        if applied is not None:
            tenant = checked.tenant if applied.tenant is None else applied.tenant  # type: ignore[attr-defined]
            given["applied"] = Receipt(applied.session_id, applied.turn_id, tuple(applied.done), tenant=tenant)
        return Turn(**{name: value for name, value in given.items() if value is not None})

    @staticmethod
    def dump(turn: Turn) -> dict[str, Any]:
        """Give the record of a Turn: what was given, in JSON values (NaN and infinities too)."""
        found: dict[str, Any] = {}
        for field in attrs.fields(Turn):
            value = getattr(turn, field.name)
            if is_missing(value) or value is field.default:
                continue
            if isinstance(value, Receipt):
                whose = {} if value.tenant == turn.tenant else {"tenant": value.tenant}
                value = {"session_id": value.session_id, "turn_id": value.turn_id, "done": list(value.done), **whose}
            elif hasattr(value, "tolist"):
                value = value.tolist()
            found[field.name] = value
        return found


def _located(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"] if part not in ("bool", "float"))
    if error["type"] == "extra_forbidden":
        near = get_close_matches(where, [*_IDENTITY, *CATALOGUE], 1)
        return f"{where}: no such field" + (f"; did you mean {near[0]}?" if near else "")
    return f"{where}: {error['msg']}"

"""Markers of a whole log in order, and the structlog processor that writes them (A1.3)."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import attrs

from stabilitykit.errors import RecordError, UsageError
from stabilitykit.sources.markers import Marker, check_uuid4, finite, format_marker, marker_of
from stabilitykit.turn import Turn

if TYPE_CHECKING:
    from stabilitykit.decision import Decision

__all__ = ["MarkerLog"]


@attrs.define
class MarkerLog:
    """Markers of many sessions in order: remembers the decoding time of the turn before, and refuses to go back.

    Parameters
    ----------
    strict_ids
        Refuse session ids that are no UUID of version 4.
    limit
        Sessions remembered, at least one; the one seen longest ago goes first.

    Examples
    --------
    >>> from stabilitykit.sources.markers import parse_marker
    >>> log = MarkerLog()
    >>> first = log.mark(Turn(session_id="c-1", turn_id=1, itl_ms=40.0, output_tokens=11))
    >>> parse_marker(log.mark(Turn(session_id="c-1", turn_id=2))).decode_ms_prev
    400.0
    """

    strict_ids: bool = False
    limit: int = attrs.field(default=10_000)
    _last: dict[tuple[str, str], tuple[int, float | None]] = attrs.field(factory=dict)

    @limit.validator
    def _check_limit(self, _: object, value: int) -> None:
        if value < 1:
            raise UsageError("limit: at least one session is remembered")

    def mark(self, turn: Turn, decision: Decision | None = None, **options: Any) -> str:
        """Give the line of a turn.

        Raises
        ------
        RecordError
            A turn id not greater than the session's last one (a repeated or late turn is marked once), or a bad id.
        """
        key = (turn.tenant, turn.session_id)
        before = self._last.get(key)
        marker = marker_of(turn, decision, decode_ms_prev=before[1] if before else None, **options)
        line = format_marker(marker)
        self.check(marker, tenant=turn.tenant)
        self._last[key] = (marker.turn_id, _decoding_ms(turn))
        return line

    def check(self, marker: Marker, *, tenant: str = "") -> None:
        """Take notice of a marker's ids; raises as ``mark``. Whose it is a marker does not tell."""
        key = (tenant, marker.session_id)
        if self.strict_ids:
            check_uuid4(marker.session_id)
        before = self._last.pop(key, None)
        if before is not None and marker.turn_id <= before[0]:
            self._last[key] = before
            raise RecordError(f"turn_id: {marker.turn_id} comes after {before[0]} in its session")
        self._last[key] = (marker.turn_id, None)
        while len(self._last) > self.limit:
            del self._last[next(iter(self._last))]

    def processor(self) -> Callable[[Any, str, MutableMapping[str, Any]], MutableMapping[str, Any]]:
        """Give a structlog processor: an event with ``turn=`` (and ``decision=``) gets ``marker=`` in their place.

        It never raises: a turn that cannot be marked gives ``marker_error`` with the field and the reason.
        """

        def add(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
            turn, decision = event.get("turn"), event.get("decision")
            if isinstance(turn, Turn):
                del event["turn"]
                event.pop("decision", None)
                try:
                    event["marker"] = self.mark(turn, decision)
                except (RecordError, UsageError) as problem:
                    event["marker_error"] = str(problem)
                except Exception as problem:  # telemetry never stops the host's reply
                    event["marker_error"] = type(problem).__name__
            return event

        return add


def _decoding_ms(turn: Turn) -> float | None:
    itl_ms, tokens = finite(turn.itl_ms), finite(turn.output_tokens)
    return None if itl_ms is None or tokens is None else finite(itl_ms * max(tokens - 1, 0))

"""What answers wait for: the first token or the gaps, and how much of that lies above the usual."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import attrs

from stabilitykit.detectors.latency_attribution import LATENCY_ATTRIBUTION
from stabilitykit.detectors.trace import Instance
from stabilitykit.turn import Turn

__all__ = ["Share", "Shares"]

_PARTS = ("ttft_share", "itl_share", "rt_share")


@attrs.frozen
class Share:
    """One conversation.

    Parameters
    ----------
    session, turns
        Its name, and its turns with all times.
    first_token
        Share of its response times before the first token.
    excess
        Mean weighted excess over its own usual times (A2.3); NaN until these are known.
    ttft, itl, rt
        Shares of that excess; NaN where there is none.
    """

    session: str
    turns: int
    first_token: float
    excess: float
    ttft: float
    itl: float
    rt: float


@attrs.define
class _Conversation:
    detector: Instance = attrs.field(factory=lambda: Instance(LATENCY_ATTRIBUTION))
    turns: int = 0
    ttft_ms: float = 0.0
    rt_ms: float = 0.0
    known: int = 0
    excess: float = 0.0
    parts: list[float] = attrs.field(factory=lambda: [0.0] * len(_PARTS))


class Shares:
    """Collects while a load runs; the attribution is that of the detector ``latency_attribution``."""

    def __init__(self) -> None:
        self._talks: dict[str, _Conversation] = {}

    def add(self, turn: Turn) -> None:
        """Take one turn in; one without response time or first token says nothing."""
        if math.isnan(turn.rt_ms) or math.isnan(turn.ttft_ms) or turn.rt_ms <= 0:
            return
        talk = self._talks.setdefault(turn.session_id, _Conversation())
        talk.turns += 1
        talk.ttft_ms += turn.ttft_ms
        talk.rt_ms += turn.rt_ms
        told = talk.detector.update(
            {"rt": turn.rt_ms, "ttft": turn.ttft_ms, "itl": turn.itl_ms, "tokens": turn.output_tokens}
        )
        if told["excess"] == told["excess"]:
            talk.known += 1
            talk.excess += told["excess"]
            for k, part in enumerate(_PARTS):
                talk.parts[k] += told["excess"] * (told[part] if told[part] == told[part] else 0.0)

    def rows(self) -> Iterator[Share]:
        """Give the conversations by their numbers."""
        for name, talk in sorted(self._talks.items(), key=lambda item: (len(item[0]), item[0])):
            whole = math.fsum(talk.parts)
            parts = [part / whole if whole > 0 else math.nan for part in talk.parts]
            excess = talk.excess / talk.known if talk.known else math.nan
            yield Share(name, talk.turns, talk.ttft_ms / talk.rt_ms, excess, *parts)

    def first_token(self) -> float | None:
        """Give the share of all response times that went before the first token."""
        return _ratio(
            (talk.ttft_ms for talk in self._talks.values()), math.fsum(talk.rt_ms for talk in self._talks.values())
        )


def _ratio(parts: Iterable[float], whole: float) -> float | None:
    return math.fsum(parts) / whole if whole > 0 else None

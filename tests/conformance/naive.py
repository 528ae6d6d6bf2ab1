"""The oracle as an engine that conformance cases can run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stabilitykit.rules.pack import Pack
from tests.naive.engine import NaiveEngine
from tests.naive.scopes import Twins

__all__ = ["NaiveAdapter"]


class NaiveAdapter:
    """Run cases on ``tests.naive.engine``.

    Parameters
    ----------
    twins
        Detector type to naive twin, for the packs that use detectors.
    """

    def __init__(self, twins: Twins | None = None) -> None:
        self.twins = twins or {}

    def start(self, pack: Pack, options: Mapping[str, Any]) -> None:
        """Begin a case."""
        self.engine = NaiveEngine(pack, sample_ttl=options.get("sample_ttl", 60.0), detectors=self.twins)

    def step(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Take one entry."""
        (verb, value) = next(iter(entry.items()))
        if verb == "fork":
            self.engine.fork(value["from"], value["to"], tenant=value.get("tenant", ""))
            return {}
        if verb == "forget":
            self.engine.forget(value["session_id"], tenant=value.get("tenant", ""))
            return {}
        if verb == "observe":
            outcome = self.engine.observe(**value)
        else:
            outcome = self.engine.evaluate(value) if verb == "turn" else self.engine.peek(value)
        return {
            "state": outcome.state,
            "previous": outcome.previous,
            "matched": [*outcome.matches, *(r for found in outcome.wider_matches.values() for r in found)],
            "fired": [*outcome.fired, *(r for found in outcome.wider_fired.values() for r in found)],
            "actions": outcome.actions,
            "suppressed": [name for name, _, _ in outcome.suppressed],
            "winners": {name: winner for name, _, winner in outcome.suppressed},
            "faults": outcome.faults,
            "scopes": outcome.scopes,
        }

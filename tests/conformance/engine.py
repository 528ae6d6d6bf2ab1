"""The library's engine as one that conformance cases can run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stabilitykit.compiled.program import build_program
from stabilitykit.engine import Engine
from stabilitykit.rules.pack import Pack

__all__ = ["EngineAdapter"]


class EngineAdapter:
    """Run cases on ``stabilitykit.Engine``.

    Parameters
    ----------
    compiled
        As of ``Engine``: False is plain Python, None is machine code where numba works.
    """

    def __init__(self, *, compiled: bool | None) -> None:
        self.compiled = compiled

    def start(self, pack: Pack, options: Mapping[str, Any]) -> None:
        """Begin a case."""
        ttl_s = options.get("sample_ttl", 60.0)
        self.engine = Engine(build_program(pack), sample_ttl_s=ttl_s, compiled=self.compiled, ttl_s=None)

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
            decision = self.engine.observe(**value)
        else:
            decision = self.engine.evaluate(value) if verb == "turn" else self.engine.peek(value)
        return {
            "state": decision.state,
            "previous": decision.previous,
            "matched": [match.rule for match in decision.matches],
            "fired": list(decision.fired),
            "actions": [(action.name, dict(action.params)) for action in decision.actions],
            "suppressed": [lost.action.name for lost in decision.suppressed],
            "winners": {lost.action.name: lost.winner for lost in decision.suppressed},
            "faults": [(fault.kind, fault.signal) for fault in decision.faults],
            "scopes": dict(decision.scopes),
        }

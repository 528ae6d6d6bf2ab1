"""Every action of the language as a class with typed parameters: what a host's adapter is handed.

Examples
--------
>>> directive(Action("refuse_new", {"retry_after_s": 30.0}))
RefuseNew(retry_after_s=30.0)
>>> RefuseNew.from_action(Action("refuse_new", {}))
RefuseNew(retry_after_s=5.0)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

import attrs

from stabilitykit.actions import ACTIONS, Action, ParamSpec
from stabilitykit.errors import UsageError

__all__ = [
    "MITIGATIONS",
    "CannedReply",
    "CompensatePositions",
    "Directive",
    "EmitMetric",
    "EvictKv",
    "InjectStateTokens",
    "InsertSummary",
    "LowerClocks",
    "PauseBackground",
    "QuantizeKv",
    "RefuseNew",
    "ReleaseMemory",
    "RepairMask",
    "ResetContext",
    "ResyncClock",
    "RollbackSnapshot",
    "SampleDiagnostics",
    "SendToReview",
    "SwitchModel",
    "Throttle",
    "TierKv",
    "TrimContext",
    "directive",
]


@attrs.frozen
class Directive:
    """One action, its parameters checked; ``action`` is its word in the language.

    Raises
    ------
    UsageError
        A parameter is of the wrong kind or outside its domain.
    """

    action: ClassVar[str] = ""

    def __attrs_post_init__(self) -> None:
        for spec in ACTIONS[self.action].params:
            if not _is_valid(spec, getattr(self, spec.name)):
                raise UsageError(f"{self.action}: {spec.name} cannot be {getattr(self, spec.name)!r}")

    @classmethod
    def from_action(cls, action: Action) -> Self:
        """Read an action of this name; what it leaves out has its default.

        Raises
        ------
        UsageError
            Another action's, or a parameter that this one does not have.
        """
        if action.name != cls.action:
            raise UsageError(f"{action.name!r} is no {cls.action}")
        extra = sorted(set(action.params) - {p.name for p in ACTIONS[cls.action].params})
        if extra:
            raise UsageError(f"{cls.action} has no parameter {', '.join(extra)}")
        return cls(**action.params)


def _is_valid(spec: ParamSpec, value: Any) -> bool:
    if spec.kind == "bool":
        return isinstance(value, bool)
    if spec.kind in ("enum", "word"):
        return isinstance(value, str) and value in (spec.values or (value,))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return is_number and spec.lo <= value <= spec.hi and (spec.kind == "number" or value == int(value))


@attrs.frozen
class RefuseNew(Directive):
    """Admit no new conversation until ``retry_after_s`` seconds have passed."""

    action: ClassVar[str] = "refuse_new"
    retry_after_s: float = 5.0


@attrs.frozen
class CannedReply(Directive):
    """Answer the next request of the conversation with the host's text of this name."""

    action: ClassVar[str] = "canned_reply"
    name: str = "default"


@attrs.frozen
class SwitchModel(Directive):
    """Send the next requests of the conversation to the model that the host knows by this name."""

    action: ClassVar[str] = "switch_model"
    to: str = "light"


@attrs.frozen
class Throttle(Directive):
    """Serve at most so many requests of the conversation at once."""

    action: ClassVar[str] = "throttle"
    max_concurrency: int = 1


@attrs.frozen
class ResetContext(Directive):
    """Start the context afresh: the system prompt and the latest turns stay."""

    action: ClassVar[str] = "reset_context"
    keep_turns: int = 1


@attrs.frozen
class RollbackSnapshot(Directive):
    """Go back to the conversation as it was so many turns ago."""

    action: ClassVar[str] = "rollback_snapshot"
    turns: int = 1


@attrs.frozen
class TrimContext(Directive):
    """Drop the least useful part of the history: ``budget`` is the share of the window to keep."""

    action: ClassVar[str] = "trim_context"
    budget: float = 0.5
    summary: bool = False
    anchors: int = 3


@attrs.frozen
class InsertSummary(Directive):
    """Insert a summary of the history that takes at most ``budget`` tokens."""

    action: ClassVar[str] = "insert_summary"
    budget: int = 256


@attrs.frozen
class InjectStateTokens(Directive):
    """Write the state of the conversation into the prompt."""

    action: ClassVar[str] = "inject_state_tokens"
    format: Literal["compact", "readable"] = "compact"


@attrs.frozen
class CompensatePositions(Directive):
    """Correct position ids after tokens were dropped."""

    action: ClassVar[str] = "compensate_positions"
    mode: Literal["absolute", "cache_relative", "rerotate"] = "rerotate"


@attrs.frozen
class RepairMask(Directive):
    """Recompute the attention mask from lengths."""

    action: ClassVar[str] = "repair_mask"


@attrs.frozen
class EvictKv(Directive):
    """Evict a share of the KV blocks of a tier, the stalest first."""

    action: ClassVar[str] = "evict_kv"
    tier: int = 2
    share: float = 1.0


@attrs.frozen
class TierKv(Directive):
    """Move KV blocks to a slower tier."""

    action: ClassVar[str] = "tier_kv"
    tier: int = 1


@attrs.frozen
class QuantizeKv(Directive):
    """Store the KV cache in so many bits a value."""

    action: ClassVar[str] = "quantize_kv"
    bits: int = 4


@attrs.frozen
class ReleaseMemory(Directive):
    """Give memory back that is cached and not used."""

    action: ClassVar[str] = "release_memory"


@attrs.frozen
class LowerClocks(Directive):
    """Lower the clocks of the GPU."""

    action: ClassVar[str] = "lower_clocks"


@attrs.frozen
class PauseBackground(Directive):
    """Pause background jobs on the device."""

    action: ClassVar[str] = "pause_background"


@attrs.frozen
class ResyncClock(Directive):
    """Measure the offset between two clocks anew."""

    action: ClassVar[str] = "resync_clock"


@attrs.frozen
class SampleDiagnostics(Directive):
    """Look closely at a share of the conversation's turns."""

    action: ClassVar[str] = "sample_diagnostics"
    rate: float = 1.0


@attrs.frozen
class SendToReview(Directive):
    """Put the conversation into a queue that people read."""

    action: ClassVar[str] = "send_to_review"
    queue: str = "default"


@attrs.frozen
class EmitMetric(Directive):
    """Count an event."""

    action: ClassVar[str] = "emit_metric"
    name: str = "stability_event"


MITIGATIONS: dict[str, type[Directive]] = {
    kind.action: kind
    for kind in (
        RefuseNew,
        CannedReply,
        SwitchModel,
        Throttle,
        ResetContext,
        RollbackSnapshot,
        TrimContext,
        InsertSummary,
        InjectStateTokens,
        CompensatePositions,
        RepairMask,
        EvictKv,
        TierKv,
        QuantizeKv,
        ReleaseMemory,
        LowerClocks,
        PauseBackground,
        ResyncClock,
        SampleDiagnostics,
        SendToReview,
        EmitMetric,
    )
}
"""The class of every action, in the order of the action table."""


def directive(action: Action) -> Directive | None:
    """Give an action as its class; None for one that a pack declares: only its host knows what that means."""
    kind = MITIGATIONS.get(action.name)
    return None if kind is None else kind.from_action(action)

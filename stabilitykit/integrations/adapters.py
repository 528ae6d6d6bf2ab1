"""Who carries out each action: the adapter that comes with the library, by the action's name.

Text-level actions are done by ``decision.apply``; the others by what the host puts in its ``Host``, its middleware or
its engine of attention. An adapter is named, not imported: what a host does not use it does not load.
"""

from __future__ import annotations

__all__ = ["ADAPTERS"]

ADAPTERS: dict[str, str] = {
    "refuse_new": "stabilitykit.integrations.asgi:DegradedReplies",
    "canned_reply": "stabilitykit.integrations.asgi:DegradedReplies",
    "switch_model": "stabilitykit.integrations.litellm:deployment_switch",
    "throttle": "stabilitykit.integrations.asgi:DegradedReplies",
    "reset_context": "stabilitykit.mitigations.context.appliers:reset_context",
    "rollback_snapshot": "stabilitykit.mitigations.snapshots:rollback_snapshot",
    "trim_context": "stabilitykit.mitigations.context.appliers:trim_context",
    "insert_summary": "stabilitykit.mitigations.context.appliers:insert_summary",
    "inject_state_tokens": "stabilitykit.mitigations.state_tokens.inject:inject_state_tokens",
    "compensate_positions": "stabilitykit.mitigations.positions:compensate_positions",
    "repair_mask": "stabilitykit.mitigations.masks:repair_mask",
    "evict_kv": "stabilitykit.mitigations.kv.acting:carry_out",
    "tier_kv": "stabilitykit.mitigations.kv.acting:carry_out",
    "quantize_kv": "stabilitykit.mitigations.kv.acting:carry_out",
    "release_memory": "stabilitykit.integrations.device:MemoryReleaser",
    "lower_clocks": "stabilitykit.integrations.device:GpuClocks",
    "pause_background": "stabilitykit.integrations.device:BackgroundJobs",
    "resync_clock": "stabilitykit.integrations.device:ClockResync",
    "sample_diagnostics": "stabilitykit.integrations.sampling:DiagnosticSampler",
    "send_to_review": "stabilitykit.integrations.review_queue:ReviewQueue",
    "emit_metric": "stabilitykit.integrations.prometheus:DecisionCounters",
}

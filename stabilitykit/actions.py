"""What a decision can ask for: the action table, and one Action of a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

__all__ = ["ACTIONS", "GROUPS", "Action", "ActionSpec", "ParamSpec"]


@attrs.frozen
class ParamSpec:
    """One parameter of an action."""

    name: str
    default: Any
    doc: str
    unit: str = "count"
    kind: Literal["number", "count", "bool", "enum", "word"] = "count"
    lo: float = 0.0
    hi: float = 2.0**53
    values: tuple[str, ...] = ()


@attrs.frozen
class ActionSpec:
    """An action the language knows: the host carries it out.

    Parameters
    ----------
    name
        The word in YAML.
    order
        Position in the output.
    group, rank
        Conflict group and rank in it: per group only the lowest rank stays.
    many
        True when several with different parameters may stand beside each other.
    drops
        Actions that a surviving one removes.
    """

    name: str
    order: int
    doc: str
    params: tuple[ParamSpec, ...] = ()
    group: str = ""
    rank: int = 0
    many: bool = False
    drops: tuple[str, ...] = ()

    def param(self, name: str) -> ParamSpec | None:
        """Find a parameter by name."""
        return next((p for p in self.params if p.name == name), None)


@attrs.frozen
class Action:
    """One thing the host should do. Data: the engine does no I/O.

    Parameters
    ----------
    name
        A word of the action table, or one that the pack declares.
    params
        Its parameters, defaults filled in.
    source
        ``rule:<id>`` or ``state:<name>``: who asked for it.
    """

    name: str
    params: Mapping[str, Any]
    source: str = attrs.field(default="", eq=False)


def _p(
    name: str,
    default: Any,
    doc: str,
    kind: Literal["number", "count", "bool", "enum", "word"] = "count",
    unit: str = "count",
    lo: float = 0.0,
    hi: float = 2.0**53,
    values: tuple[str, ...] = (),
) -> ParamSpec:
    return ParamSpec(name, default, doc, unit, kind, lo, hi, values)


_ROWS: tuple[tuple[str, str, tuple[ParamSpec, ...], str, int, bool, tuple[str, ...]], ...] = (
    ("refuse_new", "admit no new conversation for a while", (_p("retry_after_s", 5.0, "seconds until a retry makes sense", "number", "s", 0, 86400),), "answer", 1, False, ()),
    ("canned_reply", "answer the next request with a text that the host has prepared", (_p("name", "default", "which text", "word"),), "answer", 2, False, ()),
    ("switch_model", "send the next turns to another model", (_p("to", "light", "which model", "word"),), "answer", 3, False, ()),
    ("throttle", "serve at most so many requests of the conversation at once", (_p("max_concurrency", 1, "concurrent requests", "count", "count", 1, 1e6),), "", 0, False, ()),
    ("reset_context", "start the context afresh: the system prompt and the latest turns stay", (_p("keep_turns", 1, "latest turns to keep", "count", "count", 0, 1e6),), "context", 1, False, ("compensate_positions", "repair_mask")),
    ("rollback_snapshot", "go back to the conversation as it was so many turns ago", (_p("turns", 1, "how many turns back", "count", "count", 1, 1e6),), "context", 2, False, ()),
    ("trim_context", "drop the least useful part of the history", (_p("budget", 0.5, "share of the context window to keep", "number", "ratio", 0, 1), _p("summary", False, "leave a summary of what was dropped", "bool"), _p("anchors", 3, "query-aware anchors to keep", "count", "count", 0, 64)), "context", 3, False, ()),
    ("insert_summary", "insert a summary of the history", (_p("budget", 256, "tokens it may take", "count", "tokens", 1, 1e9),), "context", 4, False, ()),
    ("inject_state_tokens", "write the conversation's state into the prompt", (_p("format", "compact", "how", "enum", "enum", values=("compact", "readable")),), "", 0, False, ()),
    ("compensate_positions", "correct position ids after tokens were dropped", (_p("mode", "rerotate", "how", "enum", "enum", values=("absolute", "cache_relative", "rerotate")),), "", 0, False, ()),
    ("repair_mask", "recompute the attention mask from lengths", (), "", 0, False, ()),
    ("evict_kv", "evict a share of the KV blocks of a tier, the stalest first", (_p("tier", 2, "tier to evict from", "count", "count", 0, 2), _p("share", 1.0, "share of that tier", "number", "ratio", 0, 1)), "", 0, False, ()),
    ("tier_kv", "move KV blocks to a slower tier", (_p("tier", 1, "target tier", "count", "count", 0, 2),), "", 0, False, ()),
    ("quantize_kv", "store the KV cache in fewer bits", (_p("bits", 4, "bits per value", "count", "count", 2, 16),), "", 0, False, ()),
    ("release_memory", "give GPU memory back that is cached and not used", (), "", 0, False, ()),
    ("lower_clocks", "lower the GPU's clocks", (), "", 0, False, ()),
    ("pause_background", "pause background jobs on the device", (), "", 0, False, ()),
    ("resync_clock", "measure the clock offset anew", (), "", 0, False, ()),
    ("sample_diagnostics", "raise the sampling rate of diagnostics", (_p("rate", 1.0, "share of turns", "number", "ratio", 0, 1),), "", 0, True, ()),
    ("send_to_review", "put the conversation into a queue that people read", (_p("queue", "default", "which queue", "word"),), "", 0, True, ()),
    ("emit_metric", "count an event", (_p("name", "stability_event", "which metric", "word"),), "", 0, True, ()),
)  # fmt: skip

ACTIONS: dict[str, ActionSpec] = {
    name: ActionSpec(name, order, doc, params, group, rank, many, drops)
    for order, (name, doc, params, group, rank, many, drops) in enumerate(_ROWS)
}
"""Every action of the language, by name, in output order; packs may declare more."""

GROUPS: dict[str, str] = {
    "answer": "the next turn is answered once: by a refusal, a prepared text or a model",
    "context": "the history is rewritten at most once a turn, by the rewrite that takes most away",
}
"""Why the actions of a group exclude each other. With the rows above this is the whole table of conflicts: what stands
in no group and in nobody's ``drops`` conflicts with nothing, and comes in the order of the rows."""

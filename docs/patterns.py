"""The patterns of decay and the rules of the shipped packs that call them, by the rules' `pattern-...` tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from docs.tables import table
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import SEVERITIES, Node, Pack, Rule
from stabilitykit.rules.shipped import shipped_names

PREFIX = "pattern-"
PATTERNS: Mapping[str, str] = {
    "latency-cliff": "tokens come at a fraction of the usual speed",
    "ttft-inflation": "the first token comes later and later",
    "prefill-inflation": "the prompt takes longer and longer to process",
    "throughput-decay": "the decode rate falls, at once or turn after turn",
    "kv-fragmentation": "allocated KV memory holds nothing",
    "kv-pollution": "the KV cache keeps what nobody uses again",
    "hit-rate-collapse": "prompts that used to hit the prefix cache do not any more",
    "preemption-storm": "running requests are thrown out of the cache again and again",
    "context-saturation": "the context window fills up",
    "silent-truncation": "the server drops history and says nothing",
    "entropy-surge": "the model becomes unsure of its next token",
    "topic-break": "a message is far from the one before",
    "topic-churn": "topics break again and again",
    "memory-loss": "what the server was told, or had in its cache, is gone",
    "gpu-pressure": "the GPU runs out of memory, time or cooling",
    "position-error": "positions do not fit the tokens, or their phase is off",
    "mask-misalignment": "the attention mask hides or shows what it must not",
}


@cache
def shipped() -> tuple[Pack, ...]:
    """Load every shipped pack, once."""
    return tuple(load_pack(name, detectors=DETECTORS) for name in shipped_names())


def rules_of(pattern: str) -> Iterator[tuple[Pack, Rule]]:
    """Give the rules with the tag of a pattern, each with the pack in whose file it stands."""
    for pack in shipped():
        for rule in pack.rules:
            if rule.file == pack.files[-1] and PREFIX + pattern in rule.tags:
                yield pack, rule


def reached(pack: Pack, rule: Rule) -> str:
    """Name the state that a conversation in the first one is in when this rule alone matches."""
    for t in pack.transitions:
        if pack.initial in t.from_ and t.when is not None and not t.after and t.for_turns == 1 and holds(t.when, rule):
            return t.to
    return pack.initial


def holds(guard: Node, rule: Rule) -> bool:
    """Tell whether a guard holds when one rule matches and no other."""
    if guard.op == "not":
        return not holds(guard.args[0], rule)
    if guard.op in ("and", "or"):
        return (all if guard.op == "and" else any)(holds(a, rule) for a in guard.args)
    if guard.op == "rule":
        return guard.name == rule.id
    is_in_range = SEVERITIES.index(rule.severity) >= guard.value and guard.name in ("", *rule.tags)
    return is_in_range and guard.n <= 1


def page() -> str:
    """Render the table."""
    rows = []
    for pattern, meaning in PATTERNS.items():
        for pack, rule in rules_of(pattern):
            does = ", ".join(f"`{a.name}`" for a in rule.do)
            state = f"`{reached(pack, rule)}`" + ("" if rule.scope == "session" else f" ({rule.scope})")
            rows.append(
                (pattern.replace("-", " "), meaning, f"`{rule.id}`", f"`{pack.name}`", rule.tags[0], does, state)
            )
    return (
        "# Patterns of decay\n\nHow a conversation goes bad, which rule of which shipped pack calls it, what the host"
        " is then told, and the state that follows when nothing else is wrong. Written from the rules' tags "
        f"(`{PREFIX}...`).\n\n"
    ) + table(("pattern", "what happens", "rule", "pack", "maturity", "actions", "state"), rows)

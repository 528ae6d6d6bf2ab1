"""Random checked packs: every operator, scope and field of the language, by seed.

Conditions respect the language's types (one dimension, no constant comparison), so that the text
of ``yaml_text.to_yaml`` can be loaded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from stabilitykit.decision import ACTIONS, Action, ActionSpec
from stabilitykit.rules.pack import SEVERITIES, DetectorUse, Pack, ParamValue, Rule
from stabilitykit.signals import CATALOGUE, DetectorSpec, SignalSpec, scope_rank
from tests.naive import build
from tests.naive.random_conditions import Grower
from tests.naive.random_machines import random_machine

__all__ = ["DECLARED", "random_pack"]

DECLARED = {
    "host_score": SignalSpec("host_score", "ratio", "session", "a host's own score", "number", 0.0, 1.0),
    "link_ms": SignalSpec("link_ms", "ms", "replica", "a host's own latency", "number", 0.0, 1e9),
}
PARAMS = {"slow": (80.0, "ms"), "full": (0.5, "ratio"), "many": (2.0, "count")}
TAGS = ("latency", "kv")


def random_pack(
    seed: int,
    *,
    detectors: Mapping[str, DetectorSpec] | None = None,
    max_rules: int = 12,
) -> Pack:
    """Build a random checked pack.

    Parameters
    ----------
    seed
        Equal seeds give equal packs.
    detectors
        Detector types the pack may use (with their default settings).
    max_rules
        At most so many rules (at least 1).
    """
    rng = random.Random(seed)
    uses = random_uses(rng, detectors or {})
    params = {name: ParamValue(name, value, unit) for name, (value, unit) in PARAMS.items()}
    grower = Grower(rng, {**CATALOGUE, **DECLARED}, uses, PARAMS)
    rules = [random_rule(rng, grower, number) for number in range(rng.randint(1, max_rules))]
    order = tuple(rule.id for rule in rules)  # a rule refers to earlier ones only
    rng.shuffle(rules)
    states, initial, transitions = random_machine(rng, rules, lambda: random_actions(rng))
    return Pack(
        name=f"random-{seed}",
        desc="",
        params=params,
        signals=DECLARED,
        detectors=tuple(uses),
        rules=tuple(rules),
        order=order,
        states=states,
        initial=initial,
        transitions=transitions,
        actions=ACTIONS,
        fingerprint=f"random-{seed}",
    )


def random_uses(rng: random.Random, specs: Mapping[str, DetectorSpec]) -> list[DetectorUse]:
    """Choose detectors, some of them widened."""
    chosen = [spec for spec in specs.values() if rng.random() < 0.6]
    return [use_of(rng, spec, f"d{place}") for place, spec in enumerate(chosen)]


def use_of(rng: random.Random, spec: DetectorSpec, name: str) -> DetectorUse:
    """Use a detector with its default settings, on its default signals or on others of their unit."""
    inputs = {}
    for setting, signal in spec.inputs.items():
        like = CATALOGUE[signal] if signal else CATALOGUE["itl_ms"]
        same = [s.name for s in CATALOGUE.values() if (s.unit, s.kind, s.dtype) == (like.unit, like.kind, like.dtype)]
        inputs[setting] = rng.choice(same) if rng.random() < 0.3 else like.name
    ranks = {scope_rank(CATALOGUE[s].scope) for s in inputs.values()}
    own = ("session", "replica", "device")[min(ranks)]
    scope = spec.default_scope or own
    if scope_rank(scope) <= max(ranks):
        scope = own
    if rng.random() < 0.15 and max(ranks) < 2:
        scope = "device"
    settings = {setting.name: setting.default for setting in spec.settings}
    widened = scope_rank(scope) > max(ranks)
    return DetectorUse(name, spec, inputs, settings, scope, widened, f"{name}:{spec.type}")  # type: ignore[arg-type]


def random_rule(rng: random.Random, grower: Grower, number: int) -> Rule:
    """Grow a rule; later rules may refer to it."""
    when = grower.condition()
    do = random_actions(rng) if rng.random() < 0.6 else ()
    timing: dict[str, Any] = {}
    if rng.random() < 0.4:
        timing["for_turns"] = rng.choice([1, 2, 2, 3, 5])
    elif rng.random() < 0.4:
        n = rng.choice([2, 3, 4, 8, 64])
        timing["count"] = (rng.randint(1, min(n, 4)), n)
    rule = Rule(
        id=f"r{number}",
        when=when,
        source=when.text,
        scope=when.scope,  # type: ignore[arg-type]
        severity=rng.choice(SEVERITIES),
        keep_for=rng.choice([0, 0, 1, 2, 4]),
        cooldown=rng.choice([0, 0, 1, 3, 5]) if do else 0,
        on_missing=rng.choice(["hold", "hold", "skip", "fire"]),
        hold_limit=rng.choice([1, 2, 3, 20]),
        do=do,
        tags=("stable", *[tag for tag in TAGS if rng.random() < 0.4]),
        memory=f"r{number}:{when.text}",
        **timing,
    )
    grower.rules.append(build.reference(rule.id, rule.scope))
    return rule


def random_actions(rng: random.Random) -> tuple[Action, ...]:
    """Want some actions; few names, so that they clash."""
    names = rng.sample(sorted(ACTIONS), rng.choice([1, 1, 2, 3]))
    return tuple(random_action(rng, ACTIONS[name]) for name in names)


def random_action(rng: random.Random, spec: ActionSpec) -> Action:
    """Give an action with its defaults, sometimes with other parameters."""
    params = {p.name: p.default for p in spec.params}
    for p in spec.params:
        if rng.random() < 0.4:
            params[p.name] = random_value(rng, p.kind, p.lo, p.hi, p.values)
    return Action(spec.name, params)


def random_value(rng: random.Random, kind: str, lo: float, hi: float, values: Sequence[str]) -> Any:
    """Give a parameter inside its domain."""
    if kind == "enum":
        return rng.choice(values)
    if kind == "word":
        return rng.choice(["alpha", "beta"])
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "number":
        return rng.choice([v for v in (0.25, 0.5, 1.0, 2.0) if lo <= v <= hi])
    return int(rng.choice([v for v in (1, 2, 4, 8) if lo <= v <= hi]))

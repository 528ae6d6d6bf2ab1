"""Small engines for tests: a breaker on one latency, every scope, and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stabilitykit.compiled.program import build_program
from stabilitykit.engine import Engine
from stabilitykit.rules.pack import Pack
from stabilitykit.turn import Turn as StrictTurn
from tests.naive.small import BREAKER, action, over, pack_of, rule_of

__all__ = ["VECTORS", "Turn", "breaker", "breaker_pack", "engine_of", "play", "vector_engine", "words"]

Turn: Any = StrictTurn
"""The Turn, and below the engines, without their types: tests pass what no host should."""

VECTORS = """\
stabilitykit: 1
pack: vectors
params:
  far: {default: 0.1, doc: how far is too far}
signals:
  host_score: {unit: ratio, min: 0, max: 1, doc: the host's own score}
  link_ms: {unit: ms, min: 0 ms, max: 1000 s, scope: replica, doc: the host's own latency}
detectors:
  drift: {type: intent_drift, dim: 4, method: source_corrected, window: 3, k: 1.0}
  kl: {type: kl_shift, k_max: 4}
  slow: {type: itl_breaker, method: p90, warmup: 3}
rules:
  - rule: far-off
    when: drift.distance > params.far
    severity: warning
    do: [{trim_context: {}}]
    reason: "{{ drift.distance }}"
  - {rule: jump, when: "kl.lower_nats > 0.2 nats", severity: info}
  - {rule: slow-now, when: "slow.is_over and itl_ms > 80 ms", for: 2 turns, severity: critical, do: [{throttle: {}}]}
  - {rule: churn, when: "finish_reason == abort", count: {at_least: 2, in: 4 turns}, keep_for: 1 turn}
  - {rule: low-score, when: "host_score < 0.5", severity: info}
  - {rule: full, when: "mean(kv_usage_ratio, 3 samples) > 50 %", for: 2 samples, do: [{evict_kv: {}}]}
  - {rule: link, when: "link_ms > 80 ms", severity: warning}
  - {rule: hot, when: "gpu_temperature_c > 90 C", severity: critical, do: [{lower_clocks: {}}]}
machine:
  initial: healthy
  states: [{state: healthy}, {state: warning}, {state: recovering}, {state: broken, do: [{emit_metric: {}}]}]
  transitions:
    - {from: [healthy, warning, recovering], to: broken, when: any critical}
    - {from: healthy, to: warning, when: any warning}
    - {from: warning, to: healthy, when: none for 2 turns}
    - {from: broken, to: recovering, after: 3 turns}
    - {from: recovering, to: healthy, when: none for 2 turns}
"""


def engine_of(pack: Pack, **options: Any) -> Any:
    """Make an engine for a checked pack; sessions never age unless asked to."""
    return Engine(build_program(pack, row_limit=1 << 20, vector_limit=1 << 20), **{"ttl_s": None, **options})


def breaker_pack(*, turns: int = 2, limit: float = 80.0) -> Pack:
    """Give a pack that breaks after some slow turns in a row."""
    rule = rule_of("slow", over("itl_ms", limit), severity="critical", for_turns=turns, do=(action("throttle"),))
    return pack_of(rule, transitions=BREAKER)


def breaker(*, turns: int = 2, **options: Any) -> Any:
    """Make an engine that breaks after some slow turns in a row."""
    return engine_of(breaker_pack(turns=turns), **options)


def vector_engine(folder: Path, text: str = VECTORS, **options: Any) -> Any:
    """Make an engine that uses vectors, extra signals and every scope."""
    path = folder / "vectors.yaml"
    path.write_text(text, encoding="utf-8")
    return Engine.load(str(path), **{"ttl_s": None, **options})


def play(engine: Engine, values: Sequence[float | None], session: str = "a", **more: Any) -> list[str]:
    """Evaluate a turn for each ITL; gives the states."""
    turns = [Turn(session_id=session, **({} if v is None else {"itl_ms": v}), **more) for v in values]
    return [engine.evaluate(turn).state for turn in turns]


def words(decision: Any) -> dict[str, Any]:
    """Give everything a decision says, without which engine said it."""
    said: dict[str, Any] = decision.to_dict()
    return {k: v for k, v in said.items() if k != "pack"}

"""The compiled pass decides what the oracle decides, on random packs and random turns."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from stabilitykit.compiled.program import build_program
from stabilitykit.decision import Decision
from stabilitykit.engine import Engine
from stabilitykit.rules.pack import Pack
from tests.naive.engine import NaiveEngine
from tests.naive.fakes import FAKE_TWINS, FAKES
from tests.naive.outcome import Outcome
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import Observation, random_stream

LIMITS = {"row_limit": 1 << 20, "vector_limit": 1 << 20}
TURNS = 100_000
SOAK_TURNS = 10_000_000
SOAK_PARTS = 20
PLAIN_TURNS = 5_000
STREAM, SOAK_STREAM = 120, 600


def shown(decision: Decision) -> dict[str, Any]:
    """Give what a decision says in the oracle's words."""
    by_scope: dict[str, list[Any]] = {}
    for match in decision.matches:
        by_scope.setdefault(match.scope, []).append(match)
    return {
        "state": decision.state,
        "previous": decision.previous,
        "matches": {k: tuple(m.rule for m in v) for k, v in by_scope.items()},
        "fired": set(decision.fired),
        "actions": [(a.name, dict(a.params)) for a in decision.actions],
        "suppressed": [(s.action.name, dict(s.action.params), s.winner) for s in decision.suppressed],
        "faults": sorted({(f.kind, f.signal) for f in decision.faults}),
        "scopes": dict(decision.scopes),
    }


def wanted(outcome: Outcome, own: str) -> dict[str, Any]:
    """Give what the oracle says in the same words."""
    matches = {k: v for k, v in outcome.wider_matches.items() if v}
    fired = set(outcome.fired)
    for ids in outcome.wider_fired.values():
        fired |= set(ids)
    if own == "session" and outcome.matches:
        matches["session"] = outcome.matches
    return {
        "state": outcome.state,
        "previous": outcome.previous,
        "matches": matches,
        "fired": fired,
        "actions": outcome.actions,
        "suppressed": outcome.suppressed,
        "faults": outcome.faults,
        "scopes": outcome.scopes,
    }


def play(pack: Pack, seed: int, *, compiled: bool | None, length: int = STREAM) -> int:
    """Run one random stream on both; gives the number of entries compared."""
    stream = random_stream(pack, seed, length)
    engine = Engine(build_program(pack, **LIMITS), compiled=compiled, ttl_s=None)
    oracle = NaiveEngine(pack, detectors=FAKE_TWINS)
    for place, entry in enumerate(stream.entries):
        if isinstance(entry, Observation):
            got, own = shown(engine.observe(**entry.arguments)), "observe"
            want = wanted(oracle.observe(**entry.arguments), own)
        else:
            got, own = shown(engine.evaluate(entry)), "session"
            want = wanted(oracle.evaluate(entry), own)
        unlike = {k: (got[k], want[k]) for k in got if got[k] != want[k]}
        assert not unlike, f"(engine, oracle) {unlike}; pack {pack.name}, stream {seed}, entry {place}: {entry}"
    return len(stream.entries)


def run(total: int, first: int, *, compiled: bool | None, length: int = STREAM) -> int:
    """Compare until so many entries were seen; gives how many were."""
    done, seed = 0, first
    while done < total:
        pack = random_pack(seed, detectors=FAKES)
        done += play(pack, seed, compiled=compiled, length=length)
        seed += 1
    return done


def soak(part: int) -> int:
    """Compare one part of the soak, in a process of its own."""
    return run(SOAK_TURNS // SOAK_PARTS, 1_000_000 * (part + 1), compiled=None, length=SOAK_STREAM)


@pytest.mark.capability(
    "issue 2 §6: 100,000 random turns on random packs, compiled: no decision differs from the naive engine's"
)
@pytest.mark.parametrize("part", range(4))
def test_compiled_agrees_with_the_oracle(part: int) -> None:
    """100,000 random turns, no different decision."""
    assert run(TURNS // 4, 10_000 * part, compiled=None) >= TURNS // 4


@pytest.mark.capability("issue 2 §6: 5,000 random turns, uncompiled: no decision differs from the naive engine's")
def test_uncompiled_agrees_with_the_oracle() -> None:
    """The plain source, 5,000 random turns."""
    assert run(PLAIN_TURNS, 500_000, compiled=False) >= PLAIN_TURNS


@pytest.mark.capability(
    "issue 2 §6: 5,000 random turns, compiled by numba: no decision differs from the naive engine's"
)
@pytest.mark.slow
def test_numba_agrees_with_the_oracle(tmp_path: Path) -> None:
    """The same kernels compiled by numba alone, 5,000 random turns in a process of its own."""
    place = {"STABILITYKIT_COMPILER": "numba", "STABILITYKIT_CACHE_DIR": str(tmp_path)}
    program = (
        "import sys; from tests.test_differential import *; print(run(PLAIN_TURNS, 700_000, compiled=None)); "
        "assert 'numba' in sys.modules"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= PLAIN_TURNS


@pytest.mark.capability("issue 2 §6: ten million random turns: no decision differs (make soak)")
@pytest.mark.soak
def test_soak() -> None:
    """Ten million random turns, over all processors."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        assert sum(pool.map(soak, range(SOAK_PARTS))) >= SOAK_TURNS

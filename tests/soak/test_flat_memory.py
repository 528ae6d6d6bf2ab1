"""A million conversations through one engine: memory after the warm-up stays where it is."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import attrs
import pytest

from tests.engines import VECTORS, Turn, vector_engine

SESSIONS, WARM, CAPACITY, GROWTH_MIB = 1_000_000, 100_000, 5_000, 8.0


def resident_mib():
    """Give the resident memory of this process."""
    gc.collect()  # what a reload leaves behind is cyclic
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024.0
    raise LookupError("no VmRSS")


def converse(engine, number, path):
    """Two turns of a new conversation; now and then everything else that an engine can do."""
    turn = Turn(
        session_id=f"s{number}",
        turn_id=1,
        itl_ms=300.0 if number % 3 else 30.0,
        replica=f"r{number % 7}",
        kv_usage_ratio=0.4,
    )
    engine.evaluate(turn)
    engine.evaluate(attrs.evolve(turn, turn_id=2, itl_ms="bad" if number % 11 == 0 else 31.0))
    if number % 50 == 0:
        engine.evaluate(attrs.evolve(turn, turn_id=3, embedding=[1.0, 0.0, 0.0, number % 2]))
        engine.evaluate(turn)
        engine.peek(attrs.evolve(turn, turn_id=9, replica=f"new{number}"))
        engine.fork(f"s{number}", f"f{number}")
        engine.restore(engine.export(f"f{number}"))
        engine.forget(f"f{number}")
        engine.observe(replica=f"r{number % 7}", kv_usage_ratio=0.9).explain()
    if number <= WARM and number % 20_000 == 0:  # later the memory of packs would hide that of sessions
        engine.reload(path)


@pytest.mark.soak
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.capability("issue 2 §2: a million sessions in flat memory")
def test_a_million_sessions(tmp_path):
    """Growth from the hundred-thousandth conversation to the millionth is under 8 MiB."""
    engine = vector_engine(tmp_path, capacity=CAPACITY, snapshots=1)
    path = str(tmp_path / "vectors.yaml")
    assert VECTORS in Path(path).read_text(encoding="utf-8")
    warm = 0.0
    for number in range(1, SESSIONS + 1):
        converse(engine, number, path)
        if number == WARM:
            warm = resident_mib()
    assert resident_mib() - warm < GROWTH_MIB
    assert len(engine.sessions) <= CAPACITY

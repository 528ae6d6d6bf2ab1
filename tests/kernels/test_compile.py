from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels import compile as compiling
from stabilitykit.kernels import kernel
from stabilitykit.kernels.compile import compile_detector, compile_entry, compile_function, is_available
from stabilitykit.kernels.fingerprint import fingerprint
from stabilitykit.kernels.machine_code import front_end_only
from tests.kernels import sample_pass as elsewhere
from tests.kernels.sample_pass import KINDS, Memory, drift, sample_pass, smooth, weigh

values = st.floats(allow_infinity=False, width=64)
signals = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=8)


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """Give the compiled sample pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STABILITYKIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return compile_entry(sample_pass, KINDS), tuple(compile_detector(d).address for d in (drift, weigh))


@given(st.lists(values, min_size=1, max_size=6), signals)
def test_compiled_is_plain(code, turns, floats):
    """Every block is the same to the bit after a run of turns, NaN and extremes among them."""
    plain, fast = Memory(floats), Memory(floats)
    for value in turns:
        assert plain.run_plain(value) == fast.run_compiled(value, *code) == 2
        for one, other in zip(plain.blocks, fast.blocks, strict=True):
            np.testing.assert_array_equal(one, other)


def test_absent_array_may_be_null(code):
    """A block that is never read may be a null pointer."""
    memory = Memory([])
    memory.run_compiled(1.0, code[0], code[1])
    assert math.isnan(memory.x[4])
    assert memory.x[3] == 1.0


def test_entry_refuses_what_is_no_int(code):
    """The entry takes one int; anything else is a TypeError, not a crash."""
    with pytest.raises(TypeError):
        code[0]("address")
    with pytest.raises(TypeError):
        code[0](1, 2)


def test_compiled_once(code):
    """A second request gives the same code."""
    assert compile_entry(sample_pass, KINDS) is code[0]
    assert compile_detector(drift) is compile_detector(drift)


@given(values, values, values)
def test_a_lone_kernel(mean, value, rate):
    """A twin of one primitive is a function of numbers."""
    with np.errstate(all="ignore"):
        np.testing.assert_equal(SMOOTH(mean, value, rate), smooth(np.float64(mean), value, rate))


SMOOTH = compile_function(smooth)


def test_global_constants_and_source_are_in_the_fingerprint(monkeypatch):
    """Code compiled for another constant is not found under the new one."""
    before = fingerprint(sample_pass, "x"), fingerprint(drift, "x")
    assert before == (fingerprint(sample_pass, "x"), fingerprint(drift, "x"))
    monkeypatch.setitem(drift.__globals__, "SCALE", 0.25)
    assert fingerprint(drift, "x") != before[1]
    assert fingerprint(sample_pass, "x") == before[0]
    assert fingerprint(sample_pass, "y") != before[0]


def test_a_used_kernel_is_in_the_fingerprint(monkeypatch):
    """Another body of a kernel that is only called changes the caller's key."""
    before = fingerprint(drift, "x")
    monkeypatch.setattr(smooth, "__code__", (lambda mean, value, rate: mean).__code__)
    assert fingerprint(drift, "x") != before


@pytest.mark.parametrize(
    "pair",
    [
        (np.uint64(1), np.uint64(2)),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (np.array([1.0]), np.array([1.0], np.float32)),
        ((1, (2, 3)), (1, (2, 4))),
        (True, None),
    ],
)
def test_every_kind_of_constant_counts(pair, monkeypatch):
    """Whatever becomes part of the machine code is part of the key."""
    monkeypatch.setitem(drift.__globals__, "SCALE", pair[0])
    before = fingerprint(drift, "x")
    assert fingerprint(drift, "x") == before
    monkeypatch.setitem(drift.__globals__, "SCALE", pair[1])
    assert fingerprint(drift, "x") != before


@kernel
def foreign(x: Any) -> int:
    """Read constants through a module and through a class."""
    return int(elsewhere.SCALE + Holder.SCALE)


class Holder:
    """A class with a number."""

    SCALE = 1


@pytest.mark.parametrize("owner", [elsewhere, Holder])
def test_what_a_module_or_a_class_holds_counts(owner, monkeypatch):
    """Numba freezes such constants: other numbers are other machine code."""
    before = fingerprint(foreign, "x")
    assert fingerprint(foreign, "x") == before
    monkeypatch.setattr(owner, "SCALE", 77)
    assert fingerprint(foreign, "x") != before


@kernel
def twice(mean: float, count: int) -> float:
    """Call another kernel with literals and with variables."""
    return spread(mean, 1) + spread(mean, 2) + spread(mean, count)


@kernel
def spread(mean: float, count: int) -> float:
    """Take a float and an int."""
    return mean * count


def test_a_literal_is_no_type_of_its_own():
    """One compile per kernel and type, whatever constants it is called with."""
    assert compile_function(twice)(2.0, 3) == twice(2.0, 3) == 12.0
    assert len(compiling._TWINS[spread].overloads) == 1


@kernel
def failing(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Break the rule that kernels never raise."""
    if x[0] > 0.0:
        raise ValueError("never")
    return 0


def test_a_kernel_that_raises_is_told_apart(code, cache_dir):
    """A status other than success becomes -1, not a crash."""
    memory = Memory([])
    address = compile_detector(failing).address
    assert memory.run_compiled(-1.0, code[0], (address, address)) == 2
    assert memory.run_compiled(1.0, code[0], (address, address)) == 0


def test_the_hosts_numba_is_left_alone(cache_dir):
    """The optimiser of numba is off for our compile only."""
    from numba import config as numba_config
    from numba import njit

    config: Any = numba_config
    before = config.OPT
    with front_end_only():
        assert config.OPT == 0
    assert before == config.OPT
    assert njit(lambda x: x + 1)(1) == 2


def test_availability(monkeypatch):
    """The usual switch of numba turns compiling off."""
    assert is_available()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not is_available()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setattr(compiling, "find_spec", lambda name: None)
    assert not is_available()


def test_import_brings_no_numba():
    """Importing the kernels and the compiler imports neither numba nor llvmlite nor structlog."""
    names = "bits, cache, compile, fingerprint, front_end, image, machine_code, pointers, report, warmup"
    program = f"import sys\nfrom stabilitykit.kernels import {names}\nprint(sorted(sys.modules))"
    loaded = ast.literal_eval(run(program))
    assert "stabilitykit.kernels.compile" in loaded
    assert not {"numba", "llvmlite", "structlog"} & set(loaded)


@pytest.mark.capability("issue 2 §0: a second process compiles nothing, imports no numba and gives the same result")
def test_second_process_compiles_nothing(tmp_path):
    """Compiled or from the cache, a process gives the same result and never imports numba."""
    program = (
        "import sys\n"
        "from stabilitykit.kernels.warmup import warm_up\n"
        "from tests.kernels.sample_pass import *\n"
        "warm = warm_up(sample_pass, KINDS, [drift, weigh])\n"
        "memory = Memory([1.0, 2.5])\n"
        "memory.run_compiled(3.0, warm.entry, warm.addresses)\n"
        "print(['numba' in sys.modules, memory.x.tolist()])"
    )
    cold, warm = (ast.literal_eval(run(program, STABILITYKIT_CACHE_DIR=str(tmp_path / "cache"))) for _ in range(2))
    plain = Memory([1.0, 2.5])
    plain.run_plain(3.0)
    assert cold == warm == [False, plain.x.tolist()]


def run(program: str, **environment: str) -> str:
    """Run a program in a fresh interpreter and give what it printed."""
    root = Path(__file__).resolve().parents[2]
    given = {**os.environ, "PYTHONPATH": str(root), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True)
    return done.stdout

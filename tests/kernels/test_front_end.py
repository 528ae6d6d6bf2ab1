"""The front end: every construct of the kernels' language means what Python means."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels import compile as compiling
from stabilitykit.kernels import kernel
from stabilitykit.kernels._registry import KERNELS
from stabilitykit.kernels.compile import compile_entry
from stabilitykit.kernels.front_end import Module
from stabilitykit.kernels.ir import Unsupported
from stabilitykit.kernels.pointers import offset_f8
from stabilitykit.kernels.source import tree_of
from tests.kernels import sample_pass as sample
from tests.kernels.sample_pass import drift, sample_pass, smooth, weigh

U1 = np.uint64(1)
SHARE = 0.25
numbers = st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan])
integers = st.integers(-(2**40), 2**40)


@kernel
def floats(x: Any, i: Any, u: Any) -> int:
    """Compute with x[0] and x[1]."""
    a, b = float(x[0]), float(x[1])
    x[2] = a + b
    x[3] = a - b * SHARE
    x[4] = min(a, b)
    x[5] = max(a, b, 1.0)
    x[6] = abs(a)
    x[7] = 1.0 if a < b <= 3.0 else 0.0
    x[8] = 1.0 if (a != a) or not (b >= a) else 2.0
    x[9] = math.sqrt(abs(b))
    x[10] = -a
    x[11] = 1.0 if math.isnan(a) and math.isnan(b) else 0.0
    x[12] = 1.0 if math.isfinite(a) else 0.0
    x[13] = 1.0 if math.isinf(a) else 0.0
    return 1 if a == b else 0


@kernel
def whole(x: Any, i: Any, u: Any) -> int:
    """Compute with i[0] and i[1]."""
    a, b = int(i[0]), int(i[1])
    i[2] = a // b if b != 0 else 0
    i[3] = a % b if b != 0 else 0
    i[4] = (a ^ b) & 0xFFFF
    i[5] = a >> 3
    i[6] = ~a
    i[7] = min(a, b)
    i[8] = abs(b)
    x[0] = a / b if b != 0 else 0.0
    i[9] = int(x[0])
    i[10] = math.floor(x[0])
    i[11] = -b
    return a - b


@kernel
def words(x: Any, i: Any, u: Any) -> int:
    """Compute with u[0] and u[1]."""
    a = u[0]
    u[2] = (a >> U1) | (u[1] & ~a)
    u[3] = a << np.uint64(3)
    i[0] = 1 if a > u[1] else 0
    u[4] ^= a
    return 1 if (a >> np.uint64(63)) == U1 else 0


@kernel
def pair(a: float, n: int) -> tuple[float, int]:
    """Give two values of two kinds, from two places."""
    if a > 0.0:
        return a, n
    return 0.0, -n


@kernel
def nothing(x: Any) -> None:
    """Write and give nothing."""
    if x[1] > 0.0:
        x[0] = 1.0
        return
    x[0] = 2.0


@kernel
def loops(x: Any, i: Any, u: Any) -> int:
    """Count in every way."""
    total = 0
    for k in range(3, 20, 4):
        if k == 7:
            continue
        total += k
    for k in range(5, 0, -2):
        total = total * 10 + k
    j = 0
    while j < 10:
        j += 1
        if j > 6:
            break
    wide = 0  # becomes a float further down
    for k in range(int(i[0])):
        wide += k * 0.5  # type: ignore[assignment]
    nothing(x)
    a, n = pair(float(x[1]), 4)
    x[2] = a + wide
    return total + 1000 * j + n + k


def blocks(x: Any = (), i: Any = (), u: Any = ()) -> list[Any]:
    """Give three blocks of sixteen elements that start with these."""
    made = [np.zeros(16), np.zeros(16, np.int64), np.zeros(16, np.uint64)]
    for block, values in zip(made, (x, i, u), strict=True):
        block[: len(values)] = values
    return made


def check(fn: Any, *values: Any) -> None:
    """Run a kernel plain and compiled and compare everything."""
    plain, fast = blocks(*values), blocks(*values)
    with np.errstate(all="ignore"):
        expected = fn(*plain)
    found = compile_entry(fn, ("f8", "i8", "u8"))(np.array([b.ctypes.data for b in fast]).ctypes.data)
    assert found == expected
    for a, b in zip(plain, fast, strict=True):
        np.testing.assert_array_equal(a, b)


@given(numbers, numbers)
def test_floats(a, b):
    """Arithmetic, comparisons and choices of floats, NaN and infinities among them."""
    check(floats, (a, b))


@given(integers, integers | st.sampled_from([1, -1, 3, -7]))
def test_integers(a, b):
    """Division and remainder go towards minus infinity, shifts keep the sign."""
    check(whole, (), (a, b))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_words(a, b):
    """Words are unsigned."""
    check(words, (), (), (a, b))


@given(st.sampled_from([-1.0, 0.0, 2.5]), st.integers(1, 9))
def test_loops_and_calls(a, n):
    """Loops end where Python's end; a variable that becomes a float is one from the start."""
    check(loops, (0.0, a), (n,))


@kernel
def raises(x: Any) -> int:
    """Do what kernels never do."""
    raise ValueError(x)


@kernel
def lists(x: Any) -> int:
    """Make a list."""
    return len([x])


@kernel
def mixed(x: Any) -> int:
    """Add a word and a signed integer."""
    return int(U1 + int(x[0]))


@kernel
def endless(x: Any) -> int:
    """Call itself."""
    return endless(x)


@kernel
def operand(x: Any) -> int:
    """Take the value of an operand of 'or'."""
    x[0] = x[1] or 8.0
    return 0


@kernel
def falls(x: Any) -> int:  # type: ignore[return]
    """Give a number on one way only."""
    if x[0] > 0.0:
        return 1


@kernel
def half(x: Any) -> Any:
    """Give a number or nothing."""
    if x[0] > 0.0:
        return 1
    return


@kernel
def leaves(x: Any) -> int:  # type: ignore[return]
    """End a loop without a number."""
    while True:
        if x[0] > 0.0:
            break
        return 1


@kernel
def foreign(x: Any) -> int:
    """Read a constant of a module that can change under the cache."""
    x[0] = sample.SCALE
    return 0


@kernel
def through(x: Any) -> int:
    """Call a kernel through its module, where the fingerprint does not see it."""
    x[0] = sample.smooth(x[0], x[1], x[2])
    return 0


def enclosed(limit: float) -> Any:
    """Give a function that reads a variable of this one, named as a global."""
    SHARE = limit  # noqa: N806

    def inner(x: Any) -> int:
        x[0] = SHARE
        return 0

    return inner


def test_variables_of_an_enclosing_function_are_refused():
    """They are in no fingerprint, and a global may have the same name."""
    with pytest.raises(TypeError, match=r"inner: a kernel reads no variables of an enclosing function \(SHARE\)"):
        kernel(enclosed(3.0))
    with pytest.raises(Unsupported, match="inner: variables of an enclosing function"):
        Module().add(enclosed(3.0), ("*f8",))


@kernel
def conditions(x: Any, i: Any, u: Any) -> int:
    """Use 'and' and 'or' of numbers as conditions, of comparisons as values; end in every way."""
    i[2] = 1 if i[0] or (i[1] and not (i[0] and x[0])) else 0
    x[1] = i[0] < i[1] or i[1] == 3
    while True:
        i[2] += 2
        if i[2] > 5 or i[0]:
            if i[1]:
                return int(i[2])
            else:
                return 7


@given(st.integers(-1, 3), st.integers(-1, 3), st.sampled_from([0.0, 1.0]))
def test_conditions(a, b, c):
    """Numbers are conditions as in Python; a function whose ways all end needs no last return."""
    check(conditions, (c,), (a, b))


@kernel
def to_int(x: Any, i: Any, u: Any) -> int:
    """Make integers of x[0]."""
    i[0] = int(x[0])
    i[1] = math.floor(x[0])
    return 0


@pytest.mark.parametrize(
    ("number", "whole"),
    [(math.nan, 0), (math.inf, 2**63 - 1), (-math.inf, -(2**63)), (1e300, 2**63 - 1), (-1e300, -(2**63)), (-7.0, -7)],
)
def test_an_integer_of_no_integer_is_defined(number, whole):
    """Where Python raises, machine code gives the nearest integer, 0 for NaN, and not whatever the register holds."""
    memory = blocks((number,))
    compile_entry(to_int, ("f8", "i8", "u8"))(np.array([b.ctypes.data for b in memory]).ctypes.data)
    assert memory[1][:2].tolist() == [whole, whole]


@kernel
def moves(x: Any) -> int:
    """Move a block and read an element of it."""
    return int(offset_f8(x, 3)[0])


def test_a_moved_block_may_be_null():
    """Only an access promises that the block is there."""
    module = Module()
    module.add(moves, ("*f8",))
    moved, element = [line for line in module.text().splitlines() if "getelementptr" in line]
    assert "inbounds" not in moved
    assert "inbounds" in element


@pytest.mark.parametrize("fn", [raises, lists, mixed, endless, operand, falls, half, leaves, foreign, through])
def test_what_is_not_in_the_language_is_refused(fn):
    """Nothing is guessed: the kernel goes to numba, with the line that is to blame."""
    with pytest.raises(Unsupported, match=rf"{fn.__name__}, line \d+|endless"):
        Module().add(fn, ("*f8",))


def test_only_the_running_source_is_read(monkeypatch):
    """A function whose bytecode is not that of its file has no tree."""
    assert isinstance(smooth, FunctionType)
    assert tree_of(smooth) is not None
    monkeypatch.setattr(smooth, "__code__", smooth.__code__.replace(co_code=drift.__code__.co_code))
    assert tree_of(smooth) is None


@pytest.mark.capability("issue 2 §0: the pass and every detector are translated without touching numba")
def test_every_kernel_of_the_library_is_in_the_language():
    """The pass and the detectors never wait for numba, which takes thirty times as long."""
    from stabilitykit.compiled.header import ARGUMENTS
    from stabilitykit.compiled.run import run_pass
    from stabilitykit.detectors import DETECTORS

    Module().add(run_pass, tuple(f"*{kind}" for kind in ARGUMENTS))
    for spec in DETECTORS.values():
        Module().add(spec.kernel, tuple(f"*{kind}" for kind in compiling._DETECTOR_KINDS))
    assert "stabilitykit.compiled.run.run_pass" in KERNELS


@pytest.mark.usefixtures("forgetful")
def test_numba_gives_the_same_bits(monkeypatch, cache_dir):
    """Without the front end the same kernels go through numba, and agree to the last bit."""
    from tests.kernels.sample_pass import KINDS, Memory

    def refuse(*_: Any) -> Any:
        raise Unsupported("switched off")

    results = []
    for is_on in (True, False):
        if not is_on:
            monkeypatch.setattr(compiling, "_DETECTORS", {})
            monkeypatch.setattr(compiling, "_ENTRIES", {})
            monkeypatch.setattr(Module, "add", refuse)
            monkeypatch.setenv("STABILITYKIT_CACHE_DIR", str(cache_dir) + "-numba")
        entry = compile_entry(sample_pass, KINDS)
        addresses = tuple(compiling.compile_detector(d).address for d in (drift, weigh))
        memory = Memory([1.0, 2.5])
        for value in (3.0, math.nan, -1e-300, 7.25):
            memory.run_compiled(value, entry, addresses)
        results.append((memory.x.tobytes(), "numba" in sys.modules))
    assert results[0][0] == results[1][0]
    assert results[1][1]


_RANDOM_CALLS = """
import json
from tests.contract.test_detectors import CASES, LOOSE, Case, memory_of, stream
from stabilitykit.detectors.trace import compiled_kernel
found = {}
for case in CASES:
    spec, settings = case.values
    run = Case(spec, settings, compiled_kernel(spec))
    loose = LOOSE.get(f"{spec.type}-{settings['mode']}" if "mode" in settings else spec.type, 0.0)
    for seed in range(4):
        instance = run.fresh()
        rows = [instance.update(row).values() for row in stream(spec, seed)]
        found[f"{case.id}/{seed}"] = [[float(v).hex() for row in rows for v in row], memory_of(instance).hex(), loose]
print(json.dumps(found))
"""


@pytest.mark.soak
def test_numba_gives_the_same_bits_for_every_detector(tmp_path):
    """The other compiler agrees on every output and all memory of hundreds of random turns, extremes among them."""
    results = []
    for compiler in ("", "numba"):
        given = {"STABILITYKIT_COMPILER": compiler, "STABILITYKIT_CACHE_DIR": str(tmp_path / f"cache-{compiler}")}
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **given}
        done = subprocess.run(
            [sys.executable, "-c", _RANDOM_CALLS], env=environment, capture_output=True, text=True, check=True
        )
        results.append(json.loads(done.stdout))
    assert results[0].keys() == results[1].keys()
    for name, (outputs, memory, loose) in results[0].items():
        others, other_memory, _ = results[1][name]
        if loose:
            one, two = (list(map(float.fromhex, values)) for values in (outputs, others))
            assert one == pytest.approx(two, rel=loose, abs=loose, nan_ok=True), name
        else:
            assert (outputs, memory) == (others, other_memory), name

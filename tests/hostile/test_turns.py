"""Turns as nobody should send them: wrong types, sizes and shapes. Nothing but documented misuse raises."""

from __future__ import annotations

import array
import decimal
import fractions
import math
import sys
import threading
from typing import Any

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from stabilitykit import UsageError
from stabilitykit.signals import CATALOGUE
from stabilitykit.turn import MISSING
from tests.engines import VECTORS, Turn, vector_engine, words

EVERYTHING = "stabilitykit: 1\npack: everything\nextends: [base]\nrules:\n" + "".join(
    f"  - {{rule: {s.name.replace('_', '-')}, when: '{s.name} > {(s.lo + s.hi) / 2:.0f} {s.unit}'}}\n"
    for s in CATALOGUE.values()
    if s.kind == "number" and s.unit in ("ms", "us", "tokens", "/s", "tokens/s")
)

MASKED: Any = np.ma.masked_array


class Angry:
    """A value whose every conversion raises something else."""

    def __init__(self, error):
        self.error = error

    def __float__(self, *_):
        raise self.error

    __index__ = __array__ = __len__ = __iter__ = __bool__ = __hash__ = __eq__ = __str__ = __float__


class Tensor:
    """What torch gives: a float on demand, an array on demand."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


class Lying:
    """A value that is another number each time."""

    count = 0

    def __float__(self):
        Lying.count += 1
        return float(Lying.count)


SCALARS: list[Any] = [
    Angry(RuntimeError("x")),
    Angry(ZeroDivisionError()),
    Angry(MemoryError()),
    Tensor(3.5),
    Lying(),
    object(),
    object,
    np.float16(3),
    np.float32("nan"),
    np.int64(5),
    np.uint8(200),
    np.bool_(True),
    np.longdouble(3),
    np.datetime64("2020-01-01"),
    np.array(3.0),
    np.array([3.0]),
    np.array([1.0, 2.0]),
    np.ma.masked,
    np.str_("3"),
    10**400,
    -(10**30),
    2**63,
    True,
    None,
    decimal.Decimal("1e999"),
    decimal.Decimal("sNaN"),
    decimal.Decimal("3.5"),
    fractions.Fraction(1, 3),
    1j,
    b"3",
    bytearray(b"3"),
    memoryview(b"3"),
    "3",
    "",
    "nan",
    [3.0],
    (3.0,),
    {},
    {3.0},
    lambda: 3.0,
    ...,
    NotImplemented,
    type,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    -5e-324,
    2.2e-308,
    -0.0,
    1.7976931348623157e308,
    -1.0,
    sys.float_info.epsilon,
]
ARRAYS: list[Any] = [
    *[a for a in SCALARS if a is not None],
    [],
    [[]],
    [[1.0, 2.0], [3.0]],
    [[1.0] * 4] * 4,
    ["a"] * 4,
    [None] * 4,
    [1.0, None, 2.0, 3.0],
    np.zeros(0),
    np.zeros((2, 2)),
    np.zeros(5),
    np.zeros(4, np.float16),
    np.zeros(4, np.complex128),
    np.zeros(4, object),
    np.full(4, np.nan),
    np.full(4, np.inf),
    np.full(4, 1e300),
    np.full(4, 5e-324),
    np.array(["x"] * 4),
    np.zeros(4, [("canary", "f8")]),
    MASKED([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0]),
    MASKED([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]),
    np.arange(8.0)[::2],
    np.arange(8.0)[::-2],
    np.asfortranarray(np.zeros((4, 1))),
    np.broadcast_to(1.0, 4),
    np.zeros(4).view(np.matrix),
    memoryview(array.array("f", [1.0] * 4)),
    array.array("d", [1.0] * 4),
    range(4),
    Tensor([1.0, 2.0, 3.0, 4.0]),
    Tensor([[1.0], [2.0]]),
    np.array([2**63] * 4, np.uint64),
    np.array([-(2**63)] * 4),
    [10**30] * 4,
    np.zeros(4, ">f4"),
    np.zeros(4, "M8[s]"),
    iter([1.0]),
    (x for x in [1.0]),
    "abcd",
    b"abcd",
    {"a": 1},
    np.random.default_rng,
]
KINDS = {"invalid", "type_mismatch", "dimension", "unit_suspect", "signal_stale"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Give an engine that reads arrays, extras and every scope."""
    return vector_engine(tmp_path_factory.mktemp("pack"))


def checked(engine, turn):
    """Evaluate and peek; the answer can be read whole, and its faults are of the closed list."""
    for decision in (engine.peek(turn), engine.evaluate(turn)):
        assert {f.kind for f in decision.faults} <= KINDS
        assert decision.explain()
        assert decision.to_dict()["state"] == decision.state
    return decision


@pytest.mark.capability("issue 2 §9: hostile values never raise")
@pytest.mark.parametrize(
    "name", ["itl_ms", "kv_usage_ratio", "gpu_temperature_c", "finish_reason", "timestamp_s", "replica_sample_s"]
)
def test_scalars(engine, name):
    """Every strange value in a field of each kind and scope; the next good turn is as good as ever."""
    for value in SCALARS:
        checked(engine, Turn(session_id="s", **{name: value}))
        assert checked(engine, Turn(session_id="s", itl_ms=30.0, kv_usage_ratio=0.5, finish_reason="stop")).faults == ()


@pytest.mark.capability("issue 2 §9: hostile values never raise")
def test_extras(engine):
    """The same through extra."""
    for value in SCALARS:
        checked(engine, Turn(session_id="s", extra={"host_score": value, "link_ms": value}))


@pytest.mark.capability("issue 2 §9: hostile values never raise")
@pytest.mark.parametrize("name", ["embedding", "top_token_ids", "top_logprobs", "logprobs", "prev_logprobs"])
def test_arrays(engine, name):
    """Every strange object as an array, alone and beside good ones."""
    good = {"embedding": [1.0, 0.0, 0.0, 0.0], "top_token_ids": [1, 2, 3], "top_logprobs": [-0.5, -1.5, -3.0]}
    for value in ARRAYS:
        for beside in ({}, good):
            checked(engine, Turn(session_id="a", **{**beside, name: value}))
    assert checked(engine, Turn(session_id="a", **good)).faults == ()


def test_what_is_told_of_arrays(engine):
    """Missing, masked, misshapen and mistyped arrays are told apart."""
    for value, want in (
        ([], None),
        (np.zeros(0), None),
        (MASKED([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0]), "invalid"),
        ([1.0, 2.0], "dimension"),
        ([[1.0] * 4], "dimension"),
        (np.zeros(4, [("canary", "f8")]), "type_mismatch"),
        ("abcd", "type_mismatch"),
        (np.full(4, 1e300), "invalid"),
        (np.arange(8.0)[::2], None),
        (memoryview(array.array("f", [1.0] * 4)), None),
        (Tensor([1.0] * 4), None),
    ):
        faults = engine.evaluate(Turn(session_id="w", embedding=value)).faults
        assert [f.kind for f in faults if f.kind != "signal_stale"] == ([] if want is None else [want])
        assert "canary" not in repr(faults)
    assert engine.evaluate(Turn(session_id="w", top_token_ids=[], top_logprobs=[])).faults == ()
    assert [
        f.kind
        for f in engine.evaluate(Turn(session_id="w", top_token_ids=[1.5, 2.5], top_logprobs=[-1.0, -2.0])).faults
    ] == ["type_mismatch"]


@pytest.mark.capability("issue 2 §9: hostile values never raise")
def test_huge_arrays(engine):
    """Ten million elements, of any layout: a fault or a value, and nothing is kept of it in the session."""
    before = len(engine.export("a")) if engine.sessions.find(("", "a")) else None
    for value in (
        np.zeros(10**7, np.float32),
        np.zeros(10**7),
        np.broadcast_to(np.float32(1.0), 10**7),
        np.full(10**7, -1e300),
        np.zeros(2 * 10**6, np.int64)[::2],
    ):
        for name in ("embedding", "logprobs", "top_token_ids"):
            checked(engine, Turn(session_id="a", **{name: value}))
    assert before is None or len(engine.export("a")) <= before + 512


@pytest.mark.capability("issue 2 §9: hostile values never raise")
def test_every_signal_at_once(tmp_path):
    """A pack that reads many signals meets each strange value in all of them."""
    engine = vector_engine(tmp_path, EVERYTHING)
    names = [s.name for s in CATALOGUE.values() if s.kind != "array"]
    for value in SCALARS:
        checked(engine, Turn(session_id="s", **dict.fromkeys(names, value)))
    assert engine.evaluate(Turn(session_id="s")).turn_id == 1 + len(SCALARS)


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(st.floats(), max_size=5),
    st.lists(st.lists(st.integers(), max_size=2), max_size=2),
    st.decimals(),
    st.complex_numbers(),
    st.integers(0, len(SCALARS) - 1).map(lambda k: SCALARS[k]),
    st.integers(0, len(ARRAYS) - 1).map(lambda k: ARRAYS[k]),
)
FIELDS = [a.name for a in attrs.fields(Turn)]


@pytest.mark.capability("issue 2 §9: misuse raises, and then nothing has changed")
@hypothesis.given(fields=st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=6))
@hypothesis.settings(max_examples=400, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_any_field(engine, fields):
    """Random rubbish in random fields: a decision, or misuse after which the session is as it was."""
    engine.forget("h")
    engine.evaluate(Turn(session_id="h", turn_id=0, itl_ms=30.0))
    before = engine.export("h")
    turn = Turn(**{"session_id": "h", **fields})
    try:
        decision = engine.evaluate(turn)
    except UsageError:
        assert engine.export("h") == before
        with pytest.raises(UsageError):
            engine.peek(turn)
    else:
        assert decision.explain()
        assert decision.faults is decision.faults


def test_a_turn_changed_between_calls(engine):
    """A Turn is read when it is given: a change makes another turn, or a conflict."""
    turn = Turn(session_id="m", turn_id=1, itl_ms=30.0, embedding=np.array([1.0, 0.0, 0.0, 0.0]))
    first = engine.evaluate(turn)
    said = words(first)
    turn.embedding[1] = 0.5
    assert [f.kind for f in engine.evaluate(turn).faults] == ["turn_conflict"]
    turn.turn_id, turn.itl_ms = 2, MISSING
    assert engine.evaluate(turn).turn_id == 2
    assert words(first) == said


def test_extra_that_changes_while_it_is_read(engine):
    """Another thread adds to the mapping: no accident, only known names or misuse."""
    extra, stop = {"host_score": 0.25}, threading.Event()

    def churn():
        k = 0
        while not stop.is_set():
            k += 1
            extra[f"n{k % 50}"] = 1.0
            extra.pop(f"n{(k - 20) % 50}", None)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(300):
            try:
                engine.evaluate(Turn(session_id="x", extra=extra))
            except UsageError as error:
                assert "no signal" in str(error)  # noqa: PT017 - both ends are right here
    finally:
        stop.set()
        thread.join()
    assert "host_score" in extra


def test_signal_functions_of_any_kind(tmp_path):
    """What a host's function gives or raises is a value or a fault."""
    engine = vector_engine(tmp_path, VECTORS)
    for value in SCALARS:
        engine.signal("host_score")(lambda turn, value=value: value)
        checked(engine, Turn(session_id="s", itl_ms=30.0))
    for error in (ValueError, RecursionError, MemoryError, StopIteration, AssertionError):

        def fail(turn, error=error):
            raise error("canary")

        engine.signal("host_score")(fail)
        (fault,) = engine.evaluate(Turn(session_id="s")).faults
        assert (fault.kind, fault.signal, fault.detail) == ("signal_function", "host_score", error.__name__)


@pytest.mark.capability("issue 2 §9: hostile values never raise")
def test_every_random_bit_pattern(engine):
    """Random 64-bit patterns as floats: none is accepted outside its domain."""
    rng = np.random.default_rng(3)
    for value in rng.integers(0, 2**64, 3000, np.uint64).view(np.float64).tolist():
        decision = engine.evaluate(Turn(session_id="b", itl_ms=value))
        told = [f for f in decision.faults if f.kind == "invalid"]
        assert bool(told) is not (0.0 <= value <= 1e9)

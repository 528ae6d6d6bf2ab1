"""The evaluator's promises: identity of turns, misuse, signals of the host, models, receipts, faults."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import pytest

from stabilitykit import Engine, Fault, Receipt, UsageError
from stabilitykit.decision import FAULT_KINDS
from stabilitykit.errors import TurnError, UnknownSignal
from stabilitykit.turn import Turn as StrictTurn
from tests.engines import Turn, breaker, engine_of, play, vector_engine, words
from tests.naive import build
from tests.naive.small import BREAKER, action, over, pack_of, rule_of


@pytest.fixture
def engine():
    """Give an engine that breaks after two slow turns."""
    return breaker()


@pytest.fixture
def wide(tmp_path):
    """Give an engine with vectors, extra signals and every scope."""
    return vector_engine(tmp_path)


def kinds(decision):
    """Name the faults."""
    return [f.kind for f in decision.faults]


@pytest.mark.capability("issue 2 §2: a duplicate turn gets the stored decision itself")
def test_duplicate(engine):
    """The same turn again is the identical object, however often, and moves nothing."""
    turn = Turn(session_id="a", turn_id=1, itl_ms=90.0)
    first = engine.evaluate(turn)
    before = engine.export("a")
    assert all(engine.evaluate(attrs.evolve(turn)) is first for _ in range(5))
    assert engine.export("a") == before
    assert engine.evaluate(Turn(session_id="a", turn_id=2, itl_ms=90.0)).state == "broken"


@pytest.mark.capability("issue 2 §2: a duplicate turn gets the stored decision itself")
def test_duplicate_by_its_bits(engine):
    """Content is compared before values are normalised: -0.0 is not 0.0, and NaN is NaN."""
    for first, again, same in (
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (7.0, 7, True),
        (1.0, True, True),
    ):
        engine.forget("a")
        stored = engine.evaluate(Turn(session_id="a", turn_id=4, itl_ms=first))
        assert (engine.evaluate(Turn(session_id="a", turn_id=4, itl_ms=again)) is stored) is same


@pytest.mark.capability("issue 2 §2: the same turn id with other content is turn_conflict")
def test_conflict(engine):
    """Other content, another model: the stored decision plus the fault; nothing moves."""
    stored = engine.evaluate(Turn(session_id="a", turn_id=1, itl_ms=90.0, model="m"))
    before = engine.export("a")
    for change in ({"itl_ms": 91.0}, {"model": "n"}, {"model": None}, {"itl_ms": None}):
        got = engine.evaluate(attrs.evolve(Turn(session_id="a", turn_id=1, itl_ms=90.0, model="m"), **change))
        assert kinds(got) == ["turn_conflict"]
        assert (got.state, got.matches, got.actions) == (stored.state, stored.matches, stored.actions)
    assert engine.export("a") == before


@pytest.mark.capability("issue 2 §2: the same turn id with other content is turn_conflict")
def test_conflict_of_arrays(wide):
    """One element of an array makes other content; what the pack does not read does not."""
    turn = Turn(session_id="a", turn_id=1, embedding=[1.0, 0.0, 0.0, 0.0])
    stored = wide.evaluate(turn)
    assert wide.evaluate(attrs.evolve(turn, embedding=np.array([1, 0, 0, 0], np.float64))) is stored
    assert wide.evaluate(attrs.evolve(turn, gpu_sm_ratio=0.5)) is stored
    assert kinds(wide.evaluate(attrs.evolve(turn, embedding=[1.0, 0.0, 0.0, 1e-9]))) == ["turn_conflict"]
    assert kinds(wide.evaluate(attrs.evolve(turn, embedding=None))) == ["turn_conflict"]


@pytest.mark.capability("issue 2 §2: a late turn is stale, several in a row say so")
def test_stale(engine):
    """A late turn gets the state that stands and nothing to do; a run of them advises to forget."""
    play(engine, [90.0, 90.0, 90.0], turn_id=None)
    before = engine.export("a")
    late = [engine.evaluate(Turn(session_id="a", turn_id=1, itl_ms=10.0)) for _ in range(4)]
    assert [kinds(d) for d in late] == [["stale"]] * 4
    assert ["forget" in d.faults[0].detail for d in late] == [False, False, True, True]
    assert {(d.state, d.previous, d.matches, d.actions, d.fired) for d in late} == {("broken", "broken", (), (), ())}
    assert engine.export("a") == before


@pytest.mark.capability("issue 2 §2: a late turn is stale, several in a row say so")
def test_a_run_of_stale_turns_ends_with_an_accepted_one(engine):
    """Only late turns in a row count, also where accepted ones go the short way, and a peek counts none."""
    late = Turn(session_id="a", turn_id=0, itl_ms=10.0)
    play(engine, [10.0])
    for _ in range(6):
        assert engine.evaluate(late).faults == (Fault("stale"),)
        assert engine.peek(late).faults == (Fault("stale"),)
        play(engine, [10.0])
    assert engine.sessions.find(("", "a")).last == 7


@pytest.mark.capability("issue 2 §2: a greater revision is one more turn")
def test_revision(engine):
    """A regenerated answer counts in the streak; a smaller or equal revision does not."""
    assert engine.evaluate(Turn(session_id="a", turn_id=1, itl_ms=90.0)).state == "healthy"
    again = Turn(session_id="a", turn_id=1, revision=1, itl_ms=95.0)
    second = engine.evaluate(again)
    assert (second.state, second.turn_id, second.faults) == ("broken", 1, ())
    assert engine.evaluate(again) is second
    assert kinds(engine.evaluate(attrs.evolve(again, revision=0))) == ["turn_conflict"]
    assert kinds(engine.evaluate(attrs.evolve(again, itl_ms=96.0))) == ["turn_conflict"]


def test_a_later_turn_has_its_own_revision(engine):
    """What a turn's answer was regenerated to says nothing about the next turn's."""
    engine.evaluate(Turn(session_id="a", turn_id=1, revision=7, itl_ms=10.0))
    second = engine.evaluate(Turn(session_id="a", turn_id=2, itl_ms=90.0))
    assert engine.evaluate(Turn(session_id="a", turn_id=2, itl_ms=90.0)) is second
    assert engine.evaluate(Turn(session_id="a", turn_id=2, revision=1, itl_ms=90.0)).state == "broken"


@pytest.mark.capability("issue 2 §2: a gap is reported and counts as nothing")
def test_gap(engine):
    """Missing turns are told once; streaks count accepted turns."""
    assert engine.evaluate(Turn(session_id="a", turn_id=50, itl_ms=90.0)).faults == ()
    second = engine.evaluate(Turn(session_id="a", turn_id=53, itl_ms=90.0))
    assert (second.state, second.faults) == ("broken", (Fault("turn_gap", "", "2 missing"),))
    assert engine.evaluate(Turn(session_id="a", turn_id=54, itl_ms=90.0)).faults == ()


@pytest.mark.capability("issue 2 §2: turn_id=None: the store issues the next one")
def test_issued_ids(engine):
    """From 1 on, after a given one, and per tenant and session."""
    assert engine.evaluate(Turn(session_id="a")).turn_id == 1
    assert engine.evaluate(Turn(session_id="a")).turn_id == 2
    assert engine.evaluate(Turn(session_id="a", turn_id=9)).turn_id == 9
    assert engine.evaluate(Turn(session_id="a")).turn_id == 10
    assert engine.evaluate(Turn(session_id="a", tenant="t")).turn_id == 1
    assert engine.evaluate(Turn(session_id=b"a")).turn_id == 1
    assert engine.evaluate(Turn(session_id="zero", turn_id=0)).turn_id == 0
    assert engine.evaluate(Turn(session_id="zero")).turn_id == 1


@pytest.mark.capability("issue 2 §2: change of model: its baselines start afresh")
def test_model_change(wide):
    """Model-bound detectors forget, streaks and state stay, None changes nothing."""
    vector = [1.0, 0.0, 0.0, 0.0]
    for _ in range(4):
        wide.evaluate(Turn(session_id="a", embedding=vector, itl_ms=30.0, model="big"))
    assert "drift.distance unknown" not in wide.evaluate(Turn(session_id="a", embedding=vector, model=None)).explain()
    wide.fork("a", "b")
    kept = wide.evaluate(Turn(session_id="a", embedding=[0.0, 1.0, 0.0, 0.0], model="big"))
    fresh = wide.evaluate(Turn(session_id="b", embedding=[0.0, 1.0, 0.0, 0.0], model="light"))
    assert [m.rule for m in kept.matches] == ["far-off"]
    assert [m.rule for m in fresh.matches] == []


@pytest.mark.capability("issue 2 §2: receipts: rebase, skip, unknown")
def test_receipts(wide):
    """A receipt of this session rebases; one of another session or a turn to come is a fault without effect."""
    vectors = [[1.0, 0.0, 0.0, 0.0]] * 3
    decision = [wide.evaluate(Turn(session_id="a", embedding=vector)) for vector in vectors][-1]
    other = [0.0, 1.0, 0.0, 0.0]
    for receipt, unknown in (
        (Receipt("x", 1, ("trim_context",)), True),
        (Receipt("a", 99, ("trim_context",)), True),
        (decision.receipt(["trim_context"]), False),
    ):
        wide.forget("b")
        wide.fork("a", "b")
        applied = receipt if receipt.session_id == "x" else attrs.evolve(receipt, session_id="b")
        got = wide.evaluate(Turn(session_id="b", embedding=other, applied=applied))
        assert kinds(got) == (["receipt_unknown"] if unknown else [])
        assert [m.rule for m in got.matches] == (["far-off"] if unknown else [])


def test_a_receipt_of_another_tenant(wide):
    """Of a session of the same id it is a fault without effect; the tenant's own is taken."""
    vector, other = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]
    turns = [Turn(session_id="a", tenant=tenant, embedding=vector) for tenant in ("one", "two")] * 3
    theirs, ours = [wide.evaluate(turn) for turn in turns][-2:]
    for decision, faults, rules in ((theirs, ["receipt_unknown"], ["far-off"]), (ours, [], [])):
        applied = decision.receipt(["trim_context"])
        got = wide.peek(Turn(session_id="a", tenant="two", embedding=other, applied=applied))
        assert (kinds(got), [m.rule for m in got.matches]) == (faults, rules)
    with pytest.raises(TurnError, match="tenant of a receipt"):
        wide.evaluate(Turn(session_id="a", applied=Receipt("a", 1, (), tenant=None)))  # type: ignore[arg-type]


@pytest.mark.capability("issue 2 §2: derived signals fill in what is missing")
def test_derived_signals():
    """Ratios are computed from tokens; a given value wins; an impossible one stays missing."""
    rules = [
        rule_of(f"r{k}", over(name, limit, unit), severity="info")
        for k, (name, limit, unit) in enumerate(
            (("kv_hit_ratio", 0.5, "ratio"), ("context_usage_ratio", 0.5, "ratio"), ("session_tokens", 100.0, "tokens"))
        )
    ]
    engine = engine_of(pack_of(*rules, rule_of("cut", build.truth(build.operand("is_history_truncated")))))

    def matched(**signals):
        engine.forget("a")
        return {m.rule for m in engine.evaluate(Turn(session_id="a", **signals)).matches}

    assert matched(input_tokens=90.0, output_tokens=20.0, cached_tokens=80.0, context_window_tokens=200.0) == {
        "r0",
        "r1",
        "r2",
    }
    assert matched(input_tokens=90.0, cached_tokens=80.0, kv_hit_ratio=0.1) == set()
    assert matched(input_tokens=90.0, cached_tokens=91.0) == set()
    assert matched(input_tokens=90.0, sent_tokens=101.0) == {"cut"}
    assert matched(input_tokens=0.0, cached_tokens=0.0) == set()
    engine.evaluate(Turn(session_id="t", input_tokens=500.0))
    assert [m.rule for m in engine.evaluate(Turn(session_id="t", input_tokens=240.0)).matches] == ["cut"]


@pytest.mark.capability("issue 2 §2: Python functions of the Turn as signals; what they raise is a fault")
def test_signal_functions(wide):
    """A registered function is asked where the turn is silent; its exception becomes a fault."""

    @wide.signal("host_score")
    def score(turn):
        if turn.itl_ms > 50.0:
            raise KeyError("canary")
        return 0.25 if turn.itl_ms > 10.0 else "canary"

    def say(**signals):
        got = wide.evaluate(Turn(session_id="a", **signals))
        return [m.rule for m in got.matches], [(f.kind, f.signal) for f in got.faults]

    assert say(itl_ms=20.0) == (["low-score"], [])
    assert say(itl_ms=20.0, extra={"host_score": 0.75}) == ([], [])
    assert say(itl_ms=60.0) == ([], [("signal_function", "host_score")])
    assert say(itl_ms=1.0) == ([], [("type_mismatch", "host_score")])
    with pytest.raises(UsageError, match="no signal 'nonsense'"):
        wide.signal("nonsense")


@pytest.mark.capability("issue 2 §2: extra signals are declared by the pack; unknown ones are misuse")
def test_extra(wide):
    """Declared extras are signals like others; an unknown name changes nothing."""
    got = wide.evaluate(Turn(session_id="a", replica="r", extra={"host_score": 0.25, "link_ms": 90.0}))
    assert [m.rule for m in got.matches] == ["low-score", "link"]
    before = wide.export("a")
    with pytest.raises(UnknownSignal, match="no signal 'host_scor'"):
        wide.evaluate(Turn(session_id="a", extra={"host_scor": 0.25}))
    with pytest.raises(UnknownSignal):
        wide.evaluate(Turn(session_id="new", extra={"host_scor": 0.25}))
    assert wide.export("a") == before
    assert len(wide.sessions) == 1


@pytest.mark.capability(
    "issue 2 §2: an invalid value is a fault of its turn and touches no statistic; a missing one is silent"
)
def test_faults_of_values(wide):
    """Each kind of bad value has its fault, on that turn only, and touches no statistic."""
    good = {"itl_ms": 30.0, "embedding": [1.0, 0.0, 0.0, 0.0]}
    cases = {
        ("invalid", "itl_ms"): {"itl_ms": -1.0},
        ("type_mismatch", "itl_ms"): {"itl_ms": "30"},
        ("invalid", "finish_reason"): {"finish_reason": "no-such-word"},
        ("type_mismatch", "finish_reason"): {"finish_reason": 3.0},
        ("invalid", "embedding"): {"embedding": [1.0, float("nan"), 0.0, 0.0]},
        ("type_mismatch", "embedding"): {"embedding": ["a", "b", "c", "d"]},
        ("dimension", "embedding"): {"embedding": [1.0, 0.0]},
    }
    for wanted, bad in cast(dict[Any, Any], cases).items():
        wide.forget("a")
        wide.forget("b")
        for _ in range(3):
            wide.evaluate(Turn(session_id="a", **good))
        wide.fork("a", "b")
        got = wide.evaluate(Turn(session_id="a", **{**good, **bad}))
        assert [(f.kind, f.signal) for f in got.faults] == [wanted]
        gone = wide.evaluate(Turn(session_id="b", **{k: v for k, v in good.items() if k not in bad}))
        assert gone.faults == ()
        assert words(wide.evaluate(Turn(session_id="a", **good))) == {
            **words(wide.evaluate(Turn(session_id="b", **good))),
            "id": "a",
        }


@pytest.mark.capability("issue 2 §2: a sustained thousandfold jump is reported as a probable unit mistake")
def test_unit_suspect(engine):
    """Five turns in a row, once; a single outlier is none."""
    play(engine, [40.0] * 5)
    faults = [kinds(engine.evaluate(Turn(session_id="a", itl_ms=0.04))) for _ in range(7)]
    assert faults == [[]] * 4 + [["unit_suspect"]] + [[]] * 2
    play(engine, [40.0, 40.0], session="b")
    outliers = [kinds(engine.evaluate(Turn(session_id="b", itl_ms=v))) for v in (0.04, 0.04, 40.0, 0.04, 0.04, 0.04)]
    assert outliers == [[]] * 6


@pytest.mark.capability("issue 2 §2: a signal once known that outlasts hold_limit is reported once")
def test_signal_stale():
    """A signal once known that outlasts hold_limit is told once; one never known is not."""
    rule = rule_of("slow", build.both(over("itl_ms", 80.0), over("ttft_ms", 1.0)), hold_limit=2)
    engine = engine_of(pack_of(rule))
    engine.evaluate(Turn(session_id="a", itl_ms=90.0))
    faults = [engine.evaluate(Turn(session_id="a")).faults for _ in range(4)]
    assert [[(f.kind, f.signal) for f in found] for found in faults] == [[], [("signal_stale", "itl_ms")], [], []]


@pytest.mark.capability("issue 2 §9: misuse raises, and then nothing has changed")
@pytest.mark.parametrize(
    "bad",
    [
        {"turn_id": True},
        {"turn_id": -1},
        {"turn_id": 2**63},
        {"turn_id": 2.0},
        {"turn_id": "canary"},
        {"turn_id": np.int64(2)},
        {"revision": -1},
        {"revision": None},
        {"revision": 1.5},
        {"revision": False},
        {"revision": 2**63},
        {"revision": "canary"},
        {"model": 3},
        {"model": b"m"},
        {"model": ["m"]},
        {"replica": 7},
        {"replica": ["r"]},
        {"device": {}},
        {"device": 3.5},
        {"replica": "new", "device": "x" * 129},
        {"applied": "canary"},
        {"applied": Receipt("a", 1, "trim")},  # type: ignore[arg-type]
        {"applied": Receipt("a", 1, ([],))},  # type: ignore[arg-type]
        {"extra": ["host_score"]},
        {"extra": {"canary": 1}},
        {"extra": {None: 1}},
        {"extra": 3},
    ],
    ids=repr,
)
def test_misuse(wide, bad):
    """Wrong identities, receipts and extras raise before anything moved; no text is repeated."""
    for turn_id in (0, 1):
        wide.evaluate(Turn(session_id="a", turn_id=turn_id, itl_ms=30.0, replica="r", model="m"))
    before, held = wide.export("a"), [set(shelf) for shelf in wide._scopes.held]
    for session in ("a", "new"):
        with pytest.raises(UsageError) as error:
            wide.evaluate(attrs.evolve(Turn(session_id=session, turn_id=2, itl_ms=30.0), **bad))
        assert "canary" not in str(error.value).replace("'canary'", "")
        with pytest.raises(UsageError):
            wide.peek(attrs.evolve(Turn(session_id=session, turn_id=2, itl_ms=30.0), **bad))
    assert wide.export("a") == before
    assert [set(shelf) for shelf in wide._scopes.held] == held
    assert len(wide.sessions) == 1


@pytest.mark.capability("issue 2 §9: misuse raises, and then nothing has changed")
def test_misuse_of_identities(engine):
    """128 bytes are an identity, 129 are none; text or bytes only."""
    for good in ("x" * 128, "é" * 64, b"x" * 128, "\udc80", ""):
        assert engine.evaluate(Turn(session_id=good, tenant=good)).turn_id == 1
    count = len(engine.sessions)
    for bad in ("x" * 129, "é" * 65, b"x" * 129, 5, None, ["a"], {}, object(), 1.5):
        for turn in (Turn(session_id=bad), Turn(session_id="a", tenant=bad)):
            with pytest.raises(TurnError):
                engine.evaluate(turn)
        for verb in (
            engine.forget,
            engine.export,
            lambda name: engine.fork(name, "b"),
            lambda name: engine.fork("", name),
        ):
            with pytest.raises(UsageError):
                verb(bad)
    assert len(engine.sessions) == count


def test_no_turn(engine):
    """Anything but a Turn is misuse, a subclass too: its attributes could do anything."""

    class Special(StrictTurn):
        pass

    nothing: list[Any] = [None, {}, "turn", Special(session_id="a"), Turn]
    for bad in nothing:
        with pytest.raises(TurnError, match="takes exactly a Turn"):
            engine.evaluate(bad)
        with pytest.raises(TurnError, match="takes exactly a Turn"):
            engine.peek(bad)


@pytest.mark.capability("issue 2 §2: fork, of the latest or of an earlier turn")
def test_fork(engine):
    """A fork goes on from the same memory, answers in its own name, and leaves the source alone."""
    play(engine, [90.0])
    engine.fork("a", "b")
    assert engine.sessions.find(("", "b")).decision.session_id == "b"
    assert play(engine, [90.0], session="b") == ["broken"]
    assert play(engine, [10.0, 90.0]) == ["healthy", "healthy"]
    for source, target in (("none", "c"), ("a", "b")):
        with pytest.raises(UsageError):
            engine.fork(source, target)
    with pytest.raises(UsageError, match="not kept"):
        engine.fork("a", "c", at_turn=1)
    assert len(engine.sessions) == 2


@pytest.mark.capability("issue 2 §2: fork, of the latest or of an earlier turn")
def test_fork_at_turn(tmp_path):
    """With snapshots=n the last n turns can be gone back to, vectors and models included."""
    engine = vector_engine(tmp_path, snapshots=3)
    vectors = [[1.0, 0.1 * k, 0.0, 0.0] for k in range(6)]
    plain = vector_engine(tmp_path)
    for k, vector in enumerate(vectors):
        engine.evaluate(Turn(session_id="a", embedding=vector, itl_ms=30.0, model=f"m{k // 3}"))
        if k < 4:
            plain.evaluate(Turn(session_id="b", embedding=vector, itl_ms=30.0, model=f"m{k // 3}"))
    engine.fork("a", "b", at_turn=4)
    same = Turn(session_id="b", turn_id=4, embedding=vectors[3], itl_ms=30.0, model="m1")
    assert words(engine.evaluate(same)) == words(plain.evaluate(same))
    for turn in (
        Turn(session_id="b", embedding=v, itl_ms=30.0, model="m1") for v in ([0.0, 1.0, 0.0, 0.0], vectors[0])
    ):
        assert words(engine.evaluate(turn)) == words(plain.evaluate(turn))
    for turn_id in (3, 0, 99, "canary"):
        with pytest.raises(UsageError) as error:
            engine.fork("a", "c", at_turn=turn_id)
        assert "canary" not in str(error.value)
    engine.fork("b", "d", at_turn=5)
    assert engine.evaluate(Turn(session_id="d")).turn_id == 6


@pytest.mark.capability("issue 2 §2: peek decides as evaluate would and stores nothing")
def test_peek(tmp_path, caplog):
    """Sessions, wider scopes, vectors, snapshots, counts and logs are as before."""
    engine = vector_engine(tmp_path, snapshots=2)
    turns = [
        Turn(
            session_id=session,
            replica=replica,
            device="g",
            embedding=[0.0, 1.0, k / 9, 0.0],
            itl_ms=90.0 + k,
            kv_usage_ratio=0.9,
            gpu_temperature_c=95.0,
            timestamp_s=float(k),
            extra={"link_ms": 90.0},
        )
        for k, (session, replica) in enumerate([("a", "r"), ("a", "r"), ("b", None), ("a", "s"), ("new", "new")])
    ]
    for turn in turns[:4]:
        engine.evaluate(turn)

    def everything():
        sessions = [(k, engine.export(k[1]), len(s.past), s.stale, s.seen) for k, s in engine.sessions.live.items()]
        sessions += [(k, engine.export(k[1]), len(s.past), s.stale, s.seen) for k, s in engine.sessions.kept.items()]
        wider = [
            (k, i.rows.view(i.row).tobytes(), i.sampled_s, i.taken_s, i.is_timed)
            for shelf in engine._scopes.held
            for k, i in shelf.items()
        ]
        free = [len(rows._free) for rows in engine._live.rows]
        return sessions, wider, free

    before = everything()
    caplog.set_level("INFO", "stabilitykit")
    for turn in turns + turns[::-1]:
        peeked = engine.peek(turn)
        assert everything() == before
        assert peeked.state
    assert caplog.records == []
    want = words(engine.peek(attrs.evolve(turns[3], timestamp_s=99.0)))
    assert words(engine.evaluate(attrs.evolve(turns[3], timestamp_s=99.0))) == want


@pytest.mark.capability("issue 2 §2: a forgotten session starts anew")
def test_forget(engine):
    """A forgotten session starts anew; numbering too."""
    play(engine, [90.0, 90.0])
    assert engine.forget("a")
    assert not engine.forget("a")
    assert engine.evaluate(Turn(session_id="a", turn_id=0)).state == "healthy"


def test_many_rules_explain_themselves():
    """The streak of a rule beyond the 64th is told like any other's."""
    rules = [rule_of(f"r{k}", over("itl_ms", 1e6 + k)) for k in range(70)]
    engine = engine_of(pack_of(*rules, rule_of("last", over("itl_ms", 80.0), for_turns=2)))
    play(engine, [90.0, 90.0])
    (reason,) = engine.evaluate(Turn(session_id="a", itl_ms=90.0)).reasons
    assert (reason.rule, reason.streak, reason.need) == ("last", 3, 2)


def test_two_engines_of_one_pack_agree():
    """The same calls give the same decisions, compiled and not."""
    values = [90.0, None, 90.0, 95.0, 10.0, 90.0, 90.0, 20.0, 30.0, 30.0, 30.0]
    assert play(breaker(), values) == play(breaker(), values) == play(breaker(compiled=False), values)


def test_the_list_of_faults_is_closed():
    """Ten kinds, each shown above or beside the code that raises it."""
    assert sorted(FAULT_KINDS) == sorted(
        "invalid type_mismatch dimension stale turn_conflict turn_gap signal_stale unit_suspect signal_function "
        "receipt_unknown".split()
    )


def test_actions_of_a_sample_go_out_once():
    """A replica rule's `do` comes with the turn that brought the sample, not with the next one."""
    rule = rule_of(
        "full",
        build.compare(build.operand("kv_usage_ratio"), ">", build.literal(0.5, "ratio")),
        do=(action("evict_kv"),),
    )
    engine = engine_of(pack_of(rule, transitions=BREAKER))
    first = engine.evaluate(Turn(session_id="a", replica="r", kv_usage_ratio=0.9))
    second = engine.evaluate(Turn(session_id="b", replica="r"))
    assert [a.name for a in first.actions] == ["evict_kv"]
    assert second.actions == ()
    assert [m.rule for m in second.matches] == ["full"]


@pytest.mark.capability("issue 2 §2: evaluate opens no file, starts no thread, sleeps never, reads no environment")
def test_nothing_but_arithmetic(wide, monkeypatch):
    """What touches the world raises while turns, samples and peeks of every kind are taken."""
    bad = {
        "itl_ms": "x",
        "embedding": [1.0],
        "finish_reason": "none",
        "extra": {"host_score": 7.0},
        "timestamp_s": -1.0,
    }

    def calls():
        for k in range(40):
            turn = Turn(
                session_id="a",
                itl_ms=30.0 if k < 9 else 300.0,
                embedding=[1.0, 0.1 * k, 0.0, 0.0],
                kv_usage_ratio=0.9,
                replica="r",
            )
            wide.evaluate(turn)
            wide.peek(attrs.evolve(turn, **bad))
            wide.observe(replica="r", kv_usage_ratio=0.1 * (k % 9))
        return wide.evaluate(Turn(session_id="a", **bad))

    calls()

    def forbidden(*_, **__):
        raise AssertionError("the engine touched the world")

    with monkeypatch.context() as patch:
        for name in (
            "builtins.open",
            "os.open",
            "os.getenv",
            "time.sleep",
            "time.time",
            "random.random",
            "threading.Thread.start",
            "os.urandom",
        ):
            patch.setattr(name, forbidden)
        decision = calls()
    assert {f.kind for f in decision.faults} == {"type_mismatch", "dimension", "invalid"}


def test_load_of_a_shipped_pack():
    """The README's first lines."""
    engine = Engine.load("chat")
    decision = engine.evaluate(Turn(session_id="c-1", ttft_ms=300.0, itl_ms=30.0, input_tokens=900))
    assert (decision.state, decision.faults, decision.actions, decision.generation) == ("healthy", (), (), 1)

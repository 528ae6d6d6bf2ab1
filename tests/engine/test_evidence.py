"""Conditions worked out again: verdicts, the comparison that decides, the nearest change."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.engine.evidence import Evidence, Known, deciding, nearest_change
from stabilitykit.signals import CATALOGUE
from tests.naive import build
from tests.naive.small import over, rule_of

KNOWN = Known(CATALOGUE, {"itl_ms": frozenset({"slow.ratio"})})
NAMES = {"itl_ms": 0, "ttft_ms": 1, "slow.ratio": 2}
SLOW, LATE = over("itl_ms", 80.0), over("ttft_ms", 500.0)


def evidence(itl=90.0, ttft=600.0, ratio=3.0, mean=85.0, level=1.0):
    """Give the values of one turn."""
    return Evidence(NAMES, {(0, "mean(itl_ms, 3 turns)"): 3}, {"other": 4}, [itl, ttft, ratio, mean, level])


@pytest.mark.parametrize(
    ("node", "verdict"),
    [
        (SLOW, 2),
        (build.invert(SLOW), 0),
        (over("itl_ms", 90.0), 0),
        (build.both(SLOW, over("itl_ms", 95.0)), 0),
        (build.either(SLOW, over("itl_ms", 95.0)), 2),
        (build.reference("other"), 2),
        (build.invert(build.reference("other")), 0),
        (build.compare(build.window("mean", build.operand("itl_ms"), 3), "<", build.operand("itl_ms")), 2),
        (
            build.compare(
                build.call("-", build.operand("ttft_ms"), build.operand("itl_ms")), "==", build.literal(510.0, "ms")
            ),
            2,
        ),
        (build.compare(build.call("neg", build.operand("itl_ms")), "<", build.literal(0.0, "ms")), 2),
    ],
)
def test_verdicts(node, verdict):
    """The verdict of the language, from the numbers of one turn."""
    assert evidence().verdict(node) == verdict


@given(itl=st.sampled_from([math.nan, 70.0, 80.0, 90.0]), ttft=st.sampled_from([math.nan, 400.0, 600.0]))
def test_kleene(itl, ttft):
    """`and` is the least, `or` the greatest, `not` swaps; unknown is between."""
    seen = evidence(itl, ttft)
    a, b = seen.verdict(SLOW), seen.verdict(LATE)
    assert seen.verdict(build.both(SLOW, LATE)) == min(a, b)
    assert seen.verdict(build.either(SLOW, LATE)) == max(a, b)
    assert seen.verdict(build.invert(SLOW)) == 2 - a
    assert a == (1 if math.isnan(itl) else 2 * (itl > 80.0))


def test_the_comparison_that_decides():
    """Of two that must hold the one nearest to failing, of alternatives the clearest; negations are worked in."""
    assert deciding(build.both(SLOW, LATE), evidence(itl=81.0)).left.name == "itl_ms"
    assert deciding(build.both(SLOW, LATE), evidence(ttft=501.0)).left.name == "ttft_ms"
    assert deciding(build.either(SLOW, LATE), evidence(itl=81.0)).left.name == "ttft_ms"
    found = deciding(build.invert(over("itl_ms", 100.0)), evidence())
    assert (found.op, found.value, found.threshold, found.margin, found.verdict) == ("<=", 90.0, 100.0, 10.0, 2)
    assert deciding(SLOW, evidence(itl=math.nan)).verdict == 1


def change(node, **values):
    """Give operand, op and value of the nearest change."""
    found = nearest_change(rule_of("r", node), evidence(**values), KNOWN)
    return found and (found.operand.text, found.op, found.value)


def test_nearest_change():
    """The smallest relative change; one operand suffices or there is none."""
    assert change(SLOW) == ("itl_ms", "<=", 80.0)
    assert change(build.both(SLOW, LATE), itl=200.0) == ("ttft_ms", "<=", 500.0)
    assert change(build.either(SLOW, LATE)) is None
    assert change(SLOW, itl=70.0) is None
    assert change(SLOW, itl=math.nan) is None
    difference = build.compare(
        build.call("-", build.operand("ttft_ms"), build.operand("itl_ms")), ">", build.literal(500.0, "ms")
    )
    assert change(difference) == ("ttft_ms", "<=", 590.0)


def test_what_follows_from_a_change_is_not_guessed():
    """A window, a detector or another rule would see the other value too: then nothing is promised."""
    window = build.compare(build.window("mean", build.operand("itl_ms"), 3), ">", build.literal(80.0, "ms"))
    output = build.compare(build.output("slow.ratio", "ratio", "session"), ">", build.literal(2.0, "ratio"))
    assert change(window) == ("mean(itl_ms, 3 turns)", "<=", 80.0)
    assert change(output) == ("slow.ratio", "<=", 2.0)
    assert change(build.both(SLOW, build.invert(window)), mean=70.0) == ("itl_ms", "<=", 80.0)
    for other in (window, build.reference("other")):
        assert change(build.either(SLOW, build.invert(other)), mean=85.0) is None
    found = nearest_change(rule_of("r", build.either(SLOW, build.invert(output))), evidence(), KNOWN)
    assert found is not None
    assert (found.operand.name, found.op, found.value, found.held) == ("itl_ms", "<=", 80.0, ("slow",))


def test_changes_stay_in_the_domain():
    """A ratio above 1 or a negative time is no value a turn could have had."""
    ratio = build.compare(build.operand("itl_ms"), ">=", build.literal(0.0, "ms"))
    assert change(ratio) is None
    assert change(build.compare(build.operand("itl_ms"), "<=", build.literal(1e9, "ms"))) is None

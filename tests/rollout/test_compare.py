"""The tests of difference against scipy, and what they promise: errors of the first and the second kind."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stabilitykit.rollout import compare


@st.composite
def tables(draw, most=400):
    """Give two shares as counts."""
    of, other_of = draw(st.integers(1, most)), draw(st.integers(1, most))
    return draw(st.integers(0, of)), of, draw(st.integers(0, other_of)), other_of


@pytest.mark.capability("issue 5 §6: rollout: Fisher's exact test equals scipy's, and the two-proportion z-test")
@settings(max_examples=200, deadline=None)
@given(tables())
def test_fisher(table):
    """Any table gives scipy's two-sided p-value."""
    k, n, other_k, other_n = table
    wanted = stats.fisher_exact([[k, n - k], [other_k, other_n - other_k]]).pvalue
    assert compare.fisher_exact(k, n, other_k, other_n) == pytest.approx(wanted, rel=1e-6, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(tables())
def test_two_proportions(table):
    """The z-test is the chi-squared test without correction; the difference lies in the middle of its interval."""
    k, n, other_k, other_n = table
    found = compare.two_proportions(k, n, other_k, other_n)
    assert found.value == pytest.approx((found.low + found.high) / 2)
    if 0 < k + other_k < n + other_n:
        wanted = stats.chi2_contingency([[k, n - k], [other_k, other_n - other_k]], correction=False).pvalue
        assert found.p == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    else:
        assert found.p == 1.0


def test_the_source_documents_claim():
    """18.7 % against 6.3 % of 4,217, split evenly, is significant: the source's numbers, not ours (formulas B2.5)."""
    first, other = round(0.187 * 2108), round(0.063 * 2109)
    found = compare.two_proportions(first, 2108, other, 2109)
    assert found.p < 1e-30
    assert compare.fisher_exact(first, 2108, other, 2109) < 1e-30
    assert found.high < -0.1


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar(only_one, only_other):
    """The exact test of pairs is the binomial one."""
    wanted = 1.0 if only_one + only_other == 0 else stats.binomtest(only_one, only_one + only_other).pvalue
    assert compare.mcnemar_exact(only_one, only_other) == pytest.approx(wanted, rel=1e-9)


def test_permutation():
    """The p-value is scipy's exact one within the error of 9,999 rounds, and the same again."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 6), rng.normal(1.2, 1, 6)
    exact = stats.permutation_test((a, b), lambda x, y: y.mean() - x.mean(), n_resamples=np.inf).pvalue
    found = compare.permutation(a, b)
    assert found == compare.permutation(a, b)
    assert abs(found - exact) < 4 * math.sqrt(exact * (1 - exact) / 9_999) + 1e-4


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm(values):
    """A corrected p-value is never smaller, never over one, in the same order, and alone it is unchanged."""
    corrected = compare.holm(values)
    assert all(p <= c <= 1.0 for p, c in zip(values, corrected, strict=True))
    ordered = sorted(range(len(values)), key=values.__getitem__)
    assert [corrected[k] for k in ordered] == sorted(corrected)
    assert len(values) != 1 or corrected == values


@pytest.mark.capability("issue 5 §6: rollout: the sample-size hint is what shows the difference four times in five")
@pytest.mark.parametrize(("first", "other"), [(0.2, 0.1), (0.05, 0.02), (0.5, 0.4)])
def test_the_sample_size_has_the_power(first, other):
    """Of 1,000 trials of that size about 800 are significant by the z-test, within four standard deviations and 2 %."""
    n = int(compare.sessions_for_shares(first, other))
    rng = np.random.default_rng(1)
    pairs = zip(rng.binomial(n, first, 1_000).tolist(), rng.binomial(n, other, 1_000).tolist(), strict=True)
    shown = sum(compare.two_proportions(k, n, other_k, n).p < 0.05 for k, other_k in pairs)
    assert abs(shown - 800) < 4 * math.sqrt(160) + 20


def test_the_sample_size_of_means_has_the_power():
    """The same for means of a normal spread."""
    n = int(compare.sessions_for_means(2.0, 0.5))
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, 2, (1_000, n)), rng.normal(0.5, 2, (1_000, n))
    shown = int((stats.ttest_ind(a, b, axis=1).pvalue < 0.05).sum())
    assert abs(shown - 800) < 4 * math.sqrt(160)
    assert compare.sessions_for_means(2.0, 0.0) == compare.sessions_for_shares(0.1, 0.1) == math.inf


def test_permutation_in_blocks(monkeypatch):
    """Rounds are dealt in blocks of bounded memory, and how many a block holds changes nothing."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, 20_000), rng.normal(0.02, 1, 20_000)
    tracemalloc.start()
    found = compare.permutation(a, b, rounds=200)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40 << 20  # 200 rounds at once would take 64 MB, and twice that while they are dealt
    monkeypatch.setattr(compare, "_BLOCK", 1)
    assert compare.permutation(a, b, rounds=200) == found
    assert 1 / 201 < found < 1

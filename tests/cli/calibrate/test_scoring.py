from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from stabilitykit.cli.calibrate.scoring import (
    auc,
    best_threshold,
    best_threshold_by_dialogue,
    f1,
    folds,
    interval,
)

labels_and_scores = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(
    lambda rows: 0 < sum(y for y, _ in rows) < len(rows)
)


@given(labels_and_scores)
def test_figures_are_scikit_learns(rows):
    """AUC with ties, F1 at every threshold, and the best of them."""
    y, s = np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], float)
    assert auc(y, s) == pytest.approx(metrics.roc_auc_score(y, s))
    found = {t: metrics.f1_score(y, s >= t, zero_division=0.0) for t in np.unique(s)}
    assert f1(y, s >= best_threshold(y, s)) == pytest.approx(max(found.values()))


@given(labels_and_scores, st.integers(1, 5))
def test_the_best_threshold_by_dialogue_is_that_of_a_search(rows, parts):
    """No score is a better threshold for the mean F1 of dialogues."""
    y, s = np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], float)
    group = np.arange(len(y)) % parts

    def mean_f1(limit):
        of = [group == g for g in np.unique(group)]
        own = [(y[o], s[o] >= limit) for o in of]
        return np.mean([f1(labels, over) if labels.any() or over.any() else 1.0 for labels, over in own])

    found = mean_f1(best_threshold_by_dialogue(y, s, group))
    assert found == pytest.approx(max(mean_f1(t) for t in np.unique(s)))


def test_a_quiet_dialogue_counts_as_right():
    """Nothing to find and nothing found is 1, a false alarm there is 0: three such outweigh what another misses."""
    y, s = np.array([0, 0, 0, 1, 1, 1]), np.array([2.0, 2.0, 2.0, 2.0, 2.0, 3.0])
    assert best_threshold_by_dialogue(y, s, np.array([0, 1, 2, 3, 3, 3])) == 3.0
    assert best_threshold(y, s) == 2.0


def test_folds_share_out_and_intervals_repeat():
    """Folds differ by at most one dialogue; an interval is the same on every run and holds the figure."""
    assert sorted(np.bincount(folds(11, 5)).tolist()) == [2, 2, 2, 2, 3]
    values = np.arange(50.0)
    low, high = interval(lambda drawn: float(values[drawn].mean()), 50)
    assert (low, high) == interval(lambda drawn: float(values[drawn].mean()), 50)
    assert low < values.mean() < high

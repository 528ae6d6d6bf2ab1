"""Logistic regression, from scikit-learn; one place that imports it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import MissingExtra

__all__ = ["fit_logistic"]

Floats = NDArray[np.float64]


def fit_logistic(
    rows: Floats, labels: NDArray[np.generic], strength: float, counts: Floats | None = None
) -> tuple[Floats, Floats, list[str]]:
    """Fit a linear classifier.

    Parameters
    ----------
    rows
        float64[n, d].
    labels
        n labels of at least two classes.
    strength
        Inverse of the L2 penalty.
    counts
        How much each row counts; 1 each by default.

    Returns
    -------
    weights, bias, classes
        float64[c, d], float64[c] and c names; for two classes one row, the logit of the second.

    Raises
    ------
    MissingExtra
        scikit-learn is not installed.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("sklearn", "calibrate") from None
    model = LogisticRegression(C=strength, max_iter=500, tol=1e-3).fit(rows, labels, counts)
    return np.asarray(model.coef_), np.asarray(model.intercept_), [str(c) for c in model.classes_]

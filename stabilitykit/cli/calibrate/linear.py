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
        from threadpoolctl import threadpool_limits  # what scikit-learn itself needs
    except ImportError:
        raise MissingExtra("sklearn", "calibrate") from None
    # float32 is half the memory to go through, and the model's file has no more. Products this small are ten times
    # slower on several threads when other work has the cores.
    with threadpool_limits(1):
        model = LogisticRegression(C=strength, max_iter=500, tol=1e-4).fit(rows.astype(np.float32), labels, counts)
    return model.coef_.astype(np.float64), model.intercept_.astype(np.float64), [str(c) for c in model.classes_]

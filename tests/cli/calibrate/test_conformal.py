from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from stabilitykit.cli.calibrate.conformal import calibrate, least_sessions, rate_quantile


@given(st.integers(1, 400), st.integers(1, 20), st.sampled_from([0.025, 0.5, 0.95, 0.975]))
def test_spread_is_scipys_beta(sessions, above, level):
    """The quantile of the realised rate is that of the Beta distribution."""
    above = min(above, sessions)
    expected = beta.ppf(level, above, sessions + 1 - above)
    assert rate_quantile(sessions, above, level) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.sampled_from([0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003]))
def test_watch_only_until_there_is_enough(rate):
    """One session fewer than needed gives no threshold, and promises nothing; 19 bear 5 %, 99 bear 1 %."""
    least = least_sessions(rate)
    assert least == pytest.approx(1 / rate - 1, abs=1)
    assert calibrate([1.0] * least, rate).value == 1.0
    short = calibrate([1.0] * (least - 1), rate)
    assert (short.value, short.wanted, short.high) == (None, least, 1.0)


@pytest.mark.capability("issue 6: thresholds: mean false rate at most nominal, the bound covers, of known distribution")
@pytest.mark.parametrize(("sessions", "rate"), [(50, 0.05), (120, 0.01), (19, 0.05)])
def test_promise_holds_of_a_known_distribution(sessions, rate):
    """On uniform scores the realised rate is known exactly: its mean is at most nominal, the bound covers 97.5 %."""
    rng = np.random.default_rng(sessions)
    told = [calibrate(rng.random(sessions).tolist(), rate) for _ in range(4000)]
    realised = 1 - np.array([t.value for t in told], np.float64)
    assert realised.mean() == pytest.approx(told[0].mean, abs=4 * realised.std() / 60)
    assert told[0].mean <= rate + 1e-12
    assert np.mean(realised <= told[0].high) == pytest.approx(0.975, abs=0.012)
    assert np.mean(realised >= told[0].low) == pytest.approx(0.975, abs=0.012)


def test_ties_are_on_the_safe_side():
    """What is as far as the threshold is not beyond it."""
    told = calibrate([1.0] * 50 + [2.0] * 50, 0.05)
    assert told.value == 2.0

"""Power and planning: simulated shares agree with direct simulation and with closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import calibrary as cal
from calibrary.inference.verbs.power import LINES, _confidences, _truth
from each import amount


@pytest.mark.parametrize("line", LINES)
def test_truths_are_as_far_from_the_confidences_as_asked(line):
    c = _confidences(400, None, (0.8, 0.8))
    q = _truth(c, 0.05, line)
    assert np.mean(np.abs(q - c)) == pytest.approx(0.05, abs=1e-9)
    assert q.min() >= 0
    assert q.max() <= 1


def test_no_error_gives_the_level():
    assert cal.power("ece", 200, error=0.0, n_resamples=499, rng=0).power == pytest.approx(0.05, abs=0.035)


def test_power_of_spiegelhalter_is_that_of_its_normal_law():
    n, error = 400, 0.06
    c = _confidences(n, None, (1.0, 1.0))
    q = _truth(c, error, "over-confident")
    mean = np.sum((q - c) * (1 - 2 * c)) / np.sqrt(np.sum((1 - 2 * c) ** 2 * c * (1 - c)))
    sd = np.sqrt(np.sum((1 - 2 * c) ** 2 * q * (1 - q)) / np.sum((1 - 2 * c) ** 2 * c * (1 - c)))
    z = norm.ppf(0.975)
    exact = norm.sf((z - mean) / sd) + norm.cdf((-z - mean) / sd)
    found = cal.power("spiegelhalter", n, error=error, n_resamples=999, rng=0)
    assert found.power == pytest.approx(exact, abs=0.06)


def test_power_is_the_share_of_samples_that_the_test_rejects():
    c = _confidences(150, None, (1.0, 1.0))
    q = _truth(c, 0.1, "shift")
    rng = np.random.default_rng(0)
    runs = amount(60, 150)
    hits = [
        cal.test("ece", (rng.random(150) < q).astype(int), c, n_resamples=99, rng=rng).pvalue <= 0.05
        for _ in range(runs)
    ]
    found = cal.power("ece", 150, error=0.1, line="shift", n_resamples=999, rng=1)
    assert found.power == pytest.approx(np.mean(hits), abs=1.5 / math.sqrt(runs))
    assert found.mean > found.mean_calibrated


def test_more_rows_and_larger_errors_are_found_more_often():
    assert (
        cal.power("ks", 100, error=0.05, n_resamples=199, rng=0).power
        < cal.power("ks", 800, error=0.05, n_resamples=199, rng=0).power
        <= cal.power("ks", 800, error=0.1, n_resamples=199, rng=0).power
    )


def test_sample_size_reaches_the_power_it_promises():
    rows = cal.sample_size("spiegelhalter", 0.08, power=0.8, n_resamples=299)
    again = cal.power("spiegelhalter", rows.n, error=0.08, n_resamples=999, rng=5)
    assert again.power == pytest.approx(0.8, abs=0.1)
    assert cal.sample_size("spiegelhalter", 0.04, n_resamples=299).n > 2 * rows.n


def test_confidences_of_the_user_are_taken_at_even_ranks():
    given = np.random.default_rng(0).beta(2, 5, 1000)
    c = _confidences(100, given, (1.0, 1.0))
    assert c.mean() == pytest.approx(given.mean(), abs=0.01)
    assert cal.power("ece", 100, error=0.02, y_prob=given, n_resamples=99, rng=0).n == 100


def test_refusals():
    with pytest.raises(ValueError, match=r"error=0\.9 is impossible"):
        cal.power("ece", 100, error=0.9)
    with pytest.raises(ValueError, match=r"alpha=1\.5 is outside"):
        cal.power("ece", 100, error=0.1, alpha=1.5)
    with pytest.raises(ValueError, match="n_resamples=5 is too few"):
        cal.power("ece", 100, error=0.1, n_resamples=5)
    with pytest.raises(ValueError, match="line='sideways' is not known"):
        cal.power("ece", 100, error=0.1, line="sideways")
    with pytest.raises(ValueError, match=r"power=1\.0 is outside"):
        cal.sample_size("ece", 0.1, power=1.0)


def test_a_promised_power_is_had():
    """Promised for 80%, the rows have it on average over seeds, in draws that the search did not see."""
    promised = [int(cal.sample_size("ece", 0.1, n_resamples=199, rng=seed)) for seed in range(4)]
    had = [cal.power("ece", n, error=0.1, n_resamples=999, rng=100 + i).power for i, n in enumerate(promised)]
    assert np.mean(had) == pytest.approx(0.81, abs=0.035)
    assert max(promised) < 1.25 * min(promised)


def test_a_sample_size_reaches_the_power_and_is_not_far_above_it():
    found = cal.sample_size("spiegelhalter", 0.1, power=0.8, n_resamples=199, rng=0)
    assert found.power >= 0.8
    fewer = cal.power("spiegelhalter", int(int(found) * 0.6), error=0.1, n_resamples=199, rng=0)
    assert fewer.power < 0.8

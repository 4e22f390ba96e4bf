"""One-sided bounds of ``interval`` and ``verdict``, and remarks on intervals."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from each import amount, most


def rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    return (rng.random(n) < c).astype(int), c


@pytest.mark.parametrize("metric", ["bs", "ece", "auroc", "cis"])
def test_a_bound_is_one_end_of_the_interval_that_leaves_out_twice_as_much(metric):
    y, c = rows()
    both = cal.interval(metric, y, c, confidence_level=0.9, n_resamples=99, rng=0)
    upper, lower = (cal.interval(metric, y, c, alternative=a, n_resamples=99, rng=0) for a in ("less", "greater"))
    np.testing.assert_array_equal(upper.high, both.high)
    np.testing.assert_array_equal(lower.low, both.low)
    assert np.all(np.asarray(upper.low) <= np.asarray(both.low))
    assert np.all(np.asarray(lower.high) >= np.asarray(both.high))
    assert upper.level == 0.95


def test_an_upper_bound_covers_as_often_as_it_says():
    missed, runs = 0, amount(100, 300)
    for seed in range(runs):
        y, c = rows(seed, 100)
        missed += cal.interval("bs", y, c, alternative="less").high < np.mean(c * (1 - c))
    assert runs / 100 <= missed <= most(runs, 0.05)


def test_a_verdict_by_one_side_passes_where_two_sides_do_not_decide():
    y, c = rows()
    bound = (cal.interval("bs", y, c).high + cal.interval("bs", y, c, alternative="less").high) / 2
    with pytest.warns(UserWarning, match="undecided"):
        assert cal.verdict(f"bs<{bound}", y, c).status == "undecided"
    found = cal.verdict(f"bs<{bound}", y, c, alternative="less")
    assert found.status == "pass"
    assert "the true value is at most" in found.sentence


def test_a_bound_needs_a_level_above_one_half():
    with pytest.raises(ValueError, match="of a one-sided bound must be above"):
        cal.interval("bs", *rows(), alternative="less", confidence_level=0.5)
    with pytest.raises(ValueError, match="alternative='one' is not known"):
        cal.interval("bs", *rows(), alternative="one")


def test_certain_predictions_that_never_failed_are_said():
    y, c = rows()
    sure = np.where(y == 1, np.maximum(c, 0.1), np.minimum(c, 0.9))
    assert "certain" not in cal.interval("nll", y, sure).note
    sure[:3] = y[:3]
    assert "3 of the predictions are certain and none of them failed" in cal.interval("nll", y, sure).note


def test_the_stated_error_of_a_power_is_its_spread_over_seeds():
    found = [cal.power("spiegelhalter", 100, error=0.08, n_resamples=199, rng=seed) for seed in range(amount(15, 40))]
    spread = np.std([f.power for f in found], ddof=1)
    assert 0.6 < spread / np.mean([f.standard_error for f in found]) < 1.5

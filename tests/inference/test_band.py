"""Consistency resampling: the range of a metric's values on data whose true probabilities are known."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics.draw import generator


def draw(truth, n=300, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < truth(c)).astype(int), c


def test_the_band_holds_the_quantiles_of_rows_and_labels_drawn_anew():
    y, c = draw(lambda c: c**2)
    band = cal.consistency_band("ece", y, c, n_resamples=59, confidence_level=0.9, rng=3)
    rng = generator(3, "labels")
    readings = []
    for _ in range(59):
        i = rng.integers(0, len(c), len(c))
        readings.append(cal.compute("ece", (rng.random(len(c)) < c[i]).astype(int), c[i]))
    np.testing.assert_allclose(band.values, readings)
    np.testing.assert_allclose([*band], np.quantile(readings, [0.05, 0.95]))
    assert band.mean == pytest.approx(np.mean(readings))
    assert (band.estimate, band.inside, band.around) == (cal.compute("ece", y, c), False, "calibrated predictions")


def test_around_the_right_map_the_band_holds_the_reading_and_around_the_diagonal_it_does_not():
    y, c = draw(np.square)
    draws = {"n_resamples": 199, "rng": 0}
    assert not cal.consistency_band("esce", y, c, **draws).inside
    for truth in (np.square, "isotonic", "beta"):
        around = cal.consistency_band("esce", y, c, calibration_map=truth, **draws)
        assert around.inside, truth
        assert around.around == "the fitted map"
    assert cal.consistency_band("esce", y, c, method="monte-carlo", calibration_map=np.square, **draws).inside


def test_a_calibrated_model_lies_inside_as_often_as_it_says():
    inside = [
        cal.consistency_band(
            "ecce_mad", *draw(lambda c: c, 150, seed), n_resamples=99, confidence_level=0.8, rng=seed
        ).inside
        for seed in range(120)
    ]
    assert 0.68 < np.mean(inside) < 0.92


def test_a_metric_of_several_numbers_has_a_band_for_each():
    band = cal.consistency_band("cis", *draw(lambda c: c), n_resamples=39, confidence_level=0.9, rng=0)
    low, high = band
    assert low.shape == high.shape == band.inside.shape == (2,)
    assert low[1] < 1 < high[1]


@pytest.mark.parametrize("method", ["consistency", "monte-carlo", "monte_carlo"])
def test_an_interval_by_readings_is_refused_with_what_to_do(method):
    y, c = draw(lambda c: c, 50)
    with pytest.raises(ValueError, match=r"gives no interval of the true value: use calibrary\.consistency_band"):
        cal.interval("ece", y, c, method=method)

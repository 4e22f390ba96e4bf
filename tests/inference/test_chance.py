"""A metric compared with its values by chance, or with those around a fitted map."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics.draw import generator
from each import amount, most

expected = functools.partial(cal.expected_by_chance, method="consistency", alternative="two-sided")


def draw(truth, n=300, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < truth(c)).astype(int), c


def test_the_band_holds_the_quantiles_of_rows_and_labels_drawn_anew():
    y, c = draw(lambda c: c**2)
    band = expected("ece", y, c, n_resamples=59, confidence_level=0.9, rng=3)
    rng = generator(3, "labels")
    readings = []
    for _ in range(59):
        i = rng.integers(0, len(c), len(c))
        readings.append(cal.compute("ece", (rng.random(len(c)) < c[i]).astype(int), c[i]))
    np.testing.assert_allclose(band.values, readings)
    np.testing.assert_allclose([*band], np.quantile(readings, [0.05, 0.95]))
    assert band.expected_by_chance == pytest.approx(np.mean(readings))
    assert (band.value, band.inside, band.around) == (cal.compute("ece", y, c), False, "calibrated predictions")


def test_around_the_right_map_the_band_holds_the_reading_and_around_the_diagonal_it_does_not():
    y, c = draw(np.square)
    draws = {"n_resamples": 199, "rng": 0}
    assert not expected("esce", y, c, **draws).inside
    for truth in (np.square, "isotonic", "beta"):
        around = expected("esce", y, c, calibration_map=truth, **draws)
        assert around.inside, truth
        assert around.around == "the fitted map"
    assert cal.expected_by_chance("esce", y, c, calibration_map=np.square, **draws).inside


def test_a_calibrated_model_lies_inside_as_often_as_it_says():
    runs = amount(50, 120)
    inside = [
        expected("ecce_mad", *draw(lambda c: c, 150, seed), n_resamples=99, confidence_level=0.8, rng=seed).inside
        for seed in range(runs)
    ]
    assert runs - most(runs, 0.2) <= sum(inside) <= most(runs, 0.8)


def test_a_metric_of_several_numbers_has_a_band_for_each():
    band = expected("cis", *draw(lambda c: c), n_resamples=39, confidence_level=0.9, rng=0)
    low, high = band
    assert low.shape == high.shape == band.inside.shape == (2,)
    assert low[1] < 1 < high[1]


@pytest.mark.parametrize("method", ["consistency", "monte-carlo", "monte_carlo"])
def test_an_interval_by_readings_is_refused_with_what_to_do(method):
    y, c = draw(lambda c: c, 50)
    with pytest.raises(ValueError, match=r"gives no interval of the true value: use calibrary\.expected_by_chance"):
        cal.interval("ece", y, c, method=method)


def test_the_value_expected_by_chance_is_given_in_words():
    rng = np.random.default_rng(0)
    c = rng.random(300)
    calibrated, wrong = (rng.random(300) < c).astype(int), (rng.random(300) < c**2).astype(int)
    reading = cal.expected_by_chance("ece", calibrated, c, rng=0)
    assert reading.expected_by_chance == pytest.approx(0.08, abs=0.02)
    assert reading.value == pytest.approx(cal.expected_calibration_error(calibrated, c))
    assert reading.excess == pytest.approx(reading.value - reading.expected_by_chance)
    assert "within the range expected by chance" in str(reading)
    assert "expected calibration error is" in str(reading)
    assert "above the range expected by chance" in str(cal.expected_by_chance("ECE-EM", wrong, c, rng=0))
    few = cal.expected_by_chance("ece", calibrated, c, rng=0, n_bins=3)
    assert few.expected_by_chance < reading.expected_by_chance


def test_the_value_expected_by_chance_has_two_sides_copies_and_parts():
    rng = np.random.default_rng(0)
    q = rng.beta(0.5, 0.5, 300)
    y, timid = (rng.random(300) < q).astype(int), 0.5 + 0.3 * (q - 0.5)
    low = cal.expected_by_chance("bs", y, timid, rng=0)
    assert low.value < low.low
    assert "below the range expected by chance" in str(low)
    assert "within the range expected by chance" in str(cal.expected_by_chance("bs", y, q, rng=0))
    copies = cal.expected_by_chance("ece", y[:20], q[:20], sample_weight=np.full(20, 3), rng=0)
    assert copies.n == 60
    assert "these 60 predictions" in str(copies)
    slope = cal.expected_by_chance("cis.slope", y, timid, rng=0)
    assert slope.value > slope.high
    assert slope.value == pytest.approx(cal.cox_intercept_slope(y, timid).slope)


def test_without_labels_the_values_by_chance_are_the_same():
    y, c = draw(lambda c: c)
    drawn = {"n_resamples": 49, "rng": 0}
    known, unknown = cal.expected_by_chance("ece", y, c, **drawn), cal.expected_by_chance("ece", None, c, **drawn)
    np.testing.assert_array_equal(known.values, unknown.values)
    assert (known.expected_by_chance, known.high, known.sd) == (unknown.expected_by_chance, unknown.high, unknown.sd)
    assert np.isnan(unknown.value)
    assert str(known).endswith(str(unknown))
    with pytest.raises(ValueError, match="must be fitted to labels, and there are none: pass y_true"):
        cal.expected_by_chance("ece", None, c, calibration_map="platt")


def test_the_p_value_is_that_of_the_test_which_redraws_labels():
    y, c = draw(np.square)
    found = cal.expected_by_chance("ece", y, c, n_resamples=99, rng=4)
    tested = cal.test("ece", y, c, method="monte-carlo", n_resamples=99, rng=4)
    assert (found.value, found.pvalue, found.expected_by_chance) == (
        tested.statistic,
        tested.pvalue,
        tested.expected_by_chance,
    )
    assert found.excess == found.value - found.expected_by_chance
    assert found.quantile(0.95) == found.high


@pytest.mark.parametrize(("alternative", "low", "high"), [("greater", -np.inf, 0.9), ("less", 0.1, np.inf)])
def test_the_range_has_the_side_that_is_asked_for(alternative, low, high):
    y, c = draw(lambda c: c)
    found = cal.expected_by_chance("bs", y, c, alternative=alternative, confidence_level=0.9, n_resamples=49, rng=0)
    ends = [end if np.isinf(end) else np.quantile(found.draws, end) for end in (low, high)]
    np.testing.assert_allclose([*found], ends)
    side = f"below {ends[1]:.3f}" if alternative == "greater" else f"above {ends[0]:.3f}"
    assert f"{side} in 90%" in str(found)

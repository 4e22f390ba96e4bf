"""Honest bands: bounds over all runs, rounding outward, the guarantee itself, and the figure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
import definitions
from calibrary.base.numbers import number
from calibrary.plots import corp_data, plot_corp
from each import amount
from golden import arrays, assert_close, call, entries, parts, weights_of

MINE = [e for e in entries("emerging") if e["id"] == "honest_error"]


@pytest.mark.parametrize("entry", MINE, ids=lambda e: f"{e['data']}-{e['field']}")
def test_golden(entry):
    assert_close(call(entry), entry)


@pytest.mark.parametrize("entry", parts("emerging", "honest_band"), ids=lambda e: f"{e['data']}-{e['field']}")
def test_golden_band(entry):
    y, c, _ = arrays(entry["data"])
    assert_close(getattr(cal.honest_band(y, c), entry["field"]), entry)


def problem(n, seed=0, slope=0.6):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(slope * logit(c))).astype(int), c


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_band_takes_all_runs(level):
    y, c = problem(60)
    c = np.round(c, 1)
    band = cal.honest_band(y, c, confidence_level=level)
    low, high = definitions.honest_bounds(y, c, c, band.scores, level)
    np.testing.assert_allclose(band.lower, low, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(band.upper, high, rtol=1e-9)


@pytest.mark.parametrize("digits", [1, 2])
def test_rounding_goes_outward(digits):
    y, c = problem(80)
    c[:3] = (0.07, 0.29, 0.5)  # products with 100 that are not whole numbers
    band = cal.honest_band(y, c, digits=digits)
    scale = 10.0**digits
    up, down = np.ceil(np.round(c * scale, 9)) / scale, np.floor(np.round(c * scale, 9)) / scale
    low, high = definitions.honest_bounds(y, up, down, band.scores, 0.95)
    np.testing.assert_allclose(band.lower, low, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(band.upper, high, rtol=1e-9)


def test_many_confidences_are_rounded_by_default():
    y, c = problem(2500)
    one, other = cal.honest_band(y, c), cal.honest_band(y, c, digits=2)
    np.testing.assert_array_equal(one.lower, other.lower)
    y, c = problem(400)
    np.testing.assert_array_equal(cal.honest_band(y, c).lower, cal.honest_band(y, c, digits=None).lower)


def test_the_band_rises_and_extends_to_the_sides():
    y, c = problem(500)
    band = cal.honest_band(y, c)
    assert (np.diff(band.lower) >= 0).all()
    assert (np.diff(band.upper) >= 0).all()
    assert (band.lower <= band.upper).all()
    lower, upper = band.at(band.scores)
    np.testing.assert_array_equal(lower, band.lower)
    np.testing.assert_array_equal(upper, band.upper)
    middle = (band.scores[1:] + band.scores[:-1]) / 2
    lower, upper = band.at(middle)
    np.testing.assert_array_equal(lower, band.lower[:-1])
    np.testing.assert_array_equal(upper, band.upper[1:])
    assert band.at(0.0)[0] == 0.0
    assert band.at(1.0)[1] == 1.0


def test_the_guarantee_holds():
    """The whole curve inside, and the three bounds true, in far more than half of the samples."""
    inside, bounded, samples = 0, 0, amount(20, 60)
    for seed in range(samples):
        y, c = problem(300, seed)
        truth = expit(0.6 * logit(c))
        band = cal.honest_band(y, c, confidence_level=0.5)
        lower, upper = band.at(c)
        inside += ((lower <= truth) & (truth <= upper)).all()
        found, away = cal.honest_error(y, c, confidence_level=0.5), np.abs(truth - c)
        bounded += found.low <= away.mean() <= found.high and away.max() <= found.certified
    assert inside >= 2 * samples / 3
    assert bounded >= inside


def test_the_error_is_made_of_the_band():
    y, c = problem(300)
    w = weights_of("1+i%3", 300)
    band = cal.honest_band(y, c, sample_weight=w)
    lower, upper = band.at(c)
    least = np.maximum(0, np.maximum(lower - c, c - upper))
    most = np.maximum(np.abs(lower - c), np.abs(upper - c))
    found = cal.honest_error(y, c, sample_weight=w)
    np.testing.assert_allclose(found, (np.average(least, weights=w), np.average(most, weights=w), most.max()))
    assert band.certified == pytest.approx(found.certified)
    assert f"off by more than {number(found.certified)}, with 95% confidence" in band.words


def test_a_gross_error_is_certain_to_be_seen():
    rng = np.random.default_rng(0)
    c = rng.random(5000).round(2)
    found = cal.honest_error((rng.random(5000) < c**3).astype(int), c)
    assert 0.1 < found.low < 0.25 < found.high


def test_several_classes_share_the_chance_to_fail():
    y, p, _ = arrays("multi4")
    found = cal.honest_error(y, p, lens="class-wise")
    each = [cal.honest_error(y == k, p[:, k], confidence_level=1 - 0.05 / 4) for k in range(4)]
    assert found.low == pytest.approx(np.mean([e.low for e in each]))
    assert found.high == pytest.approx(np.mean([e.high for e in each]))
    assert found.certified == max(e.certified for e in each)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence_level": 95}, "confidence_level=95"),
        ({"digits": 0}, "digits=0"),
        ({"digits": "two"}, "digits='two'"),
        ({"sample_weight": [0.5] * 4}, "whole number"),
    ],
)
def test_bad_options_get_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        cal.honest_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.4], **options)


def test_it_cannot_be_tested_by_redrawing():
    with pytest.raises(ValueError, match="a guarantee, not a test statistic"):
        cal.test("honest_error", [0, 1, 1, 0], [0.2, 0.6, 0.7, 0.4])


@pytest.mark.parametrize("diagram", ["reliability", "bias"])
@pytest.mark.parametrize("n", [2, 300, 5000])
def test_the_corp_diagram_shows_the_band(diagram, n):
    y, c = problem(n, 1)
    data = corp_data(y, c, band="honest", confidence_level=0.95)
    band = cal.honest_band(y, c)
    np.testing.assert_array_equal(data.low, band.lower)
    np.testing.assert_array_equal(data.high, band.upper)
    ax = plot_corp(data, diagram=diagram)
    assert "95% honest band" in ax.get_legend_handles_labels()[1]
    ax.figure.draw_without_rendering()

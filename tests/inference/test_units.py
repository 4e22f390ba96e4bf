"""Dependent rows: units and blocks are drawn together, and the null distribution flips the signs of their residuals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods.triangle import _with_residuals
from calibrary.lookup import catalogue
from calibrary.numerics.draw import generator
from each import amount, most


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def clustered(seed, n_units=50, size=10, spread=0.0):
    """Units whose rows share one outcome: calibrated, but with 50 draws instead of 500."""
    rng = np.random.default_rng(seed)
    c = np.clip(np.repeat(rng.beta(0.8, 0.8, n_units), size) + spread * rng.normal(size=n_units * size), 0.01, 0.99)
    y = (np.repeat(rng.random(n_units), size) < c).astype(int)
    return y, c, np.repeat(np.arange(n_units), size)


@pytest.mark.parametrize("id", [id for id, entry in catalogue.items() if entry.residual_only])
@pytest.mark.parametrize("lens", ["binary", "top-label", "class-wise"])
def test_metrics_of_residuals_do_not_care_for_the_sign_of_all_of_them(id, lens):
    """The assumption behind sign flips: a metric depends on residuals only, and has the same value for r and -r."""
    rng = np.random.default_rng(0)
    p = rng.random(90) if lens == "binary" else rng.dirichlet(np.ones(3), 90)
    y = rng.integers(0, 2 if lens == "binary" else 3, 90)
    sample, question = read_call(id, y, p, {"units": np.arange(90) % 30, "lens": lens})
    value = _with_residuals(as_statistic(id, sample, question, redrawn=True))
    same, turned, mixed = value(np.array([np.ones(90), -np.ones(90), np.where(np.arange(90) % 2, 1.0, -1.0)]))
    assert same == pytest.approx(np.atleast_1d(cal.compute(id, y, p, lens=lens)), abs=1e-9)
    signed = catalogue[id].tail == "two-sided"
    assert turned == pytest.approx(-same if signed else same, abs=1e-9)
    assert np.isfinite(mixed).all()
    if lens == "binary":  # through the others an error may be that of one row, or 0 by definition
        assert mixed != pytest.approx(same, abs=1e-9)


def test_the_level_with_units_where_rows_one_by_one_reject():
    with_units, by_rows, runs = 0, 0, amount(24, 60)
    for seed in range(runs):
        y, c, unit = clustered(seed)
        with_units += cal.test("ece", y, c, units=unit, n_resamples=99, rng=seed).pvalue <= 0.05
        by_rows += cal.test("ece", y, c, n_resamples=99, rng=seed).pvalue <= 0.05
    assert with_units <= most(runs, 0.05)
    assert by_rows >= runs / 2


def test_units_of_one_row_each_are_rows():
    y, c, _ = clustered(0, 200, 1)
    one = cal.interval("bs", y, c, units=np.arange(200), n_resamples=99, rng=0)
    two = cal.interval("bs", y, c, n_resamples=99, rng=0)
    assert tuple(one) == pytest.approx(tuple(two))


def test_a_unit_bootstrap_is_that_of_units_written_out():
    y, c, unit = clustered(1, 40, 5, spread=0.1)
    for id in ("bs", "ici"):  # weighted rows, and rows written out
        result = cal.interval(id, y, c, units=unit, method="percentile", n_resamples=9, rng=3)
        rng = generator(3, "rows")
        drawn = [rng.integers(0, 40, 40) for _ in range(9)]
        rows = [np.sort(np.concatenate([np.flatnonzero(unit == u) for u in units])) for units in drawn]
        expected = [cal.compute(id, y[i], c[i]) for i in rows]
        assert result.draws == pytest.approx(expected, rel=1e-9)


def test_intervals_with_units_agree_with_the_test_and_are_wider():
    y, c, unit = clustered(2)
    result = cal.interval("ece", y, c, units=unit, n_resamples=199, rng=0)
    assert (result.method, result.path) == ("triangle", "units")
    assert (result.low > 0) == (result.pvalue <= 0.05)
    assert result.pvalue == cal.test("ece", y, c, units=unit, n_resamples=199, rng=0).pvalue
    assert result.high > cal.interval("ece", y, c, n_resamples=199, rng=0).high
    score = cal.interval("bs", y, c, units=unit, n_resamples=199, rng=0)
    assert score.standard_error > 1.5 * cal.interval("bs", y, c, n_resamples=199, rng=0).standard_error


def test_blocks_draw_runs():
    rng = np.random.default_rng(0)
    y, c = rng.integers(0, 2, 100), rng.random(100)
    result = cal.interval("bs", y, c, blocks=8, n_resamples=9, method="percentile", rng=4)
    rng = generator(4, "rows")
    starts = [rng.integers(0, 93, 13) for _ in range(9)]
    rows = [(s[:, None] + np.arange(8)).ravel()[:100] for s in starts]
    assert result.draws == pytest.approx([cal.compute("bs", y[i], c[i]) for i in rows])
    assert cal.test("ks", y, c, blocks=True, n_resamples=19, rng=0).method == "flips"


def test_two_models_are_compared_on_the_same_units():
    y, c, unit = clustered(3, spread=0.05)
    other = np.clip(0.5 + 0.4 * (c - 0.5), 0, 1)
    paired = cal.compare("bs", y, c, other, units=unit, n_resamples=199, rng=0)
    rows = cal.compare("bs", y, c, other, n_resamples=199, rng=0)
    assert paired.value == rows.value
    assert paired.standard_error > 1.5 * rows.standard_error
    with pytest.raises(ValueError, match="method='swap' exchanges single rows"):
        cal.compare("bs", y, c, other, units=unit, method="swap")


def test_weights_with_units_count_copies():
    y, c, unit = clustered(4, 40, 3, spread=0.1)
    w = np.random.default_rng(0).integers(1, 4, 120)
    one = cal.interval("ece", y, c, units=unit, sample_weight=w, n_resamples=39, rng=0)
    i = np.repeat(np.arange(120), w)
    two = cal.interval("ece", y[i], c[i], units=unit[i], n_resamples=39, rng=0)
    assert tuple(one) == pytest.approx(tuple(two))


def test_refusals():
    y, c, unit = clustered(5)
    with pytest.raises(ValueError, match="units has one value only"):
        cal.interval("ece", y, c, units=np.zeros(500))
    with pytest.raises(ValueError, match="blocks=400 is too long for 500 rows"):
        cal.interval("ece", y, c, blocks=400)
    with pytest.raises(ValueError, match="units has 3 rows but y_true has 500"):
        cal.test("ece", y, c, units=[1, 2, 3])
    with pytest.raises(TypeError, match="units and blocks both"):
        cal.test("ece", y, c, units=unit, blocks=5)
    with pytest.raises(ValueError, match="bs has no test with units: the test flips"):
        cal.test("bs", y, c, units=unit)
    with pytest.raises(ValueError, match="method='inversion' redraws labels one by one"):
        cal.interval("ece", y, c, units=unit, method="inversion")
    with collected_warnings() as said:
        cal.test("ece", y, c, units=unit % 10, n_resamples=19, rng=0)
    assert any("only 10 units" in text for text in said)


def test_weights_of_any_size_work_with_units():
    y, c, unit = clustered(6, 40, 3, spread=0.1)
    w = np.random.default_rng(0).random(120)
    assert 0.0 < cal.test("ece", y, c, units=unit, sample_weight=w, n_resamples=19, rng=0).pvalue <= 1.0
    for id in ("ece", "bs"):
        low, high = cal.interval(id, y, c, units=unit, sample_weight=w, n_resamples=39, rng=0)
        assert low <= cal.compute(id, y, c, sample_weight=w) <= high
    with pytest.raises(ValueError, match="not a whole number: resampling"):
        cal.interval("bs", y, c, sample_weight=w)

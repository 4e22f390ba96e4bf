"""The distribution of unit sums under calibration, and Student's t for smooth scores: formulas and simulations."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.inference.draw.unit_law import (
    UnitLaw,
    degrees_of_freedom,
    effective_squares,
    null_weights,
    unit_law,
)
from calibrary.inference.methods.studentized import Scores, untransformed
from each import amount


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def law_of(y, c, unit):
    return unit_law(c, y - c, np.ones(len(c)), c * (1.0 - c), unit)


# -- exact ------------------------------------------------------------------------------------------


def test_the_effective_number_of_units_is_that_of_the_squares():
    assert effective_squares(np.array([3.0, -3.0, 3.0, 0.0])) == pytest.approx(3.0)
    assert effective_squares(np.array([10.0, 1e-6, 1e-6])) == pytest.approx(1.0)


def test_degrees_of_freedom_are_those_of_the_sum_of_squares():
    rng = np.random.default_rng(0)
    assert degrees_of_freedom(rng.standard_normal(20_000)) == pytest.approx(20_000, rel=0.05)
    assert degrees_of_freedom(np.tile([1.0, -1.0], 10)) == math.inf  # the variance is known
    rare = np.concatenate([np.full(200, 0.01), np.full(4, -8.0)])  # four equal units carry all of it
    assert degrees_of_freedom(rare) == pytest.approx(4.0, rel=0.01)
    assert degrees_of_freedom(np.array([1.0, 1e-9])) == 1.0


def test_the_law_reaches_as_far_as_students():
    law = UnitLaw(20, 7.5)
    assert law.reach(0.05) == pytest.approx(scipy.stats.t.ppf(0.975, 7.5))
    drawn = law.scale(np.random.default_rng(0), 40_000) * np.random.default_rng(1).standard_normal(40_000)
    assert np.mean(np.abs(drawn) > law.reach(0.05)) == pytest.approx(0.05, abs=0.004)
    assert UnitLaw(20, math.inf).scale(np.random.default_rng(0)) == pytest.approx([1.0])


def test_without_a_rare_outcome_units_vary_as_if_fully_dependent():
    c, unit = np.full(400, 0.985), np.repeat(np.arange(20), 20)
    law = law_of(np.ones(400), c, unit)
    fully = 20 * 20**2 * 0.985 * 0.015
    assert law.stretch == pytest.approx(math.sqrt(fully / (20 * 0.3**2)))
    assert law.missing == pytest.approx((fully - 20 * 0.3**2) / 400**2)
    y = np.ones(400)
    y[:30] = 0.0  # more failures than expected: the squares already contain them
    assert law_of(y, c, unit).stretch == 1.0
    even = np.random.default_rng(0).integers(0, 2, 400).astype(float)
    assert law_of(even, np.full(400, 0.5), unit).stretch == 1.0


def test_few_units_and_few_influential_units_give_a_warning_for_every_metric():
    rng = np.random.default_rng(0)
    c, unit = np.full(1500, 0.985), np.repeat(np.arange(75), 20)
    y = np.ones(1500, int)
    y[:40] = 0  # two units fail
    for call in (
        lambda: cal.test("ece", y, c, units=unit, n_resamples=19, rng=0),
        lambda: cal.interval("bs", y, c, units=unit, rng=0),
        lambda: cal.interval("oe", y, c, units=unit, rng=0),
        lambda: cal.compare("bs", y, c, c**2, units=unit, rng=0),
        lambda: cal.decide(cal.predictions(y, c).in_units(unit), cal.Question(rng=0)),
    ):
        with collected_warnings() as said:
            call()
        assert any(
            "a few of the 75 units have most of the squared residuals, which is equivalent to fewer than 3 equal"
            in text
            for text in said
        )
    c = rng.beta(8, 8, 1500)
    with collected_warnings() as said:
        cal.interval("bs", (rng.random(1500) < c).astype(int), c, units=unit, rng=0)
    assert not said


def test_units_are_weighted_so_that_their_sums_have_mean_zero():
    sums = np.concatenate([np.full(40, -1.0), np.full(8, 12.0)])
    w = null_weights(sums)
    assert w.sum() == pytest.approx(1.0)
    assert w @ sums == pytest.approx(0.0, abs=1e-9)
    assert w[40:].sum() == pytest.approx(1.0 / 13.0)  # eight of 48 became rarer
    assert null_weights(np.tile([1.0, -1.0], 10)) == pytest.approx(np.full(20, 0.05))
    assert null_weights(np.ones(20)) is None
    assert null_weights(np.append(np.full(19, -1.0), 0.01)) is None  # one unit would have nearly all weight


def test_weighted_units_vary_as_units_of_mean_zero():
    sums = np.concatenate([np.full(40, -1.0), np.full(8, 12.0)])
    law = UnitLaw(48, 8.0, weights=null_weights(sums))
    drawn = law.factors(np.random.default_rng(0), 40_000) @ sums
    assert drawn.mean() == pytest.approx(0.0, abs=0.5)
    assert drawn.var() == pytest.approx(48 * 12.0 * 48 / 47, rel=0.03)  # 1 * 12/13 + 144 * 1/13 for each unit
    assert np.mean(drawn**3) == pytest.approx(48 * 132.0 * (48 / 47) ** 1.5, rel=0.15)  # -12/13 + 12**3 / 13


def test_similar_samples_give_one_warning_of_few_units():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for df in (3.2, 3.9, 4.6):
            UnitLaw(70, df).say_few()
    assert [str(w.message).split("equivalent to ")[1][:25] for w in said] == ["fewer than 5 equal units:"]


def test_without_skewness_the_transformation_changes_nothing():
    x = np.linspace(-3.0, 3.0, 7)
    assert untransformed(x, np.zeros(7)) == pytest.approx(x)
    for a in (0.4, -0.4):
        t = untransformed(x, np.full(7, a))
        assert t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6 == pytest.approx(x)


def test_symmetric_scores_have_students_interval():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    scores = Scores(x[:, None], np.ones(5))
    low, high = scores.ends(np.array([7.0]), 0.95)
    expected = scipy.stats.t.interval(0.95, 4, loc=7.0, scale=scipy.stats.sem(x))
    assert (low[0], high[0]) == pytest.approx(expected)


def test_copies_of_a_row_are_rows():
    rng = np.random.default_rng(0)
    c, w = rng.random(40), rng.integers(1, 4, 40)
    y = (rng.random(40) < c).astype(int)
    i = np.repeat(np.arange(40), w)
    for id in ("bs", "nll", "mae"):
        one, two = cal.interval(id, y, c, sample_weight=w), cal.interval(id, y[i], c[i])
        assert one.method == "studentized"
        assert tuple(one) == pytest.approx(tuple(two))


def test_no_surprise_leaves_the_truths_that_clopper_and_pearson_would():
    c = np.full(60, 0.985)
    result = cal.interval("mae", np.ones(60, int), c)
    # the chance of a failure at which 60 rows have none with probability .025, half of it counted
    q = 1.0 - 0.05 ** (1.0 / 60.0)
    assert result.high == pytest.approx(q * 0.985 + (1.0 - q) * 0.015, abs=1e-4)
    assert result.low == pytest.approx(0.015)


def test_the_ratio_has_its_closed_form():
    rng = np.random.default_rng(0)
    c = rng.random(100)
    y = (rng.random(100) < c).astype(int)
    assert tuple(cal.interval("oe", y, c)) == tuple(cal.interval("oe", y, c, method="asymptotic"))
    assert cal.evaluate(y, c, metrics=["oe", "bs"], intervals=True).row("oe").method == "asymptotic"


def test_the_test_of_intercept_and_slope_has_one_pvalue():
    for n, law in ((60, "monte-carlo"), (600, "asymptotic")):
        rng = np.random.default_rng(0)
        c = rng.beta(0.5, 3, n)
        result = cal.test("cis", (rng.random(n) < c).astype(int), c, n_resamples=99, rng=0)
        assert (result.law, type(result.pvalue)) == (law, float)
        if law == "monte-carlo":
            assert result.pvalues.shape == (2,)
            assert result.pvalues.min() <= result.pvalue <= min(1.0, 3.5 * result.pvalues.min())  # of three numbers


@pytest.mark.parametrize("c", [np.linspace(0.01, 0.01001, 1000), np.repeat([1e-4, 1 - 1e-4], 500)])
def test_redrawn_labels_find_what_the_likelihood_ratio_finds(c):
    rng = np.random.default_rng(0)
    y = (rng.random(1000) < np.where(c < 0.5, 0.2, 0.8)).astype(int)
    assert cal.test("cis", y, c, method="asymptotic").pvalue < 1e-99
    assert cal.test("cis", y, c, n_resamples=199, rng=0).law == "monte-carlo"
    assert cal.test("cis", y, c, n_resamples=199, rng=0).pvalue < 0.05


# -- small simulations: bounds that normal quantiles of unit sums did not meet --------------------------------------


def test_the_level_where_predictions_are_sure_and_units_fail_together():
    rejected = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        c = np.repeat(scipy.special.expit(rng.normal(4.4, 0.6, 20)), 20)
        y = (np.repeat(rng.random(20), 20) < c).astype(int)
        rejected += cal.test("ece", y, c, units=np.repeat(np.arange(20), 20), n_resamples=39, rng=seed).pvalue <= 0.05
    assert rejected <= 2  # before Student's law: eight of twelve


def dependent(kind, factor, rng):
    """Outcomes of units: a rare event that units share (its risk times ``factor``), or units of unequal size."""
    if kind == "rare":
        unit, c = np.repeat(np.arange(48), 25), scipy.special.expit(rng.normal(-3.2, 0.6, 1200))
        shared = rng.random(1200) < 0.69
        return np.where(shared, rng.random(48)[unit], rng.random(1200)) < factor * c, c, unit
    unit = np.repeat(np.arange(60), np.ceil(np.exp(rng.normal(2.2, 1.0, 60))).astype(int))
    z = 0.6 * rng.standard_normal(60)[unit] + 0.8 * rng.standard_normal(len(unit))
    c = rng.beta(2.0, 2.0, len(unit))
    return scipy.stats.norm.cdf(z) < np.clip(factor * c, 0.0, 0.99), c, unit


@pytest.mark.parametrize(("kind", "factor", "low", "high"), [
    ("rare", 1.0, 0.0, 0.065), ("rare", 2.0, 0.6, 1.0), ("sizes", 1.0, 0.01, 0.065), ("sizes", 1.25, 0.6, 1.0),
])  # fmt: skip
def test_the_overall_test_with_units_is_neither_silent_nor_too_ready(kind, factor, low, high):
    n, rejected = amount(40, 1000), 0
    for seed in range(n):
        y, c, unit = dependent(kind, factor, np.random.default_rng([seed, 3]))
        data = cal.predictions(y.astype(int), c).in_units(unit)
        rejected += cal.decide(data, cal.Question(rng=seed), detectable=False).rejected
    error = 2.6 * math.sqrt(max(low * (1.0 - low), high * (1.0 - high)) / n)
    assert low - error <= rejected / n <= high + error


def test_brier_with_few_units_covers():
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = np.repeat(rng.beta(0.8, 0.8, 12), 10)
        y = (np.repeat(rng.random(12), 10) < c).astype(int)
        low, high = cal.interval("bs", y, c, units=np.repeat(np.arange(12), 10), n_resamples=39, rng=seed)
        inside += low <= np.mean(c * (1.0 - c)) <= high
    assert inside >= 36  # before Student's law: 32 of 40


def test_two_models_on_units_are_compared_by_pairs_of_true_errors():
    inside = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        c = rng.beta(2, 2, 400)
        y = (rng.random(400) < c).astype(int)
        sure = scipy.special.expit(2.0 * scipy.special.logit(c))
        bins = np.minimum((sure * 15).astype(int), 14)
        truth = np.abs(np.bincount(bins, c - sure)).sum() / 400
        result = cal.compare("ece", y, sure, c, units=np.repeat(np.arange(40), 10), n_resamples=39, rng=seed)
        assert result.method == "joint"
        inside += result.low <= truth <= result.high
    assert inside >= 13  # before Student's law: five of fifteen

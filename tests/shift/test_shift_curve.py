"""A metric along groups in an order: band, trend, what the growth consists of, refusals, figure and words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import calibrary as cal
from calibrary.plots import alternative
from calibrary.shift.trend import PairSums, _two_sided
from truths import KnownTruth, holds

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def rows(seed=0, n=600, slopes=(1.0, 0.8, 0.6, 0.4), sizes=None):
    """Groups whose labels follow flatter and flatter curves than was stated."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(slopes)), sizes if sizes is not None else n)
    z = rng.normal(0.0, 2.0, len(group))
    y = (rng.random(len(group)) < expit(np.asarray(slopes)[group] * z)).astype(int)
    return y, expit(z), group


@pytest.fixture(scope="module")
def found():
    return cal.shift_curve("ece", *rows(), n_resamples=99, rng=0)


def test_each_group_has_its_own_value_and_interval(found):
    y, p, group = rows()
    for g in range(4):
        own = cal.interval("ece", y[group == g], p[group == g], n_resamples=99, rng=0)
        assert (found.value[g], found.low[g], found.high[g]) == pytest.approx((own.value, own.low, own.high))
        # the band holds in all four groups at once
        wide = cal.interval("ece", y[group == g], p[group == g], n_resamples=99, rng=0, confidence_level=1 - 0.05 / 4)
        band = min(wide.low, own.low), max(wide.high, own.high)
        assert (found.band_low[g], found.band_high[g]) == pytest.approx(band)
        assert found.band_low[g] <= found.low[g] <= found.high[g] <= found.band_high[g]
    assert (found.band_high - found.band_low > found.high - found.low).any()
    assert found.groups == ("0", "1", "2", "3")
    assert found.n.tolist() == [600.0] * 4
    assert len(found) == 4


@pytest.mark.parametrize("slopes", [(1.0, 1.0), (1.0, 0.3)])
def test_the_standard_error_of_a_difference_is_what_repetitions_vary_by(slopes):
    found = []
    for seed in range(300):
        y, p, group = rows(seed, n=60, slopes=slopes)
        found.append(PairSums.of(cal.predictions(y, p), group, 2).combined(np.array([-1.0, 1.0])))
    value, error = np.array(found).T
    assert np.mean(error**2) / np.var(value) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("unit", [np.arange(80), np.arange(80) % 7])
def test_the_squared_error_is_that_of_pairs_of_rows_of_two_units(unit):
    y, p, group = rows(n=40, slopes=(1.0, 0.5))
    pairs = PairSums.of(cal.predictions(y, p).in_units(unit), group, 2)
    for g in range(2):
        own, total = group == g, 0.0
        order = np.argsort(p[own], kind="stable")
        residual, units = ((x[own][order]).reshape(10, 4) for x in (y - p, unit))  # ten bins of equal mass
        for r, u in zip(residual, units, strict=True):
            total += np.mean([r[i] * r[j] for i in range(4) for j in range(4) if u[i] != u[j]]) * 4.0 / 40.0
        assert pairs.squared[g] == pytest.approx(total)
    w = np.linspace(0.5, 2.0, 80)
    for weight in (None, w):
        score = PairSums.of(cal.predictions(y, p, sample_weight=weight), group, 2).score
        of_group = [(y[i], p[i], None if weight is None else weight[i]) for i in (group == 0, group == 1)]
        assert score == pytest.approx([cal.bs(*of, sample_weight=v) for *of, v in of_group])


def test_the_growth_is_split_without_rest(found):
    y, p, group = rows()
    assert found.score == pytest.approx([cal.bs(y[group == g], p[group == g]) for g in range(4)])
    assert found.growth == pytest.approx(found.score[-1] - found.score[0])
    assert found.accuracy + found.calibration == pytest.approx(found.score)
    assert found.accuracy_share + found.calibration_share == pytest.approx(1.0)
    z = np.random.default_rng(1).normal(0.0, 2.0, 200_000)
    true = np.mean((expit(0.4 * z) - expit(z)) ** 2)
    assert abs(found.calibration_growth - true) < 4.0 * found.calibration_growth_se
    assert 0.002 < found.calibration_growth_se < 0.03


def test_a_trend_is_found_and_none_where_there_is_none(found):
    assert found.trend_pvalue < 0.05
    assert found.trend > 0.0
    pvalues = []
    for seed in range(60):
        y, p, group = rows(seed, 120, (0.7,) * 4, sizes=[60, 120, 120, 240])
        pvalues.append(PairSums.of(cal.predictions(y, p), group, 4).trend()[1])
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.15
    assert 0.25 < np.mean(pvalues) < 0.75


def test_the_law_of_the_trend_is_that_of_one_curve():
    """Variance and skewness of the sum over pairs, against labels drawn from the curve that was found."""
    y, p, group = rows(2, slopes=(0.6,) * 3, sizes=[60, 150, 500])
    pairs = PairSums.of(cal.predictions(y, p), group, 3)
    slope = np.polyfit(np.arange(3), pairs.squared, 1, w=np.sqrt([60, 150, 500]))[0]
    assert pairs.trend()[0] == pytest.approx(slope)
    contrast = np.array([-1.0, 0.2, 0.8])
    variance, third = pairs.curve.moments(contrast[pairs.cell_group] * pairs.factor, pairs.sums)
    rng, chance = np.random.default_rng(0), pairs.curve.chance[:, 0]
    drawn = []
    for _ in range(1500):
        sums = pairs.curve.cells.added(((rng.random(len(y)) < chance) - p)[:, None])
        total, own = (np.asarray(x.sum(axis=0)).ravel() for x in (sums, sums.power(2)))
        drawn.append(contrast[pairs.cell_group] * pairs.factor @ (total**2 - own))
    assert variance == pytest.approx(np.var(drawn), rel=0.15)
    assert third / variance**1.5 == pytest.approx(scipy.stats.skew(drawn), abs=0.3)
    assert third < 0.0  # the small group counts most, with a minus


def test_a_skewed_law_has_two_tails():
    chi2 = scipy.stats.chi2(5)
    for x in (0.9, 4.0, 14.0):
        z = (x - 5.0) / np.sqrt(10.0)
        for sign in (1.0, -1.0):
            assert _two_sided(sign * z, sign * np.sqrt(8.0 / 5.0)) == pytest.approx(2 * min(chi2.cdf(x), chi2.sf(x)))
    assert _two_sided(1.959964, 0.0) == pytest.approx(0.05, abs=1e-6)
    assert _two_sided(-1.959964, 2e-3) == pytest.approx(0.05, rel=0.01)


def test_units_lie_in_several_groups():
    rng = np.random.default_rng(5)
    pvalues, alone = [], []
    for _ in range(60):
        # the same 80 images in five groups of one error: rows of an image have the same label
        z = rng.normal(0.0, 1.5, 80)
        u = rng.random(80)
        y = np.concatenate([(u < expit(0.6 * z)).astype(int)] * 5)
        p, group = np.tile(expit(z), 5) * 0.999 + 0.0005 * rng.random(400), np.repeat(np.arange(5), 80)
        data = cal.predictions(y, p)
        pvalues.append(PairSums.of(data.in_units(np.tile(np.arange(80), 5)), group, 5).trend()[1])
        alone.append(PairSums.of(data, group, 5).trend()[1])
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.15
    assert np.mean(alone) > 0.8  # row by row the groups look far too alike for chance: units matter


def test_weights_are_copies():
    y, p, group = rows(n=60, slopes=(1.0, 0.5))
    w = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = cal.shift_curve("bs", y, p, group, sample_weight=w, n_resamples=99, rng=0)
    twice = cal.shift_curve("bs", *(np.repeat(x, w) for x in (y, p, group)), n_resamples=99, rng=0)
    for name in ("estimate", "n", "score", "calibration", "trend", "trend_pvalue", "calibration_growth_se"):
        assert getattr(weighted, name) == pytest.approx(getattr(twice, name), rel=1e-9), name


def test_the_permutation_of_groups():
    y, p, group = rows(n=600, slopes=(1.0, 0.8, 0.6, 0.4, 0.2))
    found = cal.shift_curve("bs", y, p, group, n_resamples=99, rng=0, trend="permutation")
    assert found.trend_pvalue <= 0.05
    with pytest.raises(ValueError, match=r"5 groups of equal size"):
        cal.shift_curve("bs", *rows(n=50), n_resamples=99, trend="permutation")
    y, p, group = rows(slopes=(1.0,) * 5, sizes=[50, 50, 50, 50, 60])
    with pytest.raises(ValueError, match="equal size"):
        cal.shift_curve("bs", y, p, group, n_resamples=99, trend="permutation")


def test_bad_input_is_one_sentence():
    y, p, group = rows(n=50)
    for said, call in {
        "groups has only one value": lambda: cal.shift_curve("ece", y, p, np.zeros(len(y))),
        "groups is missing": lambda: cal.shift_curve("ece", y, p),
        "groups has 3 rows": lambda: cal.shift_curve("ece", y, p, group[:3]),
        r"groups\[\d+\] is missing": lambda: cal.shift_curve("ece", y, p, np.where(group == 1, np.nan, group)),
        "order does not name": lambda: cal.shift_curve("ece", y, p, group, order=[0, 1, 2]),
        "has no rows": lambda: cal.shift_curve("ece", y, p, group, order=[0, 1, 2, 3, 4]),
        "trend='slope'": lambda: cal.shift_curve("ece", y, p, group, trend="slope"),
    }.items():
        with pytest.raises(ValueError, match=said):
            call()


def test_names_in_an_order_and_several_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 400)
    y = (rng.random(400)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    site = np.where(np.arange(400) < 200, "near", "far")
    found = cal.shift_curve("bs", y, p, site, order=["near", "far"], n_resamples=99, rng=0)
    assert found.groups == ("near", "far")
    assert found.score == pytest.approx([cal.bs(y[site == s], p[site == s]) for s in ("near", "far")])


def test_words_and_figure(found):
    _, p, _ = rows()
    z = np.random.default_rng(1).normal(0.0, 2.0, 200_000)
    true = {f"ece in {g}": float(np.mean(np.abs(expit(s * z) - expit(z)))) for g, s in ((0, 1.0), (3, 0.4))}
    truth = KnownTruth(
        p, p, of_metric={"true values": true, "trend": 1.0},
        measured={"growth": found.score[-1] - found.score[0], "calibration": found.calibration_growth},
    )  # fmt: skip
    assert {claim.rule for claim in found.sentence.claims} == {"interval", "trend", "measured"}
    assert all(holds(claim, truth) for claim in found.sentence.claims)
    trend = next(claim for claim in found.sentence.claims if claim.rule == "trend")
    assert not holds(trend, KnownTruth.about({"trend": -1.0}))
    assert "loss of accuracy" in found.sentence
    matplotlib = pytest.importorskip("matplotlib")
    ax = found.plot()
    assert len(ax.get_xticks()) == 4
    assert ax.get_xlabel() == ""
    named = dataclasses.replace(found, by="severity")
    assert (named.plot().get_xlabel(), named.table()[0][0], found.table()[0][0]) == ("severity", "severity", "group")
    dark = found.plot(theme="dark")
    ink = matplotlib.colors.to_rgba(dark.yaxis.label.get_color())
    assert {matplotlib.colors.to_rgba(text.get_color()) for text in dark.get_legend().get_texts()} == {ink}
    assert "<table" in found._repr_html_()


def test_a_curve_whose_score_does_not_grow_has_a_figure_without_shares():
    found = cal.shift_curve("ece", *rows(slopes=(0.4, 1.0)), n_resamples=99, rng=0)
    assert found.growth < 0.0
    assert "growth" not in alternative(found.plot())

"""Decisions: regret, net benefit, bounded scores and their curves, against definitions and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrary as cal
from calibrary.maps import as_map
from calibrary.maps.cross_fitted import cross_fitted
from golden import arrays, assert_close, call, entries, weights_of

IDS = ("decision_loss", "net_benefit", "bounded_brier", "bounded_log")
MINE = [e for e in entries("emerging") if e["id"] in IDS]


@pytest.mark.parametrize("entry", MINE, ids=lambda e: f"{e['id']}-{e['data']}-{e['params']}-{e['source'][:6]}")
def test_golden(entry):
    assert_close(call(entry), entry)


def cost(y, c, t, w=None):
    """The definition: acting where c > t."""
    w = np.ones(len(y)) if w is None else w
    return ((1 - t) * w[(y == 1) & (c <= t)].sum() + t * w[(y == 0) & (c > t)].sum()) / w.sum()


def isotonic(y, c, w=None):
    return as_map("isotonic").fit(y, c, w)(c)


# -- regret --------------------------------------------------------------------------------------------


def largest_regret(y, c, g, w=None):
    """The largest ratio over thresholds just before, at and just after every break, and many between."""
    breaks = np.concatenate([c, g, [0.5], np.linspace(0, 1, 301)])
    t = np.unique(np.clip(np.concatenate([breaks, np.nextafter(breaks, -1), np.nextafter(breaks, 2)]), 0, 1))
    return max((cost(y, c, s, w) - cost(y, g, s, w)) / max(s, 1 - s) for s in t)


def test_decision_loss_equals_its_definition(binary_set):
    y, c = (a[:600] for a in binary_set)
    g = isotonic(y, c)
    assert cal.decision_loss(y, c) == pytest.approx(largest_regret(y, c, g), abs=1e-12)
    w = weights_of("1+i%3", len(y))
    g = isotonic(y, c, w)
    assert cal.decision_loss(y, c, sample_weight=w) == pytest.approx(largest_regret(y, c, g, w), abs=1e-12)


@pytest.mark.parametrize("map", ["platt", "isotonic", "bins"])
def test_other_maps_and_cross_fitting(map):
    y, c, _ = arrays("binary500")
    chosen = as_map(map, n_bins=8) if map == "bins" else map
    g = np.clip(as_map(chosen).fit(y, c)(c), 0, 1)
    assert cal.decision_loss(y, c, map=chosen) == pytest.approx(max(largest_regret(y, c, g), 0), abs=1e-12)
    fold = np.arange(500) % 5
    g = cross_fitted(cal.predictions(y, c), chosen, fold)
    got = cal.decision_loss(y, c, map=chosen, cross_fit=True, folds=fold)
    assert got == pytest.approx(max(largest_regret(y, c, g), 0), abs=1e-12)


def test_the_loss_is_at_most_twice_the_mean_distance_to_the_fit(binary_set):
    y, c = binary_set
    assert cal.decision_loss(y, c) <= 2 * np.mean(np.abs(isotonic(y, c) - c)) + 1e-12


def test_twice_the_area_of_the_regret_is_the_miscalibration_of_corp(binary_set):
    y, c = binary_set
    curve = cal.regret_curve(y, c)
    assert 2 * curve.area == pytest.approx(cal.score_decomposition(y, c).miscalibration, abs=1e-14)
    assert curve.decision_loss == cal.decision_loss(y, c)
    assert (curve.regret > -1e-14).all()
    np.testing.assert_allclose(curve.regret, curve.cost - curve.best)
    at = (curve.threshold == curve.worst) & (curve.regret > 0)
    assert (curve.regret / np.maximum(curve.worst, 1 - curve.worst))[at].max() == pytest.approx(curve.decision_loss)


def test_the_regret_curve_passes_through_the_definition():
    y, c, _ = arrays("binary_ties")
    curve = cal.regret_curve(y, c)
    g = isotonic(y, c)
    for t in np.linspace(0.003, 0.997, 83):
        piece = int(np.searchsorted(curve.threshold[::2], t, side="right")) - 1
        left, right = curve.threshold[2 * piece : 2 * piece + 2]
        between = np.interp(t, [left, right], curve.regret[2 * piece : 2 * piece + 2])
        assert between == pytest.approx(cost(y, c, t) - cost(y, g, t), abs=1e-12)


def test_chance_alone_gives_a_decision_loss_and_the_test_knows():
    rng = np.random.default_rng(0)
    c = rng.random(300)
    y = (rng.random(300) < c).astype(int)
    result = cal.test("decision_loss", y, c, n_resamples=99, rng=1)
    assert result.expected_by_chance > 0.01
    assert result.pvalue > 0.05
    assert cal.test("decision_loss", y, c**3, n_resamples=99, rng=1).pvalue == pytest.approx(0.01)


# -- net benefit ---------------------------------------------------------------------------------------


def test_net_benefit_is_the_prevalence_less_the_cost(binary_set):
    y, c = binary_set
    for t in (0.013, 0.2501, 0.5001, 0.73, 0.987):
        assert not (c == t).any()
        want = y.mean() - cost(y, c, t) / (1 - t)
        assert cal.net_benefit(y, c, threshold=t) == pytest.approx(want, abs=1e-12)
        assert cal.net_benefit(y, c, threshold=t, standardized=True) == pytest.approx(want / y.mean(), abs=1e-12)


def test_a_score_equal_to_the_threshold_is_acted_on():
    assert cal.net_benefit([1, 0], [0.5, 0.5], threshold=0.5) == pytest.approx(0.0)
    assert cal.net_benefit([1, 1], [0.5, 0.4], threshold=0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("standardized", [False, True])
def test_the_curve_is_net_benefit_with_an_interval(standardized):
    y, c, _ = arrays("binary500")
    w = weights_of("1+i%3", 500)
    t = [0.1, 0.3, 0.6]
    curve = cal.decision_curve(y, c, thresholds=t, standardized=standardized, sample_weight=w)
    options = {"standardized": standardized, "sample_weight": w}
    np.testing.assert_allclose(curve.net_benefit, [cal.net_benefit(y, c, threshold=s, **options) for s in t])
    everybody = [cal.net_benefit(y, np.ones(500), threshold=s, **options) for s in t]
    np.testing.assert_allclose(curve.treat_all, everybody)
    for i, s in enumerate(t):
        boot = cal.interval("net_benefit", y, c, threshold=s, n_resamples=1500, rng=0, **options)
        assert (curve.high[i] - curve.low[i]) / 2 / 1.959964 == pytest.approx(boot.standard_error, rel=0.1)


def test_the_default_thresholds_are_the_hundredths():
    y, c, _ = arrays("binary12")
    np.testing.assert_allclose(cal.decision_curve(y, c).threshold, np.arange(1, 100) / 100)


# -- bounded scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.05, 0.3), (0.2, 0.8), (0.6, 0.61)])
def test_bounded_scores_are_integrals_of_the_cost(low, high):
    y, c, _ = arrays("binary_ties")
    t = low + (high - low) * (np.arange(40_000) + 0.5) / 40_000
    curve = np.array([cost(y, c, s) for s in np.unique(np.round(t, 4))])  # the cost is linear between breaks
    curve = np.interp(t, np.unique(np.round(t, 4)), curve)
    assert cal.bounded_brier(y, c, low=low, high=high) == pytest.approx(2 * curve.mean() * (high - low), rel=3e-3)
    if low > 0:
        want = (curve / (t * (1 - t))).mean() * (high - low)
        assert cal.bounded_log(y, c, low=low, high=high) == pytest.approx(want, rel=3e-3)


def test_from_zero_to_one_they_are_the_brier_and_the_log_score():
    y, c, _ = arrays("binary500")
    assert cal.bounded_brier(y, c) == pytest.approx(cal.brier_score(y, c), rel=1e-12)
    assert cal.bounded_log(y, c) == pytest.approx(cal.negative_log_likelihood(y, c), rel=1e-9)
    assert cal.bounded_log([1], [0.0]) == math.inf
    assert cal.bounded_log([1], [0.0], low=0.1, high=0.2) == pytest.approx(math.log(2))


def test_ranges_side_by_side_add_up():
    y, c, _ = arrays("binary500")
    for score in (cal.bounded_brier, cal.bounded_log):
        parts = score(y, c, low=0.1, high=0.4) + score(y, c, low=0.4, high=0.9)
        assert parts == pytest.approx(score(y, c, low=0.1, high=0.9), rel=1e-12)


def test_the_truth_scores_best_inside_and_outside_the_range():
    q = np.array([0.1, 0.3, 0.7])
    for score in (cal.bounded_brier, cal.bounded_log):
        for truth in q:
            y, w = [1, 0], [truth, 1 - truth]
            values = [score(y, [c, c], low=0.2, high=0.6, sample_weight=w) for c in np.linspace(0.05, 0.95, 37)]
            assert score(y, [truth, truth], low=0.2, high=0.6, sample_weight=w) <= min(values) + 1e-12


# -- the Murphy diagram --------------------------------------------------------------------------------


def test_the_murphy_curve_is_half_the_brier_curve(binary_set):
    from calibrary.plots import brier_curve

    y, c = binary_set
    curve, brier = cal.murphy_curve(y, c), brier_curve(y, c)
    assert curve.brier == pytest.approx(cal.brier_score(y, c), rel=1e-12)
    for t in (0.05, 0.21, 0.5001, 0.93):
        piece = int(np.searchsorted(curve.threshold[::2], t, side="right")) - 1
        ends = slice(2 * piece, 2 * piece + 2)
        assert 2 * np.interp(t, curve.threshold[ends], curve.cost[ends]) == pytest.approx(brier.at(t)[0], abs=1e-13)


# -- several classes and bad input ---------------------------------------------------------------------


def test_lenses():
    y, p, _ = arrays("multi4")
    for metric in (cal.decision_loss, cal.net_benefit, cal.bounded_brier):
        each = [metric(y == k, p[:, k]) for k in range(4)]
        assert metric(y, p, lens="class-wise") == pytest.approx(np.mean(each))
    top = (p.argmax(axis=1) == y).astype(int)
    assert cal.regret_curve(y, p).decision_loss == cal.decision_loss(top, p.max(axis=1))
    with pytest.raises(ValueError, match=r"the lens gives 4 binary problems .* pass one class"):
        cal.decision_curve(y, p, lens="class-wise")


Y, C = [0, 1, 1, 0], [0.1, 0.6, 0.9, 0.4]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cal.net_benefit(Y, C, threshold=0), "threshold=0 must be one number between 0 and 1"),
        (lambda: cal.net_benefit(Y, C, threshold=1.0), "threshold=1.0 must be"),
        (lambda: cal.net_benefit(Y, C, threshold=[0.1, 0.2]), "must be a number"),
        (lambda: cal.net_benefit(Y, C, threshold=math.nan), "threshold=nan"),
        (lambda: cal.decision_curve(Y, C, thresholds=[0.2, 1.2]), "thresholds holds 1.2: pass numbers between"),
        (lambda: cal.decision_curve(Y, C, thresholds=[]), "thresholds is empty"),
        (lambda: cal.decision_curve(Y, C, confidence_level=95), "confidence_level=95"),
        (lambda: cal.decision_curve([0, 0], [0.1, 0.2], standardized=True), "no row has the event"),
        (lambda: cal.bounded_brier(Y, C, low=0.5, high=0.5), "low=0.5 and high=0.5 must be thresholds"),
        (lambda: cal.bounded_log(Y, C, low=-0.1), "low=-0.1"),
        (lambda: cal.bounded_log(Y, C, high=1.1), "high=1.1"),
        (lambda: cal.decision_loss(Y, C, map="isotonc"), "did you mean 'isotonic'"),
        (lambda: cal.decision_loss(Y, C, cross_fit=True), "folds=5 needs at least as many rows"),
    ],
)
def test_bad_input_gets_a_sentence(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_a_standardized_benefit_without_events_is_undefined():
    with pytest.warns(cal.CalibrationWarning, match="no row has the event"):
        assert math.isnan(cal.net_benefit([0, 0], [0.1, 0.2], standardized=True))

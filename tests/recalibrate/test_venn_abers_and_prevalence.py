"""Venn-Abers maps beside the venn-abers package and isotonic regression done twice, the prevalence offset, inverses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

import calibrary as cal
from calibrary.maps import as_map
from calibrary.maps.vector import ClassWise
from calibrary.maps.venn_abers import CrossVennAbers, VennAbers
from golden import arrays

Y, C, _ = arrays("binary500")
MULTI_Y, MULTI_P, _ = arrays("multi4")
GOLDEN = json.loads((Path(__file__).parent / "venn_abers.json").read_text())


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-12)


# -- Venn-Abers -------------------------------------------------------------------------------------


def test_inductive_bounds_and_merged_values_are_those_of_the_package():
    g = GOLDEN["inductive"]
    curve = VennAbers().fit(g["y"], g["c"])
    close(curve.bounds(g["t"]).p0, g["p0"])
    close(curve.bounds(g["t"]).p1, g["p1"])
    close(curve(g["t"]), g["merged"])
    fitted = cal.Recalibrator("venn-abers").fit(g["c"], g["y"])
    close(fitted.transform(g["t"]), g["merged"])
    close(fitted.bounds(g["t"]).p1, g["p1"])


def test_cross_bounds_and_merged_values_are_those_of_the_package():
    g = GOLDEN["cross"]
    curve = CrossVennAbers(folds=g["fold"]).fit(g["y"], g["c"])
    found = curve.bounds(g["t"])
    close(found.p0, g["p0"])
    close(found.p1, g["p1"])
    close(curve.combined(g["t"]), g["merged"])


def test_several_classes_one_against_the_rest_are_those_of_the_package():
    g = GOLDEN["several"]
    close(ClassWise(VennAbers()).fit(g["y"], g["p"])(g["t"]), g["merged"])


def literal(y, c, w, score, outcome):
    """Isotonic regression with the new row added, at the new row."""
    at = np.unique(np.append(c, score))
    total, events = np.zeros(len(at)), np.zeros(len(at))
    place = np.searchsorted(at, np.append(c, score))
    np.add.at(total, place, np.append(w, 1.0))
    np.add.at(events, place, np.append(w * y, outcome))
    return isotonic_regression(events / total, weights=total).x[np.searchsorted(at, score)]


@pytest.mark.parametrize("seed", range(6))
def test_the_bounds_are_isotonic_regression_with_the_new_row_added(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    c, y = rng.integers(0, 12, n) / 11.0, rng.integers(0, 2, n)
    w = np.ones(n) if seed % 2 else rng.random(n) + 0.1
    scores = np.unique(np.append(c, [0.0, 0.03, 0.5, 0.97, 1.0]))
    found = VennAbers().fit(y, c, sample_weight=w).bounds(scores)
    close(found.p0, [literal(y, c, w, s, 0.0) for s in scores])
    close(found.p1, [literal(y, c, w, s, 1.0) for s in scores])
    assert (found.p0 < found.p1).all()


def test_folds_of_one_model_take_the_rows_in_turn_and_do_not_depend_on_their_order():
    first = CrossVennAbers(3).fit(Y, C)
    order = np.random.default_rng(0).permutation(len(Y))
    np.testing.assert_array_equal(CrossVennAbers(3).fit(Y[order], C[order])(C), first(C))
    fold = np.empty(len(Y), dtype=int)
    for outcome in (0, 1):
        rows = np.flatnonzero(outcome == Y)
        fold[rows[np.argsort(C[rows], kind="stable")]] = np.arange(len(rows)) % 3
    if len(np.unique(C)) == len(C):
        close(CrossVennAbers(fold).fit(Y, C)(C), first(C))
    assert first.bounds(C).p0.shape == (len(C), 3)


def test_what_venn_abers_refuses():
    with pytest.raises(ValueError, match="folds=4 needs at least as many rows of each class, and one class has 1"):
        CrossVennAbers(4).fit([0, 0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5])
    with pytest.raises(ValueError, match="the rows of fold 'a' are all of one class"):
        CrossVennAbers(["a", "a", "b", "b"]).fit([0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match="c has 3 columns and there are 2 folds"):
        CrossVennAbers(2).fit(Y, C).combined(np.full((5, 3), 0.5))
    with pytest.raises(ValueError, match="the map platt has no bounds"):
        cal.Recalibrator("platt").fit(C, Y).bounds(C)
    with pytest.raises(ValueError, match="the map temperature has no bounds"):
        cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y).bounds(MULTI_P)


# -- prevalence -------------------------------------------------------------------------------------


def test_the_offset_is_the_likelihood_optimum_and_makes_the_mean_that_of_the_outcomes():
    fitted = as_map("prevalence").fit(Y, C)
    assert fitted(C).mean() == pytest.approx(Y.mean(), abs=1e-9)
    loss = [-np.mean(np.where(Y == 1, np.log(q), np.log1p(-q))) for q in
            (expit(logit(C) + fitted.offset_ + d) for d in (-0.01, 0.0, 0.01))]  # fmt: skip
    assert loss[1] < min(loss[0], loss[2])


def test_a_stated_prevalence_moves_the_mean_there_or_by_bayes_rule():
    assert as_map("prevalence", prevalence=0.07).fit(Y, C)(C).mean() == pytest.approx(0.07, abs=1e-9)
    odds = as_map("prevalence", prevalence=0.07, source=0.3).fit(Y, C)
    assert odds.offset_ == pytest.approx(logit(0.07) - logit(0.3), rel=1e-12)


def test_prior_shift_without_rows_recovers_a_population_with_other_prevalence(tmp_path):
    rng = np.random.default_rng(3)
    y = (rng.random(200_000) < 0.02).astype(int)
    x = rng.normal(size=len(y)) + 1.5 * y
    stated = expit(1.5 * x - 1.5**2 / 2 + logit(0.2))  # exact where 20% have the event
    fitted = cal.Recalibrator.for_prevalence(0.02, source=0.2)
    fitted.save(tmp_path / "map.json")
    q = cal.Recalibrator.load(tmp_path / "map.json").transform(stated)
    np.testing.assert_array_equal(q, fitted.transform(stated))
    assert q.mean() == pytest.approx(y.mean(), rel=0.03)
    assert cal.compute("calibration slope", y, q) == pytest.approx(1.0, abs=0.04)
    assert fitted.judge(stated, y).worth


@pytest.mark.parametrize("wrong", [0, 1, -0.1, True, "a"])
def test_a_prevalence_is_a_share(wrong):
    with pytest.raises(ValueError, match=r"prevalence=.* must be a share of events"):
        cal.Recalibrator.for_prevalence(wrong, source=0.2)


def test_the_table_of_what_would_help_holds_them_where_they_apply():
    rng = np.random.default_rng(0)
    c = rng.beta(1, 3, 6000)
    y = (rng.random(6000) < expit(logit(c) + 0.8)).astype(int)
    gain = cal.recalibration_gain(y[:900], c[:900])
    assert {"prevalence", "venn_abers"} <= {row.map for row in gain.rows}
    assert gain.advice == "prevalence"
    assert "A prevalence offset would lower the log loss" in gain.sentence
    assert "venn_abers" not in {row.map for row in cal.recalibration_gain(y, c, folds=2).rows}
    assert "prevalence" not in {row.map for row in cal.recalibration_gain(MULTI_Y, MULTI_P).rows}


# -- inverses ---------------------------------------------------------------------------------------


def test_a_falling_map_has_an_inverse_too():
    fitted = cal.Recalibrator("platt").fit(C, 1 - Y)
    score = fitted.inverse([0.3, 0.6])
    assert score[0] > score[1]
    np.testing.assert_allclose(fitted.transform(score), [0.3, 0.6], atol=1e-9)
    assert fitted.which_score(0.3).endswith("or less.")


def test_which_score_means_two_percent():
    fitted = cal.Recalibrator.for_prevalence(0.02, source=0.2)
    assert (
        fitted.which_score(0.02) == "A recalibrated probability below 2% corresponds to a stated probability below 20%."
    )
    assert fitted.inverse([0.02])[0] == pytest.approx(0.2, rel=1e-12)
    capped = cal.Recalibrator("venn_abers").fit(C, Y)
    assert capped.which_score(1.0).startswith("No stated probability corresponds to 100% or more")


def test_a_map_that_rises_and_falls_has_no_inverse():
    fitted = cal.Recalibrator("bins").fit(C, Y)
    grid = fitted.transform(np.linspace(0.0, 1.0, 2001))
    assert (np.diff(grid) < -1e-12).any()
    with pytest.raises(ValueError, match="the map bins is not monotone"):
        fitted.inverse([0.5])

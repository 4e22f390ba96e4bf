"""Thresholds and planning numbers that users rely on: a change of any of them makes a test fail."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

import calibrary as cal
from calibrary.inference.draw import cells
from calibrary.inference.overall import decision
from calibrary.inference.verbs import verdict
from calibrary.lookup.study_findings import finding, stored
from calibrary.metrics.bins import hosmer_lemeshow
from calibrary.question import PLAIN
from calibrary.reporting import short

IDS = ("smooth", "slope", "mean", "spiegelhalter")


@pytest.mark.parametrize(("share", "named"), [(0.91, "mean"), (0.89, "spiegelhalter")])
def test_a_plainer_statistic_is_named_where_it_is_nine_tenths_as_strong(share, named):
    strength = np.array([0.0, 0.0, 10.0 * share, 10.0])
    assert IDS[decision._named(np.array([2, 3]), strength, IDS)] == named


def test_the_rows_that_decide_grow_with_the_square_of_the_width():
    wanted = verdict.condition("ece<0.05")
    # the interval reaches 0.04 above the truth and must reach 0.01 at most: four times narrower, sixteen times the rows
    further = (NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)) / NormalDist().inv_cdf(0.975)
    assert verdict._rows_needed(wanted, 0.04, 0.02, 0.08, 100) == math.ceil(1600 * further**2)
    assert verdict._rows_needed(wanted, 0.05, 0.02, 0.08, 100) == math.inf


def test_the_value_by_chance_is_not_extrapolated_far_beyond_the_studied_rows():
    largest = stored()["numbers"]["ece"]["largest_n"]
    assert finding("ece", 10 * largest).expected_by_chance is not None
    assert finding("ece", 10 * largest + 10).expected_by_chance is None


def test_the_value_of_useless_predictions_is_a_mean_of_five_shuffles_where_rows_are_few():
    rng = np.random.default_rng(3)
    away = {"ours": [], "one": []}
    for _ in range(60):
        c = rng.random(60)
        y = (rng.random(60) < c).astype(int)
        expected = np.mean((y.mean() - c) ** 2) + y.mean() * (1 - y.mean())  # over all orders of the labels
        away["ours"].append(short._useless(cal.predictions(y, c), PLAIN, ["bs"])["bs", ""] - expected)
        away["one"].append(np.mean((rng.permutation(y) - c) ** 2) - expected)
    assert np.std(away["ours"]) < 0.7 * np.std(away["one"])


def _reasons_by_metric(**known):
    return {found.id: found.reasons for found in cal.recommend("multiclass", "measure", most=200, **known)}


def _reasons(**known):
    return {reason for reasons in _reasons_by_metric(**known).values() for reason in reasons}


@pytest.mark.parametrize(("rare", "named"), [(0.09, True), (0.11, False)])
def test_a_class_is_rare_below_a_tenth(rare, named):
    assert any("rare" in reason or "unequal classes" in reason for reason in _reasons(rare=rare)) == named


def test_classes_are_many_above_a_hundred():
    few, hundred, more = (_reasons_by_metric(n_classes=n) for n in (4, 100, 101))
    assert hundred.keys() <= few.keys()  # some metrics take fewer classes than a hundred
    assert all(few[metric] == reasons for metric, reasons in hundred.items())
    assert any(more[metric] != reasons for metric, reasons in hundred.items() if metric in more)


def test_holm_multiplies_by_the_hypotheses_that_are_left():
    assert cal.adjust_pvalues([0.01, 0.04, 0.03], "holm").tolist() == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize(("away", "alike"), [(0.09, True), (0.11, False)])
def test_cells_stand_for_rows_where_they_differ_by_less_than_a_tenth_of_chance(away, alike):
    draws = np.array([[-1.0], [1.0]])  # a standard deviation of 1
    assert cells.values_agree(np.array([0.0]), np.array([away]), draws) == alike


@pytest.mark.parametrize(("expected", "trusted"), [(4.9, False), (5.1, True)])
def test_the_law_of_hosmer_and_lemeshow_is_trusted_from_five_expected_on(expected, trusted):
    c = np.repeat([expected / 200, 0.5], 200)  # two groups of 200 rows; in the first so many events are expected
    y = np.resize([0, 1], 400)
    assert hosmer_lemeshow._enough_expected(cal.predictions(y, c), {"n_bins": 2}) == trusted

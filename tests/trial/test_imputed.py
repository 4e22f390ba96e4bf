"""Completed data sets: the values of mice, and what cannot be pooled."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy import stats

import calibrary as cal
from paths import ROOT

HERE = ROOT / "tests" / "reference" / "trial"
R = json.loads((HERE / "trial.json").read_text())["imputed"]
ROWS = list(csv.DictReader((HERE / "imputed.csv").read_text().splitlines()))
IDS, Y = (np.array([int(row[name]) for row in ROWS]) for name in ("imputation", "y"))
P = np.array([float(row["p"]) for row in ROWS])
NAMES = {"oe": "oe", "auroc": "c", "cis.slope": "slope", "citl": "citl", "bs": "brier"}


@pytest.mark.parametrize("metric", NAMES)
def test_pooled_values_are_those_of_mice(metric):
    found, theirs = cal.interval(metric, Y, P, imputations=IDS), R[NAMES[metric]]
    close = {"rel": 5e-6}
    for ours in ("within", "between", "total", "df", "fmi", "estimate_on_scale"):
        assert getattr(found.rubin, ours) == pytest.approx(theirs[ours], **close), ours
    assert found.rubin.standard_error == pytest.approx(theirs["standard_error_on_scale"], **close)
    assert list(found.rubin.each) == pytest.approx(theirs["each_estimate"], **close)
    assert (found.value, *found) == pytest.approx((theirs["estimate"], theirs["low"], theirs["high"]), **close)
    assert (found.method, found.rubin.m) == ("rubin", R["m"])


def test_lists_and_any_order_of_the_rows_give_the_same():
    expected = cal.interval("oe", Y, P, imputations=IDS)
    parts = [P[i == IDS] for i in range(1, 6)]
    assert tuple(cal.interval("oe", Y[IDS == 1], parts, imputations=True)) == tuple(expected)
    labels = [Y[i == IDS] for i in range(1, 6)]
    assert tuple(cal.interval("oe", labels, parts, imputations=True)) == tuple(expected)
    order = np.random.default_rng(0).permutation(len(Y))
    assert tuple(cal.interval("oe", Y[order], P[order], imputations=IDS[order])) == pytest.approx(tuple(expected))


def test_equal_data_sets_have_no_variance_between_them():
    one = IDS == 1
    y, p = np.tile(Y[one], 3), np.tile(P[one], 3)
    found = cal.interval("bs", y, p, imputations=np.repeat([1, 2, 3], one.sum()))
    nu = one.sum() - 1
    assert found.rubin.between == 0.0
    assert found.rubin.df == pytest.approx((nu + 1) / (nu + 3) * nu)
    single = cal.interval("bs", y[: one.sum()], p[: one.sum()], method="asymptotic")
    assert np.ptp(list(found)) == pytest.approx(np.ptp(list(single)), rel=0.02)  # not that of three times the rows


def test_a_metric_outside_the_table_uses_the_error_of_its_interval():
    found = cal.interval("nll", Y, P, imputations=IDS)
    each = [cal.interval("nll", Y[i == IDS], P[i == IDS]) for i in range(1, 6)]
    assert found.value == pytest.approx(np.mean([x.value for x in each]))
    assert found.rubin.within == pytest.approx(np.mean([x.standard_error**2 for x in each]))


def test_evaluate_gives_the_estimates_and_ends_of_interval():
    table = cal.evaluate(Y, P, metrics=["oe", "bs", "auroc", "ece", "cis"], imputations=IDS, intervals=True)
    for metric in ("oe", "bs", "auroc", "cis.slope"):
        found, row = cal.interval(metric, Y, P, imputations=IDS), table.row(metric)
        assert (row.value, row.low, row.high) == pytest.approx((found.value, found.low, found.high))
        assert row.method == "rubin"
    assert table.n == R["n"]
    assert "grow from a perfect value" in table.skipped["ece"]
    plain = cal.evaluate(Y, P, metrics=["oe", "nll"], imputations=IDS)
    assert plain["oe"] == pytest.approx(R["oe"]["estimate"])
    assert plain["nll"] == pytest.approx(cal.interval("nll", Y, P, imputations=IDS).value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"imputations": [1, 1, 1, 1]}, "imputations: there is 1 data set, of 4 rows"),
        ({"imputations": [1, 1, 1, 2]}, "imputations: the data sets have 3, 1 rows"),
        ({"imputations": [1, 2]}, r"imputations has shape \(2,\) and y_true has 4 rows"),
        ({"imputations": True}, "imputations=True needs y_prob as a list"),
        ({"imputations": [1, 1, 2, 2], "method": "bca"}, "method='bca' has no use beside imputations"),
        ({"imputations": [1, 1, 2, 2], "units": [1, 2, 1, 2]}, r"units=.* has no use beside imputations"),
        ({"imputations": [1, 1, 2, 2], "metric": "ece"}, "ece cannot be averaged over imputations: .* use 'bs'"),
        ({"imputations": [1, 1, 2, 2], "metric": "cis"}, "name one, cis.intercept or cis.slope"),
        ({"imputations": [1, 2, 2, 1], "metric": "auroc"}, "in data set 1 of 2 its C statistic is 0"),
    ],
)
def test_what_cannot_be_pooled_is_refused(call, sentence):
    settings = {"metric": "oe", **call}
    with pytest.raises(cal.RefusedError, match=sentence):
        cal.interval(settings.pop("metric"), [1, 1, 0, 0], [0.2, 0.9, 0.3, 0.4], **settings)


def test_lists_of_different_sizes_are_refused():
    with pytest.raises(cal.RefusedError, match="the data sets have 2, 3 rows"):
        cal.interval("oe", [0, 1], [[0.1, 0.2], [0.1, 0.2, 0.3]], imputations=True)
    with pytest.raises(cal.RefusedError, match="tests=True has no use beside imputations"):
        cal.evaluate(Y, P, imputations=IDS, tests=True)


def test_the_curve_is_pooled_point_by_point_on_the_log_odds():
    """Three equal data sets give the curve of one; the variance between others widens the band."""
    one = IDS == 1
    three = cal.imputed_curve(Y[one], [P[one]] * 3, imputations=True)
    np.testing.assert_allclose(three.value, _local_lines(Y[one], P[one], three.grid)[0], rtol=1e-8)
    every = cal.imputed_curve(Y, P, imputations=IDS)
    assert every.each.shape == (5, len(every.grid))
    log_odds = np.log(every.each / (1 - every.each))
    mean = np.log(every.value / (1 - every.value))
    np.testing.assert_allclose(mean, log_odds.mean(axis=0), rtol=1e-9, atol=1e-12)
    half = np.log(every.high / (1 - every.high)) - mean
    between = log_odds.var(axis=0, ddof=1) * 1.2
    np.testing.assert_allclose(np.log(every.low / (1 - every.low)), mean - half, rtol=1e-6, atol=1e-9)
    within = np.array([_local_lines(Y[i == IDS], P[i == IDS], every.grid)[1] for i in range(1, 6)]).mean(axis=0)
    share = between / (within + between)
    nu = R["n"] - 1
    known = share > 1e-12  # where every curve is moved inside, nothing varies between the data sets
    assert known.sum() > 50
    within, between, share, half = (x[known] for x in (within, between, share, half))
    old, data = 4 / share**2, (nu + 1) / (nu + 3) * nu * (1 - share)
    t = stats.t.ppf(0.975, old * data / (old + data))
    np.testing.assert_allclose(half, t * np.sqrt(within + between), rtol=1e-6)


def _local_lines(y, p, grid):
    """The curve and the variance of its log odds, by tricube weights of the nearest three quarters of the rows."""
    x, at = np.log(p / (1 - p)), np.log(grid / (1 - grid))
    found = []
    for one in at:
        away = np.abs(x - one)
        reach = np.sort(away)[int(0.75 * len(x)) - 1]
        w = np.clip(1 - (away / reach) ** 3, 0, None) ** 3
        design = np.column_stack([np.ones(len(x)), x - one])
        row = np.linalg.solve(design.T @ (w[:, None] * design), design.T * w)[0]
        m = np.clip(row @ y, 0.5 / len(y), 1 - 0.5 / len(y))  # moved inside by half a row
        found.append((m, (row**2).sum() / (m * (1 - m))))
    return np.array(found).T


def test_a_data_set_without_a_curve_is_named():
    with pytest.raises(cal.RefusedError, match="there is no curve, because in data set 1 of 2 it has 4 rows"):
        cal.imputed_curve([1, 1, 0, 0], [[0.2, 0.9, 0.3, 0.4]] * 2, imputations=True)
    with pytest.raises(cal.RefusedError, match="there is 1 data set"):
        cal.imputed_curve([1, 1, 0, 0], [0.2, 0.9, 0.3, 0.4], imputations=[1, 1, 1, 1])

"""Completed data sets: the values of mice, and what cannot be pooled."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

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
    assert (found.estimate, *found) == pytest.approx((theirs["estimate"], theirs["low"], theirs["high"]), **close)
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
    assert found.estimate == pytest.approx(np.mean([x.estimate for x in each]))
    assert found.rubin.within == pytest.approx(np.mean([x.standard_error**2 for x in each]))


def test_evaluate_gives_the_estimates_and_ends_of_interval():
    table = cal.evaluate(Y, P, metrics=["oe", "bs", "auroc", "ece", "cis"], imputations=IDS, intervals=True)
    for metric in ("oe", "bs", "auroc", "cis.slope"):
        found, row = cal.interval(metric, Y, P, imputations=IDS), table.row(metric)
        assert (row.value, row.low, row.high) == pytest.approx((found.estimate, found.low, found.high))
        assert row.method == "rubin"
    assert table.n == R["n"]
    assert "grow from a perfect value" in table.skipped["ece"]
    plain = cal.evaluate(Y, P, metrics=["oe", "nll"], imputations=IDS)
    assert plain["oe"] == pytest.approx(R["oe"]["estimate"])
    assert plain["nll"] == pytest.approx(cal.interval("nll", Y, P, imputations=IDS).estimate)


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

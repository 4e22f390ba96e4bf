"""The values of metafor, mice, survival and lme4 on data of our own; ``reference/trial/own.R.txt`` is the code."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import calibrary as cal
from paths import ROOT

HERE = ROOT / "tests" / "reference" / "trial"
R = json.loads((HERE / "own.json").read_text())


def columns(name, *types):
    rows = list(csv.DictReader((HERE / f"own_{name}.csv").read_text().splitlines()))
    return [np.array([kind(row[key]) for row in rows]) for key, kind in zip(rows[0], types, strict=True)]


CENTRE, Y, P = columns("centres", int, int, float)
IDS, YI, PI = columns("imputed", int, int, float)
TIME, EVENT, RISK = columns("competing", float, int, float)
NAMES = (("standard_error", "se"), *((name, name) for name in (
    "k", "estimate", "low", "high", "prediction_low", "prediction_high", "tau2", "i2", "q", "q_pvalue",
)))  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return cal.pooled(Y, P, centre=CENTRE, metrics=list(R["pooled"]), zero="leave")


@pytest.mark.parametrize("metric", R["pooled"])
def test_centres(metric, plain):
    row, theirs = plain[metric], R["pooled"][metric]
    for ours, name in NAMES:
        assert getattr(row, ours) == pytest.approx(theirs[name], rel=1e-5, abs=1e-7), ours
    assert row.left_out == (() if metric == "bs" else (("212", "it has only events"),))
    cut = cal.pooled(Y, P, centre=CENTRE, metrics=metric, zero="leave", hartung_knapp="truncated")[metric]
    assert (cut.low, cut.high) == pytest.approx((theirs["truncated_low"], theirs["truncated_high"]), rel=1e-5)


def test_the_one_stage_model():
    fit = cal.pooled(Y, P, centre=CENTRE, metrics="bs", one_stage=True).one_stage
    theirs = R["one_stage"]
    for name in ("intercept", "slope", "var_intercept", "var_slope", "covariance"):
        assert getattr(fit, name) == pytest.approx(theirs[name], abs=0.003), name
    assert (fit.se_intercept, fit.se_slope) == pytest.approx(tuple(theirs["se"]), abs=0.003)


@pytest.mark.parametrize("metric", R["imputed"])
def test_imputations(metric):
    found, theirs = cal.interval(metric, YI, PI, imputations=IDS), R["imputed"][metric]
    assert (found.value, *found) == pytest.approx((theirs["estimate"], theirs["low"], theirs["high"]), rel=1e-6)
    for name in ("within", "between", "total", "df", "fmi"):
        assert getattr(found.rubin, name) == pytest.approx(theirs[name], rel=1e-5), name


def test_competing_events_with_many_equal_times():
    theirs = R["competing"]
    found = cal.horizon(TIME, EVENT, theirs["t"])
    y, w = found
    np.testing.assert_allclose(w, theirs["weights"], rtol=1e-9)
    assert [found.incidence, found.standard_error] == pytest.approx(theirs["cause1"], rel=1e-9)
    other = cal.horizon(TIME, EVENT, theirs["t"], cause=2)
    assert [other.incidence, other.standard_error] == pytest.approx(theirs["cause2"], rel=1e-9)
    np.testing.assert_allclose(found.pseudo_values[:15], theirs["pseudo_first_15"], rtol=1e-8, atol=1e-10)
    groups = [[g.n, g.expected, g.observed, g.standard_error] for g in found.groups(RISK, n_groups=4)]
    np.testing.assert_allclose(groups, theirs["groups"], rtol=1e-8)
    assert cal.brier_score(y, RISK, sample_weight=w) == pytest.approx(theirs["brier"], rel=1e-9)
    benefit = [cal.net_benefit(y, RISK, threshold=t, sample_weight=w) for t in (0.1, 0.25)]
    assert benefit == pytest.approx(theirs["net_benefit"], rel=1e-9)

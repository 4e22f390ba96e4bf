"""Competing events at a horizon: survival's and riskRegression's values, and exact leave-one-out."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import calibrary as cal
from paths import ROOT

HERE = ROOT / "tests" / "reference" / "trial"
R = json.loads((HERE / "trial.json").read_text())["competing"]
ROWS = list(csv.DictReader((HERE / "competing.csv").read_text().splitlines()))
TIME, RISK = (np.array([float(row[name]) for row in ROWS]) for name in ("time", "risk"))
EVENT = np.array([int(row["event"]) for row in ROWS])
FOUND = cal.horizon(TIME, EVENT, R["horizon"])


def test_labels_and_weights_are_those_of_r():
    y, w = FOUND
    np.testing.assert_allclose(w[:20], R["weight_first_20"], rtol=1e-9)
    assert y[:20].tolist() == R["y_first_20"]
    assert w.sum() == pytest.approx(len(w), rel=1e-12)
    assert w @ y / len(w) == pytest.approx(FOUND.incidence, rel=1e-12)


@pytest.mark.parametrize(("cause", "name"), [(1, "cause1"), (2, "cause2")])
def test_incidence_and_its_error_are_those_of_survfit(cause, name):
    found = cal.horizon(TIME, EVENT, R["horizon"], cause=cause)
    assert [found.incidence, found.standard_error] == pytest.approx(R[name], rel=1e-9)


def test_without_competing_events_it_is_one_minus_kaplan_meier():
    found = cal.horizon(TIME, EVENT == 1, R["horizon"])
    assert found.incidence == pytest.approx(R["kaplan_meier_wrong"], rel=1e-9)
    assert found.incidence > FOUND.incidence + 0.01


def test_pseudo_values_are_those_of_r_and_of_leaving_rows_out():
    np.testing.assert_allclose(FOUND.pseudo_values[:20], R["pseudo_first_20"], rtol=1e-8, atol=1e-10)
    assert FOUND.pseudo_values.mean() == pytest.approx(R["pseudo_mean"], rel=1e-9)
    assert FOUND.pseudo_values.std(ddof=1) == pytest.approx(R["pseudo_sd"], rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_pseudo_values_and_errors_by_brute_force_with_ties_and_weights(seed):
    rng = np.random.default_rng(seed)
    n = 14
    time, event = rng.integers(1, 6, n).astype(float), rng.integers(0, 3, n)
    event[:2], time[2] = (1, 2), 9.0
    w = rng.integers(1, 4, n)
    found = cal.horizon(time, event, 4.0, sample_weight=w)
    total = w.sum()
    for i in range(n):
        fewer = w - (np.arange(n) == i)
        if not (event[fewer > 0] == 1).any():
            continue
        without = cal.horizon(time[fewer > 0], event[fewer > 0], 4.0, sample_weight=fewer[fewer > 0]).incidence
        assert found.pseudo_values[i] == pytest.approx(total * found.incidence - (total - 1) * without, abs=1e-10)
    rows = np.repeat(np.arange(n), w)
    written = cal.horizon(time[rows], event[rows], 4.0)
    assert (written.incidence, written.standard_error) == pytest.approx((found.incidence, found.standard_error))
    changes, step = [], 1e-5
    for i in range(n):
        ends = [
            cal.horizon(time, event, 4.0, sample_weight=w + sign * step * (np.arange(n) == i)).incidence
            for sign in (-1, 1)
        ]
        changes.append((ends[1] - ends[0]) / (2 * step))
    assert found.standard_error == pytest.approx(np.sqrt(w @ np.square(changes)), rel=1e-6)


def test_groups_are_those_of_r_and_one_group_is_the_overall_ratio():
    found = FOUND.groups(RISK)
    names = ("n", "expected", "observed", "standard_error", "ratio")
    np.testing.assert_allclose([[getattr(g, name) for name in names] for g in found], R["fifths"], rtol=1e-8)
    assert all(g.low < g.observed < g.high for g in found)
    (whole,) = FOUND.groups(RISK, 1)
    assert whole.ratio == pytest.approx(R["oe"], rel=1e-9)
    weighted = float(FOUND.sample_weight @ FOUND.y_true / (FOUND.sample_weight @ RISK))
    assert abs(whole.ratio - weighted) > 1e-4
    # normal on log(-log(1 - F)): the ends of survfit(conf.type = "log-log")
    f, se = whole.observed, whole.standard_error
    half = 1.959963984540054 * se / ((1 - f) * -np.log(1 - f))
    assert whole.low == pytest.approx(1 - (1 - f) ** np.exp(-half))


def test_a_group_without_an_event_or_without_follow_up_says_so():
    time, event = np.array([5.0, 5, 5, 1, 2, 3, 1, 5]), np.array([0, 0, 2, 1, 1, 1, 0, 1])
    risk = np.array([0.1, 0.1, 0.1, 0.8, 0.8, 0.8, 0.8, 0.8])
    low, high = cal.horizon(time, event, 4.0).groups(risk, 2)
    assert low.observed == 0.0
    assert low.note == "no interval: no row of this group has the event"
    assert np.isnan([low.low, low.high]).all()
    assert high.n == 5
    early, _ = cal.horizon([1, 2, 5, 5], [0, 0, 1, 0], 4.0).groups([0.1, 0.2, 0.8, 0.9], 2)
    assert early.note == "the last row of this group was censored at 2, before the horizon"
    assert np.isnan(early.observed)


def test_brier_score_and_net_benefit_at_the_horizon():
    y, w = FOUND
    assert cal.brier_score(y, RISK, sample_weight=w) == pytest.approx(R["brier_riskRegression"], rel=1e-9)
    for row in R["net_benefit"]:
        found = cal.net_benefit(y, RISK, threshold=row["threshold"], sample_weight=w)
        assert found == pytest.approx(row["ipcw"], rel=1e-9)


def test_the_number_of_events_by_any_cause_adds_up():
    both = [cal.horizon(TIME, EVENT, 3.0, cause=cause).incidence for cause in (1, 2)]
    assert sum(both) == pytest.approx(cal.horizon(TIME, EVENT > 0, 3.0).incidence, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"event": [0, 2, 0], "t": 1}, "cause=1 never occurs: the codes in event are 0, 2"),
        ({"event": [0, 1, -1], "t": 1}, r"event\[2\] = -1 is neither 0"),
        ({"event": [0, 1.5, 1], "t": 1}, r"event\[1\] = 1.5 is neither 0"),
        ({"event": ["a", "b", "c"], "t": 1}, r"event\[0\] = .* is no number"),
        ({"event": [0, 1, 0], "t": 9}, "t=9 is beyond the follow-up"),
        ({"event": [0, 1, 0], "t": 1, "cause": 0}, "cause=0 must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_read_is_refused(call, sentence):
    with pytest.raises(cal.RefusedError, match=sentence):
        cal.horizon([1.0, 2.0, 3.0], **call)


def test_pseudo_values_of_fractional_weights_are_refused():
    with pytest.raises(cal.RefusedError, match="needs whole sample_weight"):
        _ = cal.horizon([1, 2, 3], [1, 0, 1], 2, sample_weight=[0.5, 1, 1]).pseudo_values
    with pytest.raises(cal.RefusedError, match="y_prob has shape"):
        FOUND.groups([0.1, 0.2])

"""Survival at a horizon: golden sums, the Kaplan-Meier weights by hand, what censoring must not change."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from golden import assert_close, parts


@pytest.mark.parametrize("entry", parts("emerging", "horizon"), ids=lambda e: e["field"])
def test_sums_equal_the_golden_ones(entry):
    y, w = cal.horizon(entry["inputs"]["time"], entry["inputs"]["event"], entry["params"]["t"])
    assert_close(w.sum() if entry["field"] == "sum w" else (w * y).sum(), entry)


def literal(time, event, t):
    """Weights by going through the censorings one time after another, events first where times are equal."""

    def uncensored_before(u):
        chance = 1.0
        for v in sorted(set(time[(event == 0) & (time < u)].tolist())):
            at_risk = np.sum(time > v) + np.sum((time == v) & (event == 0))
            chance *= 1 - np.sum((time == v) & (event == 0)) / at_risk
        return chance

    y, w = [], []
    for u, happened in zip(time, event, strict=True):
        y.append(int(u <= t and happened))
        if u < t and not happened:
            w.append(0.0)
        else:
            w.append(1 / uncensored_before(min(u, t)))
    return y, w


@pytest.mark.parametrize("t", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_inverse_chances_of_not_being_censored(seed, t):
    rng = np.random.default_rng(seed)
    time, event = np.round(rng.exponential(1.0, 80), 1), rng.integers(0, 2, 80)
    y, w = cal.horizon(time, event, t)
    want = literal(time, event, t)
    np.testing.assert_array_equal(y, want[0])
    np.testing.assert_allclose(w, want[1], rtol=1e-12)
    assert w.sum() == pytest.approx(80)


def test_without_censoring_nothing_is_weighted():
    y, w = cal.horizon([1, 2, 3], [1, 1, 1], t=2)
    assert y.tolist() == [1, 1, 0]
    assert w.tolist() == [1, 1, 1]


def test_follow_up_that_ends_at_the_horizon_for_everybody_is_fine():
    time = np.minimum(np.random.default_rng(0).exponential(4.0, 200), 5.0)
    y, w = cal.horizon(time, time < 5.0, t=5.0)
    np.testing.assert_array_equal(w, np.ones(200))
    np.testing.assert_array_equal(y, time < 5.0)


def test_censoring_does_not_move_the_metrics():
    rng = np.random.default_rng(1)
    n = 40_000
    risk = rng.beta(2, 3, n)  # of the event by t = 1
    time = rng.exponential(-1 / np.log1p(-risk))
    censoring = rng.exponential(2.0, n)
    y, w = cal.horizon(np.minimum(time, censoring), time <= censoring, t=1.0)
    assert (w == 0).mean() > 0.15
    truth = (time <= 1.0).astype(int)
    assert cal.brier_score(y, risk, sample_weight=w) == pytest.approx(cal.brier_score(truth, risk), abs=0.004)
    assert cal.expected_calibration_error(y, risk, sample_weight=w) < 0.015
    # leaving out censored rows, which is a common mistake, does not give that value
    kept = w > 0
    assert cal.expected_calibration_error(y[kept], risk[kept]) > 0.05


def test_weight_two_is_the_case_written_twice():
    rng = np.random.default_rng(2)
    time, event = np.round(rng.exponential(1.0, 60), 1), rng.integers(0, 2, 60)
    w = 1 + np.arange(60) % 3
    i = np.repeat(np.arange(60), w)
    y, found = cal.horizon(time, event, 0.7, sample_weight=w)
    written = cal.horizon(time[i], event[i], 0.7)
    np.testing.assert_allclose(found[i] / w[i], written.sample_weight, rtol=1e-12)
    np.testing.assert_array_equal(y[i], written.y_true)


def test_tests_take_the_weights_as_importance():
    rng = np.random.default_rng(3)
    risk = rng.random(500)
    time, censoring = rng.exponential(-1 / np.log1p(-risk)), rng.exponential(3.0, 500)
    y, w = cal.horizon(np.minimum(time, censoring), time <= censoring, t=1.0)
    assert 0 < cal.test("ecce_r", y, risk, sample_weight=w, weight_type="importance").pvalue <= 1


@pytest.mark.parametrize(
    ("time", "event", "t", "sentence"),
    [
        ([1, 2, 3], [1, 0, 0], 4, "t=4 is beyond the follow-up: the last row was censored at 3"),
        ([1, 2, 3], [0, 0, 0], 4, "t=4 is beyond the follow-up"),
        ([1, -2], [1, 0], 1, r"time\[1\] = -2"),
        ([1, np.nan], [1, 0], 1, r"time\[1\] = nan"),
        ([1, 2], [1, -2], 1, r"event\[1\] = -2 is neither 0"),
        ([1, 2], [1], 1, "pass one of each for every row"),
        ([], [], 1, "pass one of each for every row"),
        ([1, 2], [1, 0], np.inf, "t=inf must be a finite time"),
    ],
)
def test_follow_up_that_cannot_be_used_is_refused(time, event, t, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.horizon(time, event, t)


@pytest.mark.parametrize(
    ("w", "sentence"), [([1.0], "has shape"), ([-1.0, 1.0], "must contain finite"), ([0, 0], "above 0")]
)
def test_invalid_weights_are_refused(w, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.horizon([1, 2], [1, 0], 1, sample_weight=w)

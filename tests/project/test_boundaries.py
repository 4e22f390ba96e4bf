"""Ranks, bounds and factors of the newer rooms against their definitions: a change of one of them had gone unseen."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy
from calibrary.secondorder.detector import Scored, auroc

from calibrary.application import runs
from calibrary.base.errors import CalibrationWarning
from calibrary.language import judge, verbal_confidence
from calibrary.scale.store_log import LOG, WHOLE_EVERY, Manifest
from calibrary.shift.shares import LabelWeighting
from calibrary.shift.trend import PairSums
from calibrary.validation.corrections import _tails


def test_an_end_is_the_order_statistic_of_its_rank():
    """Of B errors a tail of alpha / 2 ends at the error with the rank alpha / 2 (B + 1)."""
    assert _tails(np.arange(199.0, 0.0, -1.0), 0.025) == pytest.approx([5.0, 195.0])
    assert _tails(np.array([3.0, np.nan, 1.0, 2.0]), 0.25) == pytest.approx([1.0, 3.0])


def test_confidences_at_the_ends_of_the_scales():
    texts = ["Confidence: 10", "Confidence: 100", "Confidence (0-10): 10", "Confidence: 0"]
    assert verbal_confidence(texts) == pytest.approx([0.1, 1.0, 1.0, 0.0])
    with pytest.warns(CalibrationWarning, match="1 text of 1 give"):
        assert np.isnan(verbal_confidence(["Confidence: 9"])[0])  # of 10 or of 100?


def test_the_weight_of_the_judge_uses_squared_weights():
    """Without bins: the covariance over the variance of two weighted means, shrunk by what the choice costs."""
    rng = np.random.default_rng(0)
    human, weight = rng.normal(size=40), rng.uniform(0.2, 5.0, 40)
    machine = human + 0.3 * rng.normal(size=40)
    w = weight / weight.sum()
    v = w**2 / np.sum(w**2)
    from_mean = [x - w @ x for x in (human, machine)]
    own, variance, covariance = (float(v @ (a * b)) for a, b in ((from_mean[0],) * 2, (from_mean[1],) * 2, from_mean))
    explained = covariance**2 / (own * variance)
    strength = explained / (1.0 - explained) / float(np.sum(w**2))
    expected = (1.0 - judge._FORGONE / strength) * covariance / variance
    found = judge._best(human, machine, np.zeros(40, dtype=np.intp), weight)
    assert 0.0 < found < 1.0
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_labels_that_halve_the_width_do_and_one_fewer_does_not():
    rng = np.random.default_rng(1)
    n, n_labels = 4000, 30
    labelled = np.arange(n) < n_labels
    rows = SimpleNamespace(n=n, n_labels=n_labels, labelled=labelled)
    both = judge._Tuned(np.where(labelled, n / n_labels * rng.normal(size=n), 0.0), 0.3 * rng.normal(size=n), 1.0)
    bin = np.zeros(n, dtype=np.intp)
    more = judge._gain(rows, both, judge._Tuned(both.own, np.zeros(n), 0.0), bin)["label_more"]
    total, floor = judge._spread(rows, both, bin)
    variances = [floor + (total - floor) * n_labels / (n_labels + more - fewer) for fewer in (0, 1)]
    assert variances[0] <= total / 4.0 < variances[1]


def test_a_class_that_no_drawn_row_has_gets_no_weight():
    y, predicted = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 0])
    weighting = LabelWeighting(y, predicted, np.array([0.5, 0.3, 0.2]), 50)
    drawn = y < 2
    with np.errstate(all="raise"):
        found, weights = weighting.shares(predicted[drawn], y[drawn], None, weighting.law)
    assert found.sum() == pytest.approx(1.0)
    assert weights[2] == 0.0
    assert weights[:2] == pytest.approx(found[:2] / 0.5)


def test_a_p_value_of_permuted_groups_counts_the_observed_order():
    """With 19 drawn orders, none of them as steep as the observed one, the p-value is 1 of 20 and never 0."""
    sums = object.__new__(PairSums)
    vars(sums).update(size=np.full(12, 50.0), squared=np.arange(12.0) ** 3)
    assert sums.permutation_test(19, 0)[1] == pytest.approx(1 / 20)
    vars(sums).update(size=np.full(5, 50.0), squared=np.arange(5.0))
    assert sums.permutation_test(19, 0)[1] == pytest.approx(2 / math.factorial(5))  # every order; both directions


def test_the_interval_of_an_area_is_delongs_on_the_log_odds():
    rng = np.random.default_rng(2)
    found, others = np.sort(rng.normal(0.8, 1.0, 9)), np.sort(rng.normal(0.0, 1.0, 7))
    area, low, high, _ = auroc(Scored("a score", found, others, np.ones(9), np.ones(7)), 0.95)
    wins = (found[:, None] > others[None, :]).astype(float)
    error = math.sqrt(wins.mean(axis=1).var(ddof=1) / 9 + wins.mean(axis=0).var(ddof=1) / 7)
    half = scipy.stats.t.ppf(0.975, 6) * error / (area * (1.0 - area))
    assert area == pytest.approx(wins.mean())
    assert scipy.special.logit([low, high]) == pytest.approx([scipy.special.logit(area) + s * half for s in (-1, 1)])


def test_commits_are_kept_from_the_last_but_one_that_lists_all_files():
    numbers = range(2 * WHOLE_EVERY + 2)
    deleted: list[str] = []
    folder = SimpleNamespace(names=lambda _: [f"{n:020d}.json" for n in numbers], delete=deleted.append)
    Manifest(folder).forget()
    assert sorted(int(name.removeprefix(f"{LOG}/").removesuffix(".json")) for name in deleted) == [*range(WHOLE_EVERY)]


def test_as_many_reports_may_wait_as_the_sentence_says(monkeypatch):
    monkeypatch.setattr(runs, "MOST_WAITING", 2)

    def asked(unfinished):
        app = object.__new__(runs.AppRuns)
        app.runs = {str(i): SimpleNamespace(ended=i >= unfinished) for i in range(9)}
        app.folder = SimpleNamespace(new=lambda name: 1 / 0)  # what comes after the check
        app.ask([], {})

    with pytest.raises(ZeroDivisionError):
        asked(2)  # one runs, and one waits
    with pytest.raises(runs.RefusedRunError, match="2 reports are waiting already"):
        asked(3)

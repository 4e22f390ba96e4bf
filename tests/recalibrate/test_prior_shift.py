"""The map for other shares of the classes: exact for calibrated p, kept as JSON, and in the table of what helps."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.recalibrate import PriorShift


def world(n, share, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(2.0 * y - 1.0, 1.0)
    return y, 1.0 / (1.0 + np.exp(-2.0 * x))  # the posterior where both classes are as frequent


def test_it_is_bayes_rule():
    y, p = world(500, 0.5, 0)
    _, there = world(200, 0.1, 1)
    q = PriorShift(0.1, source=0.5).fit(y, p)(there)
    odds = there / (1.0 - there) * (0.1 / 0.9)
    assert q == pytest.approx(odds / (1.0 + odds))
    three = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    shifted = PriorShift([0.2, 0.3, 0.5], source=[0.5, 0.3, 0.2]).fit(np.arange(20) % 3, three)(three)
    weighted = three * [0.4, 1.0, 2.5]
    assert shifted == pytest.approx(weighted / weighted.sum(axis=1, keepdims=True))


def test_the_shares_of_the_fit_are_the_source():
    y, p = world(500, 0.5, 0)
    one, two = PriorShift(0.1).fit(y, p), PriorShift(0.1, source=float(y.mean())).fit(y, p)
    assert one(p) == pytest.approx(two(p))
    old = cal.Recalibrator.for_prevalence(0.1, source=float(y.mean()))
    assert one(p) == pytest.approx(old.transform(p))


@pytest.mark.parametrize("shares", [0.1, [0.2, 0.3, 0.5]])
def test_it_is_kept_as_json(tmp_path, shares):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 60) if isinstance(shares, list) else rng.random(60)
    y = np.arange(60) % (3 if isinstance(shares, list) else 2)
    made = cal.Recalibrator(PriorShift(shares)).fit(p, y)
    made.save(tmp_path / "map.json")
    again = cal.Recalibrator.load(tmp_path / "map.json")
    assert again.map_ == "prior_shift"
    assert np.array_equal(again.transform(p), made.transform(p))
    wrong = made.to_dict()
    wrong["numbers"]["weights"][0] = -1.0
    wrong.pop("digest", None)
    with pytest.raises(ValueError, match="weights"):
        cal.Recalibrator.from_dict(wrong)


def test_it_is_advised_where_nothing_but_the_shares_differs():
    y, p = world(1500, 0.5, 2)
    gain = cal.recalibration_gain(y, p, shares=0.1, maps=["temperature", "platt"])
    assert [row.map for row in gain.rows] == ["prior_shift", "temperature", "platt"]
    assert gain.advice == "prior_shift"
    w = np.where(y == 1, 0.1 / y.mean(), 0.9 / (1.0 - y.mean()))
    assert gain.before == pytest.approx(cal.compute("nll", y, p, sample_weight=w))
    assert gain.ece_before == pytest.approx(cal.compute("ece", y, p, sample_weight=w))


def test_bad_shares_are_one_sentence():
    y, p = world(60, 0.5, 3)
    for said, call in {
        "shares has 3 numbers and there are 2": lambda: PriorShift([0.2, 0.3, 0.5]).fit(y, p),
        "sum to 1": lambda: PriorShift([0.2, 0.3]).fit(y, p),
        "above 0": lambda: PriorShift(1.0).fit(y, p),
        "never occurs": lambda: PriorShift(0.5).fit(np.zeros(60, int), p),
        "sum to 1 *": lambda: cal.recalibration_gain(y, p, shares=[0.5, 0.6]),
    }.items():
        with pytest.raises(ValueError, match=said):
            call()


def test_a_page_judges_at_the_stated_prevalence():
    y, p = world(400, 0.5, 4)
    page = cal.report(y, p, metrics=["ece"], n_resamples=0, prevalence=0.1)
    help = next(s for s in page.sections if s.key == "help")
    assert any("Judged in a population with 10% of class 1" in text for text in help.sentences)
    assert help.tables[0].rows[1][0] == "a prior shift"
    w = np.where(y == 1, 0.1 / y.mean(), 0.9 / (1.0 - y.mean()))
    assert help.tables[0].rows[0][4] == pytest.approx(cal.ece(y, p, sample_weight=w))

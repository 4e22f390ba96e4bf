"""The default test: the metric's own formula if it keeps its level, otherwise redrawn labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from each import amount, most


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ordinary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    return (rng.random(n) < c).astype(int), c


def sure(n=100, seed=0):
    rng = np.random.default_rng(seed)
    c = 1 - rng.beta(1, 200, n)
    return np.ones(n, int), c


@pytest.mark.parametrize("id", ["skce_uq", "mmce", "lkce", "kccsd", "skce_ul"])
def test_a_confident_and_correct_model_is_not_rejected(id):
    y, c = sure()
    assert cal.test(id, y, c, method="asymptotic", **({} if id == "skce_ul" else {"rng": 0})).pvalue < 0.01
    result = cal.test(id, y, c, rng=0, n_resamples=99)
    assert result.law == "monte-carlo"
    assert result.pvalue > 0.2


@pytest.mark.parametrize("id", ["spiegelhalter", "mmce", "ecce_mad", "pws", "hl", "cis"])
def test_an_ordinary_model_is_tested_by_the_law_of_the_metric(id):
    y, c = ordinary(2000)
    result = cal.test(id, y, c, rng=0)
    assert result.law == "asymptotic"
    draws = {"rng": 0} if id == "mmce" else {}  # its own test is a bootstrap of pairs
    assert result.pvalue == cal.test(id, y, c, method="asymptotic", **draws).pvalue


def test_hosmer_lemeshow_redraws_where_little_is_expected():
    y, c = ordinary(60)
    assert cal.test("hl", y, c, rng=0).law == "monte-carlo"
    assert cal.test("hl", y, c, fitted=True).law == "asymptotic"  # an option of the formula selects the formula


def test_skce_b_has_power():
    rng = np.random.default_rng(1)
    c = rng.random(300)
    y = (rng.random(300) < np.clip(c + 0.2 * np.sign(0.5 - c), 0, 1)).astype(int)
    assert cal.test("skce_b", y, c, method="asymptotic").pvalue > 0.2
    assert cal.test("skce_b", y, c, n_resamples=99, rng=0).pvalue == 0.01


def test_weights_and_labels_reach_the_test_that_is_chosen():
    y, c = ordinary(60)
    w = np.random.default_rng(0).integers(1, 4, 60)
    for times in (1, 5):  # by redrawn labels, then by the formula
        one = cal.test("spiegelhalter", y, c, sample_weight=times * w, rng=0)
        two = cal.test("spiegelhalter", np.repeat(y, times * w), np.repeat(c, times * w), rng=0)
        assert one.pvalue == pytest.approx(two.pvalue)
        assert one.law == two.law
    named = cal.test("spiegelhalter", np.where(y == 1, "yes", "no"), c, pos_label="yes", rng=0)
    assert named.pvalue == cal.test("spiegelhalter", y, c, rng=0).pvalue


@pytest.mark.parametrize("a_b", [(30, 1), (1, 60), (1, 1)])
def test_the_default_keeps_its_level(a_b):
    rejected = dict.fromkeys(("spiegelhalter", "mmce", "hl", "pws"), 0)
    rng = np.random.default_rng(5)
    runs = amount(25, 60)
    for _ in range(runs):
        c = rng.beta(*a_b, 100)
        y = (rng.random(100) < c).astype(int)
        for id in rejected:
            options = {"n_resamples": 99, "rng": rng}
            rejected[id] += cal.test(id, y, c, **options).pvalue <= 0.05
    assert max(rejected.values()) <= most(runs, 0.05)


@pytest.mark.parametrize("id", ["ecce_mad", "mmce", "cis", "spiegelhalter"])
def test_a_hypothesis_that_the_formula_lacks_is_tested_by_redrawn_labels(id):
    """The options were dropped where the formula keeps its level, so that another hypothesis was tested."""
    y, c = ordinary(400)
    assert cal.test(id, y, c, rng=0).law != "monte-carlo"
    less = [] if id == "spiegelhalter" else [{"alternative": "less"}]  # its formula has alternatives
    for option in [{"calibration_map": "isotonic"}, *less]:
        auto = cal.test(id, y, c, n_resamples=39, rng=0, **option)
        redrawn = cal.test(id, y, c, method="monte-carlo", n_resamples=39, rng=0, **option)
        assert (auto.law, auto.pvalue) == ("monte-carlo", redrawn.pvalue)
    with pytest.raises(ValueError, match="alternative='nonsense' is not known"):
        cal.test(id, y, c, alternative="nonsense", rng=0)


def test_settings_beside_a_method_object_are_refused():
    y, c = ordinary(60)
    calls = [
        (lambda **s: cal.interval("bs", y, c, method=cal.Bootstrap("basic"), **s), "Bootstrap"),
        (lambda **s: cal.test("bs", y, c, method=cal.MonteCarlo(), **s), "MonteCarlo"),
        (lambda **s: cal.expected_by_chance("bs", None, c, method=cal.MonteCarlo(), **s), "MonteCarlo"),
        (lambda **s: cal.expected_by_chance("bs", y, c, method=cal.Consistency(), **s), "Consistency"),
    ]
    for call, kind in calls:
        for name, value in (("rng", 0), ("n_resamples", 49)):
            with pytest.raises(TypeError, match=rf"{name}= is a setting of the method object: pass it to {kind}\("):
                call(**{name: value})
    once, again = (cal.interval("bs", y, c, method=cal.Bootstrap("basic", 49, 0), n_resamples=999) for _ in range(2))
    assert (once.low, once.n_resamples) == (again.low, 49)

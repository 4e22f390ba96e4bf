"""Comparison of two models by an error whose perfect value is an end of its range: intervals and p-values agree."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
from calibrary.data.sample import sample_of
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods.choice import choice_of
from calibrary.inference.methods.inversion import error_at_the_extreme, unsure_side
from calibrary.inference.methods.joint import Joint, Side
from calibrary.inference.methods.triangle import JACKKNIFE
from calibrary.inference.verbs import comparison
from calibrary.question import Question
from each import amount


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def models(seed, n=200, slope=2.0):
    rng = np.random.default_rng(seed)
    q = rng.beta(0.8, 0.8, n).clip(1e-6, 1 - 1e-6)
    return (rng.random(n) < q).astype(int), q, expit(slope * logit(q))


@pytest.mark.parametrize(
    ("id", "method"),
    [("ece", "joint"), ("ks", "joint"), ("ici", "joint"), ("bs", "bootstrap"), ("ce2_db", "bootstrap")],
)
def test_the_method_that_auto_chooses(id, method):
    y, a, b = models(0, n=60)
    assert cal.compare(id, y, a, b, n_resamples=39, rng=0).method == method


@pytest.mark.parametrize("method", ["joint", "basic", "percentile", "bc", "normal"])
def test_the_pvalue_agrees_with_the_interval_at_any_level(method):
    decided = set()
    for seed in range(0, 12, amount(2, 1)):
        y, a, b = models(seed, n=120, slope=1.5 + seed / 3)
        id = "ece" if method == "joint" else "bs"
        for level in (0.9, 0.95):
            draws = 59 if id == "ece" else 999
            r = cal.compare(id, y, a, b, method=method, n_resamples=draws, confidence_level=level, rng=seed)
            out = r.low > 0 or r.high < 0
            alpha = round(1 - level, 9)
            near = abs(r.pvalue - alpha) <= (0.01 if method in ("basic", "percentile", "bc") else 1e-9)
            assert near or out == (r.pvalue <= alpha), (seed, level, r)
            decided.add(out)
    assert decided == {True, False}


@pytest.mark.parametrize(("id", "method"), [("ece", "joint"), ("bs", "studentized")])
def test_the_pvalue_does_not_depend_on_the_level_of_the_interval(id, method):
    y, a, b = models(0, n=500, slope=3.0)
    found = [
        cal.compare(id, y, a, b, method=method, n_resamples=99, confidence_level=level, rng=0)
        for level in (0.8, 0.9, 0.95)
    ]
    assert 0.0 < found[0].pvalue < 0.05
    np.testing.assert_allclose([r.pvalue for r in found], found[0].pvalue, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ["basic", "percentile"])
def test_the_pvalue_of_skewed_draws_is_that_of_the_interval_beside_it(kind):
    """A few losses are large, so that the two intervals leave out 0 at very different levels."""
    worse = 0.4 * np.random.default_rng(0).exponential(1.0, 30) ** 2 - 0.4
    y, a = np.arange(32) < 30, np.full(32, 0.5)
    b = np.concatenate([0.5 * np.exp(-worse), [0.5, 0.5]])
    compared = lambda level: cal.compare("nll", y, a, b, method=kind, confidence_level=level, rng=0)  # noqa: E731
    pvalue = compared(0.95).pvalue
    for alpha in (0.9 * pvalue - 0.004, 1.1 * pvalue + 0.004):
        found = compared(1.0 - alpha)
        assert (found.low > 0.0 or found.high < 0.0) == (pvalue <= alpha)


def test_exchanging_the_models_turns_the_answer_round():
    y, a, b = models(1)
    one, two = (cal.compare("ece", y, *pair, n_resamples=39, rng=0) for pair in ((a, b), (b, a)))
    assert (one.low, one.high, one.pvalue) == pytest.approx((-two.high, -two.low, two.pvalue))


def test_it_covers_the_difference_where_the_bootstrap_does_not():
    ours, basic, samples = 0, 0, amount(15, 30)
    for seed in range(samples):
        y, a, b = models(seed, n=300, slope=1.5)
        truth = -cal.inference.draw.lines.population(_statistic(y, b), a)[0]
        new = cal.compare("ece", y, a, b, n_resamples=59, rng=seed)
        old = cal.compare("ece", y, a, b, method="basic", n_resamples=59, rng=seed)
        ours += new.low <= truth <= new.high
        basic += old.low <= truth <= old.high
    assert ours >= 0.9 * samples
    assert basic <= ours - 0.2 * samples


@pytest.mark.parametrize("metric", ["ece", "ecce_mad"])
def test_models_with_errors_of_one_direction_are_told_apart(metric):
    found, samples = 0, amount(8, 20)
    for seed in range(samples):
        y, q, _ = models(seed, n=2600)
        worse, better = (expit(slope * logit(q)) for slope in (1.5, 1.25))
        r = cal.compare(metric, y, worse, better, n_resamples=199, rng=seed)
        found += r.low > 0
        truth = [cal.inference.draw.lines.population(_statistic(y, p, metric), q)[0] for p in (worse, better)]
        assert r.low <= truth[0] - truth[1] <= r.high
    assert found >= 0.75 * samples


def test_equal_and_nearly_equal_models():
    y, a, _ = models(5)
    same = cal.compare("ece", y, a, a, n_resamples=99, rng=0)
    assert (same.value, same.low, same.high, same.pvalue) == (0, 0, 0, 1)
    r = cal.compare("ece", y, a, np.clip(a + 1e-9, 0, 1), n_resamples=99, rng=0)
    assert max(abs(r.low), abs(r.high)) < 1e-4


def test_the_old_methods_work_and_name_the_new_one():
    y, a, b = models(1)
    with pytest.warns(DeprecationWarning, match="method='triangle' of compare is an old name: use method='joint'"):
        old = cal.compare("ece", y, a, b, method="triangle", n_resamples=39, rng=0)
    assert old == cal.compare("ece", y, a, b, n_resamples=39, rng=0)


def test_many_rows_are_drawn_in_common_cells():
    from calibrary.inference.draw.cells import cells_of_pair

    y, a, b = models(3, n=20_000)
    r = cal.compare("ece", y, a, b, n_resamples=99, rng=0)
    rows = cal.compare("ece", y, a, b, method="normal", n_resamples=99, rng=0)
    assert r.standard_error == pytest.approx(rows.standard_error, rel=0.4)
    one, two = cells_of_pair(_statistic(y, a), _statistic(y, b))
    assert one.sample.p.n < 10_000
    assert one.observed[0] - two.observed[0] == pytest.approx(r.value, abs=2e-4)


def _statistic(y, p, metric="ece"):
    sample, question = cal.inference.draw.statistic.read_call(metric, y, p, {})
    return cal.inference.draw.statistic.as_statistic(metric, sample, question, redrawn=True)


def test_other_rows_for_the_second_model():
    y, a, _ = models(2)
    z, _, b = models(3)
    r = cal.compare("ece", y, a, b, y_true_b=z, n_resamples=39, rng=0)
    assert r.method == "joint"
    assert r.low < 0


def test_several_models_and_the_older_word():
    y, a, b = models(4, n=80)
    found = cal.compare("ece", y, {"a": a, "b": b, "c": 1 - a}, n_resamples=39, rng=0)
    assert [(r.a, r.b) for r in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert cal.compare("ece", y, a, b, interval="percentile", n_resamples=9, rng=0).interval == "percentile"
    with pytest.raises(TypeError, match="interval='bc' and method='swap' both set the method"):
        cal.compare("ece", y, a, b, interval="bc", method="swap")
    with pytest.raises(ValueError, match="n_resamples=9 is too few for the level"):
        cal.compare("ece", y, a, b, n_resamples=9)


def side(observed, spread=0.005, **more):
    draw = np.random.default_rng(0).standard_normal(2000)
    return Side(observed, np.abs(0.008 * draw), observed + spread * draw, square=False, **more)


def test_the_upper_end_of_a_cumulative_sum_has_at_least_the_spread_of_the_sum():
    usual = side(0.05)
    above = side(0.05, at_extreme=0.02)
    (low, high), (same, higher) = usual.accepted(0.05), above.accepted(0.05)
    assert low == same
    assert high - 0.05 == pytest.approx(1.96 * usual.error, rel=0.05)
    assert higher - 0.05 == pytest.approx(1.96 * 0.95 * 0.02, rel=0.05)


@pytest.mark.parametrize(("unsure", "observed", "share", "opposed"), [
    (False, 0.05, 0.65, False),
    (True, 0.05, 0.65, True),
    (True, 0.05, 0.45, False),  # the same rows make the difference much more certain
    (True, 0.012, 0.65, True),  # p = 0.13 if calibrated
    (True, 0.01, 0.65, False),  # p = 0.21
    (False, 0.05, 0.85, True),
])  # fmt: skip
def test_an_unsure_side_counts_as_opposed(unsure, observed, share, opposed):
    a, b = side(observed, unsure=unsure), side(0.05)
    for pair in ((a, b), (b, a)):
        assert bool(Joint(*pair, share * np.hypot(a.spread, b.spread))._opposed) is opposed


def test_the_sides_of_a_cumulative_sum_by_hand():
    c = np.repeat([0.2, 0.6], 50)

    def walked(y):
        return as_statistic("ecce_mad", *read_call("ecce_mad", y, c, {}), redrawn=True)

    one = walked(np.repeat([1, 0, 1, 0], [20, 30, 29, 21]))  # 10 events too many at .2, then 1 too few
    assert error_at_the_extreme(one) == pytest.approx(np.sqrt(20 * 0.8**2 + 30 * 0.2**2) / 100)
    assert not unsure_side(one)
    two = walked(np.repeat([1, 0, 1, 0], [13, 37, 24, 26]))  # 3 too many, then 6 too few
    assert unsure_side(two)


@pytest.mark.parametrize("broken", [0, 1])
def test_a_fault_of_the_library_is_named_whichever_model_it_concerns(broken):
    y, *both = models(0)
    calls = iter(range(10**6))

    def fails_at_times(data):
        return 0.25 if next(calls) % 2 else 1 / 0

    pair = [as_statistic("bs", sample_of(cal.predictions(y, p)), Question()) for p in both]
    own = pair[broken].value
    pair[broken] = replace(pair[broken], of=fails_at_times, listed=True)
    pair[broken].__dict__["value"] = own
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        comparison._resampled(*pair, {"n_resamples": 20, "rng": 0, "workers": 1})
    assert any("bs failed on some resamples" in str(warning.message) for warning in said)


@pytest.mark.parametrize(
    ("id", "single", "of_a_difference"),
    [("ece", "inversion", "joint"), ("ce2_db", "inversion", "bootstrap"), ("bs", "studentized", "bootstrap")],
)
def test_the_method_of_a_difference_is_chosen_where_that_of_one_model_is_chosen(id, single, of_a_difference):
    y, a, b = models(0)
    first, second = (as_statistic(id, *read_call(id, y, p, {})) for p in (a, b))
    assert choice_of(first).method == single
    choice = choice_of(first, minus=second)
    found = cal.compare(id, y, a, b, n_resamples=39, rng=0)
    assert found.method == choice.method == of_a_difference
    assert choice.note in found.note
    assert choice_of(first, "swap", minus=second).method == "swap"


def test_the_reason_of_an_interval_and_of_a_difference_has_the_same_words():
    y, a, b = models(0)
    assert cal.compare("auroc", y, a, b, n_resamples=39, rng=0).note == cal.interval("auroc", y, a, rng=0).note
    unit = np.arange(len(y)) // 4
    both = cal.compare("bs", y, a, b, units=unit, rng=0).note, cal.interval("bs", y, a, units=unit, rng=0).note
    assert both[0] == both[1] == JACKKNIFE

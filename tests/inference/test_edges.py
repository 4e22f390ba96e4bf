"""Intervals and decisions in extreme cases: alternating errors, no events, certain predictions, reversed models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, binom

import calibrary as cal
import own
from calibrary.inference.draw import lines
from calibrary.inference.draw.lines import lines_of, own_bins, population, shifted_by_count
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods import inversion
from calibrary.inference.methods.bootstrap import _acceleration
from calibrary.inference.methods.studentized import Scores

Q = cal.Question(rng=0)


def statistic_of(id, y, c, **options):
    sample, question = read_call(id, y, c, options)
    return as_statistic(id, sample, question, redrawn=True)


# -- waves that alternate from bin to bin -----------------------------------------------------------------


def wave(seed, n=800):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    q = np.clip(c + 0.12 * (-1.0) ** np.minimum((15 * c).astype(int), 14), 0.0, 1.0)
    return (rng.random(n) < q).astype(int), c, q


def test_intervals_hold_errors_that_alternate_from_bin_to_bin():
    """Gaps of equal-mass bins cancel such a wave: version 0.2.0 gave a point that missed the truth in every sample."""
    held = []
    for seed in range(8):
        y, c, q = wave(seed)
        truth = population(statistic_of("ece", y, c), q)[0]
        found = cal.interval("ece", y, c, n_resamples=99, rng=seed)
        assert found.method == "inversion"
        assert found.high - found.low > 0.02
        held.append(found.low <= truth <= found.high)
    assert sum(held) >= 6


def test_a_line_of_truths_follows_the_bins_of_the_metric():
    y, c, _ = wave(0)
    seen = statistic_of("ece", y, c)
    own = {line.name: line for line in lines_of(seen)}["own bins"]
    assert population(seen, own(1.0))[0] == pytest.approx(cal.compute("ece", y, c), abs=0.02)
    assert own_bins(statistic_of("ece", y, c, n_bins=7)).n_bins == 7
    assert own_bins(statistic_of("ece", y, c, binning="sweep")) is None  # its bins are chosen by the labels
    assert own_bins(statistic_of("ecce_mad", y, c)) is None


def test_gaps_are_evened_by_what_noise_explains_and_cleared_of_it():
    share, noise = np.full(4, 0.25), np.full(4, 0.01)
    gap = np.array([0.3, -0.1, 0.2, -0.2])  # their sizes spread by less than the noise: all of one size
    np.testing.assert_allclose(lines._shrunk_to_mean(gap, noise, share), np.sign(gap) * 0.2)
    far = np.array([0.9, -0.1, 0.1, -0.1])
    evened = lines._shrunk_to_mean(far, noise, share)
    assert 0.8 < evened[0] < 0.9
    np.testing.assert_allclose(share @ np.abs(evened), share @ np.abs(far))
    np.testing.assert_allclose(lines._clear(gap, noise, share), gap * (1.0 - noise / gap**2))
    assert lines._clear(np.array([0.05, 0.0]), noise[:2], share[:2]).tolist() == [0.0, 0.0]


def test_errors_of_few_classes_have_a_line_of_their_own():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 200)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random(200)[:, None]).sum(axis=1)
    names = [line.name for line in lines_of(statistic_of("ece", y, p, lens="class-wise"))]
    assert names == [
        "gaps",
        "own bins",
        "marked gaps",
        "clear gaps",
        "logistic",
    ]  # no class is clearly confused with another


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_that_are_taken_for_one_another_have_a_line_through_the_truth(weighted):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 40_000)
    shares = np.eye(4)
    shares[0] = [0.4, 0.6, 0.0, 0.0]
    q = p @ shares
    y = (q.cumsum(axis=1)[:, :-1] < rng.random(len(p))[:, None]).sum(axis=1)
    weight = rng.integers(1, 4, len(p)).astype(float) if weighted else None
    line = next(
        line
        for line in lines_of(statistic_of("ece", y, p, lens="class-wise", sample_weight=weight))
        if line.name == "confusions"
    )
    np.testing.assert_allclose(line(0.0), p, atol=1e-12)
    np.testing.assert_allclose(line(1.0), q, atol=0.03)
    np.testing.assert_allclose(line(1.0)[:, 2:], p[:, 2:], atol=0.03)  # the other two classes keep their probabilities


def test_a_class_that_no_row_predicts_is_not_confused_with_any():
    p = np.column_stack([np.linspace(0.1, 0.9, 50), np.linspace(0.9, 0.1, 50), np.zeros(50)])
    y = (np.arange(50) % 2).astype(int)
    found = lines_of(statistic_of("ece", y, p, lens="class-wise"))
    line = next(line for line in found if line.name == "confusions")
    assert np.isfinite(line(1.0)).all()
    np.testing.assert_allclose(line(1.0).sum(axis=1), 1.0)
    np.testing.assert_allclose(line(1.0)[:, 2], 0.0, atol=1e-12)


@pytest.mark.parametrize("n", [800, 3000])
def test_where_no_truth_agrees_with_the_data_the_interval_is_the_triangle_and_says_so(n, monkeypatch):
    y, c, _ = wave(1, n)
    flat = [inversion.Line("flat", lambda t: c)]
    monkeypatch.setattr(inversion, "lines_of", lambda statistic: flat)
    monkeypatch.setattr(inversion.cell_problem.__globals__["CellProblem"], "lines", lambda self: [])
    with pytest.warns(UserWarning, match="no set of true probabilities between"):
        found = cal.interval("ece", y, c, method="inversion", n_resamples=99, rng=0)
    assert found.method == "triangle"
    assert "not inverted" in found.note
    assert found.pvalue == cal.test("ece", y, c, method="monte-carlo", n_resamples=99, rng=0).pvalue
    assert 0.0 < found.low < 0.11 < found.high


# -- few events -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["ici", "smece", "ece"])
def test_the_lower_end_allows_for_the_noise_of_outcomes_that_are_more_frequent_than_predicted(id):
    c = expit(np.random.default_rng(0).normal(-6.4, 1.2, 500))
    y = np.zeros(500, dtype=int)
    y[np.argsort(c)[-300::40]] = 1  # 8 events, of which fewer than 2 are expected
    found = cal.interval(id, y, c, method="triangle", n_resamples=199, rng=0)
    assert found.pvalue <= 0.05
    assert 0.0 < found.low <= found.value - 1.9 * found.standard_error
    assert found.low < 3.98 / 500 - c.mean() + 0.001  # the lower limit of Clopper and Pearson for 8 events


@pytest.mark.parametrize("events", [0, 3, 5, 8])
def test_the_triangle_excludes_the_perfect_value_exactly_if_the_test_rejects(events):
    c = np.full(500, 0.004)
    y = (np.arange(500) < events).astype(int)
    found = cal.interval("ici", y, c, method="triangle", n_resamples=199, rng=0)
    assert (found.low > 0.0) == (found.pvalue <= 0.05)


@pytest.mark.parametrize("n", [10, 50, 250])
@pytest.mark.parametrize("c", [0.0, 0.001])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("method", ["inversion", "triangle"])
def test_no_event_and_no_other_outcome_give_the_end_of_clopper_and_pearson(n, c, label, method):
    y, p = np.full(n, label), np.full(n, abs(label - c))
    found = cal.interval("ece", y, p, n_resamples=39, rng=0, method=method)
    assert found.low == 0.0
    assert found.high == pytest.approx(beta.ppf(0.975, 1, n) - c, abs=1e-5)


def law_of_sums(q):
    law = np.ones(1)
    for x in q:
        law = np.convolve(law, [1.0 - x, x])
    return law


@pytest.mark.parametrize("seen", [0, 1, 4])
@pytest.mark.parametrize("mirrored", [False, True])
def test_the_shifted_truths_give_the_number_of_events_the_chance_of_each_tail(seen, mirrored):
    rng = np.random.default_rng(seen)
    c = expit(rng.normal(-4.5, 1.2, 200))
    events = np.zeros(200)
    events[:seen] = 1.0
    if mirrored:
        c, events = 1.0 - c, 1.0 - events
    more, fewer = shifted_by_count(c, np.ones(200), events, 0.05)
    if mirrored:
        more, fewer = 1.0 - more, 1.0 - fewer
    assert law_of_sums(more)[: seen + 1].sum() == pytest.approx(0.025, rel=0.1)
    assert law_of_sums(fewer)[seen:].sum() == pytest.approx(0.025 if seen else 1.0, rel=0.1)
    np.testing.assert_allclose(np.diff(logit(more) - logit(1.0 - c if mirrored else c)), 0.0, atol=1e-6)


def test_many_events_leave_the_ends_alone():
    c = np.linspace(0.05, 0.95, 100)
    assert shifted_by_count(c, np.ones(100), (c > 0.5).astype(float), 0.05) == []
    assert len(shifted_by_count(np.r_[c, 0.0, 1.0], np.ones(102), np.r_[c > 0.5, 0.0, 1.0], 0.05)) == 1


def test_a_rare_outcome_that_did_not_happen_may_have_been_twice_as_likely():
    """Version 0.2.0 ended such an interval at the mean confidence, below the truth."""
    rng = np.random.default_rng(5)
    c = expit(rng.normal(-6.4, 1.2, 250))
    y = np.zeros(250, dtype=int)
    for id in ("ece", "ecce_mad", "mmce"):
        truth = population(statistic_of(id, y, c), 2.2 * c)[0]
        assert cal.interval(id, y, c, n_resamples=99, rng=0).high > truth, id
    weighted = cal.interval("ece", y, c, sample_weight=np.full(250, 2.0), n_resamples=99, rng=0)
    assert weighted.high < cal.interval("ece", y, c, n_resamples=99, rng=0).high


# -- certain and wrong ------------------------------------------------------------------------------------


def certain(wrong, of, seed=0, rounded=None):
    """Calibrated rows, and rows with certain predictions of which this many were wrong."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.05, 0.95, 300)
    c = c if rounded is None else np.round(c, rounded)
    y = (rng.random(300) < c).astype(int)
    return np.r_[y, np.arange(of) < wrong], np.r_[c, np.zeros(of)]


@pytest.mark.parametrize("rounded", [None, 2])
def test_certain_predictions_that_are_often_wrong_are_evidence(rounded):
    y, c = certain(13, 198, rounded=rounded)
    found = cal.decide(cal.predictions(y, c), Q)
    row = found.row("certain")
    half = 0.0005 if rounded is None else 0.005
    assert row.pvalue == pytest.approx(binom.sf(12, 198, half), rel=1e-6)
    assert row.value == pytest.approx(13 / 198)
    assert (found.rejected, found.decisive, found.defect) == (True, "certain", "certain")
    headline = cal.report(y, c, metrics=["ece"], n_resamples=39).headline
    assert "13 of 198 cases with probability exactly 0 or 1 were wrong" in headline


def test_wrong_certain_rows_within_rounding_do_not_reject():
    y, c = certain(1, 198, rounded=2)
    found = cal.decide(cal.predictions(y, c), Q)
    assert found.impossible == 1.0
    assert found.row("certain").pvalue == pytest.approx(binom.sf(0, 198, 0.005), rel=1e-6)
    assert found.row("certain").pvalue_adjusted > 0.05
    assert not found.rejected
    with pytest.raises(KeyError, match="is not a statistic of this test"):
        cal.decide(cal.predictions(*certain(0, 198)), Q).row("certain")


def test_a_tiny_probability_is_not_a_certain_one():
    c = np.array([5e-100, 0.016, 2e-48, 2e-246, 3e-258])
    found = cal.decide(cal.predictions(np.ones(5, dtype=int), c), Q)
    assert found.impossible == 0.0
    assert found.rejected
    assert "exactly 0 or 1" not in cal.report(np.ones(5, dtype=int), c, metrics=["ece"], n_resamples=39).headline


def test_studentized_intervals_do_not_depend_on_the_unit_of_the_losses():
    """Losses near 1e200 have squares that are not finite numbers: the interval was infinite, with a warning."""
    each = np.array([[-1.0], [-0.5], [-0.25], [1.75]])
    plain = Scores(each, np.ones(4))
    assert plain.standard_error[0] == pytest.approx(each.std(ddof=1) / 2.0, rel=1e-12)
    assert plain.skewness[0] == pytest.approx((each**3).sum() / (each**2).sum() ** 1.5, rel=1e-12)
    for power in (600, -600):
        scaled = Scores(np.ldexp(each, power), np.ones(4))
        assert scaled.skewness == plain.skewness
        assert scaled.df == plain.df
        low, high = plain.ends(np.zeros(1), 0.95)
        ends = scaled.ends(np.zeros(1), 0.95)
        assert ends == (np.ldexp(low, power), np.ldexp(high, power))
    assert Scores(np.zeros((3, 1)), np.ones(3)).standard_error == 0.0


def test_acceleration_does_not_depend_on_the_unit_of_the_values():
    left_out, times = np.array([1.0, 2.0, 4.0, 9.0]), np.array([1.0, 2.0, 1.0, 1.0])
    d = np.average(left_out, weights=times) - left_out
    expected = (times @ d**3) / (6.0 * (times @ d**2) ** 1.5)
    assert _acceleration(left_out, times) == pytest.approx(expected, rel=1e-12)
    assert _acceleration(np.ldexp(left_out, 600), times) == pytest.approx(expected, rel=1e-12)
    assert _acceleration(np.array([0.5, 0.5 + 1e-16, 0.5, 0.5]), times) == 0.0


def test_the_test_of_a_debiased_error_works_for_tiny_probabilities():
    """A variance near 1e-82 has a sixth power of 0, by which the test divided."""
    c = np.repeat([1e-80, 3e-80, 7e-80, 9e-80], 5)
    y = np.zeros(20, dtype=int)
    assert own.debiased_squared_calibration_error_test(y, c, n_bins=4).pvalue > 0.1
    y[:2] = 1
    assert own.debiased_squared_calibration_error_test(y, c, n_bins=4).pvalue == 0.0


def test_gaps_too_small_to_be_squared_stay_small_without_a_warning():
    gap = np.array([1e-170, -1e-170, 0.0, 0.3])
    clear = lines._clear(gap, np.full(4, 0.01), np.full(4, 0.25))
    assert clear[2] == 0.0
    assert np.abs(clear[:2]).max() <= 1e-170
    assert clear[3] == pytest.approx(0.3 * (1.0 - 0.01 / 0.09))


def test_certain_rows_of_one_unit_count_once():
    y, c = certain(13, 198)
    units = np.r_[np.arange(300), np.full(13, 300), 301 + np.arange(185)]
    by_unit = cal.decide(cal.predictions(y, c), Q, units=units).row("certain")
    assert by_unit.value == pytest.approx(1 / 186)
    assert by_unit.pvalue == pytest.approx(binom.sf(0, 186, 0.0005 * 198 / 186), rel=1e-6)
    doubled = cal.decide(cal.predictions(y, c, sample_weight=np.full(len(y), 2.0)), Q).row("certain")
    assert doubled.pvalue == pytest.approx(binom.sf(25, 396, 0.0005), rel=1e-6)


# -- words ------------------------------------------------------------------------------------------------


def test_a_reversed_model_is_reported_as_reversed():
    rng = np.random.default_rng(0)
    c = rng.beta(0.8, 0.8, 600)
    y = (rng.random(600) < 1.0 - c).astype(int)
    gain = cal.recalibration_gain(y, c)
    assert gain.reversed
    assert gain.sentence.startswith("The order of the probabilities is reversed")
    right = cal.recalibration_gain(1 - y, c)
    assert not right.reversed
    assert "reversed" not in right.sentence


# -- cost -------------------------------------------------------------------------------------------------


def test_a_few_thousand_rows_are_drawn_in_cells():
    y, c, _ = wave(0, 3000)
    for id in ("ece", "ecce_mad"):
        assert cal.interval(id, y, c, n_resamples=39, rng=0).path == "cells"
        assert cal.test(id, y, c, method="monte-carlo", n_resamples=39, rng=0).path == "cells"

"""Intervals by asymptotic formulas, compared with formulas written out, simulations, and repeated rows."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.optimize import minimize as general_minimize
from scipy.special import chdtrc, chdtri, expit, logit
from scipy.stats import binom, chi2, norm

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.diagnostics.grades import observed_expected_interval
from calibrary.inference.methods.asymptotic import _ShiftedPoints, _ShiftedRows
from calibrary.inference.methods.choice import METHODS
from calibrary.metrics.kernel.squared import informative_pairs
from calibrary.numerics.laws import upper_tail
from each import amount, most
from paths import ROOT


def problem(n=300, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < c**power).astype(int), c


def test_a_mean_loss_is_plus_minus_its_standard_error():
    y, c = problem()
    loss = (y - c) ** 2
    result = cal.interval("bs", y, c, method="asymptotic", confidence_level=0.9)
    half = norm.ppf(0.95) * loss.std(ddof=1) / math.sqrt(len(y))
    assert (result.low, result.high) == pytest.approx((loss.mean() - half, loss.mean() + half))
    assert (result.method, result.n_resamples, math.isnan(result.pvalue)) == ("asymptotic", 0, True)


@pytest.mark.parametrize("id", ["bs", "nll", "spiegelhalter", "oe", "eo", "cis", "ce2_db", "tcal"])
def test_weight_two_is_the_row_written_twice(id):
    y, c = problem(120, 1)
    w = np.random.default_rng(1).integers(1, 4, 120)
    one = cal.interval(id, y, c, sample_weight=w, method="asymptotic")
    two = cal.interval(id, np.repeat(y, w), np.repeat(c, w), method="asymptotic")
    np.testing.assert_allclose([one.low, one.high], [two.low, two.high], rtol=1e-6, atol=1e-12)
    if id not in ("tcal", "ce2_db"):  # whose bins and noise depend on the scale of the weights
        options = {"weight_type": "importance", "method": "asymptotic"}
        one, two = (cal.interval(id, y, c, sample_weight=s * w, **options) for s in (1, 0.1))
        np.testing.assert_allclose([one.low, one.high], [two.low, two.high], rtol=1e-6, atol=1e-9)


def test_the_square_of_bins_is_the_formula_written_out():
    y, c = problem(400, 2, 1.6)
    result = cal.interval("ce2_db", y, c, method="asymptotic", n_bins=5, mass_rule="split")
    order = np.argsort(c, kind="stable")
    variance, between, square = 0.0, 0.0, 0.0
    for rows in np.array_split(order, 5):
        r, n, share = (y - c)[rows], len(rows), len(rows) / len(y)
        g, v = r.mean(), r.var()
        between += share * (4 * g**2 * v + g**4)
        square += share * g**2
        variance += share**2 * 2 * max(v, np.mean((c * (1 - c))[rows])) ** 2 / (n * (n - 1))
    variance += (between - square**2) / len(y)
    half = norm.ppf(0.975) * math.sqrt(variance)
    assert result.low == pytest.approx(max(result.value - half, 0.0))
    assert result.high == pytest.approx(result.value + half)
    root = cal.interval("ce2_db", y, c, method="asymptotic", n_bins=5, root=True)
    assert (root.low**2, root.high**2) == pytest.approx((result.low, result.high))


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_the_interval_of_the_square_covers(power):
    covered, runs = 0, amount(40, 120)
    for seed in range(runs):
        y, c = problem(300, seed, power)
        truth = np.mean([np.mean((c**power - c)[b]) ** 2 for b in np.array_split(np.argsort(c), 15)])
        result = cal.interval("ce2_db", y, c, method="asymptotic")
        covered += result.low <= truth <= result.high
    assert runs - covered <= most(runs, 0.05)


def test_observed_over_expected_is_exact_for_equal_predictions():
    y, c = [1] * 7 + [0] * 13, [0.3] * 20
    result = cal.interval("oe", y, c, method="asymptotic")

    def tail(q):
        return binom.sf(7, 20, q) + 0.5 * binom.pmf(7, 20, q)

    low, high = (brentq(lambda q, level=level: tail(q) - level, 1e-9, 1 - 1e-9) / 0.3 for level in (0.025, 0.975))
    assert (result.low, result.high) == pytest.approx((low, high), rel=1e-6)
    inverse = cal.interval("eo", y, c, method="asymptotic")
    assert (inverse.low, inverse.high) == pytest.approx((1 / high, 1 / low), rel=1e-6)


def test_observed_over_expected_has_a_width_when_everything_happened():
    ratio, low, high = observed_expected_interval([1] * 100, [0.99] * 100)
    assert low < 1.0 < ratio == high
    assert observed_expected_interval([0] * 10, [0.1] * 10).low == 0.0
    rng = np.random.default_rng(3)
    outside = 0
    for _ in range(60):
        c = rng.beta(30, 1, 100)
        y = (rng.random(100) < c).astype(int)
        _, low, high = observed_expected_interval(y, c)
        outside += not low <= 1.0 <= high
    assert outside <= 8  # 5% on average; the usual formula has 13%


def test_observed_over_expected_allows_for_outcomes_that_vary_more_than_the_predictions_say():
    y, c = [1] * 14 + [0] * 6 + [1] * 6 + [0] * 14, [0.99] * 20 + [0.01] * 20  # over-confident, and right on average
    result = cal.interval("oe", y, c)

    def tail(shift):  # convolution of two binomial distributions
        q = 1 / (1 + np.exp(-np.log(99) - shift)), 1 / (1 + np.exp(np.log(99) - shift))
        law = np.convolve(*(binom.pmf(np.arange(21), 20, x) for x in q))
        return law[21:].sum() + 0.5 * law[20]

    shift = brentq(lambda s: tail(s) - 0.975, 0.0, 9.0)
    high = float(np.sum(20 / (1 + np.exp(-np.array([1, -1]) * np.log(99) - shift)))) / 20
    squares = 2 * (14 * 0.01**2 + 6 * 0.99**2)
    extra = 1.959964 * np.sqrt(squares - 40 * 0.99 * 0.01) / 20
    assert result.high == pytest.approx(1.0 + np.hypot(high - 1.0, extra), rel=1e-4)
    assert result.low == pytest.approx(2.0 - result.high, rel=1e-4)
    y, c = [1] * 17 + [0] * 3 + [1] * 8 + [0] * 12 + [0, 1], [1.0] * 20 + [0.0] * 20 + [0.5] * 2
    certain = cal.interval("oe", y, c)
    assert certain.low < 1.0 < 26 / 21 < certain.high


def test_tails_of_sums_meet_where_the_law_is_left():
    rng = np.random.default_rng(4)
    for n in (90, 400):  # exact below a variance of 25, three cumulants above
        p = rng.random(n)
        law = np.ones(1)
        for q in p:
            law = np.convolve(law, [1 - q, q])
        for at in (int(p.sum()) - 4, int(p.sum()) + 6):
            assert upper_tail(p, None, at) == pytest.approx(
                law[at + 1 :].sum() + law[at] / 2, abs=1e-6 if n == 90 else 1e-3
            )


def test_intercept_and_slope_end_where_the_likelihood_ratio_does():
    y, c = problem(200, 5)
    result = cal.interval("cis", y, c, method="asymptotic")
    z = np.log(c / (1 - c))

    def loss(a, b):
        eta = a + b * z
        return np.sum(np.logaddexp(0, eta) - y * eta)

    best = cal.cox_intercept_slope(y, c)
    for end in (result.low[1], result.high[1]):
        a = brentq(lambda a, b=end: np.sum(1 / (1 + np.exp(-a - b * z)) - y), -20, 20)
        assert 2 * (loss(a, end) - loss(best.intercept, best.slope)) == pytest.approx(chi2.ppf(0.95, 1), rel=1e-5)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    labels = (p.cumsum(1) < np.random.default_rng(1).random((200, 1))).sum(1)
    wald = cal.interval("cis", labels, p, lens="full", method="asymptotic")
    full = cal.cox_intercept_slope(labels, p, lens="full")
    np.testing.assert_allclose(wald.high, np.r_[full.intercept + 1.959964 * full.se_intercept,
                                                full.slope + 1.959964 * full.se_slope], rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize(
    ("id", "options", "words"),
    [("ece", {}, "formulas exist for"), ("ce2_db", {"units": np.arange(100) // 2}, "independent")],
)
def test_a_metric_without_an_asymptotic_formula_says_so(id, options, words):
    y, c = problem(100)
    with pytest.raises(ValueError, match=words):
        cal.interval(id, y, c, method="asymptotic", **options)


def test_the_law_stands_beside_the_draws():
    y, c = problem(200, 6, 1.5)
    result = cal.interval("ecce_mad", y, c, n_resamples=99, rng=0)
    assert result.asymptotic_pvalue == cal.test("ecce_mad", y, c, method="asymptotic").pvalue
    assert result.pvalue != result.asymptotic_pvalue
    assert math.isnan(cal.interval("ece", y, c, n_resamples=99, rng=0).asymptotic_pvalue)
    row = cal.evaluate(y, c, metrics=["ecce_mad"], tests=True, n_resamples=99, rng=0).row("ecce_mad")
    assert row.asymptotic_pvalue == result.asymptotic_pvalue


# -- tests of debiased errors, and of pairs ------------------------------------------------------------


@pytest.mark.parametrize("id", ["ce2_db", "ece_db"])
def test_debiased_errors_have_their_test(id):
    assert cal.catalogue[id].has_test
    options = {"method": "asymptotic", **({"rng": 0, "n_resamples": 499} if id == "ece_db" else {})}
    rejected, runs = 0, amount(40, 120)
    for seed in range(runs):
        y, c = problem(300, seed)
        rejected += cal.test(id, y, c, **options).pvalue <= 0.05
    assert runs // 100 <= rejected <= most(runs, 0.05)
    y, c = problem(300, 0, 2.0)
    assert cal.test(id, y, c, **options).pvalue < 0.01
    assert cal.test(id, y, c, rng=0, n_resamples=99).law == "monte-carlo"
    w = np.random.default_rng(1).integers(1, 4, 300)
    one = cal.test(id, y, c, sample_weight=w, **options).pvalue
    assert one == pytest.approx(cal.test(id, np.repeat(y, w), np.repeat(c, w), **options).pvalue, rel=1e-9)


def test_skce_ul_warns_that_it_has_no_power_for_very_many_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(1000, 0.5), 100)
    y = rng.integers(0, 1000, 100)
    covariance = [np.diag(row) - np.outer(row, row) for row in p[:4]]
    exact = np.trace(covariance[0] @ covariance[1]) + np.trace(covariance[2] @ covariance[3])
    assert informative_pairs(cal.predictions(y[:4], p[:4])) == pytest.approx(exact)
    for method in ("auto", "asymptotic"):
        options = {"n_resamples": 19, "rng": 0} if method == "auto" else {}
        with pytest.warns(cal.CalibrationWarning, match="no power here"):
            cal.test("skce_ul", y, p, method=method, **options)


def test_the_median_width_is_found_once(monkeypatch):
    calls = []
    right = cal.kernels._median_distance
    monkeypatch.setattr(cal.kernels, "_median_distance", lambda *a: calls.append(1) or right(*a))
    y, c = problem(60)
    cal.test("skce_b", y, c, n_resamples=49, rng=0)
    assert len(calls) <= 2


# -- the nearest-neighbor test -------------------------------------------------------------------------


def test_power_of_the_nearest_neighbor_test_is_what_simulation_finds():
    rng = np.random.default_rng(0)
    query, truth, k = np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.4, 0.25]), 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rejected = [
            cal.test("knn_reliability", rng.choice(3, k, p=truth), np.tile(query, (k, 1)), query=query, k=k,
                     method="asymptotic").pvalue <= 0.05
            for _ in range(300)
        ]  # fmt: skip
    assert cal.neighbor_power(query, k, truth=truth) == pytest.approx(np.mean(rejected), abs=0.08)
    assert cal.neighbor_power(query, k, truth=query) == pytest.approx(0.05)
    few, many = (cal.neighbor_power(query, k, concentration=10, n_resamples=99) for k in (10, 200))
    assert 0.05 < few < many < 1.0
    n = cal.neighbor_sample_size(query, truth=truth)
    assert cal.neighbor_power(query, n, truth=truth) >= 0.8 > cal.neighbor_power(query, n - 1, truth=truth)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cal.neighbor_power(0.8, 10), "pass truth="),
        (lambda: cal.neighbor_power([0.5, 0.6], 10, truth=0.5), "sum to 1"),
        (lambda: cal.neighbor_power(0.8, 10, concentration=-1), "above 0"),
        (lambda: cal.neighbor_sample_size(0.8, truth=0.8), "too near"),
    ],
)
def test_bad_plans_get_a_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


# -- what was measured ----------------------------------------------------------------------------------


def test_metrics_whose_interval_covers_too_seldom_say_so():
    kept = json.loads((ROOT / "benchmarks" / "coverage.json").read_text())
    shares = {
        key: (row["covered"] / row["done"], row["done"])
        for key, row in kept.items()
        if row.get("done", 0) >= 50 and "covered" in row
    }
    low = {key.split(" | ")[0] for key, (share, n) in shares.items() if share + 1.645 * math.sqrt(0.0736 / n) < 0.92}
    assert len(kept) > 10
    assert low <= {e.id for e in cal.catalogue.values() if e.no_ends}
    for entry in cal.catalogue.values():
        assert entry.no_ends in (entry.function.__doc__ or "")


def test_an_interval_that_is_known_to_miss_has_no_ends_and_says_why():
    """The default gives the estimate alone, a named method gives ends, and nothing raises or prints NaN ends."""
    rng = np.random.default_rng(2)
    c = rng.beta(0.8, 0.8, 120)
    y = (rng.random(120) < c).astype(int)
    entry = cal.catalogue["calbin"]
    found = cal.interval("calbin", y, c, n_resamples=99, rng=0)
    assert found.value == cal.calbin(y, c)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.standard_error > 0.0
    assert found.note == entry.no_ends
    named = cal.interval("calbin", y, c, method="basic", n_resamples=99, rng=0)
    assert named.low < named.high
    table = cal.evaluate(y, c, metrics=["calbin", "ece"], intervals=True, n_resamples=99, rng=0)
    assert f"no interval: {entry.no_ends}" in table.row("calbin").note
    assert "nan" not in str(table)
    with collected_warnings() as said:
        verdict = cal.verdict("calbin>0.1", y, c, n_resamples=99, rng=0)
    assert verdict.status == "undecided"
    assert entry.no_ends in said[0]
    assert "nan" not in str(verdict.sentence)
    with pytest.raises(ValueError, match="has no confidence interval: "):
        cal.plan("calbin", width=0.1, law=(1.0, 1.0))


def test_resampled_rows_give_no_ends_where_all_labels_are_the_same():
    """Resamples of twelve events gave Spiegelhalter's z of .95 to .99 an interval without 0."""
    y, p = np.ones(12, dtype=int), np.linspace(0.9, 0.99, 12)
    for labels, confidences in ((y, p), (1 - y, 1.0 - p)):
        found = cal.interval("spiegelhalter", labels, confidences, n_resamples=99, rng=0)
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert found.note.startswith("all labels are the same")
        table = cal.evaluate(labels, confidences, metrics=["spiegelhalter"], intervals=True, n_resamples=99, rng=0)
        assert "no interval: all labels are the same" in table.row("spiegelhalter").note
    two = cal.interval("spiegelhalter", np.r_[y, 0], np.r_[p, 0.9], n_resamples=99, rng=0)
    assert two.low < two.high
    assert cal.interval("ece", y, p, n_resamples=99, rng=0).high > 0.1  # redrawn labels show both


# -- one number of Cox's result --------------------------------------------------------------------

PARTS = ("calibration intercept", "cis.slope", "calibration-in-the-large")


def tilted(n=300, seed=4):
    rng = np.random.default_rng(seed)
    c = rng.beta(1.0, 2.0, n)
    return (rng.random(n) < expit(0.3 + 0.7 * logit(c))).astype(int), c


def likelihood_ratio(y, c, fixed, at):
    """The literal likelihood ratio statistic with one estimate fixed, by a general optimizer."""
    x = logit(c)

    def loss(a, b):
        eta = a + b * x
        return float(np.sum(np.logaddexp(0.0, eta) - y * eta))

    if fixed == "calibration-in-the-large":
        return 2.0 * (loss(at, 1.0) - minimize_scalar(lambda a: loss(a, 1.0), method="brent").fun)
    free = (lambda other: loss(other, at)) if fixed == "cis.slope" else (lambda other: loss(at, other))
    best = minimize_scalar(free, method="brent").fun
    return 2.0 * (best - general_minimize(lambda t: loss(*t), [0.0, 1.0], method="BFGS").fun)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("weight", [None, 3.0])
def test_one_number_of_cox_has_the_profile_likelihood_by_default(name, weight):
    y, c = tilted()
    w = {} if weight is None else {"sample_weight": np.full(len(y), weight)}
    found = cal.interval(name, y, c, **w)
    assert (found.method, found.note) == ("asymptotic", "profile likelihood")
    for end in (found.low, found.high):
        assert (weight or 1.0) * likelihood_ratio(y, c, name, end) == pytest.approx(chdtri(1, 0.05), rel=1e-5)
    perfect = cal.catalogue[name].perfect
    assert found.pvalue == pytest.approx(chdtrc(1, (weight or 1.0) * likelihood_ratio(y, c, name, perfect)), rel=1e-4)
    # the interval at the level of the p-value ends at the perfect value
    edge = cal.interval(name, y, c, confidence_level=1.0 - found.pvalue, **w)
    assert min(abs(edge.low - perfect), abs(edge.high - perfect)) < 1e-4


def test_the_numbers_of_cox_have_the_ends_of_the_whole_result():
    y, c = tilted()
    whole = cal.interval("cis", y, c)
    for j, name in enumerate(PARTS[:2]):
        one = cal.interval(name, y, c)
        assert (one.low, one.high) == pytest.approx((whole.low[j], whole.high[j]), abs=1e-8)


def test_a_million_log_odds_of_a_slope_are_a_few_points():
    y, c = tilted(60_000)
    found = cal.interval("cis.slope", y, c)
    for end in (found.low, found.high):
        assert likelihood_ratio(y, c, "cis.slope", end) == pytest.approx(chdtri(1, 0.05), rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PARTS)
def test_one_number_of_cox_takes_the_methods_of_the_whole(name, method):
    y, c = tilted(80)

    def refused(metric):
        try:
            cal.interval(metric, y, c, method=method, n_resamples=99, rng=0)
        except cal.RefusedError:
            return True
        return False

    assert refused(name) == refused("cis")


def test_a_slope_without_a_fit_has_no_profile():
    y, c = np.array([0, 0, 0, 1, 1, 1] * 5), np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9] * 5)
    with pytest.warns(cal.CalibrationWarning):
        found = cal.interval("cis.slope", y, c, n_resamples=19, rng=0)
    assert found.method == "basic"
    assert np.isnan(found.low)


def test_several_classes_have_a_slope_each():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    y = (rng.random((200, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    found = cal.interval("cis.slope", y, p, lens="class-wise", average=None)
    assert found.method == "asymptotic"
    one = cal.interval("cis.slope", (y == 1).astype(int), p[:, 1])
    assert (found.low[1], found.high[1]) == pytest.approx((one.low, one.high))


def test_points_and_shares_have_the_excess_of_the_rows():
    rng = np.random.default_rng(6)
    c = rng.beta(1.0, 2.0, 500)
    labels, shares, copies = (rng.random(500) < c).astype(int), rng.beta(2.0, 2.0, 500), rng.integers(1, 4, 500)
    for y, w in [(labels, None), (shares, None), (shares, copies)]:
        view = cal.predictions(y, c, sample_weight=w)
        points, literal = _ShiftedPoints(view), _ShiftedRows(view, view.weight)
        for shift in (-0.7, 0.0, 0.4):
            assert points.mean(shift) == pytest.approx(literal.mean(shift))
            assert points.excess(shift) == pytest.approx(literal.excess(shift))

"""Hosmer-Lemeshow: statistics, degrees of freedom, certain groups, several classes, and the level of the test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

import calibrary as cal
import definitions
import own
from calibrary.numerics.laws import noncentral_sf, noncentrality_of
from golden import arrays, assert_close, parts, weights_of

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def calibrated(n, rng, low=0.05, high=0.95):
    c = rng.uniform(low, high, n)
    return (rng.random(n) < c).astype(int), c


@quiet
@pytest.mark.parametrize("variance", ["pooled", "exact"])
@pytest.mark.parametrize("binning", ["mass", "width"])
def test_the_statistic_equals_its_definition(binary_set, binning, variance):
    y, c = binary_set
    want = definitions.hl(y, c, binning=binning, variance=variance)
    # certain groups are left out, and are right in these sets
    groups = sum(not np.isin(c[rows], (0, 1)).all() for rows in definitions.bins(y, c, binning, 10))
    result = own.hosmer_lemeshow_test(y, c, binning=binning, variance=variance)
    assert result.statistic == pytest.approx(want, rel=1e-9)
    assert result.statistic == pytest.approx(cal.hosmer_lemeshow(y, c, binning=binning, variance=variance))
    assert result.df == groups
    assert result.pvalue == pytest.approx(chi2.sf(want, result.df), rel=1e-9)
    assert result.table["n"].sum() == len(y)
    assert result.table["observed"].sum() == pytest.approx(y.sum())
    assert result.table["expected"].sum() == pytest.approx(c.sum())


@quiet
def test_fitting_on_the_same_rows_costs_degrees_of_freedom():
    y, c, _ = arrays("binary500")
    df = {
        (v, f): own.hosmer_lemeshow_test(y, c, variance=v, fitted=f).df
        for v in ("pooled", "exact")
        for f in (False, True)
    }
    assert df == {("pooled", 0): 10, ("pooled", 1): 8, ("exact", 0): 10, ("exact", 1): 9}


@quiet
def test_a_large_statistic_keeps_a_positive_p_value():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 0.6, 4000)
    result = own.hosmer_lemeshow_test(rng.random(4000) < 0.7 * c, c)
    assert 0 < result.pvalue < 1e-50
    assert result.pvalue == pytest.approx(chi2.sf(result.statistic, 10), rel=1e-9)


@quiet
@pytest.mark.parametrize("variance", ["pooled", "exact"])
def test_certain_groups_are_skipped_when_right_and_infinite_when_wrong(variance):
    c = np.array([0.0] * 10 + [0.5] * 10 + [1.0] * 10)
    y = np.array([0] * 10 + [0, 1] * 5 + [1] * 10)
    right = own.hosmer_lemeshow_test(y, c, n_bins=3, variance=variance)
    assert (right.statistic, right.df, right.pvalue) == (0.0, 1, 1.0)
    y[0] = 1
    wrong = own.hosmer_lemeshow_test(y, c, n_bins=3, variance=variance, fitted=True)
    assert (wrong.statistic, wrong.pvalue) == (math.inf, 0.0)


def test_no_degrees_of_freedom_is_nan_with_a_warning():
    with pytest.warns(cal.CalibrationWarning, match="degrees of freedom"):
        result = own.hosmer_lemeshow_test([0, 1] * 20, [0.4] * 40, fitted=True)
    assert math.isfinite(result.statistic)
    assert math.isnan(result.pvalue)


def test_small_expected_counts_are_warned_about():
    rng = np.random.default_rng(0)
    c = rng.uniform(0, 0.02, 500)
    with pytest.warns(cal.CalibrationWarning, match="monte-carlo"):
        own.hosmer_lemeshow_test(rng.random(500) < c, c)


@quiet
def test_monte_carlo_needs_no_large_counts():
    rng = np.random.default_rng(1)
    c = rng.uniform(0, 0.02, 500)
    y = rng.random(500) < c
    result = own.hosmer_lemeshow_test(y, c, method="monte-carlo", n_resamples=199, rng=0)
    assert result.statistic == pytest.approx(cal.hosmer_lemeshow(y, c))
    assert 0.005 <= result.pvalue <= 1


@quiet
def test_weights_are_counts_or_importance():
    y, c, _ = arrays("binary500")
    w = weights_of("1+i%3", 500)
    repeated = np.repeat(np.arange(500), w.astype(int))
    for kw in ({}, {"variance": "exact"}, {"binning": "width"}):
        weighted = own.hosmer_lemeshow_test(y, c, sample_weight=w, **kw)
        assert weighted.statistic == pytest.approx(own.hosmer_lemeshow_test(y[repeated], c[repeated], **kw).statistic)
    with pytest.raises(ValueError, match="importance"):
        own.hosmer_lemeshow_test(y, c, sample_weight=w / 7)
    scaled = [
        own.hosmer_lemeshow_test(y, c, sample_weight=w * s, weight_type="importance", variance=v, **kw).pvalue
        for s, v, kw in ((1, "pooled", {}), (0.1, "pooled", {}), (1, "exact", {}), (0.1, "exact", {}))
    ]
    assert scaled[0] == pytest.approx(scaled[1])
    assert scaled[2] == pytest.approx(scaled[3])


@quiet
def test_importance_weights_scale_out_of_the_multinomial_test():
    y, p, _ = arrays("multi4")
    w = weights_of("1+i%3", len(y))
    for variance in ("pooled", "exact"):
        kw = {"lens": "full", "weight_type": "importance", "variance": variance}
        one = own.hosmer_lemeshow_test(y, p, sample_weight=w, **kw).statistic
        assert own.hosmer_lemeshow_test(y, p, sample_weight=10 * w, **kw).statistic == pytest.approx(one)
        equal = own.hosmer_lemeshow_test(y, p, sample_weight=np.full(len(y), 3.0), **kw).statistic
        plain = own.hosmer_lemeshow_test(y, p, lens="full", variance=variance).statistic
        assert equal == pytest.approx(plain)


@quiet
def test_class_wise_is_one_test_per_class_with_bonferroni():
    y, p, _ = arrays("multi4")
    result = own.hosmer_lemeshow_test(y, p)
    single = [own.hosmer_lemeshow_test(y == k, p[:, k]) for k in range(4)]
    assert result.statistic == pytest.approx(np.mean([r.statistic for r in single]))
    assert result.pvalue == pytest.approx(min(1, 4 * min(r.pvalue for r in single)))
    assert result.df == (10, 10, 10, 10)
    assert cal.hosmer_lemeshow(y, p) == pytest.approx(result.statistic)


@quiet
def test_class_wise_statistics_of_several_questions_about_the_same_predictions():
    rng = np.random.default_rng(5)
    z = np.exp(rng.normal(size=(300, 3)))
    data = cal.predictions(rng.integers(0, 3, 300), z / z.sum(axis=1, keepdims=True))
    for options in ({}, {"n_bins": 5}, {"average": None}, {"fitted": True}, {"variance": "exact"}, {}):
        value = cal.hosmer_lemeshow(data, lens="class-wise", **options)
        each = cal.hosmer_lemeshow(data, lens="class-wise", **{**options, "average": None})
        tested = own.hosmer_lemeshow_test(
            data, lens="class-wise", **{k: v for k, v in options.items() if k != "average"}
        )
        assert np.mean(value) == pytest.approx(tested.statistic) == pytest.approx(np.mean(each))


def test_two_classes_are_one_test_and_its_p_value_is_not_doubled():
    y, c, _ = arrays("binary500")
    binary = own.hosmer_lemeshow_test(y, c)
    both = own.hosmer_lemeshow_test(y, np.column_stack([1 - c, c]), lens="class-wise")
    assert (both.statistic, both.pvalue) == (binary.statistic, binary.pvalue)
    assert both.keys == (1,)
    assert cal.hosmer_lemeshow(y, np.column_stack([1 - c, c]), lens="class-wise") == binary.statistic


@quiet
def test_a_class_without_a_p_value_is_left_out():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.1, 0.9, 200)
    p = np.column_stack([1 - c, c, np.zeros(200)])
    y = (rng.random(200) < c).astype(int)
    result = own.hosmer_lemeshow_test(y, p)
    assert result.keys == (0, 1)
    assert result.pvalue == pytest.approx(min(1, 2 * min(r.pvalue for r in result.results)))
    assert cal.hosmer_lemeshow(y, p) == pytest.approx(result.statistic)


@quiet
@pytest.mark.parametrize("variance", ["pooled", "exact"])
def test_the_multinomial_test_of_two_classes_is_the_binary_one(binary_set, variance):
    y, c = binary_set
    binary = own.hosmer_lemeshow_test(y, c, variance=variance)
    full = own.hosmer_lemeshow_test(y, c, lens="full", variance=variance)
    assert full.statistic == pytest.approx(binary.statistic, rel=1e-8)
    assert full.df == binary.df
    assert full.pvalue == pytest.approx(binary.pvalue, rel=1e-6)


@quiet
def test_the_multinomial_test_skips_impossible_cells_and_is_infinite_when_they_occur():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.1, 0.9, 200)
    p = np.column_stack([1 - c, c, np.zeros(200)])
    y = (rng.random(200) < c).astype(int)
    for variance in ("pooled", "exact"):
        result = own.hosmer_lemeshow_test(y, p, lens="full", variance=variance)
        assert result.df == 10  # twenty less one for each of the ten groups
        assert math.isfinite(result.statistic)
        y2 = y.copy()
        y2[0] = 2
        wrong = own.hosmer_lemeshow_test(y2, p, lens="full", variance=variance)
        assert (wrong.statistic, wrong.pvalue) == (math.inf, 0.0)
    with pytest.raises(ValueError, match="reference_class=3"):
        own.hosmer_lemeshow_test(y, p, lens="full", reference_class=3)


def _rejection_rate(runs, simulate, **options):
    pvalues = [own.hosmer_lemeshow_test(*simulate(), **options).pvalue for _ in range(runs)]
    return np.mean(np.array(pvalues) <= 0.05)


@quiet
@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({}, 0.03, 0.075),
        ({"binning": "width", "variance": "exact"}, 0.03, 0.075),
        ({"fitted": True}, 0.07, 0.16),  # wrong here: the model was not fitted on these rows
    ],
)
def test_the_level_on_external_data(options, low, high):
    rng = np.random.default_rng(7)
    assert low < _rejection_rate(700, lambda: calibrated(400, rng), **options) < high


@quiet
def test_the_level_after_fitting_a_logistic_regression_on_the_same_rows():
    rng = np.random.default_rng(8)

    def fitted():
        x = rng.normal(size=400)
        y = (rng.random(400) < 1 / (1 + np.exp(-x))).astype(int)
        a = b = 0.0
        for _ in range(8):
            c = 1 / (1 + np.exp(-(a + b * x)))
            w, r = c * (1 - c), y - c
            step = np.linalg.solve([[w.sum(), (w * x).sum()], [(w * x).sum(), (w * x * x).sum()]], [r.sum(), r @ x])
            a, b = a + step[0], b + step[1]
        return y, 1 / (1 + np.exp(-(a + b * x)))

    rng = np.random.default_rng(8)
    assert 0.025 < _rejection_rate(500, fitted, fitted=True) < 0.08
    rng = np.random.default_rng(8)
    assert _rejection_rate(500, fitted) < 0.04


@quiet
def test_the_level_with_several_classes():
    rng = np.random.default_rng(9)

    def simulate():
        p = rng.dirichlet(np.ones(3), 300)
        return (rng.random(300)[:, None] > np.cumsum(p, axis=1)[:, :2]).sum(axis=1), p

    assert _rejection_rate(250, simulate) < 0.09  # Bonferroni over classes
    assert 0.02 < _rejection_rate(250, simulate, lens="full", variance="exact") < 0.10
    assert _rejection_rate(250, simulate, lens="full") < 0.06  # conservative


def test_importance_weights_enter_the_exact_variance_row_by_row():
    rng = np.random.default_rng(3)
    c = rng.random(60)
    y, w = (rng.random(60) < c).astype(int), rng.random(60)
    groups = np.digitize(c, [0.25, 0.5, 0.75])
    expected = sum(
        (w * (y - c))[groups == g].sum() ** 2 / (w**2 * c * (1 - c))[groups == g].sum() for g in np.unique(groups)
    )
    options = {"sample_weight": w, "weight_type": "importance", "variance": "exact", "edges": [0, 0.25, 0.5, 0.75, 1]}
    assert np.isclose(cal.hosmer_lemeshow(y, c, **options), expected, rtol=1e-12)


@quiet
def test_rows_that_sum_to_one_only_up_to_rounding_leave_the_degrees_of_freedom_alone():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 1000)
    y = np.array([rng.choice(3, p=row) for row in p])
    exact = own.hosmer_lemeshow_test(y, p, lens="full", variance="exact")
    rounded = own.hosmer_lemeshow_test(y, p.astype(np.float32), lens="full", variance="exact")
    assert rounded.df == exact.df == 20
    assert np.isclose(rounded.pvalue, exact.pvalue, rtol=1e-4)


# -- a margin -----------------------------------------------------------------------------------------


def of_parts(statistic, n, df, margin):
    from calibrary.metrics.bins.hosmer_lemeshow import HosmerLemeshowResult, _with_misfit

    return _with_misfit(HosmerLemeshowResult(statistic, math.nan, df), n, margin)


def test_the_margin_of_a_million_meets_the_paper():
    """Nattino, Pennell and Lemeshow (2020), section 5, to the digits printed."""
    for entry in (e for e in parts("emerging", "hl_tolerance") if "n=315828" in e["data"]):
        statistic = float(entry["data"].split(",")[0].removeprefix("HL="))
        result = of_parts(statistic, 315_828, 8, "million")
        assert round(result.pvalue, 2) == entry["value"]
        assert result.margin == pytest.approx(2.74e-3, rel=2e-3)


def test_golden_margin_and_p_value():
    epsilon, pvalue = (e for e in parts("emerging", "hl_tolerance") if "n=1000" in e["data"])
    assert_close(of_parts(15.5436, 1000, 15, "million").margin, epsilon)
    # the statistic is printed with six digits
    assert of_parts(15.5436, 1000, 15, 0.1).pvalue == pytest.approx(pvalue["value"], rel=2e-6)


@quiet
def test_the_margin_is_the_noncentral_law():
    y, c, _ = arrays("binary500")
    plain = own.hosmer_lemeshow_test(y, c)
    for margin in (0.0, 0.05, 0.3):
        result = own.hosmer_lemeshow_test(y, c, margin=margin)
        assert result.statistic == plain.statistic
        assert result.margin == margin
        law = ncx2.sf(plain.statistic, 10, 500 * margin**2) if margin else chi2.sf(plain.statistic, 10)
        assert result.pvalue == pytest.approx(law, rel=1e-9)
    assert plain.margin is None
    assert plain.misfit == pytest.approx(math.sqrt(max(plain.statistic - 10, 0) / 500))


@quiet
def test_the_bounds_are_where_the_test_turns():
    rng = np.random.default_rng(2)
    c = rng.uniform(0.1, 0.9, 3000)
    result = own.hosmer_lemeshow_test(rng.random(3000) < 0.15 + 0.7 * c, c)
    assert 0 < result.misfit_low < result.misfit < result.misfit_high
    y = rng.random(3000) < c
    for bound, tail in ((result.misfit_low, 0.05), (result.misfit_high, 0.95)):
        assert of_parts(result.statistic, 3000, 10, bound).pvalue == pytest.approx(tail, abs=1e-9)
    calibrated = own.hosmer_lemeshow_test(y, c)
    assert calibrated.misfit_low == 0.0


@pytest.mark.parametrize(
    ("x", "df", "nc"),
    [(15.5, 15, 10), (25.35, 8, 2.37), (1200, 10, 1000), (10_500, 10, 1e4), (50, 10, 200), (3, 2, 1e-9),
     (1.002e6, 10, 1e6), (500, 10, 5), (4000, 12, 300)],
)  # fmt: skip
def test_the_noncentral_tail(x, df, nc):
    assert noncentral_sf(x, df, nc) == pytest.approx(ncx2.sf(x, df, nc), rel=1e-8)
    assert noncentral_sf(math.inf, df, nc) == 0.0
    for tail in (0.05, 0.5, 0.95):
        found = noncentrality_of(x, df, tail)
        assert found == 0.0 or ncx2.sf(x, df, found) == pytest.approx(tail, rel=1e-6)


@quiet
def test_a_margin_keeps_its_level_where_the_misfit_equals_it():
    """Gaps of one standardized size in all groups: rejected in about 5%."""
    rng = np.random.default_rng(0)
    c = np.repeat(np.linspace(0.2, 0.8, 10), 200)
    truth = c + 0.1 * np.sqrt(c * (1 - c)) * np.where(np.arange(2000) // 200 % 2, 1, -1)
    rejected = sum(own.hosmer_lemeshow_test(rng.random(2000) < truth, c, margin=0.1).pvalue < 0.05 for _ in range(400))
    assert 6 <= rejected <= 36
    assert own.hosmer_lemeshow_test(rng.random(2000) < truth, c).pvalue < 0.05


@quiet
def test_a_margin_with_weights_classes_and_certainty():
    y, c, _ = arrays("binary500")
    w = weights_of("1+i%3", 500)
    i = np.repeat(np.arange(500), w.astype(int))
    weighted = own.hosmer_lemeshow_test(y, c, sample_weight=w, margin=0.1)
    written = own.hosmer_lemeshow_test(y[i], c[i], margin=0.1)
    assert weighted.pvalue == pytest.approx(written.pvalue, rel=1e-9)
    assert weighted.misfit_high == pytest.approx(written.misfit_high, rel=1e-9)
    one, other = (
        own.hosmer_lemeshow_test(y, c, sample_weight=w * s, weight_type="importance", margin=0.1) for s in (1, 0.1)
    )
    assert one.misfit == pytest.approx(other.misfit)
    y, p, _ = arrays("multi4")
    result = own.hosmer_lemeshow_test(y, p, margin=0.1)
    assert all(r.margin == 0.1 for r in result.results)
    certain = own.hosmer_lemeshow_test([1] * 20 + [0, 1] * 10, [0.0] * 20 + [0.5] * 20, n_bins=2, margin=0.5)
    assert certain.pvalue == 0.0
    assert certain.misfit == math.inf


@quiet
def test_the_result_in_words_states_which_hypothesis_was_tested():
    rng = np.random.default_rng(1)
    c = rng.uniform(0.1, 0.9, 100_000)
    y = rng.random(100_000) < 0.02 + 0.96 * c
    assert "is evidence against calibration" in own.hosmer_lemeshow_test(y, c).words
    assert "is not significantly above the tolerance of 0.1" in own.hosmer_lemeshow_test(y, c, margin=0.1).words
    assert "is above the tolerance of 0.001" in own.hosmer_lemeshow_test(y, c, margin=0.001).words


@pytest.mark.parametrize(("margin", "said"), [(-0.1, "margin=-0.1"), ("billion", "margin='billion'")])
@quiet
def test_a_bad_margin_gets_a_sentence(margin, said):
    y, c, _ = arrays("binary500")
    with pytest.raises(ValueError, match=said):
        own.hosmer_lemeshow_test(y, c, margin=margin)
    with pytest.raises(ValueError, match="has no effect"):
        own.hosmer_lemeshow_test(y, c, margin=0.1, method="monte-carlo", n_resamples=9)

"""Tests on pairs of predictions: literal null laws, levels by simulation, weights, class-wise means."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import gamma, norm

import calibrary as cal
import definitions
from calibrary.metrics.kernel.pairs import Draws, comparable, wild_bootstrap_pvalue
from calibrary.metrics.kernel.squared import _matrix
from calibrary.numerics.draw import redrawn_rows
from each import amount
from golden import arrays, assert_close, parts


def problem(n=40, k=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    y = np.array([rng.choice(k, p=row) for row in p])
    return y, p


def two_columns(p):
    return p if p.ndim == 2 else np.column_stack([1 - p, p])


def literal_h(y, p, h):
    return definitions.skce_matrix(y, two_columns(p), bandwidth=h)


# -- Pearson's three moments -------------------------------------------------------------------------


def literal_pearson(h):
    """Sums over distinct indices, written as loops."""
    n = len(h)
    pairs = list(itertools.permutations(range(n), 2))
    m2 = np.mean([h[i, j] ** 2 for i, j in pairs])
    m3 = np.mean([h[i, j] ** 3 for i, j in pairs])
    t = np.mean([h[i, j] * h[j, k] * h[i, k] for i, j, k in itertools.permutations(range(n), 3)])
    var = 2 * m2 / (n * (n - 1))
    skew = (8 * (n - 2) * t + 4 * m3) / (n * (n - 1)) ** 2 / var**1.5
    z = definitions.off_diagonal_mean(h) / math.sqrt(var)
    return gamma.sf(4 / skew**2 + z * 2 / skew, 4 / skew**2), z, skew


@pytest.mark.parametrize("k", [2, 3])
def test_pearson_moments_are_sums_over_distinct_indices(k):
    y, p = problem(18, k)
    p = p[:, 1] if k == 2 else p
    result = cal.test("skce_uq", y, p, method="pearson", bandwidth=0.4)
    h = literal_h(y, p, 0.4)
    pvalue, z, skew = literal_pearson(h)
    assert result.statistic == pytest.approx(definitions.off_diagonal_mean(h), rel=1e-9)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-8)
    assert (result.z, result.skew) == (pytest.approx(z, rel=1e-8), pytest.approx(skew, rel=1e-8))
    assert result.method == "pearson"


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("id", ["skce_uq", "kccsd"])
def test_pearson_with_frequency_weights_is_that_of_repeated_rows(k, id):
    y, p = problem(25, k)
    w = 1 + np.arange(25) % 3
    i = np.repeat(np.arange(25), w)
    got = cal.test(id, y, p, method="pearson", sample_weight=w)
    want = cal.test(id, y[i], p[i], method="pearson")
    for field in ("statistic", "pvalue", "z", "skew"):
        assert getattr(got, field) == pytest.approx(getattr(want, field), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_importance_weights_run_the_plain_formulas_on_rescaled_entries(k):
    y, p = problem(16, k)
    w = np.random.default_rng(1).random(16) + 0.2
    got = cal.test("skce_uq", y, p, method="pearson", bandwidth=0.4, sample_weight=w, weight_type="importance")
    h = literal_h(y, p, 0.4) * np.outer(w, w) * 16 * 15 / (w.sum() ** 2 - w @ w)
    pvalue, z, skew = literal_pearson(h)
    assert got.statistic == pytest.approx(definitions.off_diagonal_mean(h), rel=1e-8)
    assert (got.pvalue, got.z) == (pytest.approx(pvalue, rel=1e-7), pytest.approx(z, rel=1e-7))
    assert got.skew == pytest.approx(skew, rel=1e-7)


# -- bootstrap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_bootstrap_draws_are_the_centred_form(k):
    y, p = problem(30, k)
    result = cal.test("skce_uq", y, p, bandwidth=0.4, n_resamples=200, rng=5, method="asymptotic")
    order = np.argsort(p[:, 1], kind="stable") if k == 2 else np.arange(30)  # two classes are sorted first
    h = literal_h(y, p, 0.4)[np.ix_(order, order)]
    hc = h - h.mean(axis=0) - h.mean(axis=1)[:, None] + h.mean()
    counts = np.concatenate(list(redrawn_rows(np.ones(30, dtype=int), 200, 5))).T
    null = (np.einsum("ir,ij,jr->r", counts, hc, counts) - counts.T @ np.diag(hc)) / 30
    above = int((null >= 30 * definitions.off_diagonal_mean(h)).sum())
    assert result.pvalue == pytest.approx((1 + above) / 201, abs=1e-12)
    assert result.n_resamples == 200
    plain = cal.test("skce_uq", y, p, bandwidth=0.4, n_resamples=200, rng=5, plus_one=False, method="asymptotic")
    assert plain.pvalue == pytest.approx(above / 200, abs=1e-12)


def test_resampled_counts_are_a_bootstrap_of_copies():
    copies = np.array([1, 3, 2])
    counts = next(redrawn_rows(copies, 4000, 0, 4000)).T
    np.testing.assert_array_equal(counts.sum(axis=0), 6)
    np.testing.assert_allclose(counts.mean(axis=1), copies, atol=0.08)
    np.testing.assert_allclose(counts.var(axis=1), 6 * (copies / 6) * (1 - copies / 6), atol=0.12)
    many = next(redrawn_rows(np.array([10, 30]), 4000, 0, 4000)).T
    np.testing.assert_allclose(many.mean(axis=1), [10, 30], atol=0.2)


@pytest.mark.parametrize("id", ["skce_uq", "kccsd"])
@pytest.mark.parametrize("data", ["binary12", "binary_ties", "multi4"])
def test_bootstrap_and_pearson_agree(id, data):
    y, p, _ = arrays(data)
    bootstrap = cal.test(id, y, p, n_resamples=4000, rng=0, method="asymptotic").pvalue
    assert bootstrap == pytest.approx(cal.test(id, y, p, method="pearson").pvalue, abs=0.04)


def test_wild_bootstrap_with_copies_is_that_of_repeated_rows_in_law():
    y, p = problem(20, 3)
    w = 1.0 + np.arange(20) % 3
    i = np.repeat(np.arange(20), w.astype(int))
    pvalues = []
    for rows, weight in ((np.arange(20), w), (i, None)):
        view = cal.predictions(y[rows], p[rows], sample_weight=weight)
        h, view = _matrix(view, "laplace", None, {"bandwidth": 0.4})
        h, copies = comparable(h, view, "frequency", "the test")
        pvalues.append(wild_bootstrap_pvalue(0.002, h, copies, Draws(4000, 0, True)))
    assert pvalues[0] == pytest.approx(pvalues[1], abs=0.04)


def test_the_same_seed_gives_the_same_p_value_in_any_row_order():
    y, p = problem(60, 2)
    i = np.random.default_rng(0).permutation(60)
    once = cal.test("skce_uq", y, p, rng=7, method="asymptotic")
    assert once == cal.test("skce_uq", y, p, rng=7, method="asymptotic")
    assert cal.test("skce_uq", y[i], p[i], rng=7, method="asymptotic").pvalue == once.pvalue


def test_resampling_needs_whole_copies():
    y, p = problem(20, 3)
    for id, method in (("skce_uq", "bootstrap"), ("skce_uq", "pearson"), ("kccsd", "bootstrap")):
        with pytest.raises(ValueError, match="importance"):
            cal.test(id, y, p, method=method, sample_weight=np.full(20, 1.5))


def test_both_names_of_the_number_of_draws_are_accepted():
    y, p = problem(20, 3)
    want = cal.test("skce_uq", y, p, n_resamples=50, rng=0, method="asymptotic")
    assert cal.test("skce_uq", y, p, n_bootstrap=50, rng=0, method="asymptotic") == want
    with pytest.raises(ValueError, match="n_resamples=0"):
        cal.test("skce_uq", y, p, n_resamples=0, method="asymptotic")


# -- the linear-time test ----------------------------------------------------------------------------


def test_the_normal_test_is_a_one_sided_z_test_of_the_pairs():
    y, p = problem(41, 3)
    h = literal_h(y, p, 0.4)
    terms = h[np.arange(0, 40, 2), np.arange(1, 41, 2)]
    z = math.sqrt(20) * terms.mean() / terms.std(ddof=1)
    result = cal.test("skce_ul", y, p, bandwidth=0.4, method="asymptotic")
    assert result.statistic == pytest.approx(terms.mean(), rel=1e-10)
    assert (result.z, result.pvalue) == (pytest.approx(z, rel=1e-9), pytest.approx(norm.sf(z), rel=1e-9))


def test_the_normal_test_with_weights_uses_pair_weights():
    y, p = problem(40, 3)
    w = np.random.default_rng(0).random(40) + 0.2
    h = literal_h(y, p, 0.4)
    i = np.arange(0, 40, 2)
    v, terms = w[i] * w[i + 1], h[i, i + 1]
    v = v / v.sum()
    mean = v @ terms
    z = mean / math.sqrt(20 / 19 * (v**2 @ (terms - mean) ** 2))
    for weight_type in ("frequency", "importance"):
        result = cal.test("skce_ul", y, p, bandwidth=0.4, sample_weight=w, weight_type=weight_type, method="asymptotic")
        assert result.z == pytest.approx(z, rel=1e-9)


def test_pairs_without_spread_decide_by_sign():
    assert cal.test("skce_ul", [1, 1, 1, 1], [0.5] * 4, method="asymptotic").pvalue == 0.0
    assert cal.test("skce_ul", [1, 0, 1, 0], [0.5] * 4, method="asymptotic").pvalue == 1.0
    assert cal.test("skce_ul", [1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0], method="asymptotic").pvalue == 1.0


# -- bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", parts("kernel", "skce_distribution_free"), ids=lambda e: f"{e['data']}-{e['params']}")
def test_the_distribution_free_bounds_equal_the_golden_ones(entry):
    y, p, _ = arrays(entry["data"])
    estimator = entry["params"]["estimator"]
    assert_close(cal.test(f"skce_{estimator}", y, p, method="distribution-free").pvalue, entry)


def test_the_bounds_take_neither_weights_nor_a_matrix():
    y, p = problem(20, 3)
    for id in ("skce_b", "skce_uq", "skce_ul"):
        with pytest.raises(ValueError, match="does not accept sample_weight"):
            cal.test(id, y, p, method="distribution-free", sample_weight=1 + np.arange(20) % 2)
        with pytest.raises(ValueError, match="does not accept matrix"):
            cal.test(id, y, p, method="distribution-free", matrix=np.eye(3))


# -- lenses, statistics, edges -----------------------------------------------------------------------


@pytest.mark.parametrize("id", ["skce_b", "skce_uq", "skce_ul", "kccsd", "mmce", "lkce"])
@pytest.mark.parametrize("lens", ["auto", "class-wise", "top-label"])
def test_the_statistic_is_the_metric(id, lens):
    y, p = problem(30, 3)
    result = cal.test(id, y, p, lens=lens, method="asymptotic")
    assert result.statistic == pytest.approx(cal.compute(id, y, p, lens=lens), rel=1e-9)
    assert 0.0 <= result.pvalue <= 1.0


def test_the_class_wise_test_runs_on_the_mean_of_the_matrices():
    y, p = problem(18, 3)
    widths = {"bandwidth": 0.3}
    h = np.mean([literal_h((y == k).astype(int), p[:, k], 0.3) for k in range(3)], axis=0)
    pvalue, z, skew = literal_pearson(h)
    result = cal.test("skce_uq", y, p, lens="class-wise", method="pearson", **widths)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-8)
    assert (result.z, result.skew) == (pytest.approx(z, rel=1e-8), pytest.approx(skew, rel=1e-8))
    share = np.array([0.5, 0.3, 0.2])
    h = sum(s * literal_h((y == k).astype(int), p[:, k], 0.3) for k, s in enumerate(share))
    weighted = cal.test("skce_uq", y, p, lens="class-wise", average=share, method="pearson", **widths)
    assert weighted.pvalue == pytest.approx(literal_pearson(h)[0], rel=1e-8)


def test_views_with_rows_of_their_own_are_tested_one_by_one():
    y, p = problem(60, 3)
    result = cal.test("skce_uq", y, p, lens="pairwise", method="pearson")
    assert len(result.results) == 3
    assert result.pvalue == pytest.approx(min(1.0, 3 * min(r.pvalue for r in result.results)))


@pytest.mark.parametrize("id", ["mmce", "lkce"])
@pytest.mark.parametrize("method", ["pearson", "bootstrap"])
def test_mmce_and_lkce_borrow_the_p_value_of_skce(id, method):
    y, c, _ = arrays("binary500")
    width = 0.4 if id == "mmce" else 1.0
    want = cal.test("skce_uq", y, c, bandwidth=width, method=method, rng=0)
    got = cal.test(id, y, c, method=method, rng=0)
    assert got.pvalue == want.pvalue
    assert got.skce_uq == want.statistic
    assert got.statistic == pytest.approx(cal.compute(id, y, c))


def test_mmce_with_a_gaussian_is_tested_with_a_gaussian():
    y, c, _ = arrays("binary12")
    want = cal.test("skce_uq", y, c, kernel="gaussian", metric="tv", bandwidth=0.3, method="pearson")
    got = cal.test("mmce", y, c, kernel="gaussian", bandwidth=0.3, method="pearson")
    assert got.pvalue == pytest.approx(want.pvalue, rel=1e-12)


def test_certain_and_right_predictions_have_p_value_one():
    y, c = [0, 1] * 10, [0.0, 1.0] * 10
    for id in ("skce_uq", "kccsd", "mmce"):
        for method in ("bootstrap", "pearson"):
            assert cal.test(id, y, c, method=method, rng=0).pvalue == 1.0


def test_too_few_rows_for_the_test_are_named():
    with pytest.raises(ValueError, match="at least 3 rows"):
        cal.test("skce_uq", [0, 1], [0.2, 0.6], method="pearson")
    with pytest.raises(ValueError, match="at least 2 rows"):
        cal.test("kccsd", [0], [0.2], method="asymptotic")
    with pytest.raises(ValueError, match="2 blocks"):
        cal.test("skce_ul", [0, 1, 1], [0.2, 0.6, 0.1], method="asymptotic")


@pytest.mark.parametrize("id", ["skce_b", "skce_uq", "skce_ul", "kccsd"])
def test_an_unknown_method_is_refused(id):
    y, p = problem(20, 3)
    with pytest.raises(ValueError, match="method='jackknife'"):
        cal.test(id, y, p, method="jackknife")


# -- levels and power --------------------------------------------------------------------------------


def rejections(id, sharpen, n_sets=60, n=80, k=3, **options):
    rng = np.random.default_rng(8)
    count = 0
    for _ in range(n_sets):
        logits = rng.normal(size=(n, k))
        p = cal.softmax(logits)
        y = (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
        count += cal.test(id, y, cal.softmax(sharpen * logits), **options).pvalue <= 0.1
    return count / n_sets


@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("skce_uq", {"method": "pearson"}),
        ("skce_uq", {"n_resamples": 100, "rng": 0}),
        ("skce_ul", {}),
        ("kccsd", {"n_resamples": 100, "rng": 0}),
        ("mmce", {"method": "pearson"}),
        ("skce_uq", {"method": "pearson", "lens": "class-wise"}),
    ],
)
def test_calibrated_predictions_are_rejected_at_the_level(id, options):
    # 60 sets at level 0.1: a mean of 6, standard deviation 2.3; 20 sets: 2 and 1.3
    n_sets = amount(20, 60)
    assert rejections(id, 1.0, n_sets=n_sets, **options) <= (13 if n_sets == 60 else 6) / n_sets


def test_over_confidence_is_found():
    assert rejections("skce_uq", 3.0, n_sets=20, method="pearson") >= 0.8


def test_unbiased_estimates_average_to_zero_on_calibrated_data():
    rng = np.random.default_rng(9)
    values = {id: [] for id in ("skce_uq", "skce_ul", "kccsd")}
    for _ in range(150):
        p = cal.softmax(rng.normal(size=(40, 3)))
        y = (p.cumsum(axis=1) > rng.random(40)[:, None]).argmax(axis=1)
        for id, found in values.items():
            found.append(cal.compute(id, y, p, bandwidth=0.4))
    for found in values.values():
        assert abs(np.mean(found)) < 3 * np.std(found) / math.sqrt(150)


@pytest.mark.parametrize("width", [0.3, 0.01])
def test_pearson_does_not_lose_far_apart_rows_beside_the_diagonal(width):
    y, c = np.array([1, 1, 1]), np.array([0.1, 0.2, 0.35])
    g = np.eye(2)[y] - np.column_stack([1 - c, c])
    h = g @ g.T * np.exp(-np.abs(c[:, None] - c) / width)
    result = cal.test("skce_uq", y, c, method="pearson", bandwidth=width)
    pvalue, z, skew = literal_pearson(h)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-6)
    assert result.z == pytest.approx(z, rel=1e-6)
    assert result.skew == pytest.approx(skew, rel=1e-6)


def test_linear_test_redraws_labels_where_classes_are_many():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(300, 0.1), size=120)
    y = np.array([rng.choice(300, p=row) for row in p])
    assert cal.test("skce_ul", y, p, n_resamples=19, rng=0).law == "monte-carlo"
    few = rng.dirichlet(np.full(5, 1.0), size=1200)
    assert cal.test("skce_ul", rng.integers(5, size=1200), few).law == "asymptotic"

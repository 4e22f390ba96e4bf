"""Kernel metrics of whole probability vectors: tiles against the literal double sum, identities, edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import calibrary as cal
import definitions
from calibrary.kernels import LOO_GRID, median_bandwidth
from calibrary.metrics.kernel.stein import stein_features
from calibrary.numerics import compiled
from calibrary.numerics.sums import pair_matrix, pair_median
from calibrary.numerics.sums import tiles as pair_tiles
from calibrary.numerics.sums.dirichlet import leave_one_out_shares
from calibrary.numerics.sums.tiles import LineMatrix, MeanMatrix, TiledMatrix
from each import amount
from golden import arrays, assert_close, parts


def problem(n=60, k=4, seed=0, ends=True):
    """Rows with ties, duplicates and zeros."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.6), n)
    if ends:
        p[0] = np.eye(k)[1]
        p[1] = p[2]
        p[3] = np.eye(k)[0]
    y = np.array([rng.choice(k, p=row) for row in 0.7 * p + 0.3 / k])
    return y, p


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def always_compiled(monkeypatch, request):
    """Small problems take the way of large ones: several tiles, compiled or plain."""
    from calibrary.numerics.sums import dirichlet as dirichlet_kernel

    monkeypatch.setattr(compiled, "FORCED", request.param)
    monkeypatch.setattr(pair_tiles, "FEW_PAIRS", 0)
    monkeypatch.setattr(dirichlet_kernel, "FEW_VALUES", 0)
    monkeypatch.setattr(pair_tiles, "TILE_SIDE", 48)


# -- numerics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7, 45])
@pytest.mark.parametrize("metric", ["tv", "euclidean"])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_tiles_equal_the_full_matrix(k, metric, kernel, always_compiled):
    rng = np.random.default_rng(k)
    x, g = rng.dirichlet(np.full(k, 0.5), 131), rng.normal(size=(131, 5 if k == 3 else k))
    x[1], x[5] = x[0], x[0]
    x[5, 0] += 1e-9  # a near duplicate, of which |a|^2 + |b|^2 - 2ab would keep no digit
    h = g @ g.T * definitions.similarity(x, kernel, metric, 0.3)
    tiled = TiledMatrix(x, g, kernel, metric, 0.3)
    check_matrix(tiled, h, rng)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("width", [1.0, 0.2, 0.001])
@pytest.mark.parametrize("ordered", [False, True])
def test_sums_on_a_line_equal_the_full_matrix(kernel, width, ordered):
    rng = np.random.default_rng(1)
    x, a = np.round(rng.random(150), 2), rng.normal(size=150)
    if ordered:
        x.sort()
    line = LineMatrix(x, a, kernel, width, None if ordered else np.argsort(x))
    d = np.abs(x[:, None] - x)
    h = np.outer(a, a) * (np.exp(-d / width) if kernel == "laplace" else np.exp(-0.5 * (d / width) ** 2))
    check_matrix(line, h, rng)


def test_a_mean_of_matrices_answers_like_its_parts():
    rng = np.random.default_rng(2)
    x, g = rng.dirichlet(np.ones(3), 80), rng.normal(size=(80, 3))
    parts = [TiledMatrix(x, g, "laplace", "tv", 0.5), LineMatrix(x[:, 0], g[:, 0], "laplace", 0.3, np.argsort(x[:, 0]))]
    h = [np.vstack([b for _, b in part.row_blocks()]) for part in parts]
    check_matrix(MeanMatrix(parts, np.array([0.3, 0.7])), 0.3 * h[0] + 0.7 * h[1], rng)


def check_matrix(matrix, h, rng):
    n = len(h)
    u, v, b = rng.random(n), rng.random(n), rng.normal(size=(n, 3))
    np.testing.assert_allclose(np.vstack([block for _, block in matrix.row_blocks(2000)]), h, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal, np.diag(h))
    np.testing.assert_allclose(matrix.total(u), u @ h @ u, rtol=1e-10)
    np.testing.assert_allclose(matrix.power_sums(u, v), [u @ h**q @ v for q in (1, 2, 3)], rtol=1e-10)
    np.testing.assert_allclose(matrix.product(b), h @ b, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(matrix.product(u), h @ u, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(matrix.forms(b), np.diag(b.T @ h @ b), rtol=1e-8)
    scaled = matrix.scaled(v)
    np.testing.assert_allclose(scaled.total(u), (u * v) @ h @ (u * v), rtol=1e-10)
    a = np.sqrt(u)[:, None] * h * np.sqrt(u)
    np.testing.assert_allclose(matrix.triangles(u), np.trace(a @ a @ a), rtol=1e-10)


def test_triangles_by_blocks_of_rows_equal_the_trace(monkeypatch):
    monkeypatch.setattr(pair_matrix, "BLOCK_ENTRIES", 500)
    x, g = np.random.default_rng(3).random((70, 2)), np.random.default_rng(4).normal(size=(70, 2))
    matrix = TiledMatrix(x, g, "gaussian", "euclidean", 0.4)
    h = np.vstack([b for _, b in matrix.row_blocks()])
    np.testing.assert_allclose(matrix.triangles(np.ones(70)), np.trace(h @ h @ h), rtol=1e-12)


@pytest.mark.parametrize("metric", ["tv", "euclidean"])
@pytest.mark.parametrize("k", [3, 50])
@pytest.mark.parametrize("listed", [True, False])
def test_the_middle_distances_of_tiles_are_those_of_the_full_list(metric, k, listed, always_compiled, monkeypatch):
    if not listed:
        monkeypatch.setattr(pair_median, "_LISTED", 0)
    rng = np.random.default_rng(k)
    n = amount(80, 160)
    x = np.round(rng.dirichlet(np.ones(k), n), 2 if k == 3 else 6)
    mass = rng.integers(1, 4, n).astype(float)
    i, j = np.triu_indices(n, 1)
    d = pdist(x, "cityblock") / 2 if metric == "tv" else pdist(x)
    every = np.sort(np.repeat(d, (mass[i] * mass[j]).astype(int)))
    for rank in (0, 1, len(every) // 3, len(every) // 2, len(every) - 1):
        low, high = pair_median.middle_distances(x, metric, mass, rank)
        assert high == pytest.approx(every[rank], abs=1e-14)
        if rank:
            assert low == pytest.approx(every[rank - 1], abs=1e-14)


@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
@pytest.mark.parametrize("h", [1e-5, 0.01, 0.3])
def test_compiled_class_shares_equal_plain_ones(weight_type, h, monkeypatch):
    from calibrary.numerics.sums import dirichlet as dirichlet_kernel

    y, p = problem(120, 5)
    w = 1.0 + np.arange(120) % 3

    def run():
        parts = list(leave_one_out_shares(p, y, np.array([h, 0.1]), w, weight_type=weight_type))
        return np.vstack([q.shares for q in parts]), np.concatenate([q.log_total for q in parts])

    plain = run()
    monkeypatch.setattr(dirichlet_kernel, "FEW_VALUES", 0)
    for a, b in zip(run(), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-300)


def test_the_result_does_not_depend_on_the_number_of_threads(always_compiled, monkeypatch):
    y, p = problem(200, 6)
    both = cal.compute("skce_uq", y, p), cal.compute("dkde", y, p)
    monkeypatch.setattr(pair_tiles.os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert (cal.compute("skce_uq", y, p), cal.compute("dkde", y, p)) == both


# -- SKCE --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(("kernel", "metric"), [("laplace", "tv"), ("laplace", "euclidean"), ("gaussian", "euclidean")])
def test_skce_is_the_literal_double_sum(k, kernel, metric):
    y, p = problem(50, k)
    options = {"kernel": kernel, "metric": metric, "bandwidth": 0.35}
    for id in ("skce_b", "skce_uq", "skce_ul"):
        want = definitions.value(id, y, p, **options)
        assert cal.compute(id, y, p, **options) == pytest.approx(want, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("k", [2, 3])
def test_a_matrix_compares_residuals(k):
    y, p = problem(40, k)
    root = np.random.default_rng(5).normal(size=(k, k))
    m = root @ root.T
    for id in ("skce_b", "skce_uq", "skce_ul"):
        want = definitions.value(id, y, p, bandwidth=0.4, matrix=m)
        assert cal.compute(id, y, p, bandwidth=0.4, matrix=m) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("matrix", [np.eye(3), [[1, 2, 0, 0]] * 4, -np.eye(4)])
def test_a_matrix_that_is_not_a_kernel_is_refused(matrix):
    y, p = problem(20, 4)
    with pytest.raises(ValueError, match="matrix"):
        cal.compute("skce_uq", y, p, matrix=matrix)


def test_blocks_average_the_unbiased_estimate_within_each():
    y, p = problem(53, 3)
    h = definitions.skce_matrix(y, p, bandwidth=0.4)
    blocks = [definitions.off_diagonal_mean(h[i : i + 5, i : i + 5]) for i in range(0, 50, 5)]
    assert cal.compute("skce_ul", y, p, bandwidth=0.4, block_size=5) == pytest.approx(np.mean(blocks), rel=1e-11)
    whole = cal.compute("skce_ul", y, p, bandwidth=0.4, block_size=53)
    assert whole == pytest.approx(cal.compute("skce_uq", y, p, bandwidth=0.4), rel=1e-9)


def test_shuffling_is_reproducible_and_changes_the_pairs():
    y, p = problem(60, 3)
    once = cal.compute("skce_ul", y, p, shuffle=True, rng=3)
    assert once == cal.compute("skce_ul", y, p, shuffle=True, rng=3)
    assert once != cal.compute("skce_ul", y, p)


def test_the_unit_tests_of_the_inventors():
    # certain of classes 1 and 2, labels the other way round, Gaussian of width 1 on Euclidean distance
    y, p = [1, 0], np.eye(2)
    options = {"kernel": "gaussian", "metric": "euclidean", "bandwidth": 1.0}
    assert cal.compute("skce_uq", y, p, **options) == pytest.approx(-2 / np.e)
    assert cal.compute("skce_b", y, p, **options) == pytest.approx(1 - 1 / np.e)


def test_skce_b_of_two_columns_is_twice_the_squared_mmce():
    y, c, _ = arrays("binary500")
    for h in (0.05, 0.4, 2.0):
        want = 2 * cal.compute("mmce", y, c, bandwidth=h, squared=True)
        assert cal.compute("skce_b", y, c, bandwidth=h) == pytest.approx(want, rel=1e-12)
        assert cal.compute("skce_b", y, np.column_stack([1 - c, c]), bandwidth=h) == pytest.approx(want, rel=1e-10)


def test_two_classes_on_a_line_equal_two_columns_in_tiles():
    y, c, _ = arrays("binary_ties")
    p = np.column_stack([1 - c, c])
    for kernel, metric in (("laplace", "tv"), ("laplace", "euclidean"), ("gaussian", "euclidean"), ("gaussian", "tv")):
        h = median_bandwidth(cal.predictions(y, c), metric=metric)
        want = definitions.off_diagonal_mean(definitions.skce_matrix(y, p, kernel, metric, h))
        assert cal.compute("skce_uq", y, c, kernel=kernel, metric=metric) == pytest.approx(want, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("k", [2, 4])
def test_repetition_counts_the_pairs_of_a_row_with_its_copies(k):
    y, p = problem(30, k)
    w = np.arange(30) % 4
    i = np.repeat(np.arange(30), w)
    for id in ("skce_b", "skce_uq", "kccsd", "dkde"):
        for options in ({}, {"include_self": True}) if id == "skce_b" else ({},):
            want = cal.compute(id, y[i], p[i], **options)
            assert cal.compute(id, y, p, sample_weight=w, **options) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("k", [2, 4])
def test_importance_weights_never_let_a_row_meet_itself(k):
    y, p = problem(30, k)
    w = np.random.default_rng(0).random(30) + 0.1
    h = definitions.skce_matrix(y, p, bandwidth=0.4)
    ww = np.outer(w, w)
    np.fill_diagonal(ww, 0.0)
    want = (ww * h).sum() / ww.sum()
    got = cal.compute("skce_uq", y, p, sample_weight=w, bandwidth=0.4, weight_type="importance")
    assert got == pytest.approx(want, rel=1e-9)
    rescaled = cal.compute("skce_uq", y, p, sample_weight=7 * w, bandwidth=0.4, weight_type="importance")
    assert rescaled == pytest.approx(want, rel=1e-9)


def test_pairs_weigh_the_product_of_their_weights():
    y, p = problem(31, 3)
    w = np.random.default_rng(0).random(31) + 0.1
    h = definitions.skce_matrix(y, p, bandwidth=0.4)
    i = np.arange(0, 30, 2)
    want = np.average(h[i, i + 1], weights=w[i] * w[i + 1])
    for weight_type in ("frequency", "importance"):
        got = cal.compute("skce_ul", y, p, sample_weight=w, bandwidth=0.4, weight_type=weight_type)
        assert got == pytest.approx(want, rel=1e-11)


def test_class_wise_is_the_mean_of_two_column_problems_each_with_its_own_width():
    y, p = problem(40, 4)
    for id in ("skce_b", "skce_uq", "skce_ul", "kccsd", "dkde"):
        each = [cal.compute(id, (y == k).astype(int), p[:, k]) for k in range(4)]
        assert cal.compute(id, y, p, lens="class-wise") == pytest.approx(np.mean(each), rel=1e-12)


def test_top_label_is_the_two_column_problem_of_being_right():
    y, p = problem(40, 4)
    right, conf = (p.argmax(axis=1) == y).astype(int), p.max(axis=1)
    for id in ("skce_b", "skce_uq", "skce_ul", "kccsd", "dkde"):
        assert cal.compute(id, y, p, lens="top-label") == pytest.approx(cal.compute(id, right, conf), rel=1e-12)


def test_relabelling_the_classes_changes_nothing_but_the_cyclic_operator():
    y, p = problem(40, 4, ends=False)
    to = np.array([2, 0, 3, 1])
    for id in ("skce_b", "skce_uq", "skce_ul", "kccsd", "dkde"):
        assert cal.compute(id, to[y], p[:, np.argsort(to)]) == pytest.approx(cal.compute(id, y, p), rel=1e-10)
    cyclic = {"operator": "difference"}
    assert cal.compute("kccsd", to[y], p[:, np.argsort(to)], **cyclic) != pytest.approx(
        cal.compute("kccsd", y, p, **cyclic), rel=1e-3
    )


def test_the_dispatcher_names_its_estimators():
    y, p = problem(20, 3)
    for estimator in ("b", "uq", "ul"):
        value = cal.squared_kernel_calibration_error(y, p, estimator=estimator)
        assert value == cal.compute(f"skce_{estimator}", y, p)
    with pytest.raises(ValueError, match="estimator"):
        cal.squared_kernel_calibration_error(y, p, estimator="u")


# -- KCCSD -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("operator", ["barker", "gibbs", "metropolis", "difference"])
def test_kccsd_is_the_literal_double_sum(k, operator):
    y, p = problem(40, k, ends=operator != "difference")
    for estimator in ("u", "b"):
        options = {"operator": operator, "bandwidth": 0.5, "estimator": estimator}
        want = definitions.kccsd(y, p, **options)
        assert cal.compute("kccsd", y, p, **options) == pytest.approx(want, rel=1e-9, abs=1e-13)
    want = definitions.stein_features(y, p, operator)
    np.testing.assert_allclose(stein_features(cal.predictions(y, p), operator), want, atol=1e-15)


@pytest.mark.parametrize("operator", ["barker", "gibbs", "metropolis"])
def test_stein_features_have_mean_zero_under_the_model(operator):
    _, p = problem(20, 4)
    mean = sum(p[:, [z]] * stein_features(cal.predictions(np.full(20, z), p), operator) for z in range(4))
    np.testing.assert_allclose(mean, 0.0, atol=1e-14)


def test_kccsd_equals_skce_where_the_operators_coincide():
    same = {"kernel": "gaussian", "metric": "euclidean"}
    y, c, _ = arrays("binary500")
    assert cal.compute("kccsd", y, c) == pytest.approx(cal.compute("skce_uq", y, c, **same), rel=1e-9)
    y, p, _ = arrays("multi4")
    assert cal.compute("kccsd", y, p, operator="gibbs") == pytest.approx(cal.compute("skce_uq", y, p, **same), rel=1e-9)


def test_the_cyclic_operator_names_the_row_it_cannot_divide_by():
    with pytest.raises(ValueError, match="row 1"):
        cal.compute("kccsd", [0, 2, 1], [[0.5, 0.2, 0.3], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1]], operator="difference")


# -- DKDE --------------------------------------------------------------------------------------------


def importance_shares(y, p, h, w):
    """yhat of every row from the others by weight, and the log of their density there."""
    kernel, top = definitions.left_out_kernels(p, h)
    total = kernel @ w
    return kernel * w @ np.eye(p.shape[1])[y] / total[:, None], top + np.log(total)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("h", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("p_norm", [1, 2])
def test_dkde_is_its_definition_with_zeros_ties_and_weights(k, h, p_norm):
    y, p = problem(40, k)
    w = 1.0 + np.arange(40) % 3
    got = cal.compute("dkde", y, p, bandwidth=h, p=p_norm)
    assert got == pytest.approx(definitions.dkde(y, p, p_norm, h), rel=1e-8)
    root = cal.compute("dkde", y, p, bandwidth=h, p=p_norm, root=True)
    assert root == pytest.approx(got ** (1 / p_norm), rel=1e-12)
    i = np.repeat(np.arange(40), w.astype(int))
    got = cal.compute("dkde", y, p, bandwidth=h, p=p_norm, sample_weight=w)
    assert got == pytest.approx(definitions.dkde(y[i], p[i], p_norm, h), rel=1e-8)
    i = np.repeat(np.arange(40), w.astype(int))
    got = cal.compute("dkde", y, p, bandwidth=h, norm=p_norm, debias=True, sample_weight=w)
    assert got == pytest.approx(definitions.dkde(y[i], p[i], p_norm, h, debias=True), rel=1e-8, abs=1e-12)
    gap = np.abs(importance_shares(y, p, h, w)[0] - p) ** p_norm
    got = cal.compute("dkde", y, p, bandwidth=h, p=p_norm, sample_weight=w, weight_type="importance")
    assert got == pytest.approx(np.average(gap.sum(axis=1), weights=w), rel=1e-8)


def test_the_rules_pick_the_width_of_their_definition():
    y, p = problem(50, 3, ends=False)
    w = 1.0 + np.arange(50) % 2
    i = np.repeat(np.arange(50), w.astype(int))
    for rule in ("cv", "loo-mle"):
        width = definitions.density_width(rule, y[i], p[i])
        want = cal.compute("dkde", y, p, bandwidth=width, sample_weight=w)
        assert cal.compute("dkde", y, p, bandwidth=rule, sample_weight=w) == pytest.approx(want, rel=1e-9)


def test_the_rules_pick_the_width_of_rows_that_stay_distinct():
    y, p = problem(50, 3, ends=False)
    w = 1.0 + np.arange(50) % 2
    loss, likelihood = [], []
    for h in LOO_GRID:
        curve, density = importance_shares(y, p, h, w)
        loss.append(w @ ((np.eye(3)[y] - curve) ** 2).sum(axis=1))
        likelihood.append(w @ (density - np.log(w.sum() - w)))
    for rule, best in (("cv", int(np.argmin(loss))), ("loo-mle", int(np.argmax(likelihood)))):
        common = {"sample_weight": w, "weight_type": "importance"}
        want = cal.compute("dkde", y, p, bandwidth=LOO_GRID[best], **common)
        assert cal.compute("dkde", y, p, bandwidth=rule, **common) == pytest.approx(want, rel=1e-12)


def test_tied_rows_make_the_likelihood_rule_warn_and_cross_validation_not():
    y, p = problem(30, 3)
    twice = np.concatenate([p, p]), np.concatenate([y, y])
    with pytest.warns(cal.CalibrationWarning, match="smallest width"):
        cal.compute("dkde", twice[1], twice[0], bandwidth="loo-mle")
    cal.compute("dkde", twice[1], twice[0])


def test_dkde_of_two_columns_is_twice_the_plug_in_beta_kernel_error():
    y, c, _ = arrays("binary500")
    for p in (1, 2):
        want = 2 * cal.compute("bkde", y, c, p=p, debias=False, bandwidth=0.05)
        assert cal.compute("dkde", y, c, p=p, bandwidth=0.05) == pytest.approx(want, rel=1e-12)


def test_two_certain_and_wrong_predictions_are_two_apart():
    assert cal.compute("dkde", [1, 1, 0, 0], np.eye(2)[[0, 0, 1, 1]], bandwidth=0.1) == pytest.approx(2.0)


# -- edges and bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["skce_uq", "skce_ul", "kccsd", "dkde"])
def test_one_row_is_too_few(id):
    with pytest.raises(ValueError, match=r"at least 2 rows"):
        cal.compute(id, [1], [0.3])
    with pytest.raises(ValueError, match=r"at least 2 rows"):
        cal.compute(id, [1], [[0.3, 0.3, 0.4]])


def test_a_row_of_weight_two_is_two_rows():
    for id in ("skce_uq", "kccsd", "dkde"):
        assert cal.compute(id, [1], [0.3], sample_weight=[2]) == pytest.approx(cal.compute(id, [1, 1], [0.3, 0.3]))


@pytest.mark.parametrize("id", ["skce_uq", "kccsd"])
def test_weights_that_sum_to_one_are_sent_to_importance(id):
    y, p = problem(10, 3)
    w = np.full(10, 0.1)
    with pytest.raises(ValueError, match="importance"):
        cal.compute(id, y, p, sample_weight=w, bandwidth=0.5)
    plain = cal.compute(id, y, p, bandwidth=0.5)
    got = cal.compute(id, y, p, sample_weight=w * 3, bandwidth=0.5, weight_type="importance")
    assert got == pytest.approx(plain, rel=1e-9)


def test_fractional_copies_cannot_be_left_out():
    y, p = problem(10, 3)
    with pytest.raises(ValueError, match="importance"):
        cal.compute("dkde", y, p, sample_weight=np.full(10, 0.5), bandwidth=0.1)


@pytest.mark.parametrize(
    ("id", "options", "sentence"),
    [
        ("skce_uq", {"bandwidth": 0}, "bandwidth=0"),
        ("skce_uq", {"bandwidth": -1.0}, "bandwidth=-1"),
        ("skce_uq", {"bandwidth": "cv"}, "bandwidth='cv'"),
        ("skce_uq", {"kernel": "gauss"}, "kernel='gauss'"),
        ("skce_uq", {"metric": "l1"}, "metric='l1'"),
        ("skce_uq", {"weight_type": "count"}, "weight_type='count'"),
        ("skce_b", {"kernel": "gaussian", "metric": "tv"}, "positive definite"),
        ("skce_ul", {"block_size": 1}, "block_size=1"),
        ("skce_ul", {"block_size": 100}, "at least 100 rows"),
        ("kccsd", {"operator": "langevin"}, "operator='langevin'"),
        ("kccsd", {"estimator": "v"}, "estimator='v'"),
        ("dkde", {"norm": 0.5}, "norm=0.5"),
        ("dkde", {"norm": 3, "debias": True}, "needs norm=1 or norm=2"),
        ("dkde", {"bandwidth": "median"}, "bandwidth='median'"),
        ("dkde", {"bandwidth": float("nan")}, "bandwidth=nan"),
    ],
)
def test_bad_options_are_refused_by_name(id, options, sentence):
    y, p = problem(20, 3)
    with pytest.raises(ValueError, match=sentence):
        cal.compute(id, y, p, **options)


def test_equal_predictions_have_width_one_and_a_value():
    y, p = [0, 1, 2, 1], np.tile([0.2, 0.5, 0.3], (4, 1))
    assert cal.compute("skce_b", y, p) == pytest.approx(cal.compute("skce_b", y, p, bandwidth=1.0))
    mean = np.bincount(y) / 4
    assert cal.compute("skce_b", y, p) == pytest.approx(((mean - p[0]) ** 2).sum())


def test_the_gaussian_of_total_variation_is_not_positive_definite():
    # why it is refused for K > 2: four corners and four centres of faces
    points = np.vstack([np.eye(4), (1 - np.eye(4)) / 3])
    similar = definitions.similarity(points, "gaussian", "tv", 1.0)
    assert np.linalg.eigvalsh(similar).min() == pytest.approx(-0.034, abs=1e-3)


@pytest.mark.parametrize("entry", parts("kernel", "bandwidth_median"), ids=lambda e: f"{e['data']}-{e['params']}")
def test_median_widths_equal_the_golden_ones(entry):
    y, p, _ = arrays(entry["data"])
    options = dict(entry["params"])
    assert_close(median_bandwidth(cal.predictions(y, p), **options), entry)


@pytest.mark.parametrize("k", [2, 3])
def test_debiased_dkde_reads_less_on_calibrated_predictions(k):
    rng = np.random.default_rng(5)
    read = {(norm, debias): [] for norm in (1, 2) for debias in (False, True)}
    for _ in range(30):
        p = rng.dirichlet(np.ones(k), 300)
        y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
        for norm, debias in read:
            read[norm, debias].append(cal.compute("dkde", y, p, bandwidth=0.01, norm=norm, debias=debias))
    mean = {key: np.mean(values) for key, values in read.items()}
    assert abs(mean[2, True]) < 0.25 * mean[2, False]
    assert mean[1, True] < 0.75 * mean[1, False]


def test_two_classes_are_twice_the_beta_kernel_also_without_bias():
    y, p = problem(40, 2)
    for norm in (1, 2):
        both = cal.compute("dkde", y, p, bandwidth=0.05, norm=norm, debias=True)
        assert both == pytest.approx(2 * cal.compute("bkde", y, p, bandwidth=0.05, norm=norm, debias=True), rel=1e-9)


def test_importance_weights_of_the_debiased_dkde_are_free_of_scale_and_leave_the_row_out():
    y, p = problem(30, 3)
    w = np.random.default_rng(0).random(30) + 0.1
    options = {"bandwidth": 0.1, "norm": 2, "debias": True, "weight_type": "importance"}
    kernel, _ = definitions.left_out_kernels(p, 0.1)
    hot = np.eye(3)[y]
    terms = [sum(definitions.without_noise(hot[:, k], p[j, k], kernel[j] * w, 2) for k in range(3)) for j in range(30)]
    got = cal.compute("dkde", y, p, sample_weight=w, **options)
    assert got == pytest.approx(np.average(terms, weights=w), rel=1e-9)
    assert got == pytest.approx(cal.compute("dkde", y, p, sample_weight=7 * w, **options), rel=1e-12)

"""Pair sums and pair medians against the N x N matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from calibrary.numerics import compiled
from calibrary.numerics.sums import pair_median
from calibrary.numerics.sums.pair_median import median_distance, median_vector_distance
from calibrary.numerics.sums.windows import (
    decayed_sums,
    gaussian_form,
    laplace_form,
    laplace_sums,
    laplace_triangles,
)


def points(kind, n=2000):
    rng = np.random.default_rng(7)
    if kind == "ties":
        return np.sort(np.round(rng.random(n), 2))
    if kind == "extremes":
        return np.sort(np.concatenate(([0, 0, 1e-300, 1e-16, 0.5, 1 - 1e-16, 1, 1], rng.random(n - 8) ** 12)))
    return np.sort(rng.random(n))


KINDS = pytest.mark.parametrize("kind", ["random", "ties", "extremes"])


@KINDS
@pytest.mark.parametrize("h", [5.0, 0.4, 0.01, 1e-4, 1e-9])
def test_laplace_sums_equal_the_matrix_product(kind, h):
    x = points(kind)
    a = np.random.default_rng(1).normal(size=len(x))
    k = np.exp(-np.abs(x[:, None] - x) / h)
    np.testing.assert_allclose(laplace_sums(x, a, h), k @ a, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(decayed_sums(x, a, h), np.tril(k, -1) @ a, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(laplace_form(x, a, h), a @ k @ a, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("h", [0.4, 1e-3])
def test_columns_are_summed_separately(h):
    x = points("random", 300)
    a = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_allclose(laplace_form(x, a, h), [laplace_form(x, c, h) for c in a.T], rtol=1e-12)
    np.testing.assert_allclose(laplace_sums(x, a, h)[:, 1], laplace_sums(x, a[:, 1], h), rtol=1e-12)


def test_a_decayed_sum_survives_a_term_that_dwarfs_all_before_it():
    x = np.array([0.0, 0.5, 0.9])
    h = 0.01
    np.testing.assert_allclose(decayed_sums(x, np.ones(3), h)[1:], [np.exp(-50), np.exp(-40) + np.exp(-90)], rtol=1e-14)


@KINDS
def test_triangles_equal_the_triple_sum(kind):
    x = points(kind, 60)
    a = np.random.default_rng(2).normal(size=60)
    k = np.triu(np.exp(-np.abs(x[:, None] - x) / 0.3), 1)
    literal = np.einsum("i,j,k,ij,jk,ik->", a, a, a, k, k, k)
    assert laplace_triangles(x, a, 0.3) == pytest.approx(literal, rel=1e-10)


@KINDS
@pytest.mark.parametrize("h", [1.0, 0.05, 1e-3, 1e-6])
def test_gaussian_form_equals_the_matrix_product(kind, h):
    x = points(kind)
    a = np.random.default_rng(3).normal(size=len(x))
    k = np.exp(-0.5 * ((x[:, None] - x) / h) ** 2)
    assert gaussian_form(x, a, h) == pytest.approx(a @ k @ a, abs=1e-13 * np.abs(a).sum() ** 2)


def brute_median(x, weights=None):
    return np.median(pdist(np.repeat(x, weights if weights is not None else 1)[:, None]))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("decimals", [1, 2, 17])
@pytest.mark.parametrize("counting", [True, False], ids=["counting", "searching"])
def test_counting_finds_the_median_of_the_full_list_to_the_last_bit(seed, decimals, counting, monkeypatch):
    monkeypatch.setattr(pair_median, "_LIST_ALL", 0)
    monkeypatch.setattr(pair_median, "_FEW_PAIRS", 3)
    monkeypatch.setattr(pair_median, "_FEW_POINTS", 0)
    monkeypatch.setattr(compiled, "FORCED", counting)
    rng = np.random.default_rng(seed)
    x = np.round(rng.random(rng.integers(2, 60)), decimals)
    distinct, count = np.unique(x, return_counts=True)
    zero = (count * (count - 1)).sum() / 2
    assert median_distance(distinct, count, zero) == brute_median(x)


@KINDS
def test_median_of_two_thousand_points(kind):
    x = points(kind)
    distinct, count = np.unique(x, return_counts=True)
    assert median_distance(distinct, count, (count * (count - 1)).sum() / 2) == brute_median(x)


def test_masses_count_copies():
    x, w = np.array([0.1, 0.2, 0.45, 0.9]), np.array([3, 1, 2, 2])
    assert median_distance(x, w, (w * (w - 1)).sum() / 2) == brute_median(x, w)


def test_there_is_no_median_without_a_pair():
    assert np.isnan(median_distance(np.array([0.3])))
    assert median_distance(np.array([0.3]), np.array([2.0]), 1.0) == 0.0


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
@pytest.mark.parametrize("n", [2, 3, 40, 1700])
@pytest.mark.parametrize("decimals", [1, 17])
def test_vector_median_equals_the_full_list(metric, n, decimals):
    v = np.round(np.random.default_rng(n).dirichlet(np.ones(4), n), decimals)
    assert median_vector_distance(v, metric) == pytest.approx(np.median(pdist(v, metric)), rel=1e-14)

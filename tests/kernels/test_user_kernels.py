"""Kernels and links that are functions of the user's own."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
import definitions


def laplace(d, h):
    return np.exp(-d / h)


def cauchy(d, h):
    return 1.0 / (1.0 + (d / h) ** 2)


@pytest.fixture
def multi():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 70)
    return np.array([rng.choice(4, p=row) for row in p]), p


PAIRS = ("skce_b", "skce_uq", "skce_ul", "kccsd")


@pytest.mark.parametrize("id", [*PAIRS, "mmce"])
def test_a_function_that_is_the_laplace_kernel_gives_its_value(id, multi):
    y, p = multi
    w = 1 + np.arange(len(y)) % 3
    for options in ({}, {"sample_weight": w}, {"lens": "top-label"}, {"bandwidth": 0.2}):
        fixed = {"metric": "tv"} if id == "kccsd" else {}
        named = cal.compute(id, y, p, kernel="laplace", **fixed, **options)
        assert cal.compute(id, y, p, kernel=laplace, **fixed, **options) == pytest.approx(named, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("id", ["skce_b", "skce_uq"])
def test_another_kernel_is_its_definition(id, multi):
    y, p = multi
    n = len(y)
    d = np.array([[definitions.distance(a, b, "tv") for b in p] for a in p])
    e = np.eye(4)[y] - p
    h = e @ e.T * cauchy(d, 0.3)
    want = h.mean() if id == "skce_b" else (h.sum() - np.trace(h)) / (n * (n - 1))
    assert cal.compute(id, y, p, kernel=cauchy, bandwidth=0.3) == pytest.approx(want, rel=1e-10)
    w = np.arange(n) % 3
    repeated = cal.compute(id, np.repeat(y, w), np.repeat(p, w, axis=0), kernel=cauchy, bandwidth=0.3)
    weighted = cal.compute(id, y, p, kernel=cauchy, bandwidth=0.3, sample_weight=w)
    assert weighted == pytest.approx(repeated, rel=1e-10)


def test_a_kernel_need_not_be_one_at_distance_zero(multi):
    y, p = multi
    double = cal.compute("skce_uq", y, p, kernel=lambda d, h: 2 * cauchy(d, h), bandwidth=0.3)
    assert double == pytest.approx(2 * cal.compute("skce_uq", y, p, kernel=cauchy, bandwidth=0.3))


def test_tests_and_intervals_take_a_function_too(multi):
    y, p = multi
    by_name = cal.test("skce_uq", y, p, method="pearson").pvalue
    assert cal.test("skce_uq", y, p, method="pearson", kernel=laplace).pvalue == pytest.approx(by_name, rel=1e-8)
    b, c = (y == 0).astype(int), p[:, 0]
    found = cal.interval("mmce", b, c, kernel=cauchy, n_resamples=29, rng=0, method="bca")
    assert found.low <= found.high


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda d, h: 1.0, "return one number for each"),
        (lambda d, h: np.full_like(d, np.nan), "is not finite"),
        ("cauchy", "kernel='cauchy'"),
    ],
)
def test_an_invalid_kernel_is_refused(kernel, words, multi):
    for id in ("mmce", "skce_uq"):
        with pytest.raises(ValueError, match=words):
            cal.compute(id, *multi, kernel=kernel)


def test_the_package_lists_what_it_defines():
    assert {"Kernel", "KERNELS", "PairShape", "spread"} <= set(dir(cal.kernels))
    assert "SMALLEST_SPREAD" not in dir(cal.kernels)


def test_a_link_of_ones_own_stands_between_the_two_words():
    matches = cal.datasets.detections()
    for name, psi in (("threshold", lambda o: (o > 0).astype(float)), ("identity", lambda o: o)):
        named = cal.compute("l1cbod", matches, link=name, bandwidth=0.1)
        assert cal.compute("l1cbod", matches, link=psi, bandwidth=0.1) == pytest.approx(named, rel=1e-12)
    square = cal.compute("l1cbod", matches, link=np.square, bandwidth=0.1)
    assert square != pytest.approx(named)
    assert (
        cal.interval("l1cbod", matches, link=np.square, bandwidth=0.1, n_resamples=19, rng=0, method="bca").low < square
    )
    with pytest.raises(ValueError, match="redrawn for link='threshold'"):
        cal.test("l1cbod", matches, link=np.square, n_resamples=19)
    with pytest.raises(ValueError, match="from 0 to 1"):
        cal.compute("l1cbod", matches, link=lambda o: o + 1)

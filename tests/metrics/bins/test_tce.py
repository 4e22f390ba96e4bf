"""Test-based calibration error: the vectorised binomial test and PAVA with block constraints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import calibrary as cal
import definitions
from calibrary.grouping.adaptive import BlockPAVA
from calibrary.metrics.bins.partition import _rejected_outside
from calibrary.numerics.laws import rejected, two_sided_pvalue


def test_p_values_are_those_of_scipy():
    rng = np.random.default_rng(0)
    n = np.concatenate([rng.integers(1, 30, 150), rng.integers(30, 3000, 100)])
    k = rng.binomial(n, rng.random(250))
    near = np.clip(k / n + rng.normal(size=250) / np.sqrt(n), 0, 1)
    p = np.where(rng.random(250) < 0.2, np.round(near, 1), near)
    got = two_sided_pvalue(k, n, p)
    want = [binomtest(int(a), int(b), float(q)).pvalue for a, b, q in zip(k, n, p, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-300)


def test_p_values_at_the_ends_and_at_exact_ties_of_likelihood():
    cases = [(0, 5, 0.0), (1, 5, 0.0), (5, 5, 1.0), (4, 5, 1.0), (0, 1, 0.5), (3, 10, 0.5), (7, 10, 0.5), (5, 10, 0.5)]
    cases += [(2, 10, 0.2), (0, 7, 1e-300), (1, 7, 1e-300), (7, 7, 1 - 1e-16), (0, 1000, 0.003), (1, 2, 1 / 3)]
    k, n, p = (np.array(v) for v in zip(*cases, strict=True))
    want = [binomtest(int(a), int(b), float(q)).pvalue for a, b, q in cases]
    np.testing.assert_allclose(two_sided_pvalue(k, n, p), want, rtol=1e-9, atol=0)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_shortcuts_never_change_a_decision(alpha):
    rng = np.random.default_rng(1)
    n = rng.integers(1, 400, 60)
    k = rng.binomial(n, rng.random(60))
    index = rng.integers(0, 60, 4000)
    spread = 3 * rng.normal(size=4000) / np.sqrt(n[index])
    p = np.clip((k / n)[index] + spread, 0, 1)
    want = two_sided_pvalue(k[index], n[index], p) <= alpha
    assert (rejected(index, k, n, p, alpha) == want).all()
    assert 0.02 < want.mean() < 0.98


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_outside_of_the_safe_interval_everything_is_rejected(alpha):
    k, n = np.array(
        [(k, n) for n in (1, 2, 3, 7, 20, 61, 1000) for k in np.unique(np.linspace(0, n, 12).astype(int))]
    ).T
    for end, far in zip(_rejected_outside(k, n, alpha), (0.0, 1.0), strict=True):
        for part in (0.0, 1e-6, 0.01, 0.1, 0.5, 1.0):
            p = end + part * (far - end)
            assert (two_sided_pvalue(k, n, p)[p != k / n] <= alpha).all()
    assert (n * np.subtract(*_rejected_outside(k, n, alpha)[::-1]) < 8 * np.sqrt(n) + 6).all()  # and not all too wide


@pytest.mark.parametrize("last_bin", ["atom", "released", "strict"])
@pytest.mark.parametrize("limits", [(0, np.inf), (0, 5), (4, 20), (10, 15), (25, 30), (500, 1000)])
def test_blocks_equal_their_definition(last_bin, limits):
    n_min, n_max = limits
    for seed, decimals in ((0, 6), (1, 2), (2, 1)):
        rng = np.random.default_rng(seed)
        c = np.round(rng.random(120), decimals)
        y = (rng.random(120) < c).astype(int)
        w = rng.integers(1, 4, 120)
        for view in (cal.predictions(y, c), cal.predictions(y, c, sample_weight=w)):
            ties = view.ties
            atoms = definitions.constrained_blocks(ties.w.astype(int), ties.wy.astype(int), n_min, n_max, last_bin)
            ends = np.cumsum(atoms)
            groups = BlockPAVA(n_min, n_max, last_bin).groups(view)
            assert len(groups) == len(atoms)
            want = np.add.reduceat(ties.w, np.concatenate(([0], ends[:-1])))
            assert groups.weight == pytest.approx(want)


@pytest.mark.parametrize("decimals", [9, 1])
def test_the_error_equals_one_binomial_test_per_row(decimals):
    rng = np.random.default_rng(3)
    c = np.round(rng.random(150), decimals)
    y = (rng.random(150) < c**1.7).astype(int)
    got = cal.test_based_calibration_error(y, c, n_min=10, n_max=60)
    assert got == pytest.approx(definitions.tce(y, c, min_count=10, n_max=60))
    got = cal.test_based_calibration_error(y, c, binning="width")
    assert got == pytest.approx(definitions.tce(y, c, strategy="uniform"))
    got = cal.test_based_calibration_error(y, c, binning="mass", n_bins=7)
    assert got == pytest.approx(definitions.tce(y, c, strategy="quantile", n_bins=7))


def test_a_perfect_two_valued_predictor_scores_zero_and_the_released_rule_one():
    y = np.array([0, 1] * 50)
    c = y.astype(float)
    assert cal.test_based_calibration_error(y, c) == 0.0
    assert cal.test_based_calibration_error(y, c, last_bin="released") == 1.0


def test_a_calibrated_model_is_rejected_about_as_often_as_alpha():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(30):
        c = rng.random(1000)
        values.append(cal.test_based_calibration_error(rng.random(1000) < c, c))
    assert 0.03 < np.mean(values) < 0.10


def test_bad_options_are_refused():
    y, c = [0, 1, 1], [0.2, 0.5, 0.9]
    for wrong, sentence in (
        ({"alpha": 0.0}, "alpha"),
        ({"strategy": "pava_bc"}, "did you mean 'pava-bc'"),
        ({"strategy": "pava", "binning": "mass"}, "mean the same"),
        ({"min_count": -1}, "min_count"),
        ({"n_max": 0}, "n_max"),
        ({"last_bin": "x"}, "last_bin"),
        ({"sample_weight": [0.5, 1, 1]}, "whole number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            cal.test_based_calibration_error(y, c, **wrong)

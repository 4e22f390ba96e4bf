"""Leave-one-out beta kernel sums against the density matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta as beta_law

from calibrary.kernels import beta_log_kernel
from calibrary.numerics.sums import beta as beta_kernel
from calibrary.numerics.sums.beta import leave_one_out_beta_pairs, leave_one_out_beta_sums
from each import amount


def points(kind, n=2000):
    rng = np.random.default_rng(4)
    if kind == "ties":
        return np.round(rng.beta(0.5, 0.5, n), 2)
    if kind == "saturated":
        return 1 - 1 / (1 + np.exp(4 + 2 * rng.normal(size=n)))
    if kind == "extremes":
        ends = [0.0, 1.0, 1.0, 1e-310, 1e-200, 1e-30, 1e-10, 1 - 1e-16, 0.5]
        return np.concatenate([ends, 1e-4 * rng.random(n // 2), 1 - rng.random(n // 2) ** 8])
    return rng.random(n)


def literal(logs, v, copies):
    """log of the sums of copies times the kernel of these logs, one row's own copy left out, and the mean of v."""
    with np.errstate(divide="ignore"):
        logs = logs + np.log(copies)
    total = logsumexp(logs, axis=1)
    return total, np.exp(logs - total[:, None]) @ v


@pytest.mark.parametrize("kind", ["random", "ties", "saturated", "extremes"])
@pytest.mark.parametrize("h", [1.0, 0.05, 1e-3])
@pytest.mark.parametrize("panels", [False, True])
def test_sums_equal_the_density_matrix(kind, h, panels, monkeypatch):
    if panels:
        monkeypatch.setattr(beta_kernel, "_many", lambda n, h: True)
    x = points(kind, amount(800, 2000) if kind == "random" else amount(300, 500))
    rng = np.random.default_rng(9)
    v, w = (rng.random(len(x)) < x).astype(float), 1.0 + rng.integers(0, 3, len(x))
    logs = [beta_log_kernel(x, x, h) * power for power in (1, 2)]
    for weight_type in ("frequency", "importance"):
        frequency = weight_type == "frequency"
        left = np.eye(len(x)) * (1.0 if frequency else w)
        got = leave_one_out_beta_sums(x, v, h, w, weight_type=weight_type, squares=True)
        log_total, mean = literal(logs[0], v, w - left)
        np.testing.assert_allclose(np.log(got.total) + got.log_scale, log_total, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(got.weighted / got.total, mean, atol=1e-10)
        log_total, mean = literal(logs[1], v, w - left if frequency else (w - left) ** 2)
        np.testing.assert_allclose(np.log(got.square_total) + 2 * got.log_scale, log_total, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(got.square_weighted / got.square_total, mean, atol=1e-9)


@pytest.mark.parametrize("h", [1e-4, 1e-5])
def test_panels_equal_direct_sums_at_narrow_widths(h, monkeypatch):
    x = points("saturated")
    v = (np.random.default_rng(0).random(len(x)) < x).astype(float)
    direct = leave_one_out_beta_sums(x, v, h)
    monkeypatch.setattr(beta_kernel, "_many", lambda n, h: True)
    panels = leave_one_out_beta_sums(x, v, h)
    np.testing.assert_allclose(panels.weighted / panels.total, direct.weighted / direct.total, atol=1e-9)
    np.testing.assert_allclose(
        np.log(panels.total) + panels.log_scale, np.log(direct.total) + direct.log_scale, atol=1e-8
    )


def test_the_kernel_is_the_beta_density_with_the_evaluation_point_first():
    got = leave_one_out_beta_sums(np.array([0.3, 0.6]), np.zeros(2), 0.1)
    want = [beta_law(0.6 / 0.1 + 1, 0.4 / 0.1 + 1).pdf(0.3), beta_law(0.3 / 0.1 + 1, 0.7 / 0.1 + 1).pdf(0.6)]
    np.testing.assert_allclose(got.total * np.exp(got.log_scale), want, rtol=1e-12)


def test_a_lone_point_on_the_boundary_takes_its_nearest_neighbour():
    got = leave_one_out_beta_sums(np.array([0.0, 0.2, 0.7, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]), 0.01)
    np.testing.assert_allclose((got.weighted / got.total)[[0, 3]], [1.0, 0.0], atol=1e-12)


def test_far_neighbours_do_not_underflow():
    got = leave_one_out_beta_sums(np.array([0.1, 0.9]), np.array([0.0, 1.0]), 1e-5)
    np.testing.assert_allclose(got.weighted / got.total, [1.0, 0.0])
    assert np.isfinite(np.log(got.total) + got.log_scale).all()


def test_there_is_nothing_around_a_single_point():
    assert leave_one_out_beta_sums(np.array([0.4]), np.array([1.0]), 0.1).total[0] == 0.0


@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
def test_pair_sums_agree_with_squares_where_nothing_cancels(weight_type):
    x = points("ties", 80)
    rng = np.random.default_rng(2)
    v, w = (rng.random(80) < 0.5).astype(float), 1.0 + rng.integers(0, 3, 80)
    order = np.argsort(x)
    x, v, w = x[order], v[order], w[order]
    s = leave_one_out_beta_sums(x, v, 0.1, w, weight_type=weight_type, squares=True)
    above, below, scale = leave_one_out_beta_pairs(s, v, np.arange(80), x, w, weight_type=weight_type)
    shifted = s.weighted - x * s.total
    diagonal = s.square_weighted * (1 - 2 * x) + x**2 * s.square_total
    np.testing.assert_allclose(above / scale, (shifted**2 - diagonal) / s.total**2, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(below / scale, 1 - s.square_total / s.total**2, rtol=1e-9, atol=1e-12)

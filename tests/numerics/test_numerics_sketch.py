"""Moment sketches, diffusion and windows against direct sums."""

from __future__ import annotations

import numpy as np
import pytest

import definitions
from calibrary.kernels import KERNELS, reflected_gaussian
from calibrary.numerics import compiled
from calibrary.numerics.sums import gaussian as moment_sketch
from calibrary.numerics.sums import windows as windowed
from calibrary.numerics.sums.diffusion import Diffusion
from calibrary.numerics.sums.gaussian import (
    LAGRANGE,
    ORDER,
    Cells,
    absolute_integral,
    gaussian_on_nodes,
    gaussian_sums,
)
from calibrary.numerics.sums.windows import block_sums, polynomial_sums
from each import amount

COMPACT = [k for k in KERNELS.values() if k.coefficients]


def points(kind, n=2000):
    rng = np.random.default_rng(3)
    if kind == "ties":
        return np.sort(np.round(rng.random(n), 2))
    if kind == "extremes":
        return np.sort(np.concatenate(([0, 0, 1e-9, 0.5, 1 - 1e-9, 1, 1], 1e-2 * rng.random(n - 7))))
    return np.sort(rng.random(n))


KINDS = pytest.mark.parametrize("kind", ["random", "ties", "extremes"])


def test_the_interpolation_basis_is_one_at_its_node_and_zero_at_the_others():
    nodes = np.arange(1 - ORDER // 2, ORDER // 2 + 1)
    np.testing.assert_allclose(LAGRANGE @ (nodes[None, :] ** np.arange(ORDER)[:, None]), np.eye(ORDER), atol=1e-9)


@KINDS
@pytest.mark.parametrize("h", [1.0, 0.08, 0.01, 1e-3, 1e-6])
def test_gaussian_sums_equal_the_matrix_product(kind, h):
    x = points(kind)
    w, v = np.ones(len(x)), np.random.default_rng(0).normal(size=len(x))
    k = np.exp(-0.5 * ((x[:, None] - x) / h) ** 2)
    got = gaussian_sums(x, (w, v), h)
    mass = k @ w
    np.testing.assert_allclose(got[0], mass, rtol=3e-10)
    assert (np.abs(got[1] - k @ v) <= 3e-10 * mass).all()


def test_sorted_and_unsorted_points_have_the_same_moments():
    x = points("random", 500)
    v = np.random.default_rng(0).normal(size=500)
    shuffled = np.random.default_rng(1).permutation(500)
    a = Cells(x, 0.05, ascending=True).moments(v)
    b = Cells(x[shuffled], 0.05).moments(v[shuffled])
    np.testing.assert_allclose(a, b, atol=1e-13)


@KINDS
def test_compiled_loops_agree_with_plain_ones(kind, monkeypatch):
    x = points(kind)
    v = np.random.default_rng(0).normal(size=len(x))
    plain = Cells(x, 0.05)
    monkeypatch.setattr(compiled, "FORCED", True)
    monkeypatch.setattr(moment_sketch, "_VERY_MANY", 0)
    fast = Cells(x, 0.05, ascending=True)
    np.testing.assert_allclose(fast.moments(v), plain.moments(v), atol=1e-11)
    nodes = gaussian_on_nodes(plain.node_weights(v))
    np.testing.assert_allclose(fast.interpolate(nodes), plain.interpolate(nodes), rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("n", [3, 40, 3000])
def test_points_reach_the_nodes_the_same_way_by_moments_one_by_one_and_by_matrix(n):
    rng = np.random.default_rng(n)
    x, v = rng.random(n), rng.normal(size=n)
    cells = Cells(x, 0.2, origin=0.0, n_cells=100)
    by_moments = np.zeros(100 + ORDER - 1)
    for i, spread in enumerate(LAGRANGE @ cells.moments(v)):
        by_moments[i : i + 100] += spread
    np.testing.assert_allclose(cells.node_weights(v), by_moments, atol=1e-12)
    np.testing.assert_allclose(cells.spread @ v, by_moments, atol=1e-12)


def test_cutting_empty_stretches_out_changes_no_sum_and_keeps_positions(monkeypatch):
    x = np.sort(np.concatenate([0.1 + 1e-4 * np.random.default_rng(0).random(50), [0.1, 0.7, 0.7005, 0.9]]))
    h = 1e-4
    whole = Cells(x, h, margin=300)
    monkeypatch.setattr("calibrary.numerics.sums.gaussian._LONG_AXIS", 10)
    short = Cells(x, h, margin=300)
    assert short.n_cells < whole.n_cells / 10
    np.testing.assert_allclose(short.start[short.cell] + short.position * short.width, x, atol=1e-15)
    shorter, longer = (gaussian_on_nodes(c.node_weights(np.ones(len(x)))) for c in (short, whole))
    smooth = [(d * np.sin(50 * c.nodes)).sum() for c, d in ((short, shorter), (whole, longer))]
    assert smooth[0] == pytest.approx(smooth[1], rel=1e-12)


def test_absolute_integral_splits_at_sign_changes():
    width = 0.01
    nodes = -1.0 + width * np.arange(-4, 210)
    got = absolute_integral(np.sin(7.3 * nodes + 0.2), width).sum()
    end = -1.0 + width * (len(nodes) - ORDER + 1)
    roots = [(k * np.pi - 0.2) / 7.3 for k in range(-5, 5)]
    cuts = np.array([-1.0, *(r for r in roots if -1.0 < r < end), end])
    assert got == pytest.approx(np.abs(np.diff(np.cos(7.3 * cuts + 0.2))).sum() / 7.3, rel=1e-12)


# -- diffusion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "ties", "ends"])
@pytest.mark.parametrize("s", [0.5, 0.1, 0.03, 0.01])
def test_diffused_mass_equals_the_direct_total_variation(kind, s):
    rng = np.random.default_rng(5)
    x = {"random": rng.random(60), "ties": np.round(rng.random(60), 1), "ends": rng.random(60) ** 9}[kind]
    x[:3] = 0.0, 1.0, 1.0
    a = rng.normal(size=60) / 60
    assert Diffusion(x, a).absolute_mass(s) == pytest.approx(definitions.absolute_mass(x, a, s), abs=1e-12)


def test_density_is_the_reflected_gaussian():
    rng = np.random.default_rng(6)
    x, a = rng.random(30), rng.normal(size=30)
    t = np.arange(8) / 7
    for s in (1.0, 0.2, 0.004):
        np.testing.assert_allclose(Diffusion(x, a).density(s, 7), reflected_gaussian(t[:, None], x, s) @ a, atol=1e-10)


def test_local_sums_continue_the_transform_to_minute_widths():
    rng = np.random.default_rng(8)
    x = np.concatenate([[0.0, 1e-4, 1.0], 0.3 + 1e-3 * rng.random(20), rng.random(10)])
    flow = Diffusion(x, rng.normal(size=33) / 33)
    for s in (1e-3, 2e-4, 8e-5):
        assert flow._locally(s) == pytest.approx(flow.absolute_mass(s), abs=1e-12)
    separate = np.abs(flow.a).sum()
    assert flow.absolute_mass(1e-8) == pytest.approx(separate, rel=1e-8)


# -- windows -----------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("h", [0.6, 0.02, 1e-3])
@pytest.mark.parametrize("kernel", COMPACT, ids=lambda k: k.name)
def test_windowed_moments_equal_direct_sums(kernel, kind, h, monkeypatch):
    monkeypatch.setattr(windowed, "_DIRECT", 0)
    x = points(kind)
    rng = np.random.default_rng(1)
    values = np.column_stack([1 + rng.random(len(x)), rng.normal(size=len(x))])
    t = np.sort(np.concatenate([x[:: amount(8, 1)], rng.random(amount(50, 300)), [-0.1, 1.1]]))
    want = kernel((t[:, None] - x) / h) @ values
    for forced in (False, True):
        monkeypatch.setattr(compiled, "FORCED", forced)
        got = polynomial_sums(np.array(kernel.coefficients), t, x, values, h)
        np.testing.assert_allclose(got[:, 0], want[:, 0], rtol=1e-10, err_msg=f"{forced=}")
        assert (np.abs(got[:, 1] - want[:, 1]) <= 1e-10 * want[:, 0] + 1e-300).all(), forced


def test_block_sums_take_a_width_per_point():
    x, t = points("random", 200), np.linspace(0, 1, 37)
    h = 0.01 + 0.1 * np.random.default_rng(0).random(200)
    k = KERNELS["epanechnikov"]
    want = k((t[:, None] - x) / h) @ np.ones(200)
    np.testing.assert_allclose(block_sums(k, t, x, np.ones(200), h, 1.0), want, rtol=1e-13)


@pytest.mark.parametrize("s", [0.02, 0.07, 0.3])
def test_the_slope_of_the_absolute_mass_is_its_derivative(s):
    rng = np.random.default_rng(0)
    x = rng.random(200)
    flow = Diffusion(x, rng.normal(size=200) / 200)
    mass, slope = flow.mass_and_slope(s)
    assert mass == flow.absolute_mass(s)
    h = 1e-4 * s
    assert slope == pytest.approx((flow.absolute_mass(s + h) - flow.absolute_mass(s - h)) / (2.0 * h), rel=1e-5)
    assert flow.mass_and_slope(1e-6)[1] is None  # no series of cosines resolves this width


@pytest.mark.parametrize("s", [0.0016, 0.003, 0.02, 0.3])
def test_rough_integrals_of_many_masses_are_nearly_exact(s):
    rng = np.random.default_rng(5)
    x = np.sort(rng.beta(0.8, 0.8, 900))
    n = rng.poisson(1000, 900) + 1
    a = (rng.binomial(n, x, (12, 900)) - n * x) / n.sum()
    flow, every = Diffusion(x, a[0], ascending=True), list(range(12))
    rough = flow.carrying_many(a, float(n.sum())).absolute_masses(every, [s] * 12)
    np.testing.assert_allclose(rough, flow.carrying_many(a).absolute_masses(every, [s] * 12), rtol=5e-5)
    assert rough != flow.carrying_many(a).absolute_masses(every, [s] * 12)

"""Local regression and Newton's method against their literal definitions, on ties, heaps and extremes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import definitions
from calibrary.maps.loess import smooth_line
from calibrary.numerics.compiled.loess import local_polynomials, walk
from calibrary.numerics.smooth.loess import (
    _fit_at,
    cell_vertices,
    epanechnikov_lines,
    hermite,
    local_polynomial,
    lowess,
    nearest_window,
)
from calibrary.numerics.solve.knots import search_knots
from calibrary.numerics.solve.newton import logistic_loss, minimize, minimize_in_box, multinomial_loss

#: The window consists of the q nearest rows; no range of rows is given.
ROWS = np.empty(0, dtype=np.intp)


def sample(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "spread": lambda: 1 / (1 + np.exp(-rng.normal(0, 2.5, n))),
        "heaped": lambda: 1 / (1 + np.exp(-np.abs(rng.normal(4, 2, n)))),
        "ties": lambda: np.round(rng.beta(0.7, 0.9, n), 2),
        "saturated": lambda: np.where(rng.random(n) < 0.6, 1.0, rng.random(n)),
        "extreme": lambda: rng.beta(0.05, 0.05, n),
    }[kind]()
    x = np.sort(x)
    return x, (rng.random(n) < x).astype(float), rng.integers(1, 4, n).astype(float)


KINDS = ("spread", "heaped", "ties", "saturated", "extreme")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_local_polynomial_is_the_weighted_least_squares_fit(kind, degree):
    x, y, w = sample(kind, 300)
    targets = np.concatenate([np.unique(x)[::7], [0.2345, 0.777]])
    for q in (40, 225):
        want = [definitions.local_polynomial(x, y, w, t, q, degree)[0] for t in targets]
        np.testing.assert_allclose(local_polynomial(x, y, w, targets, q, degree)[0], want, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_replacement_points_for_many_rows_give_the_same_fits(kind, degree):
    x, y, w = sample(kind, 20_000)
    targets = cell_vertices(x, 3000)
    for weight in (None, w):
        got = np.array(local_polynomial(x, y, weight, targets, 15_000, degree))
        starts = nearest_window(x, targets, 15_000)
        want = [
            _fit_at(x, y, weight, t, x[s], x[s + 14_999], degree, 1.0) for t, s in zip(targets, starts, strict=True)
        ]
        np.testing.assert_allclose(got.T, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_the_sorted_walk_equals_one_fit_per_target(kind, degree):
    x, y, w = sample(kind, 2000)
    targets = np.unique(np.concatenate([x, np.random.default_rng(1).uniform(x[0], x[-1], 50)]))
    for q, stretch in ((1500, 1.0), (300, 1.0), (2000, 1.3)):
        value, trusted = np.empty(len(targets)), np.empty(len(targets), dtype=bool)
        local_polynomials(x, y, w, targets, q, ROWS, ROWS, degree, stretch, 1e5, value, trusted)
        some = np.random.default_rng(2).choice(np.flatnonzero(trusted), 60)
        want = local_polynomial(x, y, w, targets[some], q, degree, stretch)[0]
        np.testing.assert_allclose(value[some], want, atol=1e-10)


def test_the_walk_marks_a_window_of_one_value_as_unreliable():
    x = np.array([0.1, 0.5, 0.5, 0.5, 0.5, 0.9])
    value, trusted = np.zeros(1), np.ones(1, dtype=bool)
    local_polynomials(x, np.ones(6), np.ones(6), np.array([0.5]), 4, ROWS, ROWS, 2, 1.0, 1e5, value, trusted)
    assert not trusted[0]


def test_a_window_of_equal_distances_is_their_mean_with_slope_zero():
    x, y = np.array([0.1, 0.1, 0.1, 0.9]), np.array([0.0, 1.0, 1.0, 0.0])
    value, slope = local_polynomial(x, y, None, np.array([0.05, 0.1]), 3, 1)
    np.testing.assert_allclose(value, [2 / 3, 2 / 3])
    np.testing.assert_array_equal(slope, 0.0)


def test_the_window_holds_the_nearest_rows():
    rng = np.random.default_rng(3)
    x = np.sort(rng.random(200))
    for q in (1, 30, 200):
        targets = np.sort(rng.random(50))
        for t, start in zip(targets, nearest_window(x, targets, q), strict=True):
            reach = np.abs(x[start : start + q] - t).max()
            assert reach <= np.sort(np.abs(x - t))[q - 1] + 1e-15


def test_cells_are_cut_at_the_middle_row_and_never_between_equal_values():
    x = np.arange(1, 9) / 10
    np.testing.assert_allclose(cell_vertices(x, 4), [0.1 - 0.0035, 0.4, 0.8 + 0.0035])
    ties = np.array([0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.9])
    assert set(cell_vertices(ties, 4)[1:-1]) <= {0.1, 0.2}


def test_hermite_reproduces_cubics():
    vertices = np.array([0.0, 0.3, 1.0])
    z = np.linspace(0, 1, 41)
    f = lambda t: 2 * t**3 - t**2 + 0.3 * t - 1  # noqa: E731
    g = lambda t: 6 * t**2 - 2 * t + 0.3  # noqa: E731
    np.testing.assert_allclose(hermite(vertices, f(vertices), g(vertices), z), f(z), atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("h", [0.001, 0.01, 0.1, 2.0])
def test_epanechnikov_line_at_every_sample_and_elsewhere(kind, h):
    x, y, w = sample(kind, 2000)
    x, first = np.unique(x, return_index=True)
    y, w = y[first], w[first]
    targets = np.concatenate([x[::3], np.random.default_rng(1).random(100), [0.0, 1.0]])
    curve = definitions.local_linear(y, x, w, h)
    want = [curve(t) for t in targets]
    np.testing.assert_allclose(smooth_line(x, y, w, targets, h), want, atol=1e-9)
    value = np.empty(len(targets))
    walk(x, y, w, np.sort(targets), h, value)
    np.testing.assert_allclose(value, epanechnikov_lines(x, y, w, np.sort(targets), h), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [60, 6000, 30_000])  # tables, compiled sums, and compiled sums over replacement points
def test_lowess_is_a_line_by_weighted_least_squares(kind, n):
    x, y, w = sample(kind, n)
    points, value = lowess(x, y, w, 0.4, 0.02)
    size = int(0.4 * n)
    for t, got in list(zip(points, value, strict=True))[:: 1 + len(points) // 20]:
        assert got == pytest.approx(definitions.lowess_at(x, y, w, t, size), abs=1e-9)


def test_lowess_fits_a_straight_line_exactly():
    x = np.linspace(0, 1, 50)
    points, value = lowess(x, 0.3 + 0.4 * x, None, 0.5, 0.1)
    assert len(points) < 50
    np.testing.assert_allclose(value, 0.3 + 0.4 * points, atol=1e-12)


def test_newton_finds_the_logistic_optimum():
    rng = np.random.default_rng(0)
    columns = np.stack([np.ones(400), rng.normal(size=400), rng.normal(size=400)])
    y = (rng.random(400) < 1 / (1 + np.exp(-columns[1]))).astype(float)
    w = rng.random(400)
    loss = logistic_loss(columns, w * y, w, ridge=0.1, center=np.array([0.0, 1.0, 0.0]))
    best = minimize(loss, np.zeros(3))
    assert best.converged
    np.testing.assert_allclose(loss(best.x)[1], 0, atol=1e-9)
    assert best.value <= scipy_minimize(lambda t: loss(t)[0], np.zeros(3)).fun + 1e-9


def test_newton_survives_a_start_from_which_full_steps_overshoot():
    loss = logistic_loss(np.array([[1.0, 2.0, -1.0, 3.0]]), np.array([1.0, 1.0, 1.0, 0.0]), ridge=1e-6)
    assert abs(minimize(loss, np.array([30.0])).x[0] - minimize(loss, np.zeros(1)).x[0]) < 1e-8


def test_gradients_and_hessians_of_the_multinomial_loss_match_differences():
    rng = np.random.default_rng(1)
    design = rng.normal(size=(2, 30, 2))
    positive = np.eye(3)[rng.integers(0, 3, 30)][:, 1:]
    loss = multinomial_loss(design, positive, np.ones(30), rng.normal(size=(30, 2)), ridge=0.2)
    theta = rng.normal(size=4)
    value, gradient, hessian = loss(theta)
    for j in range(4):
        e = 1e-5 * np.eye(4)[j]
        np.testing.assert_allclose((loss(theta + e)[0] - loss(theta - e)[0]) / 2e-5, gradient[j], rtol=1e-6)
        np.testing.assert_allclose((loss(theta + e)[1] - loss(theta - e)[1]) / 2e-5, hessian[j], rtol=1e-5, atol=1e-7)
    assert np.isfinite(value)


def test_box_constrained_newton_meets_the_optimality_conditions():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(6, 6))
    quadratic, linear = a @ a.T + np.eye(6), 3 * rng.normal(size=6)
    x = minimize_in_box(lambda v: (v @ quadratic @ v / 2 - linear @ v, quadratic @ v - linear, quadratic),
                        np.full(6, 0.5), 0.0, 1.0)  # fmt: skip
    gradient = quadratic @ x - linear
    assert (np.abs(gradient[(x > 0) & (x < 1)]) < 1e-8).all()
    assert (gradient[x == 0] >= -1e-8).all()
    assert (gradient[x == 1] <= 1e-8).all()
    assert ((x == 0) | (x == 1)).any()


def test_no_single_exchange_of_a_knot_lowers_the_squared_error():
    rng = np.random.default_rng(4)
    x = np.sort(rng.random(30))
    y, weight = rng.random(30), rng.random(30)
    weight /= weight.sum()
    knots = search_knots(x, y, weight, x[1:-1], 3, False)
    best = definitions.knot_error(x, y, weight, knots)
    for i in range(3):
        low, high = ([0, *knots, 1][i], [0, *knots, 1][i + 2])
        for candidate in x[1:-1][(x[1:-1] > low) & (x[1:-1] < high)]:
            trial = knots.copy()
            trial[i] = candidate
            assert definitions.knot_error(x, y, weight, trial) >= best - 1e-12


def test_one_knot_of_the_logistic_curve_is_the_best_of_all_candidates():
    rng = np.random.default_rng(5)
    x = np.sort(rng.normal(0, 2, 40))
    y, weight = 1 / (1 + np.exp(-np.where(x > 0.5, 2 * x, x))), np.full(40, 1 / 40)

    def loss(knot):
        columns = np.stack([np.ones(40), x, np.maximum(x - knot, 0)])
        fitted = logistic_loss(columns, weight * y, weight, ridge=1e-8, center=np.array([0.0, 1.0, 0.0]))
        return minimize(fitted, np.array([0.0, 1.0, 0.0])).value

    found = search_knots(x, y, weight, x[1:-1], 1, True)
    assert found[0] == min(x[1:-1], key=loss)

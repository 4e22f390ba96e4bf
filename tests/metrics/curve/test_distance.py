"""Distances from calibration against exhaustive search, their order, and the golden values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import calibrary as cal
from calibrary.metrics.curve.distance import calibration_curve_gap
from golden import arrays, assert_close, parts


def problem(n, seed, decimals=2):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), decimals)
    return (rng.random(n) < c**1.5).astype(int), c


@pytest.mark.parametrize("entry", parts("inference", "lower_distance"), ids=lambda e: e["data"])
def test_the_lower_distance_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    assert_close(cal.lower_distance(y, c, **entry["params"]), {**entry, "atol": 1e-6})


@pytest.mark.parametrize("entry", parts("inference", "interval_partition_distance"), ids=lambda e: e["data"])
def test_the_interval_partition_distance_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    assert_close(cal.interval_partition_distance(y, c), {**entry, "atol": 1e-12})


@pytest.mark.parametrize("entry", parts("inference", "smooth_calibration"), ids=lambda e: e["data"])
def test_the_lipschitz_error_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    assert_close(cal.compute("sce", y, c), {**entry, "atol": 1e-6})


def best_partition(y, c, w):
    """Every way of cutting the distinct confidences into runs."""
    levels = np.unique(c)
    best = np.inf
    for cuts in itertools.product([False, True], repeat=len(levels) - 1):
        run = np.concatenate([[0], np.cumsum(cuts)])[np.searchsorted(levels, c)]
        moved = [
            (w[run == r] * np.abs(c[run == r] - np.average(y[run == r], weights=w[run == r]))).sum()
            for r in range(run.max() + 1)
        ]
        best = min(best, sum(moved) / w.sum())
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_best_runs_are_found(seed):
    y, c = problem(14, seed, 1)
    w = 1.0 + np.arange(14) % 3
    assert cal.interval_partition_distance(y, c) == pytest.approx(best_partition(y, c, np.ones(14)), abs=1e-12)
    assert cal.interval_partition_distance(y, c, sample_weight=w) == pytest.approx(best_partition(y, c, w), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_distances_keep_their_order(seed):
    y, c = problem(25, seed)
    lower, upper = cal.lower_distance(y, c, grid=51), cal.interval_partition_distance(y, c)
    assert lower <= upper + 1 / 100
    assert cal.compute("sce", y, c) <= 2 * lower + 1e-9
    assert abs(np.mean(y - c)) <= lower + 1e-9
    assert upper <= np.mean(np.abs(y - c)) + 1e-12


def test_a_finer_grid_gains_at_most_half_its_step():
    y, c = problem(20, 1)
    coarse, fine = cal.lower_distance(y, c, grid=21), cal.lower_distance(y, c, grid=201)
    assert fine - 1e-9 <= coarse <= fine + 1 / 40 + 1e-9


def test_calibrated_groups_are_at_distance_zero():
    y, c = [0, 1, 0, 0, 0, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert cal.lower_distance(y, c) == pytest.approx(0.0, abs=1e-12)
    assert cal.interval_partition_distance(y, c) == 0.0


@pytest.mark.parametrize("distance", [cal.lower_distance, cal.interval_partition_distance])
def test_weight_two_is_the_row_written_twice(distance):
    y, c = problem(15, 2)
    w = np.arange(15) % 3
    i = np.repeat(np.arange(15), w)
    assert distance(y, c, sample_weight=w) == pytest.approx(distance(y[i], c[i]), abs=1e-9)


@pytest.mark.parametrize("distance", [cal.lower_distance, cal.interval_partition_distance])
def test_several_classes_are_seen_through_a_lens(distance):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 12)
    y = rng.integers(0, 3, 12)
    top = distance((p.argmax(axis=1) == y).astype(int), p.max(axis=1))
    assert distance(y, p) == pytest.approx(top, abs=1e-9)
    each = [distance((y == k).astype(int), p[:, k]) for k in range(3)]
    assert distance(y, p, lens="class-wise") == pytest.approx(np.mean(each), abs=1e-9)


def test_one_row_moves_to_its_label():
    assert cal.interval_partition_distance([1], [0.3]) == pytest.approx(0.7)
    assert cal.lower_distance([1], [0.3]) == pytest.approx(0.7)


@pytest.mark.parametrize("grid", [1, 10.5, -3])
def test_a_grid_needs_two_points(grid):
    with pytest.raises(ValueError, match="grid="):
        cal.lower_distance([0, 1], [0.2, 0.8], grid=grid)


def test_the_gap_of_a_map_is_signed():
    np.testing.assert_allclose(calibration_curve_gap(lambda c: c**2, [0.0, 0.5, 1.0]), [0.0, -0.25, 0.0])
    with pytest.raises(ValueError, match="outside"):
        calibration_curve_gap(lambda c: c, [0.5, 1.2])

"""Scores of exactly 0 and 1: the end rule for maps on log odds."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.maps import as_map
from calibrary.maps.base import CalibrationMap
from calibrary.maps.ends import HalfEnds, half_end, inside, with_ends
from golden import arrays, weights_of


def neighbors(n=400, k=10, seed=0):
    """Scores j/k of k nearest neighbors, exact 0 and 1 among them, and labels that are less certain."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.3, 0.3, n)
    c = rng.binomial(k, truth) / k
    return (rng.random(n) < truth).astype(int), c


def test_the_end_is_half_the_nearest_stated_score():
    assert half_end(cal.predictions([0, 1, 1, 0], [0.0, 1.0, 0.3, 0.9])) == pytest.approx(0.05)
    assert half_end(cal.predictions([0, 1, 1], [0.2, 0.3, 0.5])) == pytest.approx(0.1)
    # nothing but 0 and 1: the share of 3 rows without the event
    assert half_end(cal.predictions([0, 1, 0], [0.0, 1.0, 1.0])) == pytest.approx(0.5 / 4)
    assert half_end(cal.predictions([0, 1], [0.0, 1.0], sample_weight=[1, 2])) == pytest.approx(0.5 / 4)


def test_rows_moved_inside_sum_to_one():
    p = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    moved = inside(p, 0.1)
    np.testing.assert_allclose(moved.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(moved[0], np.array([0.9, 0.1, 0.1]) / 1.1)
    np.testing.assert_array_equal(moved[1], p[1])


@pytest.mark.parametrize("name", ["platt", "beta", "temperature", "rcs", "pl3"])
def test_without_exact_ends_the_map_is_the_same(name):
    y, c, _ = arrays("binary500")
    np.testing.assert_allclose(with_ends(as_map(name)).fit(y, c)(c), as_map(name).fit(y, c)(c), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["platt", "beta", "temperature"])
def test_with_exact_ends_it_is_the_map_of_the_moved_scores(name):
    y, c = neighbors()
    assert (c == 0).any()
    assert (c == 1).any()
    moved = np.clip(c, 0.05, 0.95)
    curve = with_ends(as_map(name)).fit(y, c)
    np.testing.assert_allclose(curve(c), as_map(name).fit(y, moved)(moved), rtol=1e-9)


@pytest.mark.parametrize("name", ["platt", "temperature"])
def test_the_end_rule_lowers_the_log_loss_of_nearest_neighbors(name):
    y, c = neighbors()
    new_y, new_c = neighbors(seed=1)
    plain, ruled = (cal.compute("nll", new_y, m.fit(y, c)(new_c)) for m in (as_map(name), with_ends(as_map(name))))
    assert ruled < plain - 0.01


def test_maps_that_take_no_log_odds_are_left_alone():
    mine = object()
    assert with_ends(mine) is mine
    assert type(with_ends(as_map("isotonic"))).__name__ == "Isotonic"


def test_several_classes():
    y, p, _ = arrays("multi4")
    hard = np.where(p == p.max(axis=1, keepdims=True), 1.0, 0.0)
    mixed = np.where((np.arange(len(y)) % 2 == 0)[:, None], hard, p)
    curve = with_ends(as_map("temperature")).fit(y, mixed)
    assert curve.end_ == pytest.approx(0.5 * min(mixed[mixed > 0].min(), (1 - mixed[mixed < 1]).min()))
    q = curve(mixed)
    assert q.shape == mixed.shape
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert (q > 0).all()


def test_weights_are_repeated_rows():
    y, c = neighbors()
    w = weights_of("1+i%3", len(y))
    i = np.repeat(np.arange(len(y)), w.astype(int))
    curve = HalfEnds(as_map("platt"))
    assert isinstance(curve, CalibrationMap)
    grid = np.linspace(0, 1, 11)
    np.testing.assert_allclose(HalfEnds(as_map("platt")).fit(y, c, w)(grid), curve.fit(y[i], c[i])(grid), rtol=1e-9)

"""The Lipschitz maximum against its linear programme."""

from __future__ import annotations

import numpy as np
import pytest

import definitions
from calibrary.numerics import compiled
from calibrary.numerics.solve import lipschitz as chain
from calibrary.numerics.solve.lipschitz import lipschitz_maximum


@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0, 5.0, 60.0])
@pytest.mark.parametrize("seed", range(25))
def test_both_forms_equal_the_linear_programme(seed, slope):
    rng = np.random.default_rng(seed)
    x = np.unique(np.round(rng.random(rng.integers(2, 16)), 1 + seed % 3))
    r = rng.normal(size=len(x))
    if seed % 4 == 0:
        r -= r.mean()
    want = definitions.lipschitz_maximum(x, r, slope)
    assert lipschitz_maximum(x, r, slope) == pytest.approx(want, abs=1e-8)
    assert chain._variation_fit(np.cumsum(r), slope * np.diff(x)) == pytest.approx(want, abs=1e-8)


def test_the_two_forms_agree_on_two_thousand_points():
    rng = np.random.default_rng(0)
    x = np.unique(rng.random(2000))
    r = rng.normal(size=2000) + 0.1
    for slope in (0.5, 1.0, 2.0):
        general = chain._variation_fit(np.cumsum(r), slope * np.diff(x))
        assert lipschitz_maximum(x, r, slope) == pytest.approx(general, rel=1e-12)


def test_interpreted_and_compiled_loops_agree():
    rng = np.random.default_rng(1)
    a, w = rng.random(3000), rng.random(3000)
    assert compiled.compiled(chain._isotonic_cost)(a, w) == chain._isotonic_cost(a, w)


def test_isotonic_cost_equals_the_best_of_all_nondecreasing_fits():
    rng = np.random.default_rng(2)
    for _ in range(30):
        a, w = rng.integers(0, 5, 7) / 4, rng.random(7)
        levels = np.unique(a)
        # dynamic programme over the levels
        cost = np.zeros(len(levels))
        for value, weight in zip(a, w, strict=True):
            cost = np.minimum.accumulate(cost) + weight * np.abs(levels - value)
        assert chain._isotonic_cost(a, w) == pytest.approx(cost.min(), abs=1e-13)


def test_simple_cases():
    assert lipschitz_maximum(np.array([0.3]), np.array([-2.0])) == 2.0
    assert lipschitz_maximum(np.array([0.0, 1.0]), np.array([1.0, -1.0])) == pytest.approx(1.0)
    assert lipschitz_maximum(np.array([0.0, 1.0]), np.array([1.0, -1.0]), 9.0) == pytest.approx(2.0)
    assert lipschitz_maximum(np.array([0.1, 0.4]), np.zeros(2)) == 0.0

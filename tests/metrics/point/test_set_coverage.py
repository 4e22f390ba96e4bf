"""Sets of top classes: golden values, the definition row by row, levels, rounding."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
import definitions
from golden import arrays, assert_close, call, entries


@pytest.mark.parametrize(
    "entry", [e for e in entries("emerging") if e["id"] == "set_coverage"], ids=lambda e: f"{e['params']}-{e['field']}"
)
def test_value_equals_the_golden_one(entry):
    assert_close(call(entry), entry)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("data", ["multi4", "multi10", "ordinal5", "binary500"])
def test_sets_are_made_of_the_fewest_top_classes(data, level):
    y, p, _ = arrays(data)
    two = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    w = 1 + np.arange(len(y)) % 3
    for weights, i in ((None, np.arange(len(y))), (w, np.repeat(np.arange(len(y)), w))):
        want = definitions.set_coverage(y[i], two[i], level)
        got = cal.set_coverage(y, p, level=level, sample_weight=weights)._asdict()
        assert got == pytest.approx(want, rel=1e-12, abs=1e-14)


def test_many_rows_in_blocks_are_the_same():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 9000)
    y = np.array([rng.choice(6, p=row) for row in p])
    found = cal.set_coverage(y, p, level=0.8)
    assert found._asdict() == pytest.approx(definitions.set_coverage(y, p, 0.8), rel=1e-12, abs=1e-14)
    assert abs(found.gap) < 4 * np.sqrt(0.2 * 0.8 / 9000)  # these are calibrated
    assert found.gap == pytest.approx(found.coverage - found.claimed)


def test_rounding_does_not_add_a_class():
    assert cal.set_coverage([0], [[0.7, 0.2, 0.1]], level=0.9).size == 2.0
    assert cal.set_coverage([2], [[1 / 3, 1 / 3, 1 / 3]], level=2 / 3).size == 2.0


def test_the_curve_is_the_metric_at_every_level():
    y, p, _ = arrays("multi4")
    curve = cal.set_coverage_curve(y, p)
    assert len(curve.level) == 99
    for i in (0, 49, 89):
        found = cal.set_coverage(y, p, level=curve.level[i])
        np.testing.assert_allclose(
            (curve.coverage[i], curve.size[i], curve.claimed[i], curve.gap[i]), found, rtol=1e-12, atol=1e-15
        )
    assert (np.diff(curve.coverage) >= 0).all()
    assert (np.diff(curve.size) >= 0).all()


def test_the_votes_of_a_panel_are_covered_in_part():
    found = cal.set_coverage([[0.5, 0.3, 0.2]], [[0.6, 0.3, 0.1]], level=0.7)
    assert found == pytest.approx((0.8, 2.0, 0.9, -0.1))


def test_over_confident_sets_hold_less_than_they_claim():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(5), 2000)
    y = np.array([rng.choice(5, p=0.5 * row + 0.1) for row in p])
    result = cal.test("set_coverage", y, p, n_resamples=99, rng=0)
    assert cal.set_coverage(y, p).gap < -0.05
    assert result.pvalues[2] == pytest.approx(2 / 100)  # the two-sided p-value of the gap is the smallest possible


@pytest.mark.parametrize("level", [0.0, -0.1, 1.1, np.nan])
def test_invalid_levels_are_refused(level):
    with pytest.raises(ValueError, match=r"must be above 0|must be a finite number"):
        cal.set_coverage([0, 1], [0.2, 0.6], level=level)
    with pytest.raises(ValueError, match=r"must be above 0|must be a finite number"):
        cal.set_coverage_curve([0, 1], [0.2, 0.6], levels=[0.5, level])

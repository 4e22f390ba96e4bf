"""Rows that represent many predictions each: spans, knots, leaves and folds count predictions, not rows.

A table of copies, such as a merged state, must give the same value as the rows written out one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.predictions import Predictions
from calibrary.maps.spline import spline_knots
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.smooth.loess import cell_vertices, local_polynomial, nearest_window, row_of
from calibrary.question import Question
from calibrary.scale.accuracy import declared


def written(n: int, decimals: int, seed: int) -> tuple[Any, Any]:
    """Over-confident predictions of few decimals, so that many are equal; equal ones by their labels."""
    rng = np.random.default_rng(seed)
    c = np.round(rng.beta(0.8, 0.8, n), decimals)
    y = (rng.random(n) < 0.2 + 0.6 * c).astype(int)
    order = np.lexsort((y, c))
    return y[order], c[order]


def table(y: Any, c: Any) -> Predictions:
    """The same predictions as a table of copies."""
    rows, copies = np.unique(np.column_stack([c, y]), axis=0, return_counts=True)
    made = Predictions(rows[:, 1].astype(np.intp), np.ascontiguousarray(rows[:, 0]), copies.astype(np.float64))
    made.counted = True
    return made


@pytest.mark.parametrize("seed", range(8))
def test_windows_and_vertices_of_copies_are_those_of_the_rows_written_out(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(np.round(rng.random(int(rng.integers(2, 60))), int(rng.integers(1, 3))))
    copies = rng.integers(1, (2, 5, 60)[seed % 3], len(x))
    upto, out = np.cumsum(copies), np.repeat(x, copies)
    targets = np.sort(rng.random(20))
    for q in {1, 2, len(out) // 3 + 1, len(out)}:
        starts = nearest_window(x, targets, q, upto)
        plain = nearest_window(out, targets, q)
        np.testing.assert_array_equal(x[row_of(starts, upto)], out[plain])
        np.testing.assert_array_equal(x[row_of(starts + q - 1, upto)], out[plain + q - 1])
    for leaf in {1, 2, len(out) // 7 + 1, len(out) // 2 + 1}:
        np.testing.assert_array_equal(cell_vertices(x, leaf, upto), cell_vertices(out, leaf))


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_local_polynomials_of_copies_are_those_of_the_rows_written_out(degree):
    rng = np.random.default_rng(degree)
    x, y = np.sort(rng.random(50)), rng.integers(0, 2, 50).astype(float)
    copies = rng.integers(1, 40, 50)
    targets = np.linspace(x[0], x[-1], 9)
    n = int(copies.sum())
    for q, stretch in ((n // 3, 1.0), (n // 2, 1.0), (n, 1.2)):
        got = local_polynomial(x, y, copies.astype(float), targets, q, degree, stretch, np.cumsum(copies))
        want = local_polynomial(np.repeat(x, copies), np.repeat(y, copies), None, targets, q, degree, stretch)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [6, 50, 99, 100, 1000])
@pytest.mark.parametrize("knots", [3, 4, 5, 6, 7])
def test_knots_of_copies_are_quantiles_of_the_rows_written_out(n, knots):
    _, c = written(n, 2, n)
    values, copies = np.unique(c, return_counts=True)
    np.testing.assert_allclose(spline_knots(values, knots, copies=copies), spline_knots(np.sort(c), knots))


#: Every metric of the class, with options that leave nothing to chance.
CASES = [
    ("ici", {}), ("ici", {"span": 0.3}), ("ici", {"span": 1.5}), ("ici", {"surface": "direct"}), ("ici", {"degree": 1}),
    ("ici", {"transform": "logit"}), ("ep", {}), ("e50", {}), ("e90", {}), ("emax", {}), ("map_error", {}),
    ("map_error", {"map": "rcs"}), ("map_error", {"map": "isotonic"}), ("map_error", {"map": "bins", "n_bins": 7}),
    ("eci", {}), ("eci", {"map": "loess"}), ("error_at_level", {"at": 0.4}), ("mvms", {}), ("mvms", {"min_leaf": 40}),
    ("mvms", {"split": "median"}), ("ece_pl", {"segments": 3, "ensemble": False}),
    ("ece_pl", {"segments": 2, "ensemble": False, "loss": "brier"}), ("ece_pl3", {"segments": 2, "ensemble": False}),
]  # fmt: skip


def test_every_metric_of_copies_is_tried():
    assert {id for id, _ in CASES} == {id for id, fact in declared().items() if fact.kind == "copies"}


@pytest.mark.parametrize(("id", "options"), CASES)
@pytest.mark.parametrize(("n", "decimals"), [(900, 2), (3000, 1), (2500, 3)])
def test_a_table_of_copies_has_the_value_of_the_rows_written_out(id, options, n, decimals):
    y, c = written(n, decimals, seed=n)
    got = measure(ENTRIES[id], table(y, c), Question(options=options))
    assert got == pytest.approx(cal.compute(id, y, c, **options), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("id", ["ici", "eci", "mvms", "ece_pl"])
def test_weights_of_an_array_keep_counting_rows(id):
    y, c = written(900, 2, seed=900)
    rows = table(y, c)
    weighted = cal.compute(id, rows.y, rows.c, sample_weight=rows.w)
    assert weighted != pytest.approx(cal.compute(id, y, c), rel=1e-6)


@pytest.mark.parametrize("id", ["ece_pl", "ece_pl3"])
def test_folds_of_copies_do_not_depend_on_which_copies_were_put_together(id):
    y, c = written(300, 2, seed=3)
    alone = Predictions(y.astype(np.intp), c, np.ones(300))
    alone.counted = True
    asked = Question(options={"max_segments": 2, "cv": 5})
    together = measure(ENTRIES[id], table(y, c), asked)
    assert together == pytest.approx(measure(ENTRIES[id], alone, asked), rel=1e-6)
    plain = cal.compute(id, y, c, max_segments=2, cv=5)  # rows are assigned to folds at random there
    assert together == pytest.approx(plain, abs=0.02)


def test_many_direct_fits_of_copies_walk_as_those_of_rows(monkeypatch):
    from calibrary.maps import loess

    y, c = written(4000, 3, seed=5)
    monkeypatch.setattr(loess, "_FEW_TARGETS", 100)
    assert len(np.unique(c)) > 500
    for span in (0.1, 0.5):
        options = {"surface": "direct", "span": span}
        got = measure(ENTRIES["ici"], table(y, c), Question(options=options))
        assert got == pytest.approx(cal.compute("ici", y, c, **options), rel=1e-8)


@pytest.mark.parametrize("id", ["ici", "eci", "e90", "mvms", "ece_pl3", "error_at_level"])
def test_a_merged_state_has_the_value_of_its_rows(id):
    y, c = written(2000, 2, seed=8)
    state = cal.scale.State().update(y[:700], c[:700]) + cal.scale.State().update(y[700:], c[700:])
    options = {"segments": 2, "ensemble": False} if id == "ece_pl3" else {}
    assert cal.compute(id, state, **options) == pytest.approx(cal.compute(id, y, c, **options), rel=1e-6)


def test_ten_billion_copies_cost_no_more_than_their_rows():
    y, c = written(500, 2, seed=9)
    few = table(y, c)
    many = Predictions(few.y, few.c, few.w * 2e7)
    many.counted = True
    for id in ("ici", "eci", "e90"):
        assert measure(ENTRIES[id], many, Question()) == pytest.approx(measure(ENTRIES[id], few, Question()), abs=3e-3)


def test_metrics_that_count_rows_of_a_table_of_copies_say_so():
    y, c = written(500, 2, seed=10)
    with pytest.raises(ValueError, match="use map='loess'"):
        measure(ENTRIES["map_error"], table(y, c), Question(options={"map": "lowess"}))
    with pytest.raises(ValueError, match="pass a number of bins"):
        measure(ENTRIES["map_error"], table(y, c), Question(options={"map": "bins"}))
    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    coarse = cal.scale.State(resolution=240).update(rng.random(30_000) < p, p)
    with pytest.raises(ValueError, match=r"divide a cell of .* use a larger min_count"):
        cal.compute("mvms", coarse)
    assert cal.compute("mvms", coarse, min_count=2000) < 0.05

"""Large samples: counts of cells instead of labels of rows give the same distribution, value and interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import calibrary as cal
from calibrary.data.sample import sample_of
from calibrary.inference.draw import cells as large
from calibrary.inference.draw import null
from calibrary.inference.draw.statistic import as_statistic
from calibrary.numerics.laws import coupled_counts, normal_quantile
from calibrary.question import Question
from each import amount


@pytest.mark.parametrize(
    ("n", "q"), [(5, 0.3), (40, 0.02), (40, 0.97), (400, 0.5), (1e5, 1e-5), (3e4, 0.4), (7, 0.0), (7, 1.0)]
)
def test_counts_have_the_binomial_law(n, q):
    u = (np.arange(20_000)[:, None] + 0.5) / 20_000
    counts = coupled_counts(u, normal_quantile(u), np.array([float(n)]), np.array([q]))[:, 0]
    exact = binom.ppf(u[:, 0], int(n), q)
    assert np.abs(counts - exact).max() <= 1.0
    assert np.mean(counts != exact) < 0.02
    assert counts.mean() == pytest.approx(n * q, abs=0.01 * (1 + np.sqrt(n * q * (1 - q))))


def test_counts_grow_with_the_probability_at_the_same_uniform_numbers():
    u = np.random.default_rng(0).random((200, 3))
    n = np.array([10.0, 100.0, 5000.0])
    z = normal_quantile(u)
    low, high = (coupled_counts(u, z, n, np.full(3, q)) for q in (0.3, 0.32))
    assert (high >= low).all()


def problem(n=3000, seed=0, shift=0.3):
    rng = np.random.default_rng(seed)
    c = np.round(rng.beta(0.8, 0.8, n), 3)
    return (rng.random(n) < c ** (1 + shift)).astype(int), c


@pytest.mark.parametrize(
    ("id", "options"),
    [(id, {}) for id in ("ece", "ace", "mce", "ecce_mad", "ecce_r")]
    + [(id, {"n_bins": 7, "norm": 2}) for id in ("ece", "ace")],
)
def test_cells_give_the_interval_of_rows(id, options, monkeypatch):
    y, c = problem()
    monkeypatch.setattr(large, "LARGE", 4000)
    rows = cal.interval(id, y, c, method="inversion", n_resamples=499, rng=0, **options)
    monkeypatch.setattr(large, "LARGE", 1000)
    cells = cal.interval(id, y, c, method="inversion", n_resamples=499, rng=0, **options)
    assert (rows.path, cells.path) == ("rows", "cells")
    width = rows.high - rows.low
    assert cells.low == pytest.approx(rows.low, abs=0.25 * width)
    assert cells.high == pytest.approx(rows.high, abs=0.25 * width)


@pytest.mark.parametrize("id", ["ece", "ecce_mad"])
def test_the_test_and_the_interval_of_cells_agree_and_have_the_null_of_rows(id, monkeypatch):
    y, c = problem(shift=0.05)
    monkeypatch.setattr(large, "LARGE", 4000)
    by_rows = cal.test(id, y, c, method="monte-carlo", n_resamples=2999, rng=0)
    monkeypatch.setattr(large, "LARGE", 1000)
    test = cal.test(id, y, c, method="monte-carlo", n_resamples=2999, rng=0)
    result = cal.interval(id, y, c, method="inversion", n_resamples=2999, rng=0)
    assert test.path == "cells"
    assert result.pvalue == test.pvalue
    assert (result.low > 0) == (test.pvalue <= 0.05)
    assert test.statistic == pytest.approx(by_rows.statistic, rel=0.03)
    assert test.expected_by_chance == pytest.approx(by_rows.expected_by_chance, rel=0.05)
    assert test.null_sd == pytest.approx(by_rows.null_sd, rel=0.1)


@pytest.mark.parametrize("id", ["bs", "nll", "oe", "auroc", "smece"])
def test_labels_of_very_many_rows_are_drawn_in_cells_for_any_metric_that_has_its_value_there(id, monkeypatch):
    y, c = problem(4000, shift=0.05)
    by_rows = cal.test(id, y, c, method="monte-carlo", n_resamples=999, rng=0)
    monkeypatch.setattr(null, "MANY_A_CELL", 3000)
    by_cells = cal.test(id, y, c, method="monte-carlo", n_resamples=999, rng=0)
    assert (by_rows.path, by_cells.path) == ("rows", "cells")
    assert by_cells.statistic == by_rows.statistic
    error = by_rows.null_sd / np.sqrt(999)
    assert by_cells.expected_by_chance == pytest.approx(by_rows.expected_by_chance, abs=5 * error)
    assert by_cells.null_sd == pytest.approx(by_rows.null_sd, rel=0.12)
    assert by_cells.pvalue == pytest.approx(by_rows.pvalue, abs=0.08)


def test_weights_and_lenses(monkeypatch):
    monkeypatch.setattr(large, "LARGE", 1000)
    y, c = problem(1500)
    w = np.random.default_rng(0).integers(1, 4, 1500)
    one = cal.interval("ece", y, c, sample_weight=w, method="inversion", n_resamples=99, rng=0)
    two = cal.interval("ece", np.repeat(y, w), np.repeat(c, w), method="inversion", n_resamples=99, rng=0)
    assert one.path == "cells"
    assert tuple(one) == pytest.approx(tuple(two))
    importance = cal.interval(
        "ece", y, c, sample_weight=w, weight_type="importance", method="inversion", n_resamples=39, rng=0
    )
    assert importance.path == "rows"
    p = np.column_stack([c, 1 - c]) @ np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    top = cal.interval("ece", y, p, method="inversion", n_resamples=39, rng=0)
    assert top.path == "cells"
    assert cal.interval("ece", y, p, lens="class-wise", method="inversion", n_resamples=19, rng=0).path == "rows"


@pytest.mark.parametrize("world", ["everywhere", "nearly certain", "rare"])
@pytest.mark.parametrize("id", ["ece", "ecce_mad"])
def test_merged_and_wide_cells_have_the_null_distribution_of_the_fine_ones(id, world, monkeypatch):
    rng = np.random.default_rng(5)
    n, times = 60_000, amount(10_000, 16_000)
    draws = {"everywhere": (0.5, 0.5), "nearly certain": (60.0, 1.0), "rare": (0.2, 9.0)}
    p = rng.beta(*draws[world], n)
    y = (rng.random(n) < p).astype(int)
    statistic = as_statistic(id, sample_of(cal.predictions(y, p)), Question())

    def null():
        problem = large.cell_problem(statistic, times, np.random.default_rng(1))
        return len(problem.n), np.sort(problem.draw(None, times).values[:, 0])

    few, merged = null()
    monkeypatch.setattr(large, "_merged", lambda cell, view, bins: cell)
    monkeypatch.setattr(large, "_COARSE", large._GRID)
    many, fine = null()
    assert few < many / 2
    spread = fine.std()
    assert merged.mean() == pytest.approx(fine.mean(), abs=0.12 * spread)
    assert merged.std() == pytest.approx(spread, rel=0.08)
    tail = times // 20
    assert merged[-tail] == pytest.approx(fine[-tail], abs=0.2 * spread)


def test_cells_are_merged_near_the_ends_only_and_never_across_bins():
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.beta(0.5, 0.5, 30_000), np.zeros(50), np.ones(50)])
    view = cal.predictions((rng.random(len(p)) < p).astype(int), p)
    bins = (p * 40).astype(int)  # two bins within each end
    before = large._cells(view.c, bins, large._GRID)
    after = large._merged(before, view, bins)
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= 0).all()  # still in order of confidence, and whole cells stay whole
    assert len(np.unique(np.column_stack([before, after]), axis=0)) == before.max() + 1
    assert after.max() < before.max()
    middle = (p > 1 / 16 + 1 / 240) & (p < 15 / 16 - 1 / 240)
    assert len(np.unique(after[middle])) == len(np.unique(before[middle]))
    for cell in range(after.max() + 1):
        inside = after == cell
        assert len(np.unique(bins[inside])) == 1
        assert len(np.unique(p[inside] == 0)) == 1
        assert len(np.unique(p[inside] == 1)) == 1
        merged = len(np.unique(before[inside])) > 1
        own = np.bincount(before[inside], (p * (1 - p))[inside])
        assert not merged or own.sum() - own.max() <= 1.01 / 1024 * (p * (1 - p)).sum()


def test_draws_of_smece_of_very_many_rows_differ_little_from_exact_ones(monkeypatch):
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 0.8, 120_000)
    y = (rng.random(len(p)) < p**1.02).astype(int)
    rough = cal.interval("smece", y, p, rng=0, n_resamples=99)
    monkeypatch.setattr("calibrary.metrics.kernel.residual._ROUGH_FROM", np.inf)
    exact = cal.interval("smece", y, p, rng=0, n_resamples=99)
    assert rough.path == exact.path == "cells"
    assert (rough.value, rough.pvalue) == (exact.value, exact.pvalue)
    np.testing.assert_allclose(rough.draws, exact.draws, rtol=1e-4)
    assert abs(rough.low - exact.low) + abs(rough.high - exact.high) < 0.01 * exact.standard_error
    assert not np.array_equal(rough.draws, exact.draws)

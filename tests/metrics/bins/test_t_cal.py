"""T-Cal: the debiased plug-in estimator, cells of the simplex, and the adaptive test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrary as cal
import definitions
import own
from calibrary.grouping.proximity import SimplexCells, nested_cells
from calibrary.metrics.bins.t_cal import _Atoms, _Cells, _scales
from each import amount, most
from golden import arrays, parts


def multi(n, k, rng, decimals=None):
    p = rng.dirichlet(np.ones(k), n)
    if decimals is not None:
        p = np.round(p * 8) / 8
        p[:, -1] = 1 - p[:, :-1].sum(axis=1)
        p = p[(p >= 0).all(axis=1)]
    y = (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return y, p


# -- the estimator -----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 7, 10])
def test_the_estimate_leaves_out_each_row_with_itself(m):
    rng = np.random.default_rng(0)
    c = np.round(rng.random(60), 1)
    y = (rng.random(60) < c).astype(int)
    assert cal.debiased_plugin_estimator(y, c, n_bins=m) == pytest.approx(definitions.tcal(y, c, m), abs=1e-13)


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize(("k", "m"), [(3, 2), (3, 5), (4, 3), (5, 4)])
def test_the_estimate_of_whole_vectors(k, m, decimals):
    y, p = multi(80, k, np.random.default_rng(1), decimals)
    got = cal.debiased_plugin_estimator(y, p, lens="full", n_bins=m)
    assert got == pytest.approx(definitions.tcal_of_vectors(y, p, m), abs=1e-13)


def test_two_classes_as_vectors_give_twice_the_binary_value(binary_set):
    y, c = binary_set
    for m in (1, 2, 10, 64):
        full = cal.debiased_plugin_estimator(y, c, lens="full", n_bins=m)
        assert full == pytest.approx(2 * cal.debiased_plugin_estimator(y, c, n_bins=m), abs=1e-13)


def test_it_is_unbiased_under_calibration():
    c = np.array([0.1, 0.15, 0.4, 0.45, 0.8])
    expectation = 0.0
    for labels in itertools.product((0, 1), repeat=5):
        chance = np.prod(np.where(labels, c, 1 - c))
        expectation += chance * cal.debiased_plugin_estimator(np.array(labels), c, n_bins=2)
    assert expectation == pytest.approx(0.0, abs=1e-15)


# -- cells of the simplex ----------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "m"), [(2, 5), (3, 4), (4, 3), (5, 2)])
def test_the_cells_are_m_to_the_k_minus_1_and_of_equal_volume(k, m):
    rng = np.random.default_rng(0)
    n = 40000
    cells = SimplexCells(m).cells(rng.dirichlet(np.ones(k), n))
    counts = np.bincount(cells)
    assert len(counts) == m ** (k - 1)
    expected = n / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < len(counts) + 5 * math.sqrt(2 * len(counts))


def test_points_on_boundaries_open_no_extra_cells():
    grid = [np.array(v) / 4 for v in itertools.product(range(5), repeat=4) if sum(v) == 4]
    rng = np.random.default_rng(0)
    points = np.vstack([grid, rng.dirichlet(np.ones(4), 20000)])
    assert SimplexCells(2).cells(points).max() + 1 == 8
    assert SimplexCells(4).cells(points).max() + 1 == 64


@pytest.mark.parametrize("k", [2, 3, 4])
def test_cells_of_twice_the_scale_lie_inside_those_of_the_scale(k):
    grid = np.array([np.array(v) / 8 for v in itertools.product(range(9), repeat=k) if sum(v) == 8])
    p = np.vstack([grid, np.random.default_rng(0).dirichlet(np.ones(k), 3000)])
    numbers = [SimplexCells(m).cells(p) for m in (2, 4, 8, 16)]
    for coarse, fine in itertools.pairwise(numbers):
        for cell in range(fine.max() + 1):
            assert len(np.unique(coarse[fine == cell])) == 1
    order, starts = nested_cells(p, [2, 4, 8, 16])
    assert sorted(order.tolist()) == list(range(len(p)))
    assert [len(s) for s in starts] == [n.max() + 1 for n in numbers]


# -- the test ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", parts("bins_b", "tcal"), ids=lambda e: f"{e['data']}-{e['params']['null']}")
def test_golden_values(entry):
    y, c, _ = arrays(entry["data"])
    result = own.t_cal_test(y, c, rng=0, n_resamples=3000, null=entry["params"]["null"])
    want = entry["value"]
    assert result.n_scales == want["n_scales"]
    np.testing.assert_allclose(result.statistics, want["statistics"], rtol=0, atol=1e-12)
    p = np.array(want["p_values"])
    assert (np.abs(result.pvalues - p) <= 0.015 + 4 * np.sqrt(p * (1 - p) / 3000)).all()
    if not 0.02 <= want["p_value"] <= 0.12:
        assert (result.pvalue <= 0.05) == (want["p_value"] <= 0.05)
    best = result.pvalues.argmin()
    assert result.statistic == result.statistics[best]
    assert result.n_bins == 2 ** (best + 1)
    assert result.pvalue == min(1, result.n_scales * result.pvalues[best])


def test_all_scales_at_once_equal_each_scale_alone(multi_set):
    y, p = multi_set
    w = 1 + np.arange(len(y)) % 3
    for kw in ({"lens": "top-label"}, {"lens": "full"}, {"lens": "full", "sample_weight": w}):
        result = own.t_cal_test(y, p, n_resamples=399, rng=0, null="labels", **kw)
        want = [cal.debiased_plugin_estimator(y, p, n_bins=m, **kw) for m in result.scales]
        np.testing.assert_allclose(result.statistics, want, atol=1e-13)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("decimals", [None, 1])
def test_replicates_are_the_estimates_of_the_rows_they_stand_for(k, decimals):
    rng = np.random.default_rng(0)
    y, p = multi(40, k, rng, decimals)
    lens = "binary" if k == 2 else "full"
    view = cal.predictions(y, p).through(cal.Lens(lens)).views[0]
    atoms = _Atoms(view)
    scales = [2, 4, 8, 1024]
    cells = _Cells(atoms, scales)
    for draw in (atoms.relabeled, atoms.resampled):
        count, labels = draw(3, rng)
        got = cells.estimates(count, labels)
        count = np.broadcast_to(count, (3, count.shape[1]))
        assert (count.sum(axis=1) == len(y)).all()
        for r in range(3):
            rows = np.repeat(np.arange(len(atoms.p)), count[r].astype(int))
            if k == 2:
                hits = labels[r, :, 0].astype(int)
                y_r = np.concatenate([[1] * h + [0] * (int(n) - h) for h, n in zip(hits, count[r], strict=True)])
            else:
                y_r = np.concatenate([np.repeat(np.arange(k), labels[r, a].astype(int)) for a in range(len(atoms.p))])
            p_r = atoms.p[rows, 0] if k == 2 else atoms.p[rows]
            want = [cal.debiased_plugin_estimator(y_r.astype(int), p_r, lens=lens, n_bins=m) for m in scales]
            np.testing.assert_allclose(got[r], want, atol=1e-13)


def test_the_scales_follow_the_rule():
    assert len(_scales(500, 2, None, None)) == 15
    assert _scales(500, 2, 7, None) == [7]
    assert _scales(1000, 2, None, 1.0) == [int(1000 ** (2 / 5))]
    assert _scales(3, 10, None, None) == [2]
    n = 5000
    assert len(_scales(n, 3, None, None)) == math.floor(math.log2(n / math.sqrt(math.log(n))))


def test_whole_number_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    c = np.round(rng.random(50), 2)
    y = (rng.random(50) < c).astype(int)
    w = 1 + np.arange(50) % 3
    rows = np.repeat(np.arange(50), w)
    weighted = own.t_cal_test(y, c, sample_weight=w, rng=1, n_resamples=399)
    repeated = own.t_cal_test(y[rows], c[rows], rng=1, n_resamples=399)
    np.testing.assert_allclose(weighted.statistics, repeated.statistics, atol=1e-13)
    assert weighted.pvalue == repeated.pvalue
    with pytest.raises(ValueError, match="whole number"):
        own.t_cal_test(y, c, sample_weight=w / 2, rng=1)


def test_bad_options_are_refused():
    y, c, _ = arrays("binary12")
    for wrong, sentence in (
        ({"n_resamples": 20}, "at least"),
        ({"n_bins": 3, "smoothness": 1.0}, "pass one"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"null": "label"}, "did you mean 'labels'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            own.t_cal_test(y, c, **wrong)
    with pytest.raises(ValueError, match="at least 3 rows"):
        own.t_cal_test([0, 1], [0.2, 0.7])


@pytest.mark.parametrize("null", ["consistency", "labels"])
def test_the_level_and_the_power(null):
    rng = np.random.default_rng(3)
    rejected = {"calibrated": 0, "wrong": 0}
    runs = amount(20, 60)
    for run in range(runs):
        c = rng.random(150)
        u = rng.random(150)
        for name, truth in (("calibrated", c), ("wrong", c**2)):
            result = own.t_cal_test(u < truth, c, null=null, n_resamples=amount(239, 299), rng=run)
            rejected[name] += result.pvalue <= 0.05
    assert rejected["calibrated"] <= 7 * runs / 60 + 1  # conservative: 5% or fewer expected
    assert rejected["wrong"] >= 0.7 * runs


def test_the_level_through_the_full_lens():
    rng = np.random.default_rng(4)
    rejected = 0
    runs = amount(20, 60)
    for run in range(runs):
        y, p = multi(120, 3, rng)
        rejected += own.t_cal_test(y, p, lens="full", null="labels", n_resamples=199, rng=run).pvalue <= 0.05
    assert rejected <= most(runs, 0.05)


# -- few distinct values -----------------------------------------------------------------------------


def test_one_exact_test_per_distinct_value():
    from scipy.stats import binomtest

    rng = np.random.default_rng(0)
    c = rng.choice([0.1, 0.35, 0.8], 300)
    y = (rng.random(300) < c).astype(int)
    result = cal.multiple_binomial_test(y, c)
    want = [binomtest(int(y[c == v].sum()), int((c == v).sum()), v).pvalue for v in (0.1, 0.35, 0.8)]
    np.testing.assert_allclose(result.pvalues, want, rtol=1e-9)
    assert result.pvalue == pytest.approx(min(1, 3 * min(want)))
    doubled = cal.multiple_binomial_test(y, c, sample_weight=np.full(300, 2))
    assert doubled.n.tolist() == (2 * result.n).tolist()
    with pytest.raises(ValueError, match="full"):
        cal.multiple_binomial_test(y, c, lens="full")


def test_its_level_is_at_most_nominal():
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(400):
        c = rng.choice([0.05, 0.3, 0.5, 0.9], 200)
        rejected += cal.multiple_binomial_test(rng.random(200) < c, c).pvalue <= 0.05
    assert rejected <= 30

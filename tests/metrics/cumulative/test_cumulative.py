"""Cumulative family: tail probabilities, ties, tests, the plot's data, and the facts the definitions promise."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import calibrary as cal
import definitions
from each import amount
from golden import assert_close, entries, weights_of

BROWNIAN = [e for e in entries("cumulative") if e["id"].startswith("brownian")]


def sample(seed, n=200, grid=None):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    c = c if grid is None else np.round(c * grid) / grid
    return (rng.random(n) < c**1.3).astype(int), c


@pytest.mark.parametrize("entry", BROWNIAN, ids=lambda e: f"{e['id']}-{e['params']['x']:.3g}")
def test_brownian_tails_keep_their_relative_accuracy(entry):
    x = entry["params"]["x"]
    assert_close(getattr(cal, entry["id"])(x), entry | {"rtol": 1e-12 if x <= 10 else 1e-11, "atol": 0.0})


@pytest.mark.parametrize("law", ["abs_max", "range"])
def test_brownian_tails_start_at_one_decrease_and_agree_with_their_logarithm(law):
    sf, log_sf = getattr(cal, f"brownian_{law}_sf"), getattr(cal, f"brownian_{law}_log_sf")
    x = np.linspace(-1.0, 12.0, 1301)
    tail = sf(x)
    assert sf(0.0) == sf(-3.0) == 1.0
    assert log_sf(0.0) == 0.0
    assert (np.diff(tail) <= 1e-15).all()
    np.testing.assert_allclose(log_sf(x), np.log(tail), rtol=1e-13, atol=1e-15)
    assert sf(np.inf) == 0.0
    assert log_sf(np.inf) == -np.inf
    assert sf(1e-300) == 1.0
    # below the switch points the logarithm still tells apart what rounds to one
    assert -1e-20 < log_sf(0.15) < 0.0


@pytest.mark.parametrize(
    ("law", "mean", "five", "one"),
    [
        ("abs_max", np.sqrt(np.pi / 2), 2.241402727, 2.807033768),
        ("range", 2 * np.sqrt(2 / np.pi), 2.497672161, 3.023341082),
    ],
)
def test_brownian_means_and_critical_values(law, mean, five, one):
    sf = getattr(cal, f"brownian_{law}_sf")
    x = np.linspace(0.0, 12.0, 24001)
    assert np.trapezoid(sf(x), x) == pytest.approx(mean, rel=1e-7)
    assert sf(five) == pytest.approx(0.05, rel=1e-8)
    assert sf(one) == pytest.approx(0.01, rel=1e-8)


@pytest.mark.parametrize("grid", [None, 10, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_equal_the_literal_definition(grid, weighted):
    for seed in range(5):
        y, c = sample(seed, 60, grid)
        w = weights_of("1+i%3", len(y)) if weighted else None
        i = np.arange(len(y)) if w is None else np.repeat(np.arange(len(y)), w.astype(int))
        for ties in ("aggregate", "stable"):
            kw = {"sample_weight": w, "ties": ties}
            want = definitions.ecce_mad(y[i], c[i], ties)
            assert cal.kolmogorov_smirnov_calibration_error(y, c, **kw) == pytest.approx(want, abs=1e-14)
            want = definitions.ecce_r(y[i], c[i], ties)
            assert cal.kuiper_calibration_error(y, c, **kw) == pytest.approx(want, abs=1e-14)


def test_without_ties_all_three_rules_agree_and_with_ties_aggregating_never_raises_the_value():
    y, c = sample(1)
    for id in ("ecce_mad", "ecce_r"):
        values = {cal.compute(id, y, c, ties=t, rng=0) for t in ("aggregate", "stable", "random")}
        assert np.ptp(list(values)) < 1e-14
        for seed in range(20):
            yt, ct = sample(seed, 100, 5)
            base = cal.compute(id, yt, ct)
            assert base <= cal.compute(id, yt, ct, ties="stable") + 1e-14
            assert base <= cal.compute(id, yt, ct, ties="random", rng=seed) + 1e-14
    yt, ct = sample(3, 100, 5)
    assert cal.compute("ks", yt, ct, ties="random", rng=7) == cal.compute("ks", yt, ct, ties="random", rng=7)


def test_ordering_of_the_statistics():
    for seed in range(20):
        y, c = sample(seed, 80, None if seed % 2 else 8)
        mad, r = cal.compute("ecce_mad", y, c), cal.compute("ecce_r", y, c)
        per_score = sum(abs((y - c)[c == s].sum()) for s in np.unique(c)) / len(c)
        chain = [abs(y.mean() - c.mean()), mad, r, per_score, np.abs(y - c).mean()]
        assert (np.diff(chain) >= -1e-14).all()
        assert r <= 2 * mad + 1e-14


def test_swapping_the_classes_keeps_kuiper_and_reads_ks_from_the_other_end():
    y, c = sample(4, 100, 20)
    walk = np.array(definitions.cumulative_differences(y, c))
    assert cal.compute("ecce_r", 1 - y, 1 - c) == pytest.approx(cal.compute("ecce_r", y, c), abs=1e-14)
    assert cal.compute("ecce_mad", 1 - y, 1 - c) == pytest.approx(np.abs(walk - walk[-1]).max(), abs=1e-14)


@pytest.mark.parametrize("id", ["ecce_mad", "ecce_r"])
class TestEdges:
    def test_one_row(self, id):
        assert cal.compute(id, [1], [0.3]) == pytest.approx(0.7)

    def test_certain_and_right_is_zero_with_pvalue_one(self, id):
        with pytest.warns(cal.CalibrationWarning, match="too few"):
            result = cal.test(id, [0, 1, 1], [0.0, 1.0, 1.0], method="asymptotic")
        assert (result.statistic, result.normalised, result.pvalue, result.log_pvalue) == (0.0, 0.0, 1.0, 0.0)

    def test_certain_and_wrong_is_one_with_pvalue_zero(self, id):
        with pytest.warns(cal.CalibrationWarning, match="too few"):
            result = cal.test(id, [0, 0], [1.0, 1.0], method="asymptotic")
        assert (result.statistic, result.normalised, result.pvalue, result.log_pvalue) == (1.0, np.inf, 0.0, -np.inf)

    def test_all_ranks_within_the_top_is_exactly_zero(self, id):
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.ones(4), 50)
        assert cal.compute(id, rng.integers(0, 4, 50), p, lens="within-top-r", r=4) == 0.0

    def test_whole_vectors_have_no_order(self, id):
        with pytest.raises(ValueError, match="not defined for lens='full'"):
            cal.compute(id, [0, 1, 2], np.eye(3), lens="full")

    def test_unknown_words_are_refused(self, id):
        with pytest.raises(ValueError, match="ties='sorted' is not known"):
            cal.compute(id, [0, 1], [0.1, 0.8], ties="sorted")
        with pytest.raises(ValueError, match="method='bootstrap' is not known"):
            cal.test(id, [0, 1], [0.1, 0.8], method="bootstrap")
        with pytest.raises(ValueError, match="weight_type='count' is not known"):
            cal.test(id, [0, 1], [0.1, 0.8], weight_type="count", method="asymptotic")


@pytest.mark.parametrize("id", ["ecce_mad", "ecce_r"])
@pytest.mark.parametrize("ties", ["aggregate", "stable"])
def test_frequency_weights_are_repeated_rows_in_every_field_of_the_test(id, ties):
    y, c = sample(5, 120, 50)
    w = weights_of("1+i%3", len(y)).astype(int)
    weighted = cal.test(id, y, c, sample_weight=w, ties=ties, method="asymptotic")
    repeated = cal.test(id, np.repeat(y, w), np.repeat(c, w), ties=ties, method="asymptotic")
    for name in ("statistic", "pvalue", "sigma", "normalised", "log_pvalue", "signed", "n", "n_distinct", "argmax"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12)


def test_importance_weights_do_not_depend_on_their_scale_and_fractional_counts_are_refused():
    y, c = sample(6)
    w = weights_of("1+i%3", len(y)) / 7
    a = cal.test("ks", y, c, sample_weight=w, weight_type="importance", method="asymptotic")
    b = cal.test("ks", y, c, sample_weight=100 * w, weight_type="importance", method="asymptotic")
    assert a.pvalue == pytest.approx(b.pvalue, rel=1e-12)
    assert a.n == len(y)
    with pytest.raises(ValueError, match="not a whole number"):
        cal.test("ks", y, c, sample_weight=w, method="asymptotic")


def test_result_tells_where_the_walk_is_extreme():
    y, c = np.array([0, 0, 1, 1] * 10), np.tile([0.3, 0.4, 0.6, 0.7], 10) + np.repeat(np.arange(10), 4) * 1e-3
    ks = cal.test("ks", y, c, method="asymptotic")
    walk = np.array(definitions.cumulative_differences(y, c))
    assert ks.signed == pytest.approx(walk[np.abs(walk).argmax()])
    assert ks.argmin == np.unique(c)[walk.argmin() - 1]
    assert np.isnan(ks.argmax) == (walk.argmax() == 0)
    assert cal.test("kuiper", y, c, method="asymptotic").signed == pytest.approx((walk.max(), walk.min()))


def test_class_wise_test_is_bonferroni_over_the_classes():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 150)
    y = rng.integers(0, 3, 150)
    result = cal.test("ecce_r", y, p, lens="class-wise", method="asymptotic")
    each = [cal.test("ecce_r", y == k, p[:, k], method="asymptotic") for k in range(3)]
    assert result.pvalue == pytest.approx(min(1.0, 3 * min(e.pvalue for e in each)))
    assert result.log_pvalue == pytest.approx(np.log(result.pvalue))
    assert result.statistic == pytest.approx(np.mean([e.statistic for e in each]))
    np.testing.assert_allclose(result.sigma, [e.sigma for e in each])
    np.testing.assert_allclose(result.pvalues, [e.pvalue for e in each])
    assert cal.test("ecce_r", y, p, lens="class-wise", average="max", method="asymptotic").statistic == max(
        e.statistic for e in each
    )
    assert len(cal.test("ecce_r", y, p, lens="pairwise", method="asymptotic").pvalues) == 3


@pytest.mark.parametrize(
    ("y", "c", "words"),
    [
        ([0, 1] * 10, np.linspace(0.1, 0.9, 20), "20 rows are too few"),
        ([0, 1] * 50, np.tile([0.2, 0.6], 50), "2 distinct scores are too few"),
        ([0, 1] * 50, np.r_[np.linspace(1e-4, 1e-3, 99), 0.5], "one score has"),
    ],
)
def test_brownian_pvalue_warns_where_it_is_rough(y, c, words):
    with pytest.warns(cal.CalibrationWarning, match=words):
        cal.test("ks", y, c, method="asymptotic")


def test_brownian_test_keeps_its_level_and_has_power():
    rng = np.random.default_rng(0)
    p = {"calibrated": [], "over-confident": []}
    runs = amount(200, 400)
    for _ in range(runs):
        c = rng.beta(0.8, 0.8, 300)
        for name, truth in (("calibrated", c), ("over-confident", 0.5 + 0.6 * (c - 0.5))):
            y = rng.random(300) < truth
            p[name].append(
                [cal.test("ks", y, c, method="asymptotic").pvalue, cal.test("kuiper", y, c, method="asymptotic").pvalue]
            )
    level = (np.array(p["calibrated"]) < 0.05).mean(axis=0)
    power = (np.array(p["over-confident"]) < 0.05).mean(axis=0)
    assert (abs(level - 0.05) < 3.0 * math.sqrt(0.05 * 0.95 / runs)).all()
    assert (power > 0.7).all()


class TestPlotData:
    def test_points_are_the_walk_with_its_origin_and_standard_deviation(self):
        y, c = sample(8, 50, 20)
        w = weights_of("1+i%3", 50)
        plot = cal.cumulative_difference(y, c, sample_weight=w)
        s = np.unique(c)
        np.testing.assert_allclose(plot.value, definitions.cumulative_differences(y, c, w=w), atol=1e-14)
        np.testing.assert_allclose(plot.abscissa, [0.0] + [w[c <= v].sum() / w.sum() for v in s], atol=1e-14)
        var = [0.0] + [(w * c * (1 - c))[c <= v].sum() / w.sum() ** 2 for v in s]
        np.testing.assert_allclose(plot.sigma_g, np.sqrt(var), atol=1e-14)
        assert np.isnan(plot.score[0])
        np.testing.assert_array_equal(plot.score[1:], s)
        squared = cal.cumulative_difference(y, c, sample_weight=w, weight_type="importance")
        assert squared.sigma == pytest.approx(np.sqrt((w**2 * c * (1 - c)).sum()) / w.sum())

    def test_it_carries_the_two_statistics_and_the_tests_sigma(self):
        y, c = sample(9)
        plot = cal.cumulative_difference(y, c)
        assert plot.ks == cal.compute("ks", y, c)
        assert plot.kuiper == cal.compute("kuiper", y, c)
        assert plot.sigma == pytest.approx(cal.test("ks", y, c, method="asymptotic").sigma, rel=1e-13)
        rows = cal.cumulative_difference(y, np.round(c, 1), ties="stable")
        assert len(rows.value) == len(y) + 1

    def test_several_views_are_refused_with_the_way_out(self):
        p = np.full((6, 3), 1 / 3)
        with pytest.raises(ValueError, match="gives 3 binary problems and a cumulative difference plot needs one"):
            cal.cumulative_difference([0, 1, 2] * 2, p, lens="class-wise")
        assert cal.cumulative_difference([0, 1, 2] * 2, p).ks == 0.0


def test_no_numpy_warning_reaches_the_user():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for y, c in ([[1], [1.0]], [[0], [1.0]], [[0, 1], [0.5, 0.5]], [[1, 1], [0.0, 1.0]]):
            cal.test("ks", y, c, method="asymptotic")
            cal.test("kuiper", y, c, method="asymptotic")
            cal.cumulative_difference(y, c)

"""Figures: what they show is right, they draw whatever the data, and they leave matplotlib as they found it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import subprocess
import sys
import warnings

import matplotlib
import numpy as np
import pytest

import calibrary as cal
from calibrary import gallery, plots
from calibrary.base.errors import CalibrationWarning
from calibrary.base.numbers import with_interval
from calibrary.plots import style
from calibrary.plots.corp import _band
from calibrary.plots.data import FigureData, cells
from calibrary.plots.reliability import clopper_pearson, wilson
from calibrary.plots.simplex import simplex_cells
from calibrary.plots.smooth import _reflected
from each import FULL, some_of
from golden import arrays, parts


@pytest.fixture(scope="module")
def synthetic():
    return gallery.Synthetic.make(1500)


@pytest.fixture(scope="module")
def matches():
    from importlib.resources import files

    data = files("calibrary") / "datasets"
    return cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))


def each(id):
    return pytest.mark.parametrize("entry", parts("inference", id), ids=lambda e: f"{e['data']}-{e['params']}")


def labeled(ax):
    return ax.get_legend_handles_labels()[1]


def words(figure):
    from matplotlib.text import Text

    return " ".join(t.get_text() for t in figure.findobj(Text))


# -- the reference values ---------------------------------------------------------------------------


def view_of(entry):
    y, p, _ = arrays(entry["data"])
    return {"y_true": y, "y_prob": p, "lens": entry["lens"]}


@each("brier_curve")
def test_brier_curve_at_a_threshold(entry):
    got = plots.brier_curve(**view_of(entry)).at(entry["params"]["t"])
    np.testing.assert_allclose(got, entry["value"], rtol=1e-12, atol=1e-14)


@each("brier_curve_area")
def test_brier_curve_areas(entry):
    data = plots.brier_curve(**view_of(entry))
    np.testing.assert_allclose(data.area, entry["value"], rtol=1e-12)
    drawn = [np.trapezoid(v, data.t) for v in (data.total, data.class_0, data.class_1)]
    np.testing.assert_allclose(drawn, entry["value"], rtol=1e-12)


@each("cost_curve")
def test_cost_curve_at_a_trade_off(entry):
    got = plots.brier_curve(**view_of(entry)).cost_at(entry["params"]["t"])
    np.testing.assert_allclose(got, entry["value"], rtol=1e-12, atol=1e-14)


@each("cost_curve_area")
def test_cost_curve_area(entry):
    np.testing.assert_allclose(plots.brier_curve(**view_of(entry)).cost_area, entry["value"], rtol=1e-12)


@each("reliability_points")
def test_reliability_points(entry):
    d = plots.reliability_data(**view_of(entry), n_bins=entry["params"]["bins"])
    got = np.column_stack([d.weight, d.confidence, d.outcome, d.standard_error])
    np.testing.assert_allclose(got, entry["value"], rtol=1e-12, atol=1e-12)


@each("tilted_roof")
def test_tilted_roofs(entry):
    d = plots.reliability_data(**view_of(entry), n_bins=entry["params"]["bins"])
    lo, height_lo, hi, height_hi = d.roof.T
    np.testing.assert_allclose(np.column_stack([lo, hi, height_lo, height_hi]), entry["value"], rtol=1e-12, atol=1e-12)


@each("simplex_cells")
def test_simplex_cells(entry):
    y, p, _ = arrays(entry["data"])
    d = plots.simplex_data(y, p, groups=entry["params"]["groups"], side=entry["params"]["side"])
    expected = entry["value"]
    assert d.cell.tolist() == [[a, b, int(up)] for a, b, up in (e["cell"] for e in expected)]
    np.testing.assert_array_equal(d.weight, [e["n"] for e in expected])
    np.testing.assert_allclose(d.prediction, [e["mean_confidence"] for e in expected], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(d.frequency, [e["frequency"] for e in expected], rtol=1e-12, atol=1e-14)


# -- what the figures promise -----------------------------------------------------------------------


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_mean_distance_from_roof_to_diagonal_is_ece(synthetic, binning):
    y, c, _ = synthetic
    d = plots.reliability_data(y, c, n_bins=10, binning=binning)
    position = np.searchsorted(d.upper, c)
    left, start = d.roof[position, 0], d.roof[position, 1]
    np.testing.assert_allclose(np.mean(np.abs(start + (c - left) - c)), d.ece, rtol=1e-12)
    np.testing.assert_allclose(d.ece, cal.compute("ece", y, c, n_bins=10, binning=binning), rtol=1e-12)


def test_markers_stand_at_the_mean_confidence_not_at_bin_centres(synthetic):
    y, c, _ = synthetic
    ax = plots.plot_reliability(y, c**2, n_bins=5, labels_shown=False)
    markers = ax.collections[-1].get_offsets()
    bins = np.minimum(np.ceil(c**2 * 5).astype(int) - 1, 4)
    np.testing.assert_allclose(markers[:, 0], [np.mean(c[bins == b] ** 2) for b in range(5)], rtol=1e-12)
    np.testing.assert_allclose(markers[:, 1], [np.mean(y[bins == b]) for b in range(5)], rtol=1e-12)


def test_empty_bins_are_skipped():
    d = plots.reliability_data([0, 1], [0.05, 0.95], n_bins=10)
    assert len(d) == 2
    assert "10 equal-width bins (2 used)" in words(plots.plot_reliability(d).figure)


@pytest.mark.parametrize("options", [{}, {"binning": "mass", "n_bins": 7}, {"edges": [0, 0.2, 0.7, 1]}])
def test_interval_of_ece_is_that_of_the_same_question(synthetic, options):
    y, c, _ = synthetic
    for weight in (None, 1 + np.arange(len(y)) % 3):
        asked = {"n_resamples": 39, "rng": 1, "confidence_level": 0.9, "sample_weight": weight, **options}
        d = plots.reliability_data(y, c, **asked)
        assert (d.ece_low, d.ece_high) == tuple(cal.interval("ece", y, c, **asked))


def test_an_interval_is_left_out_where_nobody_asks_or_too_little_is_drawn(synthetic):
    y, c, _ = synthetic
    for given in ({"n_resamples": 0}, {"n_resamples": 18}, {"interval": False}):
        assert np.isnan(plots.reliability_data(y, c, **given).ece_low)
    assert np.isfinite(plots.reliability_data(y, c, n_resamples=19).ece_high)
    shares = plots.reliability_data(y, c, sample_weight=np.linspace(0.5, 1.5, len(y)), n_resamples=19)
    assert np.isfinite(shares.ece_high)


def test_intervals_of_a_frequency_are_those_of_scipy():
    from scipy.stats import binomtest

    hits, n = np.array([0, 1, 7, 20]), np.array([5, 9, 10, 20])
    for ours, name in ((wilson, "wilson"), (clopper_pearson, "exact")):
        got = np.clip(np.array(ours(hits / n, n.astype(float), 0.9)), 0, 1).T
        theirs = [binomtest(int(k), int(m)).proportion_ci(0.9, method=name) for k, m in zip(hits, n, strict=True)]
        np.testing.assert_allclose(got, theirs, atol=1e-12)


def test_consistency_ranges_are_the_quantiles_of_redrawn_labels(synthetic):
    _, c, _ = synthetic
    rng = np.random.default_rng(5)
    d = plots.reliability_data(np.zeros(len(c), int), c, n_bins=5, error="consistency", n_resamples=3000)
    bins = np.minimum(np.ceil(c * 5).astype(int) - 1, 4)
    slow = [[np.mean((rng.random(len(c)) < c)[bins == b]) for b in range(5)] for _ in range(1500)]
    np.testing.assert_allclose([d.low, d.high], np.quantile(slow, [0.025, 0.975], axis=0), atol=0.008)


def test_weights_are_repeated_rows():
    y, c, w = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.4, 0.4, 0.8, 0.9]), np.array([1, 3, 1, 2, 2])
    once, often = (y, c), (np.repeat(y, w), np.repeat(c, w))
    for data in (plots.reliability_data, plots.brier_curve, plots.cumulative_data, plots.corp_data, plots.smooth_data):
        a, b = data(*once, sample_weight=w).to_dict(), data(*often).to_dict()
        for name in set(a) - {"count", "shown_confidence", "shown_label"}:
            if isinstance(a[name], str) or a[name] is None or name == "axis":
                assert a[name] == b[name]
            else:
                got, expected = (np.array(x[name], dtype=float) for x in (a, b))
                searched = name in ("ece_low", "ece_high")  # ends that a search has found
                np.testing.assert_allclose(got, expected, rtol=1e-5 if searched else 1e-9, atol=1e-12, err_msg=name)


def test_corp_miscalibration_is_the_area_between_brier_and_cost_curve(synthetic):
    y, c, _ = synthetic
    brier, corp = plots.brier_curve(y, c), plots.corp_data(y, c, band=None)
    np.testing.assert_allclose(brier.area[0] - brier.cost_area, corp.miscalibration, rtol=1e-9)
    np.testing.assert_allclose(brier.area[0], cal.compute("bs", y, c), rtol=1e-12)
    np.testing.assert_allclose(corp.brier, corp.miscalibration - corp.discrimination + corp.uncertainty, rtol=1e-9)


def test_cost_curve_is_the_lower_envelope_of_the_cost_lines():
    y, c, _ = arrays("binary12")
    d = plots.brier_curve(y, c)
    assert len(d.lines) == len(np.unique(c)) + 1
    for t in np.linspace(0, 1, 33):
        np.testing.assert_allclose(d.cost_at(t), ((1 - t) * d.lines[:, 0] + t * d.lines[:, 1]).min(), atol=1e-12)


def test_hybrid_is_the_pointwise_minimum(synthetic):
    y, c, _ = synthetic
    models = {"a": (y, c), "b": (y, 0.5 + 0.35 * (c - 0.5)), "c": (y, np.round(c, 1))}
    hybrid = plots.hybrid_curve(models)
    made = [plots.brier_curve(*m) for m in models.values()]
    for t in np.random.default_rng(0).random(200):
        i = np.searchsorted(hybrid.t, t) - 1
        share = (t - hybrid.t[i]) / (hybrid.t[i + 1] - hybrid.t[i])
        got = (1 - share) * hybrid.cost[i] + share * hybrid.cost[i + 1]
        np.testing.assert_allclose(got, min(m.at(t)[0] for m in made), atol=1e-12)
    assert hybrid.area < min(m.area[0] for m in made)


def test_smooth_curve_is_nadaraya_watson_at_the_width_of_smece(synthetic):
    y, c, _ = synthetic
    d = plots.smooth_data(y, c, n_resamples=0)
    assert d.sigma == d.smece == pytest.approx(cal.compute("smece", y, c))
    images = np.concatenate([c + k for k in (-2, 0, 2)] + [k - c for k in (0, 2)])
    kernel = np.exp(-0.5 * ((d.grid[:, None] - images) / d.sigma) ** 2)
    np.testing.assert_allclose(d.curve, kernel @ np.tile(y, 5) / kernel.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(d.density_1 + d.density_0, d.density)
    np.testing.assert_allclose(d.density.mean(), 1.0, atol=1e-4)


def test_wide_kernels_are_reflected_often_enough():
    t, x = np.linspace(0, 1, 21), np.array([0.1, 0.7])
    np.testing.assert_allclose(_reflected(t, x, 3.0), np.ones((21, 2)), atol=1e-6)


def test_smooth_curve_stops_where_nobody_is():
    d = plots.smooth_data([0, 1, 0, 1], [0.1, 0.1, 0.9, 0.9], n_resamples=5)
    middle = (d.grid > 0.45) & (d.grid < 0.55)
    assert np.isnan(d.curve[middle]).all() == (d.sigma < 0.1)


@pytest.mark.parametrize("name", ["loess", "spline", "isotonic", "beta", "logistic", "kde"])
def test_smooth_diagram_of_any_map(synthetic, name):
    y, c, _ = synthetic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        d = plots.smooth_data(y, c, map=name, n_resamples=3)
    inside = (d.grid > 0.1) & (d.grid < 0.9)
    truth = 0.12 + 0.72 * d.grid
    assert np.abs(d.curve - truth)[inside].max() < 0.15
    assert d.map == name


def test_corp_band_covers_a_calibrated_model():
    rng = np.random.default_rng(3)
    c = rng.random(800)
    d = plots.corp_data((rng.random(800) < c).astype(int), c, n_resamples=200)
    assert ((d.fit >= d.low) & (d.fit <= d.high)).mean() > 0.8
    assert (np.diff(d.low) >= 0).all()
    assert (np.diff(d.high) >= 0).all()


def test_merging_many_confidences_hardly_moves_the_band():
    rng = np.random.default_rng(4)
    c = rng.random(6000)
    view = cal.predictions((rng.random(6000) < c).astype(int), c)
    some = cells(view)
    assert len(some.c) <= 4096
    np.testing.assert_allclose(some.weight.sum(), 6000)
    np.testing.assert_allclose(np.dot(some.weight, some.c), c.sum(), rtol=1e-12)
    low, high = _band(some, some.c, 100, 0.9, np.random.default_rng(0))
    assert np.abs((low + high) / 2 - some.c).max() < 0.05


def test_cumulative_walk_is_that_of_the_tests(synthetic):
    y, c, _ = synthetic
    d = plots.cumulative_data(y, c)
    for id, value, p in (("ecce_mad", d.ks, d.ks_pvalue), ("ecce_r", d.kuiper, d.kuiper_pvalue)):
        result = cal.test(id, y, c)
        np.testing.assert_allclose([value, p], [cal.compute(id, y, c), result.pvalue], rtol=1e-9)
    assert len(d.share) == len(np.unique(c)) + 1


def test_equal_mass_cells_of_the_simplex_hold_equal_mass():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.5, 1, 2], 2500)
    y = rng.integers(0, 3, 2500)
    d = plots.simplex_data(y, p, binning="mass")
    np.testing.assert_array_equal(d.weight, 100)
    for corners, mean in zip(d.corners, d.prediction, strict=True):
        assert (mean >= corners.min(axis=0) - 1e-12).all()
        assert (mean <= corners.max(axis=0) + 1e-12).all()


def test_simplex_has_side_squared_cells_and_one_hot_rows_make_no_more():
    rng = np.random.default_rng(0)
    p = np.concatenate(
        [rng.dirichlet([1, 1, 1], 20000), np.eye(3), rng.permuted(np.tile([0.4, 0.6, 0], (50, 1)), axis=1)]
    )
    cell = simplex_cells(p)
    assert len(np.unique(cell, axis=0)) == 25
    a, b, up = cell.T
    assert (a + b <= np.where(up == 1, 4, 3)).all()
    assert (cell[20000:20003, 2] == 1).all()


def test_detection_reliability_shows_the_metrics_of_its_bins(matches):
    d = plots.detection_reliability(matches, n_bins=10)
    assert d.d_ece == pytest.approx(cal.compute("d_ece", matches, n_bins=10, min_samples=1))
    same = {"n_bins": 10, "closed": "left", "confidence_threshold": 0.0}
    assert d.egce == pytest.approx(cal.compute("egce", matches, **same))
    for one in matches.by_category().values():
        if len(one):
            got = plots.detection_reliability(one, n_bins=10).la_ece
            assert got == pytest.approx(cal.compute("laece", one, n_bins=10))
    ax = plots.plot_detection_reliability(d)
    missed = ax.patches[-1]
    assert missed.get_x() > 1
    assert missed.get_height() == pytest.approx(d.n_missed / (d.n_missed + d.n_detections))


def test_heat_map_leaves_blank_what_is_unknown(matches):
    d = plots.d_ece_map_data(matches, n_bins=[5, 6, 6], min_count=4)
    ax = plots.plot_d_ece_map(d, counts=True)
    shown = ax.collections[0].get_array()
    assert shown.mask.reshape(6, 6).T.tolist() == np.isnan(d.map).tolist()
    hatched = [p for p in ax.patches if p.get_hatch()]
    assert len(hatched) == ((d.n > 0) & (d.n_kept == 0)).sum()
    assert {t.get_text() for t in ax.texts} >= {f"{v:g}" for v in d.n[d.n > 0]}
    assert ax.yaxis_inverted()
    assert not plots.plot_d_ece_map(matches, features="shape", min_count=1).yaxis_inverted()


def test_line_along_one_feature(matches):
    ax = plots.plot_d_ece_map(matches, features=["cx"], n_bins=[5, 5], min_count=2)
    assert set(labeled(ax)) == {"D-ECE", "precision", "mean score"}


def test_grouping_finds_groups_that_the_features_hide(synthetic):
    y, c, features = gallery.Synthetic.make(3000)
    d = plots.grouping_data(y, c, features, n_bins=6)
    assert d.significant.mean() > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        unrelated = plots.grouping_data(y, c, np.random.default_rng(0).normal(size=len(y)), n_bins=6)
    assert unrelated.significant.mean() < 0.3
    np.testing.assert_array_equal(d.count.sum(), 1500)


def test_null_distribution_holds_the_draws(synthetic):
    y, c, _ = synthetic
    d = plots.null_data("ece", y, c, n_resamples=99)
    assert len(d.values) == 99
    assert d.pvalue == pytest.approx((1 + np.sum(d.values >= d.observed)) / 100)
    assert f"observed {d.observed:.4g}" in labeled(plots.plot_null(d))


def test_dot_plot_shows_errors_on_one_scale(synthetic):
    y, c, _ = synthetic
    found = cal.evaluate(y, c, metrics=["ece", "bs", "ecce_mad"], intervals=True, n_resamples=20, rng=0)
    d = plots.dot_data(found)
    assert d.names == ("ECE", "Kolmogorov-Smirnov calibration error")
    ax = plots.plot_metrics(found)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["ECE", "Kolmogorov-Smirnov calibration error"]


def test_tree_names_every_metric_of_the_review():
    d = plots.tree_data()
    assert [len(v) for v in d.families.values()] == [27, 27, 23, 2, 8]
    assert [len(v) for v in d.subfamilies.values()] == [12, 10, 11, 1, 5]  # Fig. 1
    assert d.subfamilies["Bin-based"]["interval error"] == ("sice",)
    assert d.subfamilies["Object detection"]["with false negatives"] == ("egce", "qgc", "sgc")
    written = {t.get_text() for t in plots.plot_tree(d).texts}
    assert {cal.catalogue[id].name for v in d.families.values() for id in v} <= written
    assert {"Point-based (27)", "Kernel or curve (23)", "Object detection (8)"} <= written
    assert {name for branches in d.subfamilies.values() for name in branches} <= written


def test_theory_shows_both_errors_of_one_case():
    ax = plots.plot_theory(example=0.7)
    assert {"error 0.7", "error 0.3"} <= {t.get_text() for t in ax.texts}
    np.testing.assert_allclose(plots.theory_data(lambda c: c**2).curve[200], 0.25)


# -- several models, classes, displays --------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "number"),
    [
        (plots.plot_reliability, "ECE"),
        (plots.plot_smooth_reliability, "smECE"),
        (plots.plot_cumulative, "KS"),
        (plots.plot_brier_curve, "Brier"),
    ],
)
def test_several_models_on_one_diagram(synthetic, draw, number):
    y, c, _ = synthetic
    fast = {"n_resamples": 5} if draw is plots.plot_smooth_reliability else {}
    ax = draw({"first": (y, c), "second": cal.predictions(y, 0.5 + 0.4 * (c - 0.5))}, **fast)
    names = labeled(ax)
    assert [n.split(":")[0] for n in names][:2] == ["first", "second"]
    assert all(number in n for n in names[:2])
    with pytest.raises(ValueError, match="dict of models is empty"):
        draw({})


def test_small_multiples_show_the_worst_of_many_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(40, 0.2), 2000)
    y = (p.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    data = plots.class_data(y, p)
    assert len(data) == 40
    figure = plots.small_multiples(data, most=12)
    assert len(figure.axes) == 12
    worst = max(data, key=lambda k: data[k].ece)
    assert figure.axes[0].get_title(loc="left").startswith(f"{worst} ")
    assert "the 12 worst of 40" in figure.get_suptitle()
    names = np.array(["a", "b", "c"])[y % 3]
    pairs = plots.class_data(names, rng.dirichlet([1, 1, 1], 2000), lens="pairwise", labels=["a", "b", "c"])
    assert list(pairs) == ["a v b", "a v c", "b v c"]


def test_display_from_predictions_and_from_an_estimator():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.where(x[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = linear_model.LogisticRegression().fit(x, y)
    shown = plots.ReliabilityDisplay.from_estimator(model, x, y, n_bins=5, theme="dark")
    assert shown.estimator_name == "LogisticRegression"
    assert shown.figure_ is shown.ax_.figure
    other = plots.ReliabilityDisplay.from_predictions(y == "yes", model.predict_proba(x)[:, 1], n_bins=5, kind="bar")
    np.testing.assert_allclose(other.data.ece, shown.data.ece)
    with pytest.raises(TypeError, match="has no predict_proba: pass probabilities to from_predictions"):
        plots.ReliabilityDisplay.from_estimator(object(), x, y)


def test_drawing_from_data_and_from_arrays_is_the_same(synthetic):
    y, c, _ = synthetic
    a, b = plots.plot_reliability(y, c), plots.plot_reliability(plots.reliability_data(y, c))
    for one, other in zip(a.collections, b.collections, strict=True):
        np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())


# -- words ------------------------------------------------------------------------------------------


def test_captions_state_n_lens_bins_metric_and_interval(synthetic):
    y, c, _ = synthetic
    d = plots.reliability_data(y, c)
    text = words(plots.plot_reliability(d).figure).replace("\n", " ")
    for said in (
        "N = 1,500",
        "15 equal-width bins",
        f"ECE {with_interval(d.ece, d.ece_low, d.ece_high)}",
    ):
        assert said in text
    assert "95% Wilson" in text
    s = plots.smooth_data(y, c, n_resamples=20)
    text = words(plots.plot_smooth_reliability(s).figure)
    assert f"smECE {with_interval(s.smece, s.smece_low, s.smece_high)}" in text
    text = words(plots.plot_corp(y, c, n_resamples=20).figure)
    assert all(part in text for part in ("MCB", "DSC", "UNC", "95% if calibrated"))
    bare = words(plots.plot_reliability(d, caption=False).figure)
    assert "N = 1,500" not in bare


def test_axes_are_named_after_the_lens():
    y, p, _ = cal.datasets.digits()
    assert plots.plot_reliability(y, p).get_xlabel() == "Confidence"
    assert plots.plot_reliability(y == 3, p[:, 3]).get_xlabel() == "Predicted probability"


def test_bar_chart_marks_mean_outcome_and_mean_prediction(synthetic):
    y, c, _ = synthetic
    ax = plots.plot_reliability(y, c, kind="bar", n_bins=10)
    (inset,) = ax.child_axes
    np.testing.assert_allclose(sorted(line.get_xdata()[0] for line in inset.lines), sorted([y.mean(), c.mean()]))
    assert len(ax.patches) == 20
    assert plots.plot_reliability(y, c, kind="bar", histogram="none").child_axes == []


def test_at_most_two_thousand_labels_are_drawn_with_a_fixed_jitter():
    rng = np.random.default_rng(0)
    y, c = rng.integers(0, 2, 5000), rng.random(5000)
    a, b = (plots.plot_reliability(y, c, error=None).collections[-1].get_offsets() for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert len(a) == 2000
    assert np.abs(a[:, 1] - np.round(a[:, 1])).max() <= 0.025


# -- whatever the data ------------------------------------------------------------------------------


def crowd(n, k):
    rng = np.random.default_rng(n + k)
    if k == 2:
        c = rng.beta(0.9, 0.9, n)
        return (rng.random(n) < 0.1 + 0.8 * c).astype(int), c
    p = rng.dirichlet(np.full(k, 0.4), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


DATA = {
    "two rows": ([0, 1], [0.3, 0.6]),
    "two equal rows": ([1, 1], [0.5, 0.5]),
    "one class": (np.ones(60, int), crowd(60, 2)[1]),
    "equal confidences": (np.arange(50) % 2, np.full(50, 0.37)),
    "only zeros and ones": (np.arange(40) % 2, np.arange(40) % 2 * 1.0),
    "ten classes": crowd(400, 10),
    "a million": crowd(10**6, 2),
}
GROUPS = [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
FEW = {"n_resamples": 10}
FIGURES = {
    "line": plots.plot_reliability,
    "consistency": lambda p: plots.plot_reliability(p, error="consistency", **FEW),
    "bar": lambda p: plots.plot_reliability(p, kind="bar", binning="mass"),
    "roof": lambda p: plots.plot_reliability(p, kind="tilted-roof"),
    "classes": lambda p: plots.small_multiples(p, n_bins=5),
    "smooth": lambda p: plots.plot_smooth_reliability(p, **FEW),
    "isotonic": lambda p: plots.plot_smooth_reliability(p, map="isotonic", **FEW),
    "corp": lambda p: plots.plot_corp(p, **FEW),
    "bias": lambda p: plots.plot_corp(p, diagram="bias", band="confidence", **FEW),
    "cumulative": plots.plot_cumulative,
    "brier": lambda p: plots.plot_brier_curve(p, cost_lines=True),
    "brier models": lambda p: plots.plot_brier_curve({"a": p, "b": p}),
    "grouping": lambda p: plots.plot_grouping(p, None, np.arange(p.n), n_bins=4),
    "null": lambda p: plots.plot_null("bs", p, **FEW),
    "metrics": lambda p: plots.plot_metrics(cal.evaluate(p, metrics=["ece", "ecce_mad"])),
}


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize(("name", "data"), some_of(FIGURES, DATA))
def test_every_figure_draws(name, data):
    theme_free = cal.predictions(*DATA[data])
    drawn = FIGURES[name](theme_free)
    figure = getattr(drawn, "figure", drawn)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        figure.savefig(out, format="svg")
    assert b"<svg" in out.getvalue()
    assert len(out.getvalue()) < 600_000


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize(
    ("data", "binning"),
    [
        (data, binning)
        for i, data in enumerate(("two rows", "one class", "ten classes", "million"))
        for binning in (("width", "mass") if FULL else (("width", "mass")[i % 2],))
    ],
)
def test_simplex_draws(data, binning):
    y, p = {
        "two rows": ([0, 2], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]),
        "one class": (np.ones(80, int), crowd(80, 3)[1]),
        "ten classes": crowd(500, 10),
        "million": crowd(10**6, 3),
    }[data]
    options = {"groups": GROUPS} if data == "ten classes" else {}
    d = plots.simplex_data(y, p, binning=binning, **options)
    np.testing.assert_allclose(d.weight.sum(), len(y))
    plots.plot_simplex(d, arrows="to-frequency").figure.draw_without_rendering()
    for show in ("frequency", "gap"):
        plots.plot_simplex_maps(d, show=show).draw_without_rendering()


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("data", ["two rows", "ten classes", "a million"])
def test_overview_puts_four_diagrams_on_a_page(data):
    figure = plots.overview(*DATA[data], title="A model")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [t for t in titles if t] == [
        "Reliability diagram", "Smooth reliability diagram", "CORP reliability diagram", "Cumulative difference",
    ]  # fmt: skip
    out = io.BytesIO()
    figure.savefig(out, format="svg", bbox_inches="tight")
    assert len(out.getvalue()) < 600_000


def test_overview_of_detections(matches):
    assert len([ax for ax in plots.overview(matches).axes if ax.get_title(loc="left")]) == 4
    truth = {"annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}]}
    truth |= {"images": [{"id": 1}], "categories": [{"id": 1, "name": "cat"}]}
    found = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 8], "score": s} for s in (0.9, 0.4)]
    assert "No heat map" in words(plots.overview(cal.match_detections(truth, found)))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_of_the_gallery_follows_the_theme(theme):
    wanted = ("theory", "reliability-line", "corp", "cumulative", "brier-curve", "simplex", "detection-reliability")
    every = gallery.figures()
    for name in wanted:
        figure = every[name](theme=theme).figure
        assert matplotlib.colors.to_hex(figure.get_facecolor()).upper() == style.look(theme).paper
        title = figure.axes[0].get_title(loc="left")
        drawn = {
            matplotlib.colors.to_hex(t.get_color()).upper()
            for t in figure.findobj(matplotlib.text.Text)
            if t.get_text() == title
        }
        assert drawn == {style.look(theme).ink}


def test_colours_differ_in_lightness_for_neighbours():
    for theme in ("light", "dark"):
        look = style.look(theme)
        lightness = [np.dot(matplotlib.colors.to_rgb(c), [0.299, 0.587, 0.114]) for c in look.colors[:4]]
        assert np.abs(np.diff(lightness)).min() > 0.02
        styles = [str(look.nth(i)["ls"]) for i in range(4)]
        assert len(set(styles)) == 4


# -- exports ----------------------------------------------------------------------------------------


def test_every_data_object_exports_to_json_and_csv(synthetic, matches):
    y, c, x = synthetic
    digit, q, _ = cal.datasets.digits()
    made = [
        plots.reliability_data(y, c),
        plots.reliability_data(y, c, interval=False),
        plots.smooth_data(y, c, n_resamples=2),
        plots.corp_data(y, c, n_resamples=5),
        plots.cumulative_data(y, c),
        plots.brier_curve(y, c),
        plots.hybrid_curve({"a": (y, c), "b": (y, c**2)}),
        plots.simplex_data(digit, q, groups=GROUPS),
        plots.theory_data(),
        plots.grouping_data(y, c, x, n_bins=4),
        plots.reliability_map_data(y, c, x, n_resamples=3),
        plots.detection_reliability(matches),
        plots.d_ece_map_data(matches, n_bins=[5, 4, 4]),
        plots.null_data("ece", y, c, n_resamples=9),
        plots.dot_data(cal.evaluate(y, c, metrics=["ece", "ace"])),
        plots.tree_data(),
    ]
    for data in made:
        assert isinstance(data, FigureData)
        assert json.loads(data.to_json(), parse_constant=pytest.fail).keys() == data.to_dict().keys()
        rows = list(csv.reader(io.StringIO(data.to_csv())))
        assert len({len(r) for r in rows if r}) <= 1


def test_csv_columns_are_the_arrays():
    d = plots.reliability_data([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2)
    rows = list(csv.DictReader(io.StringIO(d.to_csv())))
    assert [float(r["outcome"]) for r in rows if r["outcome"]] == [0.0, 1.0]
    assert len([r for r in rows if r["histogram"]]) == 40


# -- refusals, and nothing left behind --------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda y, c: plots.plot_reliability(y, c, kind="pie"), "kind='pie' is not known"),
        (lambda y, c: plots.plot_reliability(y, c, error="sd"), "error='sd' is not known"),
        (lambda y, c: plots.plot_reliability(y, c, histogram="left"), "histogram='left' is not known"),
        (lambda y, c: plots.plot_reliability(y, c, theme="sepia"), "theme='sepia' is not known"),
        (
            lambda y, c: plots.plot_reliability(y, np.column_stack([c, 1 - c]), lens="class-wise"),
            "use plots.small_mult",
        ),
        (lambda y, c: plots.plot_corp(y, c, band="both"), "band='both' is not known"),
        (lambda y, c: plots.plot_corp(y, c, diagram="x"), "diagram='x' is not known"),
        (lambda y, c: plots.plot_smooth_reliability(y, c, map="magic"), "map='magic' is not known"),
        (lambda y, c: plots.plot_simplex(y, c), "three classes and there are 2: pass groups="),
        (lambda y, c: plots.plot_simplex(y, c, binning="area"), "binning='area' is not known"),
        (lambda y, c: plots.plot_grouping(y, c), "pass features="),
        (lambda y, c: plots.plot_grouping(y, c, [1.0]), "features has 1 rows"),
        (lambda y, c: plots.draw("pie", cal.predictions(y, c)), "kind='pie' is not a figure"),
        (lambda y, c: plots.plot_metrics(cal.evaluate(y, c, metrics=["bs"])), "no metric of this evaluation"),
    ],
)
def test_errors_are_one_sentence(wrong, said):
    with pytest.raises(ValueError, match=said) as caught:
        wrong([0, 1, 1], np.array([0.2, 0.5, 0.9]))
    assert "\n" not in str(caught.value)


def test_figures_by_name():
    y, p, _ = cal.datasets.breast_cancer()
    whole = cal.predictions(y, p)
    for kind in ("reliability", "bar", "tilted-roof", "cumulative", "brier", "bias"):
        assert plots.draw(kind, whole, n_bins=10).axes


def test_matplotlib_is_left_as_it_was(tmp_path):
    script = """
import sys, matplotlib
before = dict(matplotlib.rcParams)
import calibrary as cal
from calibrary import plots
assert "matplotlib.pyplot" not in sys.modules
y, p, _ = cal.datasets.breast_cancer()
plots.overview(y, p).savefig(sys.argv[1])
plots.plot_tree(theme="dark").figure.savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
assert dict(matplotlib.rcParams) == before
import matplotlib.pyplot as plt
plots.plot_brier_curve(y, p)
assert len(plt.get_fignums()) == 1
with plots.embedded():
    plots.plot_cumulative(y, p)
assert len(plt.get_fignums()) == 1
"""
    # a backend chosen beforehand: looking the automatic one up would import pyplot
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", script, str(tmp_path / "a.png")]
    subprocess.run(command, check=True, env={**os.environ, "MPLBACKEND": "agg"})


def test_data_functions_do_not_import_matplotlib():
    script = """
import sys
import calibrary as cal
from calibrary import plots
y, p, _ = cal.datasets.breast_cancer()
for make in (plots.reliability_data, plots.smooth_data, plots.corp_data, plots.cumulative_data, plots.brier_curve):
    make(y, p)
assert not any(m.startswith("matplotlib") for m in sys.modules), "matplotlib was imported"
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_drawing_on_given_axes_keeps_to_them(synthetic):
    from matplotlib.figure import Figure

    y, c, _ = synthetic
    figure = Figure(figsize=(6, 4))
    left, right = figure.subplots(1, 2)
    assert plots.plot_reliability(y, c, ax=left) is left
    assert plots.plot_cumulative(y, c, ax=right) is right
    assert figure.axes == [left, right]


def test_gallery_writes_png_svg_and_an_index(tmp_path, monkeypatch):
    few = {k: v for k, v in gallery.figures().items() if k in ("theory", "family-tree")}
    monkeypatch.setattr(gallery, "figures", lambda: few)
    monkeypatch.setattr(gallery, "_DARK", ("theory",))
    gallery.main(str(tmp_path / "out"))
    found = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert found == [
        "family-tree.png", "family-tree.svg", "index.html", "theory-dark.png", "theory-dark.svg", "theory.png",
        "theory.svg",
    ]  # fmt: skip
    page = (tmp_path / "out" / "index.html").read_text()
    assert all(f'src="{name}"' in page for name in found if name.endswith("png"))


# -- which model wins, how reliable a confidence is, and what a band keeps ------------------------------


def three_models(n=800):
    rng = np.random.default_rng(0)
    x = rng.random(n)
    y = (rng.random(n) < x).astype(int)
    noisy = np.clip(x + rng.normal(0, 0.1, n), 0, 1)
    return {"low": (y, x**1.6), "high": (y, 1 - (1 - x) ** 1.6), "noisy": (y, noisy)}


def test_the_hybrid_says_which_model_is_best_at_every_threshold():
    models = three_models()
    hybrid = plots.hybrid_curve(models)
    curves = {name: plots.brier_curve(*model) for name, model in models.items()}
    for t in np.random.default_rng(1).random(300):
        cost = {name: d.at(t)[0] for name, d in curves.items()}
        assert cost[hybrid.best_at(t)] == pytest.approx(min(cost.values()), abs=1e-12)
    ranges = hybrid.ranges
    assert ranges[0][0] == 0.0
    assert ranges[-1][1] == 1.0
    assert all(a[1] == b[0] and a[2] != b[2] for a, b in itertools.pairwise(ranges))
    assert len(hybrid.winner) == len(hybrid.t) // 2


def test_the_hybrid_classifier_acts_on_the_best_model_and_costs_what_its_curve_says():
    models = three_models()
    hybrid = plots.hybrid_curve(models)
    y = models["low"][0]
    for t in (0.11, 0.42, 0.83):
        act = hybrid.decide(t, {name: p for name, (_, p) in models.items()})
        cost = 2 * t * np.mean(act & (y == 0)) + 2 * (1 - t) * np.mean(~act & (y == 1))
        assert cost == pytest.approx(min(plots.brier_curve(*m).at(t)[0] for m in models.values()), abs=1e-12)
    with pytest.raises(ValueError, match="lack the model"):
        hybrid.decide(0.42, {})
    with pytest.raises(ValueError, match=r"threshold=1\.5"):
        hybrid.best_at(1.5)
    strip = [patch for patch in plots.plot_brier_curve(models).patches if patch.get_height() == pytest.approx(0.025)]
    assert len(strip) == len(hybrid.ranges)


def test_one_model_wins_everywhere_alone():
    y, p = three_models()["low"]
    assert plots.hybrid_curve({"only": (y, p)}).ranges == ((0.0, 1.0, "only"),)


def test_the_reliability_map_is_drawn_as_the_map_says():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3000, 2))
    c = 1 / (1 + np.exp(-x[:, 0]))
    split = 1 / (1 + np.exp(-(x[:, 0] + 2.5 * np.sign(x[:, 1]) * (x[:, 0] > 0))))
    y = (rng.random(3000) < split).astype(int)
    d = plots.reliability_map_data(y, c, x, n_resamples=20)
    again = cal.ReliabilityMap(0.05, 0.15).fit(y, c, features=x)
    np.testing.assert_allclose(d.reliability, again(d.grid))
    assert d.score == pytest.approx(cal.reliability_map_score(y, c, features=x, bandwidth=0.05, map_bandwidth=0.15))
    assert (d.low <= d.reliability + 0.05).all()
    # cases of equal confidence differ above one half, and only there
    assert d.reliability[d.grid < 0.3].mean() > 0.9 > d.reliability[(d.grid > 0.7) & (d.grid < 0.9)].mean() + 0.2
    assert sum(d.count) == d.n_clusters
    ax = plots.plot_reliability_map(d)
    assert ax.get_ylabel() == "Reliability"
    with pytest.raises(ValueError, match="features= or clusters="):
        plots.plot_reliability_map(y, c)


@pytest.mark.parametrize(("name", "chosen"), [("pl", "segments_"), ("pl3", "segments_"), ("bins", "chosen_")])
def test_a_band_keeps_what_cross_validation_chose_on_the_whole_sample(name, chosen, monkeypatch):
    from calibrary.maps import as_map, map_class

    rng = np.random.default_rng(3)
    c = rng.random(120)
    y = (rng.random(120) < c**2).astype(int)
    whole = as_map(name).fit(y, c)
    again = whole.for_refit().fit(y, c)
    assert getattr(again, chosen) == getattr(whole, chosen)
    seen = []
    learn = map_class(name)._learn
    monkeypatch.setattr(map_class(name), "_learn", lambda self, view: (learn(self, view), seen.append(self))[0])
    plots.smooth_data(y, c, map=name, n_resamples=6)
    free = [m for m in seen if (m.segments is None if chosen == "segments_" else m.n_bins == "cv")]
    assert len(seen) == 7
    assert len(free) == 1  # chosen once
    assert {getattr(m, chosen) for m in seen} == {getattr(free[0], chosen)}


def test_the_map_of_few_detections_is_coarser_instead_of_blank():
    matches = cal.datasets.detections()
    data = plots.d_ece_map_data(matches)
    assert data.kept_share >= 0.5
    assert np.isfinite(data.map).any()
    finer = plots.d_ece_map_data(matches, n_bins=data.n.shape[0] + 1)  # one more bin leaves most of them out
    assert finer.kept_share < 0.5


def test_a_smooth_curve_fades_where_what_it_smooths_lies_beside_it():
    rng = np.random.default_rng(0)
    even = rng.random(2000)
    whole = plots.smooth_data((rng.random(2000) < 0.8 * even).astype(int), even, n_resamples=0)
    assert whole.support.min() > 0.9
    few = rng.choice([0.7, 0.8, 0.9, 1.0], 2000)  # nothing below .7: at .7 the curve is of what lies above
    sure = plots.smooth_data((rng.random(2000) < few - 0.2).astype(int), few, n_resamples=0)
    assert sure.sigma > 0.1
    assert (sure.support[sure.grid < 0.6] == 0.0).all()
    assert (sure.support[(sure.grid > 0.68) & (sure.grid < 0.7)] < 0.6).all()
    assert (sure.support[(sure.grid > 0.82) & (sure.grid < 0.98)] > 0.9).all()
    y, p, _ = cal.datasets.digits()  # many near 1, few below .4, where the diagram of bins lies far under the curve
    timid = plots.smooth_data(y, p, n_resamples=0)
    assert (timid.support[timid.grid < 0.25] < 0.1).all()


def test_the_old_spelling_of_color_works_and_warns():
    y, c = np.array([0, 1, 0, 1]), np.array([0.2, 0.7, 0.4, 0.9])
    with pytest.warns(DeprecationWarning, match="use color="):
        old = cal.plots.plot_reliability(y, c, colour="#123456", caption=False)
    new = cal.plots.plot_reliability(y, c, color="#123456", caption=False)
    drawn = [
        {matplotlib.colors.to_hex(color) for points in ax.collections for color in points.get_edgecolor()}
        for ax in (old, new)
    ]
    assert drawn[0] == drawn[1]
    assert "#123456" in drawn[0]

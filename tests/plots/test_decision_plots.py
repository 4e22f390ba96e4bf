"""Figures of decisions, segments and monitors: what they show is what the functions say, and they draw anything."""

from __future__ import annotations

import io
import json
import math
import warnings

import numpy as np
import pytest

import calibrary as cal
import own
from calibrary import plots
from each import some_of
from golden import arrays

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def problem(n=600, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.9, 0.9, n)
    return (rng.random(n) < 0.12 + 0.72 * c).astype(int), c


def words(figure):
    from matplotlib.text import Text

    return " ".join(t.get_text() for t in figure.findobj(Text))


# -- decisions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardized", [False, True])
def test_the_decision_figure_shows_net_benefit_and_regret(standardized):
    y, c = problem()
    d = plots.decision_data(y, c, thresholds=[0.3, 0.2], standardized=standardized, n_resamples=5)
    at = [0, 57, 399]
    want = [cal.net_benefit(y, c, threshold=t, standardized=standardized) for t in d.threshold[at]]
    np.testing.assert_allclose(d.net_benefit[at], want)
    assert d.used.tolist() == [0.2, 0.3]
    assert d.benefit_used[1] == pytest.approx(cal.net_benefit(y, c, threshold=0.3, standardized=standardized))
    assert d.decision_loss == cal.decision_loss(y, c)
    curve = cal.regret_curve(y, c)
    np.testing.assert_array_equal(d.corner, curve.threshold)
    np.testing.assert_array_equal(d.regret, curve.regret)
    assert (d.low <= d.net_benefit).all()
    assert (d.net_benefit <= d.high).all()


def test_the_regret_by_chance_is_that_of_redrawn_labels():
    rng = np.random.default_rng(1)
    c = rng.random(400)
    y = (rng.random(400) < c).astype(int)
    d = plots.decision_data(y, c, n_resamples=200, rng=2)
    slow = np.zeros(len(d.threshold))
    for _ in range(200):
        drawn = (rng.random(400) < c).astype(int)
        curve = cal.regret_curve(drawn, c)
        slow += np.interp(d.threshold, curve.threshold, curve.regret) / 200
    np.testing.assert_allclose(d.regret_null, slow, atol=0.15 * slow.max())


def test_a_logit_axis_spreads_thresholds_in_log_odds_over_the_scores():
    rng = np.random.default_rng(0)
    c = rng.beta(1.5, 60, 3000)
    d = plots.decision_data((rng.random(3000) < c).astype(int), c, axis="logit", n_resamples=2)
    odds = np.log(d.threshold / (1 - d.threshold))
    np.testing.assert_allclose(np.diff(odds), np.diff(odds)[0], rtol=1e-6)
    assert d.threshold[0] < np.quantile(c, 0.02)
    ax = plots.plot_decision(d)
    assert ax.get_xscale() == "logit"
    narrow = plots.decision_data([0, 1], [0.2, 0.7], limits=(0.1, 0.4), n_resamples=2)
    assert (narrow.threshold[0], narrow.threshold[-1]) == (0.1, 0.4)


def test_models_on_the_same_labels_or_as_pairs():
    y, c = problem()
    one = plots.plot_decision(y, models={"a": c, "b": 0.2 + 0.6 * c}, n_resamples=3)
    other = plots.plot_decision({"a": (y, c), "b": (y, 0.2 + 0.6 * c)}, n_resamples=3)
    assert one.get_legend_handles_labels()[1] == other.get_legend_handles_labels()[1]
    assert {"acting on nobody", "acting on everybody"} < set(one.get_legend_handles_labels()[1])
    assert f"a: decision loss {cal.decision_loss(y, c):.3f}" in one.get_legend_handles_labels()[1]


def test_the_caption_names_prevalence_and_the_worst_threshold():
    y, c = problem()
    said = words(plots.plot_decision(y, c, n_resamples=3).figure)
    assert f"prevalence {y.mean():.3g}" in said
    assert f"decision loss {cal.decision_loss(y, c):.4f}" in said
    assert words(plots.plot_decision(y, c, n_resamples=3, caption=False).figure).count("prevalence") == 0


# -- Murphy diagrams -----------------------------------------------------------------------------------


def test_the_difference_of_two_models_has_a_paired_interval():
    y, c = problem(500)
    other = np.clip(0.12 + 0.72 * c, 0, 1)
    gap = plots.murphy_difference(cal.predictions(y, c), cal.predictions(y, other))
    for i in (30, 200, 350):
        t = gap.threshold[i]
        rows = [np.where(y == 1, (1 - t) * (p <= t), t * (p > t)) for p in (c, other)]
        each = rows[0] - rows[1]
        assert gap.difference[i] == pytest.approx(each.mean(), abs=1e-12)
        half = 1.959964 * each.std() / math.sqrt(500)
        assert gap.high[i] - gap.difference[i] == pytest.approx(half, rel=1e-6, abs=1e-12)
    with pytest.raises(ValueError, match="different labels"):
        plots.murphy_difference(cal.predictions(y, c), cal.predictions(1 - y, c))


def test_the_murphy_figure_has_a_panel_for_two_models_only():
    y, c = problem()
    two = plots.plot_murphy(y, models={"a": c, "b": 0.2 + 0.6 * c})
    assert "Difference" in words(two.figure)
    assert f"a: Brier {cal.brier_score(y, c):.4f}" in two.get_legend_handles_labels()[1]
    three = plots.plot_murphy(y, models={"a": c, "b": 0.2 + 0.6 * c, "c": c**2})
    assert "Difference" not in words(three.figure)
    others = plots.plot_murphy({"a": (y, c), "b": problem(400, 5)})
    assert "Difference" not in words(others.figure)


# -- segments and monitors -----------------------------------------------------------------------------


def test_the_segments_figure_shows_the_test():
    y, c = problem()
    by = {"site": np.arange(600) % 3, "x": np.random.default_rng(0).normal(size=600)}
    result = own.multicalibration_error_test(y, c, by=by, n_resamples=19, rng=0)
    d = plots.segments_data(result, most=5)
    assert d.segment == result.table["segment"][:5]
    np.testing.assert_array_equal(d.sigma, result.table["sigma"][:5])
    assert d.n_segments == result.n_segments
    ax = plots.plot_segments(y, c, by=by, n_resamples=19, rng=0)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(result.table["segment"])
    assert f"adjusted for {result.n_segments} segments" in words(ax.figure)
    assert "the worst 5 shown" in words(plots.plot_segments(d).figure)
    accuracy = own.multiaccuracy_error_test(y, c, by=by, n_resamples=9)
    with pytest.raises(TypeError, match="pass multicalibration_error_test"):
        plots.plot_segments(accuracy)
    with pytest.raises(ValueError, match="by is missing"):
        plots.plot_segments(y, c)


def test_the_monitor_figure_shows_its_path():
    y, c = problem(1000)
    monitor = cal.calibration_monitor(alpha=0.01)
    for first in range(0, 1000, 50):
        monitor.update(y[first : first + 50], c[first : first + 50])
    d = plots.monitor_data(monitor)
    np.testing.assert_array_equal(d.n, monitor.path[0])
    np.testing.assert_array_equal(d.log_e, monitor.path[1])
    fed = plots.monitor_data(y, c, batch=50, alpha=0.01)
    np.testing.assert_allclose(fed.log_e, d.log_e)
    assert fed.alarm_at == monitor.alarm_at
    ax = plots.plot_monitor(monitor)
    assert f"row {monitor.alarm_at:,}" in words(ax.figure)
    assert "alarm: E = 100" in ax.get_legend_handles_labels()[1]


# -- whatever the data ---------------------------------------------------------------------------------

FIGURES = {
    "decision": lambda y, p: plots.plot_decision(y, p, n_resamples=3),
    "decision logit": lambda y, p: plots.plot_decision(y, p, n_resamples=3, axis="logit", thresholds=[0.4]),
    "decision dark": lambda y, p: plots.plot_decision(y, p, n_resamples=3, theme="dark"),
    "murphy": plots.plot_murphy,
    "murphy of two": lambda y, p: plots.plot_murphy({"a": (y, p), "b": (y, p)}),
    "honest": lambda y, p: plots.plot_corp(y, p, band="honest"),
    "segments": lambda y, p: plots.plot_segments(y, p, by=np.arange(len(y)) % 2, n_resamples=19, rng=0),
    "monitor": lambda y, p: plots.plot_monitor(y, p, batch=max(1, len(y) // 20)),
}
DATA = {
    "one row": ([1], [0.7]),
    "two rows": ([0, 1], [0.3, 0.6]),
    "no event": (np.zeros(40, dtype=int), np.linspace(0.01, 0.4, 40)),
    "all events": (np.ones(40, dtype=int), np.linspace(0.6, 0.99, 40)),
    "constant": (np.arange(40) % 2, np.full(40, 0.5)),
    "certain": (np.arange(40) % 2, np.arange(40) % 2 * 1.0),
    "certain and wrong": (1 - np.arange(40) % 2, np.arange(40) % 2 * 1.0),
    "four classes": arrays("multi4")[:2],
    "many": problem(30_000),
}


@quiet
@pytest.mark.parametrize(("name", "data"), some_of(FIGURES, DATA))
def test_every_figure_draws(name, data):
    drawn = FIGURES[name](*DATA[data])
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        drawn.figure.savefig(out, format="svg", bbox_inches="tight")
    assert b"<svg" in out.getvalue()
    assert len(out.getvalue()) < 700_000


def test_data_export_to_json_and_csv():
    y, c = problem(100)
    made = [
        plots.decision_data(y, c, n_resamples=2),
        plots.murphy_data(y, c),
        plots.murphy_difference(cal.predictions(y, c), cal.predictions(y, 1 - c)),
        plots.segments_data(y, c, by=np.arange(100) % 2, n_resamples=9),
        plots.monitor_data(y, c),
    ]
    for data in made:
        assert json.loads(data.to_json()).keys() == data.to_dict().keys()
        assert len(data.to_csv().splitlines()) > 2


@pytest.mark.parametrize("kind", ["decision", "murphy", "honest", "monitor"])
def test_figures_by_name(kind):
    y, c = problem(100)
    assert plots.draw(kind, cal.predictions(y, c)).axes


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: plots.plot_decision([0, 1], [0.2, 0.7], axis="log"), "axis='log'"),
        (lambda: plots.plot_decision([0, 1], [0.2, 0.7], thresholds=[1.5]), "thresholds holds 1.5"),
        (lambda: plots.plot_decision([0, 1], [0.2, 0.7], limits=(0.5, 0.2)), "limits="),
        (lambda: plots.plot_decision([0, 1], models={}), "models is empty"),
        (lambda: plots.plot_monitor([0, 1], [0.2, 0.7], batch=0), "batch=0"),
    ],
)
def test_errors_are_one_sentence(call, said):
    with pytest.raises(ValueError, match=said):
        call()

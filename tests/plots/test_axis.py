"""The rules of figures: which axis, how many bins, and where a curve ends."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import pytest

import calibrary as cal
from calibrary import plots
from calibrary.base.errors import RefusedError
from calibrary.data.lens import as_lens
from calibrary.grouping import group
from calibrary.grouping.edges import event_edges
from calibrary.plots.axis import Axis, together
from calibrary.plots.results import dot_data

mpl.use("Agg")


def drawn(center: float, spread: float, n: int, shift: float = 0.0) -> tuple:
    rng = np.random.default_rng(3)
    x = rng.normal(center, spread, n)
    c = 1 / (1 + np.exp(-x))
    return (rng.random(n) < 1 / (1 + np.exp(-x - shift))).astype(int), c


@pytest.fixture(scope="module")
def rare() -> tuple:
    return drawn(-5.2, 1.0, 2000, 0.9)


@pytest.fixture(scope="module")
def ordinary() -> tuple:
    return drawn(0.0, 1.5, 2000)


def view_of(data: tuple, **options):
    return cal.predictions(*data, **options).through(as_lens("binary")).views[0]

    return as_lens("binary")


@pytest.mark.parametrize(
    ("center", "spread", "n", "bins", "kind"),
    [
        (0.0, 1.5, 2000, 15, "probability"),
        (0.0, 1.3, 30, 2, "probability"),
        (-5.2, 1.0, 2000, 2, "log odds"),
        (-4.6, 1.0, 3000, 4, "log odds"),
        (4.6, 1.0, 3000, 4, "log odds"),
        (-3.0, 0.1, 2000, 9, "zoomed"),
        (0.4, 0.2, 2000, 15, "zoomed"),
    ],
)
def test_the_axis_and_the_bins_follow_the_predictions(center, spread, n, bins, kind):
    data = plots.reliability_data(*drawn(center, spread, n), n_resamples=0)
    assert data.axis.kind == kind
    assert data.n_bins == bins
    assert data.binning == ("width" if kind == "probability" else "events")


def test_the_number_of_bins_depends_on_predictions_and_weights_alone(rare):
    y, c = rare

    def bins(*data, **options) -> int:
        return plots.reliability_data(*data, n_resamples=0, **options).n_bins

    expected = c.sum()
    assert bins(y, c) == max(2, int(expected // 10))
    assert bins(1 - y, c) == bins(y, c)
    assert bins(y, c, sample_weight=np.full(len(y), 5.0)) == int(5 * expected // 10) > bins(y, c)


def test_bins_of_rare_events_hold_equally_many_expected_events(rare):
    view = view_of(rare)
    bins = group(view, edges=event_edges(view, 5))
    expected = bins.weight * bins.confidence
    assert len(bins) == 5
    np.testing.assert_allclose(expected, expected.mean(), rtol=0.06)


def test_certain_predictions_have_bins_too():
    data = plots.reliability_data([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], n_resamples=0)
    assert len(data) == 2
    assert plots.reliability_data([0, 0, 0], [0.0, 0.0, 0.0], n_resamples=0).axis.kind == "zoomed"


def test_the_ece_of_a_figure_is_that_of_the_metric_whatever_is_drawn(rare):
    data = plots.reliability_data(*rare, n_resamples=0)
    assert data.ece == pytest.approx(cal.ece(*rare), rel=1e-12)
    assert "ECE 0.015 in 15 equal-width bins" in plots.reliability.numbers(data)
    assert plots.reliability_data(*rare, n_bins=4, n_resamples=0).ece == pytest.approx(cal.ece(*rare, n_bins=4))


@pytest.mark.parametrize("axis", ["probability", "zoomed", "log odds", (0.0, 0.05)])
@pytest.mark.parametrize("plot", [plots.plot_reliability, plots.plot_smooth_reliability, plots.plot_corp])
def test_the_axis_can_be_chosen_and_the_caption_states_it(rare, plot, axis):
    ax = plot(*rare, axis=axis, n_resamples=20)
    scale = "logit" if axis == "log odds" else "linear"
    assert (ax.get_xscale(), ax.get_yscale()) == (scale, scale)
    words = " ".join(t.get_text() for t in ax.texts).replace("\n", " ")
    assert ("drawn from" in words) == (axis != "probability")
    assert ("log-odds axes" in words) == (axis == "log odds")
    if axis == (0.0, 0.05):
        assert "drawn from 0% to 5%" in words
        assert ax.get_xlim()[1] < 0.06


def test_ticks_are_probabilities_that_people_read():
    assert Axis("log odds", 2e-4, 0.2).ticks[1] == ["0.1%", "1%", "10%"]
    assert Axis("zoomed", 0.0, 0.05).ticks[1] == ["0%", "1%", "2%", "3%", "4%", "5%"]
    assert Axis("log odds", 0.8, 0.999).ticks[1] == ["90%", "99%", "99.9%"]
    assert len(Axis("log odds", 0.004, 0.06).ticks[1]) >= 3


def test_places_on_an_axis_and_back():
    axis = Axis("log odds", 0.001, 0.5)
    p = np.array([0.001, 0.02, 0.5])
    np.testing.assert_allclose(axis.at(axis.place(p)), p)
    np.testing.assert_allclose(axis.place(p)[[0, 2]], [0, 1])
    shares = axis.histogram(np.array([0.001, 0.0011, 0.49]), np.ones(3))
    assert shares[0] == pytest.approx(2 / 3)
    assert shares[-1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("axis", ["odds", (0.5, 0.1), (0.0, 2.0), 3])
def test_an_unknown_axis_is_refused(ordinary, axis):
    with pytest.raises(RefusedError, match="axis"):
        plots.reliability_data(*ordinary, axis=axis)


def test_several_models_share_an_axis(rare, ordinary):
    assert together([Axis("zoomed", 0.1, 0.3), Axis("zoomed", 0.2, 0.4)]) == Axis("zoomed", 0.1, 0.4)
    assert together([Axis("zoomed", 0.1, 0.3), Axis()]) == Axis()
    y, c = rare
    ax = plots.plot_reliability({"one": (y, c), "two": (y, c**0.9)}, n_resamples=0)
    assert ax.get_xscale() == "logit"
    assert len(ax.child_axes[0].patches) == 2  # a histogram of each
    whole = plots.plot_reliability({"one": (y, c), "two": ordinary}, n_resamples=0)
    assert whole.get_xscale() == "logit"  # on 0 to 1 the rare model would be in the corner
    low, high = whole.get_xlim()
    assert low < np.quantile(c, 0.01)
    assert high > np.quantile(ordinary[1], 0.99)
    assert len(whole.child_axes[0].patches) == 2


def test_labels_of_a_small_picture_do_not_overlap():
    figure = mpl.figure.Figure((2.6, 2.6))
    ax = figure.add_subplot()
    plots.plot_reliability(*drawn(0.0, 3.5, 3000), axis="log odds", n_resamples=0, ax=ax)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) >= 3
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_no_line_crosses_an_empty_bin_or_leads_to_one_without_events():
    c = np.repeat([0.05, 0.15, 0.25, 0.75, 0.85, 0.95], 20)
    y = np.concatenate([np.zeros(20), *(np.r_[np.ones(k), np.zeros(20 - k)] for k in (4, 6, 14, 15)), np.ones(20)])
    data = plots.reliability_data(y.astype(int), c, n_bins=10, n_resamples=0)
    assert data.certain.tolist() == [True, False, False, False, False, True]
    ax = plots.plot_reliability(data)
    lines = next(lines for lines in ax.collections if hasattr(lines, "get_segments") and len(lines.get_linewidth()) == 1
                 and lines.get_linewidth()[0] == 1.3)  # fmt: skip
    joined = [[round(float(x), 2) for x, _ in piece] for piece in lines.get_segments()]
    assert joined == [[0.15, 0.25], [0.75, 0.85]]
    assert data.high[0] == pytest.approx(1 - 0.05 ** (1 / 20))  # no event in 20 cases, one-sided
    assert data.low[-1] == pytest.approx(0.05 ** (1 / 20))


def test_the_smooth_curve_ends_where_hardly_any_events_are_expected(rare, ordinary):
    data = plots.smooth_data(*rare, axis="probability", n_resamples=0)
    kept = data.grid[data.support >= 0.15]
    assert kept.max() < np.quantile(rare[1], 0.9999) < 0.4
    in_full = plots.smooth_data(*ordinary, n_resamples=0)
    assert (in_full.support[60:140] == 1.0).all()
    few = plots.smooth_data(ordinary[0][:8], ordinary[1][:8], n_resamples=0)
    assert few.support.max() < 1.0


def test_a_calibrated_model_of_rare_events_stays_on_the_diagonal():
    y, c = drawn(-5.0, 1.0, 60_000)
    data = plots.smooth_data(y, c, n_resamples=0)
    assert data.axis.kind == "log odds"
    seen = data.support == 1.0
    assert seen.sum() > 50
    np.testing.assert_allclose(np.log(data.curve[seen] / data.grid[seen]), 0.0, atol=0.3)
    twice = plots.smooth_data(y, c / 2, n_resamples=0)
    assert np.median((twice.curve / twice.grid)[twice.support == 1.0]) == pytest.approx(2.0, rel=0.1)


def test_before_and_after_have_the_same_two_colors_and_share_an_axis(rare):
    ax = plots.plot_recalibration(*rare)
    look = plots.style.look("light")
    colors = {line.get_label().split(":")[0].split(" ")[0]: line.get_color() for line in ax.get_lines()}
    assert colors["not"] == look.colors[0]
    assert colors["after"] == look.colors[1]
    assert ax.get_xscale() == "logit"


def test_small_multiples_mark_the_classes_that_are_off():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(4, 1.0), 3000)
    q = p * [1, 1, 3, 1]
    y = ((q / q.sum(1, keepdims=True)).cumsum(1) > rng.random((3000, 1))).argmax(1)
    off = plots.small_multiples(y, p)
    titles = [ax.get_title(loc="left") for ax in off.axes]
    assert titles[2].startswith("▲ 2")
    fine = plots.small_multiples((p.cumsum(1) > rng.random((3000, 1))).argmax(1), p)
    assert not any(ax.get_title(loc="left").startswith("▲") for ax in fine.axes)
    assert "▲" not in fine.get_supxlabel()


def test_the_dot_plot_says_which_metrics_it_left_out(ordinary):
    data = dot_data(cal.evaluate(*ordinary, metrics=["ece", "bs", "nll"], n_resamples=0))
    assert data.names == ("ECE",)
    assert data.left_out == ("Brier score", "log loss")


def test_segments_show_shares_with_intervals_worst_first():
    rng = np.random.default_rng(2)
    c = rng.beta(1, 30, 3000)
    part = rng.integers(0, 12, 3000)
    y = (rng.random(3000) < np.clip(c * np.where(part == 5, 5, 1), 0, 1)).astype(int)
    data = plots.segments_data(y, c, by={"part": part}, most=8, n_resamples=99, rng=0)
    assert data.segment[0] == "part = 5"
    assert data.worst == 6
    assert len(data.segment) == 8
    assert data.n_segments == 13 == len(data.others)
    assert ((data.low <= data.observed) & (data.observed <= data.high)).all()
    np.testing.assert_allclose(data.observed[0], y[part == 5].mean())
    np.testing.assert_allclose(data.predicted[0], c[part == 5].mean())
    ax = plots.plot_segments(data)
    assert ax.get_yticklabels()[0].get_text() == "part = 5"
    assert len(ax.child_axes) == 1  # the strip of all segments


def test_the_old_name_of_the_recalibration_figure_s_axis_works_and_warns(rare):
    with pytest.warns(DeprecationWarning, match="use axis="):
        data = plots.recalibration_data(*rare, window=(0.0, 0.1))
    assert data.window == (data.axis.low, data.axis.high) == (0.0, 0.1)


def test_neighbouring_figures_explain_the_same_side():
    for shift, word in ((1.0, "Above the diagonal"), (-1.0, "Below the diagonal")):
        y, c = drawn(0.0, 1.0, 400, shift)
        for plot in (plots.plot_reliability, plots.plot_corp, plots.plot_smooth_reliability):
            figure = plot(y, c, n_resamples=19).figure
            assert word in " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(mpl.text.Text)), plot


@pytest.mark.filterwarnings("error:overflow")
@pytest.mark.parametrize("options", [{}, {"band": "honest"}], ids=str)
def test_certain_predictions_on_log_odds_do_not_overflow(rare, options, tmp_path):
    y, c = (np.r_[0.0, 1.0, values] for values in rare)
    plots.plot_corp(y.astype(int), c, axis="log odds", n_resamples=19, **options).figure.savefig(tmp_path / "corp.png")
    sure, p = np.repeat([0, 1], 300), np.repeat([0.01, 0.99], 300)
    p = np.column_stack([1 - p, p / 2, p / 2])
    figure = plots.small_multiples(sure, p, axis="log odds")
    figure.savefig(tmp_path / "small.png")

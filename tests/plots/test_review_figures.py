"""The seven figures of the review by one call each, and that figures 1 to 3 show by default what the review's show."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary import plots
from calibrary.cli.main import app
from calibrary.plots.review_figures import FIGURES

pytest.importorskip("matplotlib")


def texts(figure):
    return " ".join(t.get_text() for ax in figure.axes for t in ax.texts) + " ".join(t.get_text() for t in figure.texts)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_the_review_is_drawn_by_one_call(name, tmp_path):
    drawn = plots.figure(name)
    assert drawn.axes
    drawn.savefig(tmp_path / "f.png", dpi=30)
    assert plots.figure(int(name[-1])).axes[0].get_xlabel() == drawn.axes[0].get_xlabel()


def test_other_figures_are_refused():
    with pytest.raises(ValueError, match="figure=8 is not a figure of the review"):
        plots.figure(8)


def test_the_command_line_draws_them(tmp_path):
    done = CliRunner().invoke(app, ["plot", "figure2", "-o", str(tmp_path / "f.png")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


def test_figure_1_has_names_and_every_sub_family_of_sections_3_to_7():
    data = plots.tree_data()
    names = {cal.catalogue[id].name for ids in data.families.values() for id in ids}
    figure = plots.figure(1)
    drawn = figure.axes[0].texts
    assert names <= {t.get_text() for t in drawn}
    figure.draw_without_rendering()
    boxes = sorted((t.get_position()[1], t.get_window_extent().x0, t.get_window_extent().x1) for t in drawn)
    lines = [(a, b) for a, b in itertools.pairwise(boxes) if b[0] - a[0] < 1e-9]
    assert len(lines) > 60
    assert all(a[2] < b[1] for a, b in lines)  # no name over another
    assert sum(map(len, data.families.values())) == 82 + 5
    assert {"losses for isotonic regression", "consistency"} <= set(data.subfamilies["Point-based"])


def test_what_is_about_ranking_is_no_cumulative_metric():
    data = plots.tree_data(beyond=True)
    assert {"auroc", "aurc"} <= set(data.families["Ranking"])
    assert not {"auroc", "aurc"} & set(data.families["Cumulative"])
    assert sum(map(len, data.families.values())) == len(cal.catalogue)


def test_figure_2_lies_below_the_diagonal_and_is_the_source_of_figure_3():
    data = plots.theory_data()
    assert (data.curve[1:-1] < data.grid[1:-1]).all()
    _, c, _, truth = cal.datasets.review_example()
    np.testing.assert_allclose(np.interp(c, data.grid, data.curve), truth, atol=1e-5)
    assert data.errors == pytest.approx((0.7, 0.3))


def test_figure_3_has_ten_bins_with_standard_errors_and_jittered_labels():
    ax = plots.figure(3).axes[0]
    y, c, *_ = cal.datasets.review_example()
    bins = plots.reliability_data(y, c, n_bins=10, error="se")
    bars = [line for line in ax.containers if hasattr(line, "has_yerr")]
    assert len(bars) == 1
    ends = np.array([segment[:, 1] for segment in bars[0][2][0].get_segments()])
    se = np.sqrt(bins.outcome * (1 - bins.outcome) / bins.count)
    np.testing.assert_allclose(np.diff(ends, axis=1).ravel() / 2, se, rtol=0.1)
    points = np.vstack([s.get_offsets() for s in ax.collections if len(s.get_offsets()) == 500])
    jitter = points[:, 1] - np.round(points[:, 1])
    assert 0.02 < np.abs(jitter).max() <= 0.025
    assert abs(np.corrcoef(points[:, 0], jitter)[0, 1]) < 0.15


def test_figure_6_has_25_cells_and_figure_7_says_where_its_difference_holds():
    assert "25 of 25 cells" in texts(plots.figure(6))
    assert "fitted to these same rows" in " ".join(texts(plots.figure(7)).split())

"""A figure saved as it is, without a tight box, cuts none of its words."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
plots = pytest.importorskip("calibrary.plots")


def rows(n=200):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < c**1.5).astype(int), c


DRAWN = {
    **{f"figure {n}": lambda n=n: plots.figure(n) for n in range(1, 8)},
    "bars": lambda: plots.plot_reliability(*rows(), kind="bar").figure,
    "cumulative": lambda: plots.plot_cumulative(*rows()).figure,
    "decision": lambda: plots.plot_decision(*rows(), n_resamples=0).figure,
}


def cut(figure):
    """Inches of what is drawn that lie outside the figure: left, below, right, above."""
    figure.draw_without_rendering()
    box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    over = {"left": -box.x0, "below": -box.y0, "right": box.x1 - wide, "above": box.y1 - high}
    return {side: inches for side, inches in over.items() if inches > 0.01}


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_cut(name):
    figure = DRAWN[name]()
    assert any(text.get_text() for text in figure.findobj(matplotlib.text.Text))
    assert cut(figure) == {}


def test_the_plain_layout_would_cut_a_caption():
    """What the figure's own layout is for: without it this test's measure finds words outside."""
    figure = plots.plot_reliability(*rows(), kind="bar").figure
    figure.set_layout_engine("constrained")
    assert cut(figure)
    again = pickle.loads(pickle.dumps(plots.figure(2)))
    assert cut(again) == {}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_saved_figure_holds_its_numbers_in_words(ending):
    ax = plots.plot_reliability(*rows(), n_bins=3, interval=False)
    said = plots.alternative(ax)
    assert said.startswith("Reliability diagram. ECE ")
    assert "3 points: 0 to 0.333: " in said  # each bin with its cases, shares and interval
    assert said.count("95% interval") == 3
    saved = {own: io.BytesIO() for own in (True, False)}
    ax.figure.savefig(saved[True], format=ending)
    name = "Subject" if ending == "pdf" else "Description"
    ax.figure.savefig(saved[False], format=ending, metadata={name: "another"})
    text = said.encode("utf-16-be" if ending == "pdf" else "utf-8")
    middle = text[len(text) // 2 :][:40]
    assert [middle in file.getvalue() for file in saved.values()] == [True, False]


def test_a_figure_of_several_parts_says_them_all():
    said = plots.alternative(plots.overview(*rows()))
    assert [title in said for title in ("Reliability diagram", "Smooth", "Cumulative difference", "CORP")] == [True] * 4
    assert plots.alternative(matplotlib.figure.Figure()) == ""


def test_a_figure_takes_data_or_what_they_are_made_of_and_refuses_what_it_would_not_use():
    y, p = rows()
    data = plots.corp_data(y, p, n_resamples=20)
    by_name = plots.plot_corp(y_true=y, y_prob=p, n_resamples=20)
    assert plots.alternative(plots.plot_corp(data)) == plots.alternative(by_name)
    with pytest.raises(TypeError, match="plot_theory has no option 'exmaple': did you mean 'example'"):
        plots.plot_theory(exmaple=0.5)
    with pytest.raises(TypeError, match="of several models has no option 'kind'"):
        plots.plot_reliability({"a": (y, p), "b": (y, 1 - p)}, kind="bar")

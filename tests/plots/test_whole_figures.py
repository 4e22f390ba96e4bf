"""A figure saved as it is, without a tight box, cuts none of its words."""

from __future__ import annotations

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

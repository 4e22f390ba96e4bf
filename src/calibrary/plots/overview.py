"""One page: the four most telling figures."""

from __future__ import annotations

from typing import Any

from calibrary.plots import style
from calibrary.plots.brier import plot_brier_curve
from calibrary.plots.corp import plot_corp
from calibrary.plots.cumulative import plot_cumulative
from calibrary.plots.reliability import plot_reliability
from calibrary.plots.smooth import plot_smooth_reliability
from calibrary.predictions import predictions


def overview(
    y_true: Any, y_prob: Any = None, *, theme: str = "light", n_bins: int = 15, report: Any = None, **checked: Any
) -> Any:
    """Reliability diagram, smooth curve, cumulative difference and CORP on one page.

    A ``Matches`` object gets the detection figures instead. ``report`` adds its headline numbers to the title.
    Returns the matplotlib Figure.
    """
    if hasattr(y_true, "as_predictions"):
        from calibrary.plots.detection import detection_overview

        return detection_overview(y_true, theme=theme)
    p = predictions(y_true, y_prob, **checked)
    figure = style.new_figure((11, 10.4), theme=theme)
    axes = figure.subplots(2, 2)
    plot_reliability(p, n_bins=n_bins, ax=axes[0, 0], theme=theme)
    plot_smooth_reliability(p, ax=axes[0, 1], theme=theme)
    plot_cumulative(p, ax=axes[1, 0], theme=theme)
    if p.k == 2 and p.n > 200_000:
        plot_brier_curve(p, ax=axes[1, 1], theme=theme)
    else:
        plot_corp(p, ax=axes[1, 1], theme=theme)
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.1, hspace=0.02, wspace=0.05)
    return figure

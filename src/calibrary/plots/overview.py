"""One page with the four most informative figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.text import in_sentence
from calibrary.data.predictions import predictions
from calibrary.plots import style
from calibrary.plots.corp import plot_corp
from calibrary.plots.cumulative import plot_cumulative
from calibrary.plots.detection import plot_d_ece_map, plot_detection_reliability
from calibrary.plots.reliability import plot_reliability
from calibrary.plots.smooth import plot_smooth_reliability


def overview(
    y_true: Any,
    y_prob: Any = None,
    *,
    theme: str = "light",
    n_bins: int | None = None,
    lens: Any = "auto",
    title: str | None = None,
    figure: Any = None,
    **checked: Any,
) -> Any:
    """Reliability diagram, smooth curve, cumulative difference and CORP on one page.

    Parameters
    ----------
    y_true, y_prob : as everywhere; a ``Matches`` object gets the detection figures instead
    n_bins, lens : of the reliability diagram (as the events allow), and of all
    title : str, optional
        A headline for the page.
    figure : matplotlib Figure, optional
        An empty figure to draw on, with constrained layout.
    **checked : ``sample_weight``, ``labels``, ``pos_label`` and ``r``

    Returns
    -------
    matplotlib Figure
    """
    if figure is None:
        figure = style.new_figure((11.0, 13.0), theme)
    else:
        if not hasattr(figure, "set_facecolor"):
            raise RefusedError(f"figure={in_sentence(figure)} is no matplotlib figure: pass one, or leave it out")
        figure.set_facecolor(style.look(theme).paper)
    (first, second), (third, fourth) = figure.subplots(2, 2)
    rest: dict[str, Any] = {"theme": theme, "lens": lens}
    rest |= {"r": checked.pop("r")} if "r" in checked else {}
    p = predictions(y_true, y_prob, **checked)
    detections = hasattr(y_true, "n_images")
    plot_smooth_reliability(p, ax=third if detections else second, **rest)
    if detections:
        plot_detection_reliability(y_true, ax=first, theme=theme)
        _place(y_true, second, theme)
    else:
        plot_reliability(p, n_bins=n_bins, ax=first, **rest)
        plot_corp(p, n_resamples=400, ax=third, **rest)
    plot_cumulative(p, ax=fourth, **rest)
    fourth.set_box_aspect(1)
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold", x=0.02, ha="left", color=style.look(theme).ink)
    figure.get_layout_engine().set(h_pad=0.15, w_pad=0.15, hspace=0.03, wspace=0.03)
    style.level([first, second])
    style.level([third, fourth])
    return figure


def _place(matches: Any, ax: Any, theme: str) -> None:
    """The heat map over the image, or a sentence if the image sizes are not known."""
    # five score bins and so many places that each holds eight detections on average
    k = int(np.clip(np.sqrt(len(matches) / 40), 2, 8))
    try:
        plot_d_ece_map(matches, ax=ax, theme=theme, n_bins=[5, k, k])
    except RefusedError as why:
        ax, look = style.new_axes(ax, theme)
        ax.axis("off")
        style.finish(ax, look, "Where scores and precision disagree", f"No heat map: {why}", "")

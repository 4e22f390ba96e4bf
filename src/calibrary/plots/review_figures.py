"""The seven figures of the review, each by one call: ``figure(3)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibrary.base.errors import suggest
from calibrary.datasets import overconfident_curve, review_example, three_classes
from calibrary.plots.brier import plot_brier_curve
from calibrary.plots.reliability import plot_reliability
from calibrary.plots.simplex import plot_simplex
from calibrary.plots.theory import plot_theory
from calibrary.plots.tree import plot_tree

#: Bins of figures 3 to 5, and cells along a side of figure 6, which makes 25.
_BINS, _SIDE = 10, 5


def figure(number: int | str, **options: Any) -> Any:
    """Draw one of the review's figures, 1 to 7, and return the matplotlib Figure.

    The review prints neither the curve of its figure 2 nor the data of figures 3 to 7: the curve is
    :func:`calibrary.datasets.overconfident_curve`, figures 3, 4, 5 and 7 show the 500 rows of
    :func:`calibrary.datasets.review_example`, and figure 6 those of :func:`calibrary.datasets.three_classes`.

    Parameters
    ----------
    number : int or str
        3, "3" or "figure3".
    **options
        Of the function that draws it (``theme="dark"``, ``caption=False``).

    Examples
    --------
    >>> from calibrary import plots
    >>> plots.figure(2).axes[0].get_xlabel()
    'Predicted probability'
    """
    name = f"figure{str(number).lower().removeprefix('figure').strip()}"
    if name not in FIGURES:
        raise ValueError(f"figure={number!r} is not a figure of the review: {suggest(name, FIGURES)}")
    drawn = FIGURES[name](**options)
    return getattr(drawn, "figure", drawn)


def _reliability(**options: Any) -> Any:
    y, c, *_ = review_example()
    return plot_reliability(y, c, n_bins=_BINS, **options)


def _line(**options: Any) -> Any:
    return _reliability(**{"error": "se", "true_curve": overconfident_curve, **options})


def _simplex(**options: Any) -> Any:
    y, p, *_ = three_classes()
    return plot_simplex(y, p, **{"side": _SIDE, **options})


def _brier(**options: Any) -> Any:
    y, c, *_ = review_example()
    return plot_brier_curve(y, c, **{"cost_lines": True, **options})


#: What draws each figure, by the word of the command line.
FIGURES: dict[str, Callable[..., Any]] = {
    "figure1": lambda **o: plot_tree(**o),
    "figure2": lambda **o: plot_theory(**o),
    "figure3": _line,
    "figure4": lambda **o: _reliability(kind="bar", **o),
    "figure5": lambda **o: _reliability(kind="tilted-roof", **o),
    "figure6": _simplex,
    "figure7": _brier,
}

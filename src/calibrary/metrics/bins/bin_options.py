"""Options that all binned metrics share: how the bins are chosen, and how the values of the classes are combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calibrary.base.errors import one_of
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.grouping import Grouping, Groups, group, norm_order, power_mean
from calibrary.metrics.machinery.declare import Common, Options

BINNING = Options(
    """\
binning : "width", "mass", "area", "points", "unique", "sweep", a list of edges or a grouping object
    How confidences are put in bins: bins of equal width, of equal mass, of equal width x mass, of ``points_per_bin``
    rows each, one bin per distinct confidence, the largest number of bins whose mean labels rise with confidence, bins
    between your own edges (``[0, 0.1, 0.5, 1]``), or an object of :mod:`calibrary.grouping`.
n_bins : int or "auto"
    Number of bins; empty bins are counted. "auto" is the number with about ten expected events and ten expected
    non-events per bin, from 2 to 15 (:func:`calibrary.grouping.automatic_bins`), after the rule of a minimum expected
    frequency in chi-squared tests (Cochran 1954). It is chosen from all rows, the weights as counts, before any are
    resampled; the note of an interval, of a comparison and of a row of a table says it.
closed : "right" or "left"
    The side on which equal-width bins and ``edges`` are closed.
mass_rule : "floor", "split", "round" or "quantile"
    How equal-mass bins are cut; see :class:`calibrary.grouping.EqualMass`.
edges : array-like, optional
    Bin edges that you choose yourself, in place of ``binning`` and ``n_bins``; ``binning=[0, 0.1, 0.5, 1]`` means the
    same.
points_per_bin : int
    Number of rows per bin, for ``binning="points"``.
strategy : "uniform" or "quantile", optional
    scikit-learn's names: "uniform" for bins of equal width, "quantile" for bins between interpolated quantiles.""",
    binning="width",
    n_bins=15,
    closed="right",
    mass_rule="floor",
    edges=None,
    points_per_bin=100,
    strategy=None,
)


class Bins(Common, total=False):
    """Keywords that refine the choice of bins."""

    n_bins: int | str
    closed: str
    mass_rule: str
    edges: Any
    points_per_bin: float
    strategy: str | None


class BinnedKeywords(Bins, total=False):
    """Keywords that every binned metric accepts."""

    binning: str | Grouping | ArrayLike


def in_mass(  # type: ignore[misc]  # three of the keywords, to change their defaults
    view: Predictions,
    *,
    binning: str | Grouping | ArrayLike = "mass",
    mass_rule: str = "floor",
    n_bins: int = 15,
    **options: Unpack[BinnedKeywords],
) -> Groups:
    """The groups of a view; metrics that have these options put the rows in bins of equal mass by default."""
    return group(view, binning, mass_rule=mass_rule, n_bins=n_bins, **options)


Binned = BinnedKeywords  # the name of this class in version 0.2, which old pickles and imports may still use


def class_norm(norm: float) -> Callable[..., Any]:
    """Combine the classes' errors with the norm that combines bins: (sum_k v_k CE_k^p)^(1/p), p = ``norm``.

    The argument ``norm`` is the metric's default. ``aggregate="mean"`` gives the plain weighted mean instead.
    """

    def combine(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
        aggregate = options.get("aggregate", "power")
        one_of("aggregate", aggregate, ("power", "mean"))
        p = norm_order(options.get("norm", norm))
        per_class = np.array(values)
        if aggregate == "mean" or p == 1.0 or np.isnan(per_class).any():
            return float(views.average(per_class, average))
        if isinstance(average, str) and average == "max":
            return float(per_class.max())
        return power_mean(per_class, views.weights(average), p)

    return combine


def range_of_distance(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """The range of a norm of distances between probability vectors; the range depends on the distance."""
    return 0.0, {"l1": 2.0, "l2": 2.0**0.5}.get(options.get("distance", "tv"), 1.0)

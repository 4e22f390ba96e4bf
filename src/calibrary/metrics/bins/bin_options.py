"""What the binned metrics share: the keywords that choose bins, and how the classes are combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrary.base.errors import one_of
from calibrary.data.views import Views
from calibrary.grouping import Grouping, norm_order, power_mean
from calibrary.metrics.machinery.declare import Common, Options

BINNING = Options(
    """\
binning : "width", "mass", "area", "points", "unique", "sweep" or a grouping object
    How confidences are put in bins: equal width, equal mass, equal width x mass, ``points_per_bin`` points
    each, one bin per distinct value, as many as keep the labels rising, or an object of
    :mod:`calibrary.grouping`.
n_bins : int
    Number of bins, empty ones included.
closed : "right" or "left"
    The side on which equal-width bins and ``edges`` are closed.
mass_rule : "floor", "split", "round" or "quantile"
    How equal-mass bins are cut; see :class:`calibrary.grouping.EqualMass`.
edges : array-like, optional
    Edges of your own, in place of ``binning``.
points_per_bin : int
    For ``binning="points"``.
strategy : "uniform" or "quantile", optional
    scikit-learn's words for equal-width bins and for bins between interpolated quantiles.""",
    binning="width",
    n_bins=15,
    closed="right",
    mass_rule="floor",
    edges=None,
    points_per_bin=100,
    strategy=None,
)


class Bins(Common, total=False):
    """The keywords that say more about the bins."""

    n_bins: int
    closed: str
    mass_rule: str
    edges: Any
    points_per_bin: float
    strategy: str | None


class BinnedKeywords(Bins, total=False):
    """The keywords of every binned metric."""

    binning: str | Grouping


Binned = BinnedKeywords  # its name in 0.2, which pickles and imports may have


def class_norm(norm: float) -> Callable[..., Any]:
    """Combine classes as the metric combines bins: (sum_k v_k CE_k^p)^(1/p), p being the option ``norm``.

    ``norm`` is the metric's default. ``aggregate="mean"`` gives the plain weighted mean instead.
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
    """The range of a norm of distances between probability vectors, which depends on the distance."""
    return 0.0, {"l1": 2.0, "l2": 2.0**0.5}.get(options.get("distance", "tv"), 1.0)

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
from calibrary.metrics.machinery.declare import SHARED_TEXTS, Common, Options

BINNING = Options(
    SHARED_TEXTS["bins"],
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

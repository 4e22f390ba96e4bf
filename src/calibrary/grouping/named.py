"""``group``: the function with which all metrics put a view in groups, by name or by object."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of, suggest
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import (
    Edges,
    EqualArea,
    EqualMass,
    EqualWidth,
    Grouping,
    Intervals,
    PointsPerBin,
    UniqueValues,
)
from calibrary.grouping.groups import Groups, VectorGroups
from calibrary.grouping.mean_split import MeanSplit
from calibrary.grouping.pava import BlockPAVA
from calibrary.grouping.sweep import MonotonicSweep

_FIFTEEN = EqualWidth()  # the bins of most calls; fitting does not change them

BINNINGS = ("width", "mass", "area", "points", "unique", "sweep", "mean-split", "pava-bc")


def as_grouping(
    binning: str | Grouping = "width",
    *,
    n_bins: int = 15,
    closed: str = "right",
    mass_rule: str = "floor",
    edges: Any = None,
    points_per_bin: float = 100,
    strategy: str | None = None,
) -> Grouping:
    """The grouping that these keywords specify."""
    if strategy is not None:
        one_of("strategy", strategy, ("uniform", "quantile"))
        binning, mass_rule = ("width", mass_rule) if strategy == "uniform" else ("mass", "quantile")
    if edges is not None:
        return Edges(edges, closed)
    if isinstance(binning, Grouping):
        return binning
    if binning == "width":
        return EqualWidth(n_bins, closed)
    if binning == "mass":
        return EqualMass(n_bins, mass_rule)
    if binning == "area":
        return EqualArea(n_bins)
    if binning == "points":
        return PointsPerBin(points_per_bin)
    if binning == "unique":
        return UniqueValues()
    if binning == "sweep":
        return MonotonicSweep()
    if binning == "mean-split":
        return MeanSplit()
    if binning == "pava-bc":
        return BlockPAVA()
    raise RefusedError(f"binning={binning!r} is not known: {suggest(binning, BINNINGS)}, or pass a grouping object")


def group(view: Predictions, binning: str | Grouping = "width", **options: Any) -> Groups:
    """Put the rows of a view in groups.

    Parameters
    ----------
    view : Predictions
        A binary view is grouped by its confidence; whole probability vectors by the tuple of the bins of their K
        coordinates.
    binning : "width", "mass", "area", "points", "unique", "sweep", "mean-split", "pava-bc" or a grouping object
    **options
        ``n_bins=15``, ``closed="right"``, ``mass_rule="floor"``, ``edges=None``, ``points_per_bin=100``, and
        scikit-learn's ``strategy="uniform" | "quantile"`` for equal width and interpolated quantiles.
    """
    grouping = as_grouping(binning, **options) if options or binning != "width" else _FIFTEEN
    if view.stacked and grouping.stacks not in (("weights",) if np.ndim(view.total) else ("labels", "weights")):
        view.refuse_stack("this grouping")
    if not view.binary and isinstance(grouping, Intervals):
        return _cells(view, grouping)
    if grouping is binning:
        return grouping.groups(view)
    return grouping.fit_view(view)._split(view)  # created here, so that no object of the user can be changed


def _cells(view: Predictions, grouping: Intervals) -> Groups:
    # With two classes the second column is enough: c right-closed is 1-c left-closed, so using both would give every
    # confidence on an edge a cell of its own.
    columns = [1] if view.k == 2 else range(view.k)
    cell = np.zeros(view.n, dtype=np.intp)
    for k in columns:
        part = grouping.groups(view.view((view.y == k).astype(np.intp), np.ascontiguousarray(view.p[:, k])))
        # renumbered after every column, so that the product of the numbers of bins cannot overflow
        cell = np.unique(cell * len(part) + part.index, return_inverse=True)[1]
    return VectorGroups(view, int(cell.max()) + 1, cell)

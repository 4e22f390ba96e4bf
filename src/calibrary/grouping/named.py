"""``group``: the function with which all metrics put a view in groups, by name or by object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of, suggest
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.grouping.adaptive import BlockPAVA, MeanSplit, MonotonicSweep
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

_FIFTEEN = EqualWidth()  # the bins of most calls; fitting does not change them

#: Expected events, and expected non-events, of a bin whose number is chosen automatically; and limits of that number.
PER_BIN, BIN_LIMITS = 10, (2, 15)
BINNINGS = ("width", "mass", "area", "points", "unique", "sweep", "mean-split", "pava-bc")


def as_grouping(
    binning: Any = "width",
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
    if isinstance(binning, Grouping):
        return binning if edges is None else Edges(edges, closed)
    if not isinstance(binning, str | None):
        return Edges(binning, closed, name="binning")
    if edges is not None:
        return Edges(edges, closed)
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


def automatic_bins(c: Array, w: Array | None = None) -> int:
    """The number of bins of which each has about ten expected events and ten expected non-events: from 2 to 15.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.grouping import automatic_bins
    >>> automatic_bins(np.full(5000, 0.01)), automatic_bins(np.full(100, 0.5)), automatic_bins(np.full(9, 0.5))
    (5, 5, 2)
    """
    weight = np.ones(len(c)) if w is None else w
    events = float(weight @ c)
    return int(np.clip(min(events, float(weight.sum()) - events) / PER_BIN, *BIN_LIMITS))


def edges_among(options: Mapping[str, Any]) -> Any:
    """The edges that options list, as ``edges=`` or as ``binning=[0, 0.1, 1]``; None if they list none."""
    binning = options.get("binning")
    return options.get("edges") if isinstance(binning, str | Grouping | None) else binning


def refuse_idle_bins(given: Mapping[str, Any]) -> None:
    """Raise an error for listed edges together with another choice of bins."""
    if edges_among(given) is None:
        return
    name = "edges" if given.get("edges") is not None else "binning"
    for other in ("binning", "n_bins", "strategy", "mass_rule"):
        if other != name and given.get(other) is not None:
            raise RefusedError(
                f"{name}= lists the edges of the bins, so {other}={given[other]!r} has no effect: pass one of the two"
            )


def group(view: Predictions, binning: Any = "width", **options: Any) -> Groups:
    """Put the rows of a view in groups.

    Parameters
    ----------
    view : Predictions
        A binary view is grouped by its confidence; whole probability vectors by the tuple of the bins of their K
        coordinates.
    binning : "width", "mass", "area", "points", "unique", "sweep", "mean-split", "pava-bc", edges or a grouping object
    **options
        ``n_bins=15``, ``closed="right"``, ``mass_rule="floor"``, ``edges=None``, ``points_per_bin=100``, and
        scikit-learn's ``strategy="uniform" | "quantile"`` for equal width and interpolated quantiles.
    """
    usual = isinstance(binning, str) and binning == "width" and not options
    grouping: Grouping = _FIFTEEN if usual else as_grouping(binning, **options)
    if view.stacked and grouping.stacks not in (("weights",) if np.ndim(view.total) else ("labels", "weights")):
        view.refuse_stack("this grouping")
    if not view.binary and isinstance(grouping, Intervals):
        return _cells(view, grouping)
    # the object is created here if it is not the user's, which must not be changed
    return grouping.groups(view) if grouping is binning else grouping.fit_view(view)._split(view)


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

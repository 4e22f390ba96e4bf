"""The nearest-neighbour error for many numbers of neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic
from calibrary.grouping.edges import whole
from calibrary.metrics.bins.neighbors import nearest_neighbor_calibration_error
from calibrary.metrics.machinery.entry import Seen
from calibrary.metrics.machinery.measure import combined, each_view
from calibrary.question import Question


class NeighborCurve(NamedTuple):
    """The nearest-neighbour error for several numbers of neighbours."""

    k: Array
    error: Array


@diagnostic(nearest_neighbor_calibration_error)
def ece_knn_curve(
    views: Views, *, ks: Iterable[int] | None = None, average: Any = "uniform", **common: Unpack[Seen]
) -> NeighborCurve:
    """Nearest-neighbour error as a function of k, to choose k where the error hardly changes.

    Parameters
    ----------
    ks : iterable of int, optional
        Numbers of neighbours; by default about twenty from 1 to half the rows, evenly spaced in the logarithm.

    Returns
    -------
    NeighborCurve
        With arrays ``k`` and ``error``.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.ece_knn_curve([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], ks=[1, 2, 4])
    >>> curve.error.round(4)
    array([0.1867, 0.1267, 0.04  ])
    """
    entry = nearest_neighbor_calibration_error.entry
    if ks is None:
        rows = max(view.total for view in views.views)
        ks = np.unique(np.geomspace(1, max(1.0, rows / 2), 20).astype(int)).tolist()
    chosen = [whole("ks", k) for k in np.atleast_1d(np.asarray(ks, dtype=object)).ravel()]
    questions = [Question(average=average, options={"n_neighbors": k}) for k in chosen]
    errors = [combined(entry, each_view(entry.formula, views, q), views, q) for q in questions]
    return NeighborCurve(np.array(chosen, dtype=np.float64), np.array(errors))

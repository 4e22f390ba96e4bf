"""Distances from calibration (section 9.2): how far the predictions must move to become calibrated.

The true distance, to the nearest calibrated predictor, needs the inputs of the model. From labels and confidences
alone it lies between the lower distance and the best calibrated relabelling of the confidences; ``sce``, ``sice``,
``lkce`` and ``smece`` are the metrics that are small exactly when it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary._errors import warn
from calibrary.data.checks import Array, as_floats
from calibrary.data.lens import Lens, as_lens
from calibrary.data.predictions import Predictions, predictions

__all__ = ["calibration_curve_gap", "interval_partition_distance", "lower_distance"]

#: Distinct confidences above which the linear programme takes more than about a minute.
_SLOW = 1000


def lower_distance(
    y_true: Any,
    y_prob: Any = None,
    *,
    grid: int = 101,
    sample_weight: Any = None,
    lens: str | Lens = "auto",
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    r"""Least average distance that confidences must move to be calibrated, when equal ones may part company.

    .. math:: \min_{\pi \ge 0} \sum_{i,g} \pi_{ig}\, |c_i - u_g|, \quad \sum_g \pi_{ig} = w_i / W, \quad
              \sum_i \pi_{ig} (y_i - u_g) = 0

    Every row's weight is spread over new confidences u (the points of a grid on [0, 1]) such that each of them is
    right on average. Never above the true distance from calibration.

    Parameters
    ----------
    y_true, y_prob : labels and probabilities, as in every metric
    grid : int
        Number of grid points. The grid can only raise the value, by at most 1 / (2 (grid - 1)).
    sample_weight, lens, labels, pos_label
        As in every metric; several views are averaged. "auto" is "binary" for two classes, else "top-label".

    Notes
    -----
    A linear programme: about 20 s for 500 distinct confidences, so a diagnostic to run offline. The Lipschitz error
    ``sce`` is at most twice this distance, and in practice within about 1.5 times of it, in the time of a sort.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.lower_distance([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1064
    """
    points = int(grid)
    if points != grid or points < 2:
        raise ValueError(f"grid={grid!r} must be a whole number of points, 2 or more")
    return _averaged(
        lambda view: _transport(view, np.linspace(0.0, 1.0, points)),
        predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label),
        lens,
    )


def interval_partition_distance(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    lens: str | Lens = "auto",
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Average distance that confidences move when runs of them are replaced by their mean labels, at best.

    The sorted confidences are cut into runs, and every confidence of a run moves to the run's mean label, which is
    calibrated; the cuts are those that move the least. An upper bound of the distance to the best calibrated
    function of the confidence, and never below :func:`lower_distance` but for its grid.

    Parameters
    ----------
    y_true, y_prob : labels and probabilities, as in every metric
    sample_weight, lens, labels, pos_label
        As in every metric; several views are averaged. "auto" is "binary" for two classes, else "top-label".

    Notes
    -----
    Dynamic programme, O(m^2 log m) time for m distinct confidences: a second for 3000 of them.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.interval_partition_distance([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1667
    """
    p = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    return _averaged(_best_runs, p, lens)


def calibration_curve_gap(map: Callable[[Any], Any], c: Any) -> Array:
    """Calibration error at given confidences: what a calibration map says there, minus the confidence.

    Parameters
    ----------
    map : callable
        A fitted calibration map, from confidence to estimated frequency.
    c : array-like
        Confidences in [0, 1].

    Returns
    -------
    array
        Negative where the predictions are over-confident (the event is rarer than stated), positive where they are
        under-confident.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.calibration_curve_gap(lambda c: 0.5 + 0.5 * (c - 0.5), [0.1, 0.5, 0.9])
    array([ 0.2,  0. , -0.2])
    """
    at = as_floats(c, "c")
    if at.size and not (at.min() >= 0.0 and at.max() <= 1.0):
        raise ValueError("c holds values outside [0, 1]: pass confidences")
    gap: Array = np.asarray(map(at), dtype=np.float64) - at
    return gap


def _averaged(distance: Callable[[Predictions], float], p: Predictions, lens: str | Lens) -> float:
    if isinstance(lens, str) and lens == "auto":
        lens = "binary" if p.k == 2 else "top-label"
    views = p.through(as_lens(lens))
    return float(views.average(np.array([distance(view) for view in views.views]), "uniform"))


def _transport(view: Predictions, u: Array) -> float:
    """The linear programme, on rows with equal confidence and label taken together."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    c, y, w = _merged(view)
    if len(c) > _SLOW:
        warn(f"lower_distance solves a linear programme over {len(c)} distinct rows: this may take minutes; see sce")
    g, k = len(c), len(u)
    row, column = np.repeat(np.arange(g), k), np.arange(g * k)
    at = np.tile(np.arange(k), g)
    entries = np.concatenate([np.ones(g * k), np.repeat(y, k) - np.tile(u, g)])
    places = (np.concatenate([row, g + at]), np.concatenate([column, column]))
    constraints = coo_array((entries, places), shape=(g + k, g * k)).tocsr()
    solution = linprog(
        np.abs(c[:, None] - u).ravel(),
        A_eq=constraints,
        b_eq=np.concatenate([w, np.zeros(k)]),
        method="highs",
    )
    if solution.fun is None:
        raise RuntimeError(f"the linear programme was not solved: {solution.message}")
    return max(float(solution.fun), 0.0)


def _merged(view: Predictions) -> tuple[Array, Array, Array]:
    """Distinct pairs of confidence and label, with their shares of the weight."""
    ties = view.ties
    c, y = np.tile(ties.c, 2), np.repeat([0.0, 1.0], len(ties.c))
    w = np.concatenate([ties.w - ties.wy, ties.wy]) / view.total
    return c[w > 0.0], y[w > 0.0], w[w > 0.0]


def _best_runs(view: Predictions) -> float:
    """The cheapest cut of the sorted confidences into runs; cost of a run: weighted sum of |c - mean label|."""
    ties = view.ties
    c = ties.c
    w, wy, wc = (np.concatenate([[0.0], np.cumsum(a)]) for a in (ties.w, ties.wy, ties.w * c))
    best = np.zeros(len(c) + 1)
    for end in range(1, len(c) + 1):
        start = np.arange(end)
        mean = (wy[end] - wy[:end]) / (w[end] - w[:end])
        # confidences below the mean move up, the others down
        middle = np.clip(np.searchsorted(c, mean), start, end)
        up = mean * (w[middle] - w[:end]) - (wc[middle] - wc[:end])
        down = (wc[end] - wc[middle]) - mean * (w[end] - w[middle])
        best[end] = np.min(best[:end] + up + down)
    return max(float(best[-1]) / view.total, 0.0)

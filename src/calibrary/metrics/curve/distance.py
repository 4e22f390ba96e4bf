"""Distances from calibration (sections 9.2 and 9.3): how far the predictions must move to become calibrated.

The true distance, to the nearest calibrated predictor, needs the inputs of the model. From labels and confidences
alone it lies between the lower distance and the best calibrated relabelling of the confidences; ``sce``, ``sice``,
``lkce`` and ``smece`` are the metrics that are small exactly when it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined, warn
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.maps import fit_map
from calibrary.metrics.curve.map_options import MAP_OPTIONS, MapOptions
from calibrary.metrics.machinery.declare import CellFacts, Common, metric
from calibrary.metrics.machinery.literature import cited

#: Distinct confidences above which the linear programme takes more than about a minute.
_SLOW = 1000


@metric(
    "lower_distance",
    name="lower distance from calibration",
    section="9.2",
    family="kernel",
    aliases=("lower dCE", "lower calibration distance"),
    sound=True,
    complete=True,
    symmetric=True,
    costly=True,
    slow_above=60,
    slow_binary=True,
    sign="0 is perfect; larger is worse; never above the true distance from calibration",
    cells=CellFacts("sample"),
    cost="a linear programme: 20 s for 500 distinct confidences",
    equation="in words",
    references=cited("blasiok2023"),
    use="How far is the model from the nearest calibrated one, at least? What consistent errors are measured against.",
    avoid="A linear programme, for a few hundred rows: sce is within a factor of two of it in the time of a sort.",
)
def lower_distance(view: Predictions, *, grid: int = 101, **common: Unpack[Common]) -> float:
    r"""Least average distance that confidences must move to be calibrated, when equal ones may move apart.

    .. math:: \min_{\pi \ge 0} \sum_{i,g} \pi_{ig}\, |c_i - u_g|, \quad \sum_g \pi_{ig} = w_i / W, \quad
              \sum_i \pi_{ig} (y_i - u_g) = 0

    Every row's weight is spread over new confidences u (the points of a grid on [0, 1]) such that each of them is
    right on average. Never above the true distance from calibration.

    Parameters
    ----------
    grid : int
        Number of grid points. The grid can only raise the value, by at most 1 / (2 (grid - 1)).

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
        raise RefusedError(f"grid={grid!r} must be a whole number of points, 2 or more")
    return _transport(view, np.linspace(0.0, 1.0, points))


@metric(
    "interval_partition_distance",
    name="interval partition distance from calibration",
    section="9.2",
    family="bin",
    aliases=("upper distance from calibration",),
    symmetric=True,
    costly=True,
    slow_above=500,
    slow_binary=True,
    sign="0 is perfect; larger is worse; never below the lower distance, but for its grid",
    cells=CellFacts("sample"),
    cost="O(m^2 log m) for m distinct confidences",
    equation="in words",
    references=cited("blasiok2023"),
    use="How far must confidences move if runs of them are replaced by what happened? The end above lower_distance.",
    avoid="Fits the labels: single rows at the ends move to their own labels, so a calibrated model does not show 0.",
)
def interval_partition_distance(view: Predictions, **common: Unpack[Common]) -> float:
    """Average distance that confidences move when runs of them are replaced by their mean labels, at best.

    The sorted confidences are cut into runs, and every confidence of a run moves to the run's mean label, which is
    calibrated; the cuts are those that move the least. An upper bound of the distance to the best calibrated
    function of the confidence, and never below :func:`lower_distance` but for its grid.

    Notes
    -----
    Dynamic programme, O(m^2 log m) time for m distinct confidences: a second for 3000 of them.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.interval_partition_distance([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1667
    """
    return _best_runs(view)


@metric(
    "error_at_level",
    name="calibration error at a level",
    section="9.3",
    family="curve",
    costly=True,
    measures="bias",
    range=(-1.0, 1.0),
    better="perfect",
    tail="two-sided",
    sign="below 0: at that confidence the event is rarer than stated (over-confident); above 0: more frequent",
    extra_options=MAP_OPTIONS,
    weights="rows",
    weights_note="spans, knots and folds count rows, so weight 2 is not exactly the row written twice",
    cells=CellFacts("copies"),
    cost="O(N log N)",
    equation="in words",
    references=cited("bai2021"),
    use="Is one confidence to be believed, the one that a decision turns on? With a sign.",
    avoid="It is the height of a fitted curve at one point: few rows nearby, and it is the map that speaks.",
)
def calibration_error_at_level(
    view: Predictions, *, at: float = 0.5, map: Any = "loess", **options: Unpack[MapOptions]
) -> float:
    r"""How far off the model is where it states one given confidence, with a sign.

    .. math:: \hat y(t) - t

    with the fitted calibration map at the confidence t, cut to [0, 1]: a LOESS curve may overshoot where data are few.

    Parameters
    ----------
    at : float
        The confidence t.
    map : str or object
        As in :func:`calibration_map_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.calibration_error_at_level(y, p, at=0.65, map="isotonic"), 4)
    0.0167
    """
    if not (isinstance(at, int | float) and 0.0 <= at <= 1.0):
        raise RefusedError(f"at={at!r} must be a confidence between 0 and 1")
    gap = float(np.clip(fit_map(map, view, **options).predict(np.array([float(at)]))[0], 0.0, 1.0) - at)
    return undefined(f"no prediction is near at={at:g}, so the curve says nothing there") if math.isnan(gap) else gap


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
    >>> calibration_curve_gap(lambda c: 0.5 + 0.5 * (c - 0.5), [0.1, 0.5, 0.9])
    array([ 0.2,  0. , -0.2])
    """
    at = as_floats(c, "c")
    if at.size and not (at.min() >= 0.0 and at.max() <= 1.0):
        raise RefusedError("c holds values outside [0, 1]: pass confidences")
    gap: Array = np.asarray(map(at), dtype=np.float64) - at
    return gap


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

"""Distances from calibration (sections 9.2 and 9.3): how far the predictions must move to become calibrated.

The true distance to the nearest calibrated predictor needs the inputs of the model. From labels and confidences alone,
bounds can be computed: the distance lies between the lower distance and the best calibrated relabelling of the
confidences; ``sce``, ``sice``, ``lkce`` and ``smece`` are small exactly when the distance is small. If frequency rises
with confidence, the curve and the error have guaranteed bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined, warn, whole
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.maps import fit_map
from calibrary.metrics.curve.map_options import MAP_OPTIONS, MapOptions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.laws import rising_lower_bound, rising_upper_bound
from calibrary.numerics.runs import run_starts

#: Number of distinct confidences above which the linear programme takes more than about a minute.
_SLOW = 1000


@metric("lower_distance")
def lower_distance(view: Predictions, *, grid: int = 101, **common: Unpack[Common]) -> float:
    r"""Least average distance that confidences must move to be calibrated, where equal confidences may move apart.

    .. math:: \min_{\pi \ge 0} \sum_{i,g} \pi_{ig}\, |c_i - u_g|, \quad \sum_g \pi_{ig} = w_i / W, \quad
              \sum_i \pi_{ig} (y_i - u_g) = 0

    Every row's weight is spread over new confidences u (the points of a grid on [0, 1]) such that each new confidence
    is calibrated. The value is never above the true distance from calibration.

    Parameters
    ----------
    grid : int
        Number of grid points. The grid can only increase the value, by at most 1 / (2 (grid - 1)).

    Notes
    -----
    The linear programme takes about 20 s for 500 distinct confidences, so use it offline. The Lipschitz error ``sce``
    is at most twice this distance, in practice at most about 1.5 times, and takes only the time of a sort.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.lower_distance([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1064
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    if int(grid) != grid or grid < 2:
        raise RefusedError(f"grid={grid!r} must be a whole number of grid points, 2 or more")
    u = np.linspace(0.0, 1.0, int(grid))
    c, y, w = _merged(view)  # rows with equal confidence and label are taken together
    if len(c) > _SLOW:
        warn(
            f"lower_distance solves a linear programme over {len(c)} distinct rows, which may take minutes: sce is a "
            "fast alternative"
        )
    g, k = len(c), len(u)
    row, column = np.repeat(np.arange(g), k), np.arange(g * k)
    at = np.tile(np.arange(k), g)
    entries = np.concatenate([np.ones(g * k), np.repeat(y, k) - np.tile(u, g)])
    places = (np.concatenate([row, g + at]), np.concatenate([column, column]))
    constraints = coo_array((entries, places), shape=(g + k, g * k)).tocsr()
    solution = linprog(
        np.abs(c[:, None] - u).ravel(), A_eq=constraints, b_eq=np.concatenate([w, np.zeros(k)]), method="highs"
    )
    if solution.fun is None:
        raise RuntimeError(f"the linear programme was not solved: {solution.message}")
    return max(float(solution.fun), 0.0)


@metric("interval_partition_distance")
def interval_partition_distance(view: Predictions, **common: Unpack[Common]) -> float:
    """Smallest average distance that confidences move when runs of them are replaced by their mean labels.

    The sorted confidences are divided into runs, and every confidence of a run moves to the run's mean label, which is
    calibrated; the cuts that give the smallest distance are used. The value is an upper bound of the distance to the
    best calibrated function of the confidence, and never below :func:`lower_distance` apart from the error of its grid.

    Notes
    -----
    The dynamic programme takes O(m^2 log m) time for m distinct confidences: about a second for 3000.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.interval_partition_distance([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1667
    """
    # the cut of the sorted confidences into runs with the smallest cost: the weighted sum of |c - mean label|
    ties = view.ties
    c = ties.c
    w, wy, wc = (np.concatenate([[0.0], np.cumsum(a)]) for a in (ties.w, ties.wy, ties.w * c))
    best = np.zeros(len(c) + 1)
    for end in range(1, len(c) + 1):
        start = np.arange(end)
        mean = (wy[end] - wy[:end]) / (w[end] - w[:end])
        # confidences below the mean label move up, the others move down
        middle = np.clip(np.searchsorted(c, mean), start, end)
        up = mean * (w[middle] - w[:end]) - (wc[middle] - wc[:end])
        down = (wc[end] - wc[middle]) - mean * (w[end] - w[middle])
        best[end] = np.min(best[:end] + up + down)
    return max(float(best[-1]) / view.total, 0.0)


@metric("error_at_level", extra_options=MAP_OPTIONS)
def calibration_error_at_level(
    view: Predictions, *, at: float = 0.5, map: Any = "loess", **options: Unpack[MapOptions]
) -> float:
    r"""How far the observed frequency lies from one given confidence, with a sign.

    .. math:: \hat y(t) - t

    The fitted calibration map is evaluated at the confidence t and clipped to [0, 1], because a LOESS curve may
    overshoot where rows are few.

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
    if not math.isnan(gap):
        return gap
    return undefined(
        f"no prediction is near at={at:g}, so the curve is not reliable there: choose a confidence that the model "
        "states"
    )


def calibration_curve_gap(map: Callable[[Any], Any], c: Any) -> Array:
    """Calibration error at given confidences: the value of a calibration map there, minus the confidence.

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
        raise RefusedError("c contains values outside [0, 1]: pass confidences")
    return np.asarray(map(at), dtype=np.float64) - at


def _merged(view: Predictions) -> tuple[Array, Array, Array]:
    """Distinct pairs of confidence and label, with their shares of the weight."""
    ties = view.ties
    c, y = np.tile(ties.c, 2), np.repeat([0.0, 1.0], len(ties.c))
    w = np.concatenate([ties.w - ties.wy, ties.wy]) / view.total
    return c[w > 0.0], y[w > 0.0], w[w > 0.0]


#: If there are more distinct confidences than this, they are rounded outward to two digits: the number of runs grows
#: with their square.
MOST_PLACES = 2000


class HonestError(NamedTuple):
    """Bounds of the calibration error that hold jointly at the confidence level.

    ``low`` and ``high`` bound the mean distance between confidence and frequency; no stated confidence is off by more
    than ``certified``.
    """

    low: float
    high: float
    certified: float


def honest_bounds(view: Predictions, confidence_level: float, digits: int | str | None) -> tuple[Array, Array]:
    """The band at the distinct confidences of a binary view."""
    view.counts("an honest band")
    alpha, ties = 1.0 - confidence_level, view.ties
    if isinstance(digits, str):
        if digits != "auto":
            raise RefusedError(f"digits={digits!r} is not valid: pass a whole number, None or 'auto'")
        digits = None if len(ties.c) <= MOST_PLACES else 2
    if digits is None:
        return rising_lower_bound(ties.w, ties.wy, alpha), rising_upper_bound(ties.w, ties.wy, alpha)
    scaled = np.round(ties.c * 10.0 ** whole("digits", digits), 9)  # 0.07 * 100 is 7.000000000000001
    below, above = np.floor(scaled), np.ceil(scaled)
    # a lower bound of the curve at c also holds at the next grid point, and an upper bound at the previous one
    place, n, ones = _combined_rows(above, ties.w, ties.wy)
    lower = np.append(0.0, rising_lower_bound(n, ones, alpha))[np.searchsorted(place, below, side="right")]
    place, n, ones = _combined_rows(below, ties.w, ties.wy)
    upper = np.append(rising_upper_bound(n, ones, alpha), 1.0)[np.searchsorted(place, above)]
    return lower, upper


def _combined_rows(place: Array, w: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Rows at the same (ascending) grid point, combined."""
    first = run_starts(place)
    return place[first], np.add.reduceat(w, first), np.add.reduceat(wy, first)


def _over_views(values: list[HonestError], views: Views, average: Any, options: dict[str, Any]) -> HonestError:
    """Bounds for all views together: each view has its share of the error probability, so the mean is covered too."""
    level = options.get("confidence_level", 0.95)
    shared = {**options, "confidence_level": 1.0 - (1.0 - level) / len(values)}
    each = [honest_error.entry.formula(view, **shared) for view in views.views]
    low, high = (views.average(np.array(column), average) for column in list(zip(*each, strict=True))[:2])
    return HonestError(low, high, max(e.certified for e in each))


@metric("honest_error", combine=_over_views)
def honest_error(
    view: Predictions, *, confidence_level: float = 0.95, digits: Any = "auto", **common: Unpack[Common]
) -> HonestError:
    r"""Guaranteed bounds of the mean calibration error, and of the largest error of any confidence.

    .. math:: \overline{\max(0, L - c, c - U)} \;\le\; \overline{|T(c) - c|} \;\le\; \overline{\max(|L - c|, |U - c|)}

    Here [L, U] is the band of :func:`calibrary.honest_band`, which contains the whole curve T of frequencies at the
    confidence level, if T is rising. With a lens of several views the bounds hold for all views together.

    Parameters
    ----------
    confidence_level : float
        Probability, at least, that all three statements are true.
    digits : int, None or "auto"
        Round confidences outward to this number of digits, which preserves the guarantee and widens the band a little;
        None does not round, "auto" rounds (to 2 digits) where there are more than 2000 distinct confidences.

    Returns
    -------
    HonestError
        ``low``, ``high`` and ``certified``.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(20_000).round(2)
    >>> found = cal.honest_error(rng.random(20_000) < c**2, c)
    >>> round(found.low, 3), round(found.high, 3), round(found.certified, 3)
    (0.104, 0.225, 0.336)
    """
    lower, upper = honest_bounds(view, confidence_level, digits)
    c, share = view.ties.c, view.ties.w / view.total
    least = np.maximum(np.maximum(lower - c, c - upper), 0.0)
    most = np.maximum(np.abs(lower - c), np.abs(upper - c))
    return HonestError(math.fsum(share * least), math.fsum(share * most), float(most.max()))

"""One number of a fitted map: the estimated calibration index (row 66), the mean of the reliability map (row 60)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import undefined, warn
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES, BINARY_LENSES, Lens, as_lens, code, code_matrix
from calibrary.data.predictions import Predictions
from calibrary.maps import fit_map, map_at
from calibrary.maps.reliability import ReliabilityMap
from calibrary.metrics.curve.map_options import MAP_OPTIONS, MapOptions
from calibrary.metrics.machinery.declare import Common, metric


def _scaled(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """The range on the scale that the options request."""
    return 0.0, {"percent": 100.0, "relative": np.inf}.get(options.get("scale", "review"), 1.0)


@metric("eci", range_with=_scaled, lenses=ALL_LENSES, default_lens="full", extra_options=MAP_OPTIONS)
def estimated_calibration_index(
    view: Predictions,
    *,
    map: Any = "multinomial_spline",
    scale: str = "review",
    reference: int = 0,
    **options: Unpack[MapOptions],
) -> float:
    r"""Squared distance between predicted probabilities and a flexible recalibration of them.

    .. math:: \frac{1}{W K} \sum_i w_i \sum_k (c_{ik} - q_{ik})^2

    Here q are the fitted probabilities of a multinomial model whose log ratios are restricted cubic splines of the
    predicted log ratios (``n_knots``, 3 by default).

    Parameters
    ----------
    map : str or object
        "multinomial_spline", or any map of :func:`calibrary.calibration_map_error`, fitted to each class and not
        renormalised ("loess" for two classes is the ECI of CalibrationCurves).
    scale : "review", "percent" or "relative"
        "review": the formula above. "percent": times 100 K/2 (the inventors' scale, which R packages print).
        "relative": divided by the same sum with the class shares in place of q (1 is as bad as predicting the class
        shares).
    reference : int
        The class in the denominator of the log ratios.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.estimated_calibration_index(y, p, map="platt"), 4)
    0.0112
    """
    distance = _squared_distance(view, map, reference, options)
    if scale == "percent":
        return float(50.0 * distance)
    if scale == "relative":
        worst = view.mean(np.sum((view.p - view.class_share) ** 2, axis=1))
        if worst == 0.0:
            return undefined(
                "every prediction equals the class shares, so the relative scale is undefined: use scale='review' or "
                "'percent'"
            )
        return float(distance / worst)
    return float(distance / view.k)


def _squared_distance(view: Predictions, map: Any, reference: int, options: Any) -> float:
    if not view.binary:
        q = _recalibrated(view, map, reference, options)
        return float(view.mean(np.sum((view.p - q) ** 2, axis=1)))
    if map == "multinomial_spline":
        options = {**options, "reference": reference}
    t = view.ties
    # both classes are off by the same amount
    return 2.0 * float(np.sum(t.w * (t.c - map_at(map, view, **options)) ** 2)) / view.total


def _recalibrated(view: Predictions, map: Any, reference: int, options: Any) -> Array:
    if map == "multinomial_spline":
        return fit_map(map, view, reference=reference, **options).predict(view.p)
    if view.k == 2:
        seen = view.through(as_lens("binary")).views[0]
        q = fit_map(map, seen, **options).predict(seen.c)
        return np.column_stack([1.0 - q, q])
    classes = view.through(as_lens("class-wise")).views
    return np.column_stack([fit_map(map, seen, **options).predict(seen.c) for seen in classes])


#: With more rows than this, a sub-problem does not keep its sorted rows beside those of the others.
_MANY_ROWS = 100_000


@metric("ls_ecoc_r", lenses=(*BINARY_LENSES, "full"), default_lens="full")
def reliability_map_score(
    view: Predictions,
    *,
    features: Any = None,
    clusters: Any = None,
    code: str | NDArray[Any] = "one-vs-rest",
    bandwidth: float = 0.01,
    map_bandwidth: float | None = None,
    cluster_size: int = 10,
    calibration: str = "map",
    **common: Unpack[Common],
) -> float:
    """Mean reliability: whether inputs of equal confidence have equal true probability.

    The mean of :class:`ReliabilityMap` over the rows of each binary sub-problem, then over the sub-problems. The review
    defines no single number; this one is our definition.

    Parameters
    ----------
    features : array-like of shape (N, d), optional
        Features of the inputs: clusters consist of inputs with similar features.
    clusters : array-like of shape (N,), optional
        Clusters already computed, in place of ``features``.
    code : "one-vs-rest", "pairwise" or matrix
        The sub-problems of several classes.
    bandwidth, map_bandwidth, cluster_size, calibration : see :class:`ReliabilityMap`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1] * 10, [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9] * 10
    >>> 0 < cal.reliability_map_score(y, p, bandwidth=0.3) < 1
    True
    """
    if isinstance(code, str) or np.ndim(code) == 0:  # also of two classes, which need no code
        code_matrix(view.k, code)  # type: ignore[arg-type]  # a word, or what is refused
    if features is None and clusters is None and calibration == "map":
        warn("without features or clusters the score contains no information about grouping: pass features=")
    if view.n * bandwidth < 20:
        warn(f"bandwidth={bandwidth:g} is narrow for {view.n} rows: raise it until N * bandwidth is 20 or more")
    means = []
    for part in (view,) if view.binary else view.through(_code_lens(code, view.k)).views:
        reliability = ReliabilityMap(bandwidth, map_bandwidth, cluster_size, calibration)
        reliability.fit(part, features=features, clusters=clusters)
        means.append(float(np.sum(part.ties.w * reliability(part.ties.c))) / part.total)
        if part is not view and part.n > _MANY_ROWS:
            part.forget(everything=True)
    return float(np.mean(means))


def _code_lens(given: str | NDArray[Any], k: int) -> Lens:
    return code(code_matrix(k, given) if isinstance(given, str) else given)

"""The estimated calibration index (row 66): distance from a flexible recalibration of whole vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES, as_lens
from calibrary.data.predictions import Predictions
from calibrary.maps import fit_map, map_at
from calibrary.metrics.curve.map_options import MAP_OPTIONS, MapOptions
from calibrary.metrics.machinery.declare import metric


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
    one_of("scale", scale, ("review", "percent", "relative"))
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
        fitted: Array = fit_map(map, view, reference=reference, **options).predict(view.p)
        return fitted
    if view.k == 2:
        seen = view.through(as_lens("binary")).views[0]
        q = fit_map(map, seen, **options).predict(seen.c)
        return np.column_stack([1.0 - q, q])
    classes = view.through(as_lens("class-wise")).views
    return np.column_stack([fit_map(map, seen, **options).predict(seen.c) for seen in classes])

"""Calibration curves pooled point by point on the logit scale: over centres, and over completed data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import check_level
from calibrary.inference.methods.scales import one_class
from calibrary.inference.result import Estimate
from calibrary.inference.verbs.imputed import completed, rubin
from calibrary.maps.base import logit
from calibrary.numerics.smooth.loess import fit_weights
from calibrary.trial.effects import pooled_effects

#: Points of the curve, share of the nearest rows in a local line, and the fewest rows of a centre's curve.
_POINTS, _SPAN, _FEWEST = 61, 0.75, 20


@dataclass(frozen=True)
class PooledCurve(Estimate):
    """The mean calibration curve over centres on a grid of predictions: its numbers are arrays, one entry for a point.

    Attributes
    ----------
    grid : predictions, even on the log odds
    prediction_low, prediction_high : the band of the curve of a new centre
    k : number of centres at each point: those with predictions on both sides of it
    each : the curve of each centre, NaN outside its predictions
    names : the centres of ``each``
    left_out : the centres without a curve, each with the reason
    """

    grid: Any = ()
    prediction_low: Any = ()
    prediction_high: Any = ()
    k: Any = ()
    each: Any = ()
    names: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def pooled_curve(
    names: tuple[str, ...], parts: list[Predictions], level: float, *, truncated: bool = False
) -> PooledCurve:
    """Local lines on the log odds in each centre, pooled at every point as any other estimate."""
    every = np.concatenate([logit(part.c) for part in parts])
    low, high = np.quantile(every, [0.005, 0.995])
    grid = np.linspace(low, high, _POINTS)
    value, variance, whys = _fits(parts, grid)
    left = [(name, why) for name, why in zip(names, whys, strict=True) if why]
    kept = [i for i, name in enumerate(names) if name not in dict(left)]
    ends = np.full((5, _POINTS), np.nan)
    known = np.isfinite(value) & np.isfinite(variance)
    for j in range(_POINTS):
        here = known[:, j]
        if here.any():
            e = pooled_effects(value[here, j], variance[here, j], level, truncated=truncated)
            ends[:, j] = e.value, e.low, e.high, e.prediction_low, e.prediction_high
    mean, low, high, far_low, far_high = scipy.special.expit(ends)
    return PooledCurve(
        mean, low, high, level, grid=scipy.special.expit(grid), prediction_low=far_low, prediction_high=far_high,
        k=known.sum(axis=0), each=scipy.special.expit(value[kept]), names=tuple(names[i] for i in kept),
        left_out=tuple(left),
    )  # fmt: skip


@dataclass(frozen=True)
class ImputedCurve(Estimate):
    """The calibration curve over completed data sets on a grid of predictions: its numbers are arrays.

    Attributes
    ----------
    grid : predictions, even on the log odds, within those of every data set
    each : the curve of each data set
    """

    grid: Any = ()
    each: Any = ()


def imputed_curve(
    y_true: Any, y_prob: Any, *, imputations: Any, pos_label: Any = None, confidence_level: float = 0.95
) -> ImputedCurve:
    """The calibration curve of completed data sets (multiple imputation), pooled by Rubin's rules at every point.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (m N,)
        Labels of two classes and probabilities, the data sets stacked; or lists, with ``imputations=True``.
    imputations : array-like of shape (m N,), or True
        The number of the data set of each row.
    pos_label : optional
        The label of the event.
    confidence_level : float
        Level of the band at each point.

    References
    ----------
    Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard, Rubin (1999), Small-sample degrees of freedom
    with multiple imputation.

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 3, 500)
    >>> y = (rng.random(500) < p).astype(int)
    >>> completed = [p, np.clip(p + rng.normal(0, 0.02, 500), 0.01, 0.99)]
    >>> curve = cal.imputed_curve(y, completed, imputations=True)
    >>> bool(((curve.low < curve.grid) & (curve.grid < curve.high)).mean() > 0.9)
    True
    """
    level = check_level(confidence_level)
    parts = completed(y_true, y_prob, imputations, {"pos_label": pos_label})
    if parts[0].k != 2 or parts[0].fractional:
        raise RefusedError("imputations are for labels of two classes: pass 0 and 1, and the probability of the event")
    logits = [logit(part.c) for part in parts]
    low, high = max(float(np.quantile(x, 0.005)) for x in logits), min(float(np.quantile(x, 0.995)) for x in logits)
    grid = np.linspace(low, high, _POINTS)
    value, variance, whys = _fits(parts, grid)
    for i, why in enumerate(whys):
        if why:
            raise RefusedError(f"imputations: there is no curve, because in data set {i + 1} of {len(parts)} {why}")
    pooled = [rubin(q, u, parts[0].n - 1, "logit") for q, u in zip(value.T, variance.T, strict=True)]
    mean = np.array([one.estimate_on_scale for one in pooled])
    half = np.array([scipy.special.stdtrit(one.df, 0.5 + level / 2.0) * one.standard_error for one in pooled])
    place, middle, low_line, high_line, each = map(scipy.special.expit, (grid, mean, mean - half, mean + half, value))
    return ImputedCurve(middle, low_line, high_line, level, grid=place, each=each)


def _fits(parts: list[Predictions], grid: Array) -> tuple[Array, Array, list[str]]:
    """The curves of several parts on the logit scale, their variances, and why a part has none."""
    value, variance = np.full((2, len(parts), _POINTS), np.nan)
    whys = [one_class(part.y) or _fit(part, grid, value[i], variance[i]) for i, part in enumerate(parts)]
    return value, variance, whys


def _fit(part: Predictions, grid: Array, value: Array, variance: Array) -> str:
    """Write a centre's curve on the logit scale, and its variance, where the grid lies inside its predictions.

    The answer says why there is none. A curve at 0 or 1 has no logit: it is moved inside by half a row.
    """
    order = np.argsort(part.c, kind="stable")
    x, y = logit(part.c[order]), part.y[order].astype(np.float64)
    if part.n < _FEWEST:
        return f"it has {part.n} rows, and a curve needs {_FEWEST}"
    inside = np.flatnonzero((grid > x[0]) & (grid < x[-1]))
    if not len(inside):
        return "its predictions do not vary enough"
    weights = fit_weights(x, None, grid[inside], int(part.n * _SPAN), 1, 1.0, None)
    if weights is None:
        return "its predictions are too few different values for a curve"
    weights = weights[: len(inside)]
    least = 0.5 / part.n
    curve = np.clip(weights @ y, least, 1.0 - least)
    value[inside] = logit(curve)
    variance[inside] = (weights**2).sum(axis=1) / (curve * (1.0 - curve))
    return ""

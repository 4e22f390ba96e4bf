"""Smooth curves: restricted (natural) cubic splines, the parabola, and the spline of the cumulative difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array, softmax
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap, logit
from calibrary.maps.likelihood import RIDGE, LogitMap, Points, fit_logistic, logits
from calibrary.maps.vector import VectorMap, logs
from calibrary.numerics.solve.newton import minimize, multinomial_loss

#: Harrell's knot positions, as quantiles.
_QUANTILES = {
    3: (0.10, 0.5, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.18333, 0.34167, 0.5, 0.65833, 0.81667, 0.975),
}


class Basis:
    """Columns x and Harrell's truncated cubics, each divided by its standard deviation on the fitted rows."""

    def __init__(self, x: Array, knots: Array, w: Array) -> None:
        self.knots = knots
        raw = _truncated_cubics(x, knots)
        share = w / w.sum()
        spread = np.sqrt(np.maximum((raw - (raw @ share)[:, None]) ** 2 @ share, 0.0))
        # equal values have a standard deviation of 0, or of rounding
        self.scale = np.where(spread > 1e-12 * np.abs(raw).max(axis=1, initial=0.0), spread, 1.0)
        self.columns = raw / self.scale[:, None]

    @classmethod
    def of(cls, knots: Array, scale: Array) -> Basis:
        """The basis with these knots and divisors, without rows."""
        basis = cls.__new__(cls)
        basis.knots, basis.scale, basis.columns = knots, scale, np.empty((len(scale), 0))
        return basis

    def __call__(self, x: Array) -> Array:
        return _truncated_cubics(x, self.knots) / self.scale[:, None]


def spline_knots(
    ordered: Array, n_knots: int, link: Callable[[Array], Array] = np.asarray, copies: Array | None = None
) -> Array:
    """Harrell's knots of x = link(ordered); none if fewer than three are distinct (the spline is then a line).

    ``copies`` is how often each value occurs.
    """
    if not isinstance(n_knots, Integral) or n_knots not in _QUANTILES:
        raise RefusedError(f"n_knots={n_knots!r} is not known: choose from {', '.join(map(str, _QUANTILES))}")
    upto = None if copies is None else np.cumsum(copies)
    n = len(ordered) if upto is None else int(upto[-1])
    if n < 5:
        return np.empty(0)
    place = np.array(_QUANTILES[n_knots]) * (n - 1)
    low = np.minimum(place.astype(np.intp), n - 2)

    def at(rank: Any) -> Array:
        return link(ordered[rank if upto is None else upto.searchsorted(rank, "right")])

    below, above = at(low), at(low + 1)
    knots = below + (above - below) * (place - low)
    if n < 100:
        knots[0], knots[-1] = at(np.array([4, n - 5]))
    knots = np.unique(knots)
    return knots if len(knots) >= 3 else np.empty(0)


def _truncated_cubics(x: Array, knots: Array) -> Array:
    if not len(knots):
        return x[None, :]
    last, before = knots[-1], knots[-2]
    cube = [np.maximum(x - t, 0.0) ** 3 for t in knots]
    terms = [
        cube[j] - cube[-2] * (last - knots[j]) / (last - before) + cube[-1] * (before - knots[j]) / (last - before)
        for j in range(len(knots) - 2)
    ]
    return np.stack([x, *(t / (last - knots[0]) ** 2 for t in terms)])


@dataclass
class RestrictedCubicSpline(LogitMap):
    """``logit yhat = logit c + spline(logit c)``: linear beyond the outer knots, smooth between them."""

    n_knots: int = 5

    def _learn(self, view: Predictions) -> None:
        rows = view.sorted
        self.kinks_ = spline_knots(rows.c, self.n_knots, logit, rows.w if view.counted else None)

        def fit(points: Points) -> tuple[tuple[Basis, Array], Array]:
            basis = Basis(points.z, self.kinks_, points.w)
            columns = np.vstack([np.ones(len(points.z)), basis.columns])
            coef, _ = fit_logistic(columns, points.wy, points.w, np.zeros(len(columns)), offset=points.z)
            return (basis, coef), points.z + coef @ columns

        self.basis_, self.coef_ = logits(view, clip=True).fitted(fit, self.kinks_)

    def _log_odds(self, z: Array) -> Array:
        return z + self.coef_[0] + self.coef_[1:] @ self.basis_(z)


@dataclass
class MultinomialSpline(VectorMap):
    """Flexible recalibration of whole probability vectors.

    ``log(q_k / q_ref) = LP_k + const_k + sum_j spline_kj(LP_j)`` with ``LP_j = log(c_j / c_ref)``. The fit depends
    slightly on the class chosen as ``reference``. For two classes pass P(class 1), or both columns: the map is then the
    restricted cubic spline of the log odds.
    """

    n_knots: int = 3
    reference: int = 0

    def _learn(self, view: Predictions) -> None:
        self.n_classes_ = view.k
        if not 0 <= self.reference < view.k:
            raise RefusedError(f"reference={self.reference!r} is not a class: choose from 0..{view.k - 1}")
        self.two_ = None
        if view.k == 2:
            self.two_ = RestrictedCubicSpline(self.n_knots).fit(view)
            return
        others = [k for k in range(view.k) if k != self.reference]
        predictors = log_ratios(view.p, self.reference)
        self.bases_ = [Basis(x, spline_knots(np.sort(x), self.n_knots), np.ones(view.n)) for x in predictors.T]
        design = np.column_stack([np.ones(view.n), *(b.columns.T for b in self.bases_)])
        m, p = len(others), design.shape[1]
        weight = view.weight / view.total
        positive = (view.y[:, None] == np.array(others)) * weight[:, None]
        every = np.broadcast_to(design, (m, *design.shape))
        loss = multinomial_loss(every, positive, weight, predictors, ridge=RIDGE)
        self.coef_ = minimize(loss, np.zeros(m * p)).x.reshape(m, p)

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, ascending."""
        return self.predict(view.ties.c) if self.two_ is None else self.two_.at(view)

    def _evaluate(self, c: Array) -> Array:
        return self.two_.predict(c) if c.ndim == 1 and self.two_ is not None else super()._evaluate(c)

    def _rows(self, p: Array) -> Array:
        if self.two_ is not None:
            one = scipy.special.expit(self.two_._log_odds(log_ratios(p, 0)[:, 0]))
            return np.column_stack([1.0 - one, one])
        predictors = log_ratios(p, self.reference)
        design = np.column_stack([np.ones(len(p)), *(b(x).T for b, x in zip(self.bases_, predictors.T, strict=True))])
        return softmax(np.insert(predictors + design @ self.coef_.T, self.reference, 0.0, axis=1))


def log_ratios(p: Array, reference: int) -> Array:
    """log(p_k / p_ref) of the other classes, with probabilities moved inside (0, 1)."""
    x = logs(p)
    return np.delete(x - x[:, [reference]], reference, axis=1)


@dataclass
class Parabola(CalibrationMap):
    """Weighted least squares of the labels on 1, c, c^2. The curve may leave [0, 1] unless ``clip`` is True."""

    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        groups = view.ties
        # centred at the mean, where the columns are nearly orthogonal; with few distinct c the smallest coefficients
        # are used
        self.centre_ = float(groups.w @ groups.c / view.total)
        d = groups.c - self.centre_
        root = np.sqrt(groups.w)
        design = np.stack([np.ones(len(d)), d, d * d], axis=1) * root[:, None]
        self.coef_ = np.linalg.lstsq(design, groups.wy / root, rcond=None)[0]

    def _evaluate(self, c: Array) -> Array:
        d = c - self.centre_
        curve = self.coef_[0] + d * (self.coef_[1] + d * self.coef_[2])
        return np.clip(curve, 0.0, 1.0) if self.clip else curve


@dataclass
class CumulativeSpline(CalibrationMap):
    """``yhat(c) = c + s'(t(c))``, s a natural cubic spline of the cumulative difference of labels and confidences.

    Rows are in order of their confidence; t is the share of rows up to c, and s is fitted by least squares to ``D(t) =
    sum of (y - c) up to there / N``. Its ``n_knots`` knots lie evenly from 0 to 1, the ends included. Rows of one
    confidence are one point, so that neither their order nor copies matter. Between confidences the map is linear,
    beyond them it is constant, and it is clipped to [0, 1].

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("cumulative_spline", n_knots=3).fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    >>> curve([0.1, 0.9]).round(3).tolist()
    [0.128, 0.944]
    """

    n_knots: int = 6

    def _learn(self, view: Predictions) -> None:
        knots = np.linspace(0.0, 1.0, whole("n_knots", self.n_knots, least=2))
        ties = view.ties
        if len(ties.c) < len(knots):
            raise RefusedError(
                f"n_knots={len(knots)} needs at least as many distinct confidences, and there are {len(ties.c)}: use "
                "fewer knots"
            )
        t = np.cumsum(ties.w) / view.total
        difference = np.cumsum(ties.wy - ties.w * ties.c) / view.total
        root = np.sqrt(ties.w)
        columns, slopes = natural_spline(t, knots)
        coef = np.linalg.lstsq((columns * root).T, difference * root, rcond=None)[0]
        self.support_ = (float(ties.c[0]), float(ties.c[-1]))
        self.knots_, self.values_ = ties.c, np.clip(ties.c + coef @ slopes, 0.0, 1.0)

    def _evaluate(self, c: Array) -> Array:
        return np.interp(c, self.knots_, self.values_)


def natural_spline(t: Array, knots: Array) -> tuple[Array, Array]:
    """A basis of the natural cubic splines with these knots, at t, and its derivative there."""
    columns, slopes = [np.ones_like(t), t], [np.zeros_like(t), np.ones_like(t)]
    last, before = knots[-1], knots[-2]
    past = [np.maximum(t - knot, 0.0) for knot in knots]
    for j in range(len(knots) - 2):
        to_last, to_before = (last - knots[j]) / (last - before), (before - knots[j]) / (last - before)
        columns.append(past[j] ** 3 - to_last * past[-2] ** 3 + to_before * past[-1] ** 3)
        slopes.append(3.0 * (past[j] ** 2 - to_last * past[-2] ** 2 + to_before * past[-1] ** 2))
    return np.stack(columns), np.stack(slopes)

"""Maps with a logistic link, fitted by maximum likelihood: beta, Platt and temperature scaling; the log odds of a view.

A ridge of 1e-10 on the mean scale pulls towards the identity, so that the optimum always exists; it matters only where
the data do not determine the fit (one class, separation, fewer distinct confidences than parameters). A few points
represent very many log odds in smooth sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.once import once
from calibrary.data.checks import Array, softmax
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.maps.base import EPS, CalibrationMap, logit
from calibrary.numerics.solve.newton import Evaluated, logistic_loss, minimize
from calibrary.numerics.sums.gaussian import PER_WIDTH, Cells

RIDGE = 1e-10
_LOG2 = float(np.log(2.0))


def fit_logistic(
    columns: Array, positive: Array, w: Array | None, identity: Array, *, offset: Array | None = None
) -> tuple[Array, float]:
    """Coefficients and mean penalised log loss of a logistic regression pulled towards ``identity``.

    ``positive`` is the weighted number of ones in each row.
    """
    n = columns.shape[1]
    total = float(n) if w is None else float(w.sum())
    start = rough_start(columns, positive, w, identity, offset)
    loss = logistic_loss(columns, positive, w, offset=offset, ridge=RIDGE * total, center=identity)
    best = minimize(loss, start, scale=total)
    return best.x, best.value / total


def rough_start(columns: Array, positive: Array, w: Array | None, identity: Array, offset: Array | None) -> Array:
    """The start of Newton's method: the identity, or for many rows the fit to a few of them."""
    # With many rows, the fit to a few thousand evenly spaced ones is so near the optimum that two or three passes over
    # all rows remain. The optimum itself does not depend on the start.
    step = columns.shape[1] // 4096
    if step < 4:
        return identity
    few = slice(None, None, step)
    total = float(len(positive[few])) if w is None else float(w[few].sum())
    loss = logistic_loss(
        np.ascontiguousarray(columns[:, few]),
        positive[few],
        None if w is None else w[few],
        offset=None if offset is None else offset[few],
        ridge=max(RIDGE, 1e-6) * total,
        center=identity,
    )
    return minimize(loss, identity, tolerance=1e-4, scale=total).x


class LogitMap(CalibrationMap):
    """A map whose log odds are a function of the log odds of the confidence; a subclass implements ``_log_odds(z)``."""

    #: Where that function is not smooth.
    kinks_: Array = np.empty(0)

    def _log_odds(self, z: Array) -> Array:
        raise NotImplementedError

    def _evaluate(self, c: Array) -> Array:
        return scipy.special.expit(self._log_odds(logit(c)))

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, ascending."""
        return logits(view, clip=True).curve(self._log_odds, self.kinks_)


class BetaShaped(LogitMap):
    """``logit yhat = a log c - b log(1-c) + d``; a subclass determines how a, b and d are fitted."""

    a_: float
    b_: float
    d_: float

    def _log_odds(self, z: Array) -> Array:
        return self.b_ * np.logaddexp(0.0, z) - self.a_ * np.logaddexp(0.0, -z) + self.d_


@dataclass
class Beta(BetaShaped):
    """Beta calibration (Kull, Silva Filho & Flach): ``logit yhat = a log c - b log(1-c) + d`` with a, b >= 0.

    ``parameters`` lists the free ones: "abm" all, "am" a = b, "ab" the curve passes through (1/2, 1/2), "a" one.
    """

    parameters: str = "abm"

    def _learn(self, view: Predictions) -> None:
        one_of("parameters", self.parameters, ("abm", "am", "ab", "a"))
        self.a_, self.b_, self.d_ = beta_of(view, self.parameters)


def beta_of(view: Predictions, parameters: str = "abm") -> tuple[float, float, float]:
    """The beta map (a, b, d) of a view, fitted once."""

    def fit(points: Points) -> tuple[tuple[float, float, float], Array]:
        columns, n_slopes = beta_columns(points.z, parameters)
        theta = fit_nonnegative(columns, points.wy, points.w, n_slopes)
        return _beta_parameters(theta, n_slopes, parameters), theta @ columns

    return view.remember(("beta map", parameters), lambda: logits(view, clip=True).fitted(fit))


def _beta_parameters(theta: Array, n_slopes: int, parameters: str) -> tuple[float, float, float]:
    a, b = (theta[0], theta[1]) if n_slopes == 2 else (theta[0], theta[0])
    d = {"abm": theta[-1], "am": theta[-1], "ab": (a - b) * _LOG2, "a": 0.0}[parameters]
    return float(a), float(b), float(d)


def beta_columns(z: Array, parameters: str = "abm") -> tuple[Array, int]:
    """Columns of the beta map's regression at log odds z, slopes first, and the number of slopes."""
    left, right = -np.logaddexp(0.0, -z), np.logaddexp(0.0, z)
    slopes = {"abm": [left, right], "am": [left + right], "ab": [left + _LOG2, right - _LOG2], "a": [left + right]}
    ones = [np.ones(len(z))] if parameters.endswith("m") else []
    return np.stack([*slopes[parameters], *ones]), len(slopes[parameters])


def fit_nonnegative(columns: Array, positive: Array, w: Array | None, n_slopes: int) -> Array:
    """Logistic regression with the first ``n_slopes`` coefficients >= 0: unconstrained, or on the best face."""
    identity = np.zeros(len(columns))
    identity[:n_slopes] = 1.0
    theta, _ = fit_logistic(columns, positive, w, identity)
    if (theta[:n_slopes] >= 0.0).all():
        return theta
    best, lowest = theta, np.inf
    for face in [[0], [1], [0, 1]] if n_slopes == 2 else [[0]]:
        free = [j for j in range(len(columns)) if j not in face]
        trial = np.zeros(len(columns))
        value = _LOG2
        if free:
            trial[free], value = fit_logistic(columns[free], positive, w, identity[free])
        value += 0.5 * RIDGE * len(face)
        if (trial[:n_slopes] >= 0.0).all() and value < lowest:
            best, lowest = trial, value
    return best


@dataclass
class Platt(LogitMap):
    """Logistic recalibration: ``logit yhat = a + b logit c``, the curve of Cox's intercept and slope.

    ``target_smoothing`` replaces the labels by (n1+1)/(n1+2) and 1/(n0+2), as Platt proposed.
    """

    target_smoothing: bool = False

    def _learn(self, view: Predictions) -> None:
        one, zero = 1.0, 0.0
        if self.target_smoothing:
            ones = float(view.sum(view.y))
            one, zero = (ones + 1.0) / (ones + 2.0), 1.0 / (view.total - ones + 2.0)

        def fit(points: Points) -> tuple[Array, Array]:
            columns = np.stack([np.ones(len(points.z)), points.z])
            positive = one * points.wy + zero * (points.w - points.wy)
            theta, _ = fit_logistic(columns, positive, points.w, np.array([0.0, 1.0]))
            return theta, theta @ columns

        self.a_, self.b_ = (float(t) for t in logits(view, clip=True).fitted(fit))

    def _log_odds(self, z: Array) -> Array:
        return self.a_ + self.b_ * z


@dataclass
class Temperature(CalibrationMap):
    """Temperature scaling: ``logit yhat = logit c / T``; for several classes ``softmax(log c / T)``.

    1/T is fitted without bounds: T is negative if labels fall as confidences rise.
    """

    takes_vectors = True

    def _learn(self, view: Predictions) -> None:
        self.n_classes_ = view.k
        if view.k == 2:
            one = view.through(as_lens("binary")).views[0]
            self.inverse_ = float(logits(one, clip=True).fitted(_binary_temperature)[0])
        else:
            self.inverse_ = float(minimize(_temperature_loss(view), np.ones(1)).x[0])
        self.temperature_ = 1.0 / self.inverse_ if self.inverse_ else np.inf

    def _evaluate(self, c: Array) -> Array:
        if c.ndim == 2:
            return softmax(self.inverse_ * np.log(np.clip(c, EPS, 1.0 - EPS)))
        if self.n_classes_ != 2:
            raise RefusedError(f"this Temperature was fitted to {self.n_classes_} classes: pass one column for each")
        return scipy.special.expit(self.inverse_ * logit(c))


def _binary_temperature(points: Points) -> tuple[Array, Array]:
    theta, _ = fit_logistic(points.z[None, :], points.wy, points.w, np.ones(1))
    return theta, theta[0] * points.z


def _temperature_loss(view: Predictions) -> Callable[[Array], Evaluated]:
    x = np.log(np.clip(view.p, EPS, 1.0 - EPS))
    hit = x[np.arange(view.n), view.y]

    def evaluate(theta: Array) -> Evaluated:
        z = theta[0] * x
        top = z.max(axis=1)
        e = np.exp(z - top[:, None])
        total = e.sum(axis=1)
        q = e / total[:, None]
        mean = np.einsum("nk,nk->n", q, x)
        square = np.einsum("nk,nk->n", q, x * x)
        value = view.mean(top + np.log(total) - theta[0] * hit) + 0.5 * RIDGE * (theta[0] - 1.0) ** 2
        gradient = view.mean(mean - hit) + RIDGE * (theta[0] - 1.0)
        curve = view.mean(square - mean * mean) + RIDGE
        return float(value), np.array([gradient]), np.array([[curve]])

    return evaluate


class FreeBeta(BetaShaped):
    """``logit yhat = a log c - b log(1-c) + d`` with a and b of any sign.

    A map for recalibration must not decrease, and :class:`calibrary.maps.likelihood.Beta` has the constraint a, b >= 0.
    To detect where predictions are wrong, a map may decrease: a constrained map would become constant and miss
    predictions that are reversed.

    Examples
    --------
    >>> from calibrary.maps.likelihood import FreeBeta
    >>> FreeBeta().fit([1, 1, 0, 1, 0, 0], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])([0.2, 0.8]).round(2).tolist()
    [0.88, 0.12]
    """

    def _learn(self, view: Predictions) -> None:
        def fit(points: Points) -> tuple[Array, Array]:
            columns, _ = beta_columns(points.z)
            theta, _ = fit_logistic(columns, points.wy, points.w, np.array([1.0, 1.0, 0.0]))
            return theta, theta @ columns

        self.a_, self.b_, self.d_ = (float(t) for t in logits(view, clip=True).fitted(fit))


#: Smoothing width that the few points resolve, and their distance: far smaller than the scale of a logistic curve.
BLUR = 0.1
STEP = BLUR / PER_WIDTH
#: Largest number of distinct log odds that are used directly.
_MANY = 20_000
#: Steepest curve, in log odds per log odds, for which the few points are exact up to rounding.
_STEEPEST = 8.0
#: A point's polynomial uses nodes up to this many cells away.
_STENCIL = 5


class Points(NamedTuple):
    """Log odds with weights and weights of ones; the first ``n_nodes`` are nodes, whose weights may be negative."""

    z: Array
    w: Array
    wy: Array
    n_nodes: int = 0

    def resolve(self, eta: Array) -> bool:
        """Whether a curve with these log odds at the points is smooth enough for sums over the nodes to be exact."""
        steps = np.diff(eta[: self.n_nodes]), np.diff(self.z[: self.n_nodes])
        return bool((np.abs(steps[0]) <= _STEEPEST * steps[1]).all())


class Logits:
    """The distinct log odds of a view, ascending, with their weight ``w`` and weight of ones ``wy``.

    Sums of smooth functions over very many of them are sums over a few thousand nodes, to about 1e-14 of the total
    weight (see :mod:`calibrary.numerics.sums.gaussian`): once the nodes are computed, fits are very fast.
    """

    def __init__(self, z: Array, w: Array, wy: Array) -> None:
        self.z, self.w, self.wy = z, w, wy

    @once
    def cells(self) -> Cells | None:
        """The cells of the nodes; None if the log odds themselves are few enough."""
        few = len(self.z) <= _MANY or self.z[-1] - self.z[0] > len(self.z) / 4 * STEP
        # rounded logarithms of neighbours may decrease by one digit
        return None if few else Cells(np.maximum.accumulate(self.z), BLUR, ascending=True)

    @once
    def _moments(self) -> tuple[Array, Array]:
        assert self.cells is not None
        return self.cells.moments(self.w), self.cells.moments(self.wy)

    def points(self, kinks: Sequence[float] | Array = ()) -> Points:
        """Few points for sums of functions that are smooth except at ``kinks``: around those all log odds are used."""
        if self.cells is None:
            return Points(self.z, self.w, self.wy)
        near = self._near(kinks)
        w, wy = (self.cells.spread_moments(np.where(near, 0.0, m)) for m in self._moments)
        rows = self._rows(near)
        z = np.concatenate((self.cells.nodes, self.z[rows]))
        return Points(z, np.concatenate((w, self.w[rows])), np.concatenate((wy, self.wy[rows])), len(w))

    def fitted(self, fit: Callable[[Points], tuple[Any, Array]], kinks: Sequence[float] | Array = ()) -> Any:
        """The first result of ``fit(points)``, whose second is the fitted log odds at the points.

        Curves too steep for few points are fitted to all points.
        """
        points = self.points(kinks)
        found, eta = fit(points)
        return found if points.resolve(eta) else fit(Points(self.z, self.w, self.wy))[0]

    def curve(self, log_odds: Callable[[Array], Array], kinks: Sequence[float] | Array = ()) -> Array:
        """The probabilities for ``log_odds(z)`` at every z."""
        if self.cells is not None:
            nodes = self.cells.nodes
            eta = log_odds(nodes)
            if Points(nodes, eta, eta, len(nodes)).resolve(eta):
                (q,) = self.cells.interpolate(scipy.special.expit(eta))
                rows = self._rows(self._near(kinks))
                q[rows] = scipy.special.expit(log_odds(self.z[rows]))
                return q
        return scipy.special.expit(log_odds(self.z))

    def _near(self, kinks: Sequence[float] | Array) -> Any:
        """Which cells have a kink among the nodes of their polynomial."""
        assert self.cells is not None
        near = np.zeros(self.cells.n_cells, dtype=bool)
        for at in np.searchsorted(self.cells.start, kinks):
            near[max(at - 1 - _STENCIL, 0) : at + _STENCIL] = True
        return near

    def _rows(self, near: Any) -> Any:
        assert self.cells is not None
        return np.flatnonzero(near[self.cells.cell]) if near.any() else np.empty(0, dtype=np.intp)


def logits(view: Predictions, *, clip: bool) -> Logits:
    """The log odds of a binary view, computed once; confidences of 0 and 1 are moved inside, or left out."""
    c = view.ties.c
    clip = clip or bool(c[0] >= EPS and c[-1] <= 1.0 - EPS)  # if nothing is moved, both are the same

    def make() -> Logits:
        t = view.ties
        if clip:
            return Logits(logit(c), t.w, t.wy)
        inside = slice(int(c[0] <= 0.0), len(c) - int(c[-1] >= 1.0))
        return Logits(np.log(c[inside]) - np.log1p(-c[inside]), t.w[inside], t.wy[inside])

    return view.remember(("logits", clip), make)

"""Monotone maps: the isotonic map, the one that is shrunk, and the order-preserving family of Rahimi et al. (2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.maps.likelihood import RIDGE, LogitMap, Points, logits
from calibrary.numerics.runs import run_lengths, run_starts
from calibrary.numerics.solve.newton import Evaluated, logistic_loss, minimize_in_box


class Isotonic(CalibrationMap):
    """Isotonic regression of the labels on the confidences.

    Rows with exactly equal confidence are pooled first; adjacent groups that decrease are then merged until none does.
    Linear between distinct confidences, constant outside them.

    Attributes
    ----------
    knots_, values_ : arrays
        The distinct confidences, ascending, and the fitted frequency at each.

    Examples
    --------
    >>> from calibrary.maps.isotonic import Isotonic
    >>> curve = Isotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> curve([0.2, 0.4, 0.6, 0.7]).round(4).tolist()
    [0.0, 0.5, 0.5, 0.75]
    """

    knots_: Array
    values_: Array

    def _learn(self, view: Predictions) -> None:
        from scipy.optimize import isotonic_regression

        rows = view.sorted
        # without ties: for many rows their groups would fill the memory
        if rows.w is None and (rows.c[1:] > rows.c[:-1]).all():
            self.knots_, self.values_ = rows.c, isotonic_regression(rows.y).x
        else:
            self.knots_, self.values_ = view.ties.c, pooled_frequencies(view)

    def _evaluate(self, c: Array) -> Array:
        # between confidences that differ by a few ulps the slope overflows: the value is limited there, and exact at a
        # knot
        between = np.clip(np.interp(c, self.knots_, self.values_), self.values_.min(), self.values_.max())
        place = np.minimum(np.searchsorted(self.knots_, c), len(self.knots_) - 1)
        return np.where(self.knots_[place] == c, self.values_[place], between)


def pooled_frequencies(view: Predictions) -> Array:
    """Isotonic regression of y on c at each distinct confidence: one value per group of ``view.ties``."""
    from scipy.optimize import isotonic_regression

    ties = view.ties
    return isotonic_regression(ties.wy / ties.w, weights=ties.w).x


@dataclass(eq=False)
class ShrunkIsotonic(Isotonic):
    """Isotonic regression whose blocks at 0 and 1 have the value (s + 1/2) / (n + 1), s events among their n rows.

    A short block at an end may then exceed its neighbour: it is given the neighbour's value, so that the map never
    decreases, unless ``rising=False`` allows each block its own value. Only the two ends of each block are knots;
    between them the map is constant.

    Examples
    --------
    >>> from calibrary.maps.isotonic import ShrunkIsotonic
    >>> ShrunkIsotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])([0.2, 0.4, 0.6, 0.8]).tolist()
    [0.25, 0.5, 0.5, 0.75]
    """

    rising: bool = True

    def _learn(self, view: Predictions) -> None:
        super()._learn(view)
        first = run_starts(self.values_)
        values, n = self.values_[first], np.add.reduceat(view.ties.w, first)
        if values[0] <= 0.0:
            values[0] = 0.5 / (n[0] + 1.0)
        if values[-1] >= 1.0:
            values[-1] = (n[-1] + 0.5) / (n[-1] + 1.0)
        if self.rising and len(values) > 1:
            values[0] = min(values[0], values[1])
            values[-1] = max(values[-1], values[-2])
        last = first + run_lengths(first, len(self.knots_)) - 1
        ends = np.stack((first, last), axis=-1).ravel()
        once = run_starts(ends)  # both ends of a block of one row are one knot
        self.knots_, self.values_ = self.knots_[ends[once]], np.repeat(values, 2)[once]


KeptIsotonic = ShrunkIsotonic  # the name of this class in version 0.2, which old pickles and imports may still use


@dataclass
class OrderPreserving(LogitMap):
    """``logit yhat = g(logit c)`` with g(0) = 0 and g non-decreasing, fitted by maximum likelihood.

    For two classes a function of the log odds preserves their order exactly if it preserves the sign. The authors'
    diagonal family applies one increasing function m to the logit of each class, so that ``g(z) = m(z/2) - m(-z/2)`` is
    increasing and odd. They learn m by a network that integrates a positive function. Here that positive function is
    constant on each of ``segments`` pieces of \\|z\\| with equally many rows, so that the fit is convex and exact.
    ``invariant=False`` gives each side of 1/2 its own pieces: the two classes may then be treated differently.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("order_preserving", segments=2).fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    >>> (curve(0.5) == 0.5, round(float(curve(0.3) + curve(0.7)), 9), curve(0.4) <= curve(0.6) <= curve(0.9))
    (np.True_, 1.0, np.True_)
    """

    segments: int = 6
    invariant: bool = True

    def _learn(self, view: Predictions) -> None:
        found = logits(view, clip=True)
        pieces = whole("segments", self.segments)
        if not isinstance(self.invariant, bool | np.bool_):
            raise RefusedError(f"invariant={self.invariant!r} must be True or False")
        if self.invariant:
            self.edges_ = [_edges(np.abs(found.z), found.w, pieces)]
            self.kinks_ = np.concatenate([-self.edges_[0], self.edges_[0]])
        else:
            self.edges_ = [_edges(side * found.z, found.w, pieces) for side in (1.0, -1.0)]
            self.kinks_ = np.concatenate([self.edges_[0], -self.edges_[1]])
        self.kinks_ = np.unique(self.kinks_)
        self.slopes_ = found.fitted(self._fit, self.kinks_)

    def _fit(self, points: Points) -> tuple[Array, Array]:
        columns, total = self._columns(points.z), float(points.w.sum())
        identity = np.ones(len(columns))
        loss = logistic_loss(columns, points.wy, points.w, ridge=RIDGE * total, center=identity)
        slopes = minimize_in_box(_per_row(loss, total), identity, 0.0, np.inf)
        return slopes, slopes @ columns

    def _columns(self, z: Array) -> Array:
        """The length of each piece between 0 and z, with the sign of z: the identity is their sum."""
        if self.invariant:
            return np.sign(z) * _lengths(np.abs(z), self.edges_[0])
        above, below = self.edges_
        return np.vstack([_lengths(z, above), -_lengths(-z, below)])

    def _log_odds(self, z: Array) -> Array:
        return self.slopes_ @ self._columns(z)


def _edges(z: Array, w: Array, pieces: int) -> Array:
    """Starts of the pieces: 0, and points such that each piece contains equally many positive log odds."""
    order = np.argsort(z, kind="stable")
    z, w = z[order], w[order]
    inside = z > 0.0
    if not inside.any():
        return np.zeros(1)
    upto = np.cumsum(w[inside])
    places = np.searchsorted(upto, upto[-1] * np.arange(1, pieces) / pieces)
    return np.unique(np.append(0.0, z[inside][places]))


def _lengths(z: Array, edges: Array) -> Array:
    ends = np.append(edges[1:], np.inf)
    return np.clip(z - edges[:, None], 0.0, (ends - edges)[:, None])


def _per_row(loss: Callable[[Array], Evaluated], total: float) -> Callable[[Array], Evaluated]:
    """The mean over the rows: the solver expects functions of order one."""

    def evaluate(theta: Array) -> Evaluated:
        value, gradient, hessian = loss(theta)
        return value / total, gradient / total, hessian / total

    return evaluate

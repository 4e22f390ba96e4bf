"""Continuous piecewise linear maps with knots found from the data, on probabilities (PL) and on log odds (PL3).

The number of segments is chosen by cross-validated squared error; by default the map is the mean of the folds'
maps. Everything is deterministic given ``rng``; the folds depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

from calibrary._errors import one_of, warn
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap, logit
from calibrary.numerics.solve.newton import Evaluated, logistic_loss, minimise, minimise_in_box

_RIDGE = 1e-8
_GROUPS = 50


@dataclass(frozen=True)
class _Rows:
    """Rows ascending in x (equal x in their input order), with shares of ones and weights."""

    x: Array
    y: Array
    w: Array

    def only(self, mask: Any) -> _Rows:
        return _Rows(self.x[mask], self.y[mask], self.w[mask])

    def condensed(self) -> _Rows:
        """At most 50 groups: mean x, mean y, and weights summing to one."""
        start = np.flatnonzero(np.concatenate(([True], self.x[1:] != self.x[:-1])))
        if len(start) > _GROUPS:
            n = len(self.x)
            size, longer = divmod(n, _GROUPS)
            start = np.arange(_GROUPS) * size + np.minimum(np.arange(_GROUPS), longer)
        w = np.add.reduceat(self.w, start)
        mean_x, mean_y = np.add.reduceat(self.w * self.x, start) / w, np.add.reduceat(self.w * self.y, start) / w
        return _Rows(mean_x, mean_y, w / w.sum())

    def distinct(self) -> _Rows:
        """Rows of equal x taken together: the same likelihood, fewer terms."""
        start = np.flatnonzero(np.concatenate(([True], self.x[1:] != self.x[:-1])))
        if len(start) == len(self.x):
            return self
        w = np.add.reduceat(self.w, start)
        return _Rows(self.x[start], np.add.reduceat(self.w * self.y, start) / w, w)


class _Piecewise(CalibrationMap):
    segments: int | None
    max_segments: int
    cv: int
    tolerance: float
    ensemble: bool
    rng: Any

    def _learn(self, view: Predictions) -> None:
        self._check()
        x = self._axis(view.c)
        order = np.argsort(x, kind="stable")
        rows = _Rows(x[order], view.y[order].astype(np.float64), view.weight[order])
        choices = [self.segments] if self.segments is not None else list(range(1, self._most_segments(view.n) + 1))
        by_folds, chosen = [], 0
        if view.n > 1 and (self.ensemble or len(choices) > 1):
            fold = _folds(view.n, min(self.cv, view.n), self.rng)[order]
            by_folds = [self._fit_folds(rows, fold, k) for k in choices]
            scores = np.array([score for _, score in by_folds])
            chosen = int(np.flatnonzero(scores <= scores.min() * (1.0 + self.tolerance))[0])
        self.segments_ = int(choices[chosen])
        self.curves_ = by_folds[chosen][0] if self.ensemble and by_folds else [self._fit_one(rows, self.segments_)]
        self._caution()

    def kept(self) -> Self:
        again = super().kept()
        again.segments, again.ensemble = self.segments_, False
        return again

    def _fit_folds(self, rows: _Rows, fold: Indices, k: int) -> tuple[list[Callable[[Array], Array]], float]:
        """The curve without each fold, and the mean of their squared errors on the fold left out."""
        curves, losses = [], []
        for f in range(int(fold.max()) + 1):
            held = rows.only(fold == f)
            curves.append(self._fit_one(rows.only(fold != f), k))
            losses.append(np.average((curves[-1](held.x) - held.y) ** 2, weights=held.w))
        return curves, float(np.mean(losses))

    def _check(self) -> None:
        for name, value in (("segments", self.segments), ("max_segments", self.max_segments)):
            if value is not None and value < 1:
                raise ValueError(f"{name}={value!r} must be at least 1")
        if self.cv < 2:
            raise ValueError(f"cv={self.cv!r} must be at least 2 folds")

    def _most_segments(self, n: int) -> int:
        # one segment cannot show under-confidence, so two are tried as soon as there are a few rows
        return min(max(1 + n // 200, 2 if n >= 20 else 1), self.max_segments)

    def _axis(self, c: Array) -> Array:
        raise NotImplementedError

    def _fit_one(self, rows: _Rows, k: int) -> Callable[[Array], Array]:
        raise NotImplementedError

    def _caution(self) -> None:
        pass

    def _evaluate(self, c: Array) -> Array:
        x = self._axis(c)
        result: Array = np.mean([curve(x) for curve in self.curves_], axis=0)
        return result


def _folds(n: int, n_folds: int, rng: Any) -> Indices:
    """Fold of every row: scikit-learn's shuffled KFold."""
    index = np.arange(n)
    (rng if isinstance(rng, np.random.Generator) else np.random.RandomState(rng)).shuffle(index)
    fold = np.empty(n, dtype=np.intp)
    for f, part in enumerate(np.array_split(index, n_folds)):
        fold[part] = f
    return fold


def _search(groups: _Rows, k: int, *, logistic: bool) -> Array:
    from calibrary.numerics.solve.knots import search_knots

    candidates = np.unique(groups.x[1:-1])
    if not logistic:
        candidates = candidates[(candidates > 0.0) & (candidates < 1.0)]
    knots: Array = search_knots(groups.x, groups.y, groups.w, candidates, k - 1, logistic)
    return knots


@dataclass(frozen=True)
class Polygon:
    knots: Array
    values: Array

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.knots, self.values)


@dataclass(frozen=True)
class LogitPolygon:
    knots: Array
    coef: Array

    def __call__(self, x: Array) -> Array:
        result: Array = scipy.special.expit(np.tensordot(self.coef, _ramps(x, self.knots), axes=1))
        return result


def _ramps(x: Array, knots: Array) -> Array:
    return np.stack([np.ones_like(x), x, *(np.maximum(x - t, 0.0) for t in knots)])


@dataclass
class PiecewiseLinear(_Piecewise):
    """A continuous curve of straight pieces from c = 0 to c = 1 (ECE-PL's map).

    Parameters
    ----------
    loss : "log" or "brier", what the values at the knots minimise
    segments : number of pieces; None chooses it by cross-validation, up to ``max_segments``
    cv : number of folds
    tolerance : take the fewest pieces within this share of the best score
    ensemble : the map is the mean of the folds' maps; False refits on all rows
    rng : seed or generator of the folds
    """

    loss: str = "log"
    segments: int | None = None
    max_segments: int = 16
    cv: int = 10
    tolerance: float = 0.0
    ensemble: bool = True
    rng: Any = 0

    def _check(self) -> None:
        super()._check()
        one_of("loss", self.loss, ("log", "brier"))

    def _axis(self, c: Array) -> Array:
        return c

    def _fit_one(self, rows: _Rows, k: int) -> Polygon:
        groups = rows.condensed()
        knots = np.concatenate(([0.0], _search(groups, k, logistic=False), [1.0]))
        edge = 1e-12 if self.loss == "log" else 0.0
        # the optimum of the groups, kept off the bounds, is a good place to start on all rows
        few = _polygon_loss(groups, knots, self.loss)
        start = minimise_in_box(few, 0.02 + 0.96 * knots, edge, 1.0 - edge)
        loss = _polygon_loss(rows.distinct(), knots, self.loss)
        return Polygon(knots, minimise_in_box(loss, np.clip(start, 0.001, 0.999), edge, 1.0 - edge))

    def _caution(self) -> None:
        at_bounds = (np.allclose(curve(np.array([0.0, 1.0])), (0.0, 1.0), atol=1e-9) for curve in self.curves_)
        if self.segments_ == 1 and all(at_bounds):
            warn(
                "one segment from 0 to 1 is at its bounds: it cannot be steeper than the identity, so under-confidence "
                "stays invisible; use ece_pl3 or segments=2"
            )


def _polygon_loss(rows: _Rows, knots: Array, loss: str) -> Callable[[Array], Evaluated]:
    """Mean loss of the polygon with these knots as a function of its values there, with the ridge."""
    m = len(knots)
    cell = np.clip(np.searchsorted(knots, rows.x, "right") - 1, 0, m - 2)
    s = (rows.x - knots[cell]) / np.diff(knots)[cell]
    r = 1.0 - s
    # rows ascend in x, so each cell is one run of them
    filled, start = np.unique(cell, return_index=True)
    w = rows.w / rows.w.sum()
    hit, miss = w * rows.y, w * (1.0 - rows.y)
    ridge = _RIDGE if loss == "log" else 2.0 * _RIDGE

    corner, inner = np.arange(m), np.arange(m - 1)

    def per_cell(x: Array) -> Array:
        total = np.zeros((len(x), m - 1))
        total[:, filled] = np.add.reduceat(x, start, axis=1)
        return total

    def evaluate(v: Array) -> Evaluated:
        q = v[cell] * r + v[cell + 1] * s
        if loss == "log":
            value = -float(np.sum(hit * np.log(q) + miss * np.log1p(-q)))
            up, down = hit / q, miss / (1.0 - q)
            slope, curve = down - up, down / (1.0 - q) + up / q
        else:
            value = float(np.sum(w * (q - rows.y) ** 2))
            slope, curve = 2.0 * w * (q - rows.y), 2.0 * w
        curved = curve * s
        sums = per_cell(np.stack([slope * r, slope * s, curve * r * r, curved * r, curved * s]))
        hessian = np.zeros((m, m))
        hessian[inner, inner] = sums[2]
        hessian[inner + 1, inner + 1] += sums[4]
        hessian[inner, inner + 1] = hessian[inner + 1, inner] = sums[3]
        hessian[corner, corner] += ridge
        away = v - knots
        gradient = ridge * away
        gradient[:-1] += sums[0]
        gradient[1:] += sums[1]
        return value + 0.5 * ridge * float(away @ away), gradient, hessian

    return evaluate


@dataclass
class PiecewiseLinearLogit(_Piecewise):
    """Straight pieces from log odds to log odds, with free slopes at the ends (ECE-PL3's map).

    Parameters
    ----------
    segments, max_segments, cv, tolerance, ensemble, rng : see :class:`PiecewiseLinear`
    """

    segments: int | None = None
    max_segments: int = 16
    cv: int = 10
    tolerance: float = 0.0
    ensemble: bool = True
    rng: Any = 0

    def _axis(self, c: Array) -> Array:
        return logit(c)

    def _fit_one(self, rows: _Rows, k: int) -> LogitPolygon:
        groups = rows.condensed()
        knots = _search(groups, k, logistic=True)
        theta = np.zeros(len(knots) + 2)
        theta[1] = 1.0
        identity = theta.copy()
        for data in (groups, rows.distinct()):  # the optimum of the groups is a good place to start
            loss = logistic_loss(
                _ramps(data.x, knots), data.w * data.y, data.w, ridge=_RIDGE * float(data.w.sum()), centre=identity
            )
            theta = minimise(loss, theta).x
        return LogitPolygon(knots, theta)

"""Piecewise maps: over bins (flat, tilted or free), and continuous ones with knots found from the data (PL, PL3).

PL is linear on probabilities and PL3 on log odds. The number of segments is chosen by cross-validated squared error; by
default the map is the mean of the folds' maps. The result is deterministic for a given ``rng``; the folds depend on the
order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of, warn, whole
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import ROOFS, CrossValidated, bins_of_map, roof_of
from calibrary.maps.base import CalibrationMap, logit
from calibrary.numerics.draw import shuffled_as_published
from calibrary.numerics.runs import run_starts
from calibrary.numerics.solve.knots import LogitPolygonLoss, PolygonLoss, search_knots_of_each
from calibrary.numerics.solve.newton import minimize_nearby

_RIDGE = 1e-8
_GROUPS, _MANY_GROUPS = 50, 2000
#: The most rows of several folds that are held in memory to search their knots together.
_TOGETHER = 200_000


@dataclass(frozen=True)
class _Rows:
    """Rows ascending in x (equal x in their input order), with shares of ones and weights.

    If each row represents many copies (``counted``), groups and folds consist of copies.
    """

    x: Array
    y: Array
    w: Array
    counted: bool = False

    @classmethod
    def of(cls, x: Array, view: Predictions) -> tuple[_Rows, Indices]:
        """The rows of a view in order, and that order. Copies have no order of their own: they are ordered by label."""
        order = np.lexsort((view.y, x)) if view.counted else np.argsort(x, kind="stable")
        return cls(x[order], view.y[order].astype(np.float64), view.weight[order], view.counted), order

    def only(self, mask: Any) -> _Rows:
        return _Rows(self.x[mask], self.y[mask], self.w[mask])

    def weighing(self, w: Array) -> _Rows:
        some = w > 0.0
        return _Rows(self.x[some], self.y[some], w[some], self.counted)

    def folds(self, fold: Indices) -> Iterator[tuple[_Rows, _Rows]]:
        """The rows outside each fold, and those in it."""
        for f in range(int(fold.max()) + 1):
            yield self.only(fold != f), self.only(fold == f)

    def folds_of_copies(self, n_folds: int) -> Iterator[tuple[_Rows, _Rows]]:
        """The rows outside and inside each fold, with copies assigned in turn; equal tables have equal folds."""
        upto = np.cumsum(self.w)
        for f in range(n_folds):
            held = np.floor((upto - 1.0 - f) / n_folds) - np.floor((upto - self.w - 1.0 - f) / n_folds)
            yield self.weighing(self.w - held), self.weighing(held)

    @once
    def coarser(self) -> list[_Rows]:
        """Many groups, if there are far more rows: the optimum for the groups is nearly that for the rows."""
        return [self.condensed(_MANY_GROUPS)] if len(self.x) > 4 * _MANY_GROUPS else []

    def condensed(self, groups: int = _GROUPS) -> _Rows:
        """At most this many groups: mean x, mean y, and weights summing to one."""
        start = run_starts(self.x)
        if len(start) > groups:
            n = int(self.w.sum()) if self.counted else len(self.x)
            size, longer = divmod(n, groups)
            start = np.arange(groups) * size + np.minimum(np.arange(groups), longer)
            if self.counted:
                return self._groups_of_copies(np.append(start, n))
        w = np.add.reduceat(self.w, start)
        mean_x, mean_y = np.add.reduceat(self.w * self.x, start) / w, np.add.reduceat(self.w * self.y, start) / w
        return _Rows(mean_x, mean_y, w / w.sum())

    def _groups_of_copies(self, bounds: Indices) -> _Rows:
        """Groups of the copies between the bounds, which may fall between two copies of one row."""
        upto = np.concatenate(([0.0], np.cumsum(self.w)))
        w = np.diff(bounds).astype(np.float64)
        some = w > 0.0
        mean_x, mean_y = (
            np.diff(np.interp(bounds, upto, np.concatenate(([0.0], np.cumsum(self.w * a)))))[some] / w[some]
            for a in (self.x, self.y)
        )
        return _Rows(mean_x, mean_y, w[some] / w.sum())

    def distinct(self) -> _Rows:
        """Rows of equal x taken together: the same likelihood, fewer terms."""
        start = run_starts(self.x)
        if len(start) == len(self.x):
            return self
        w = np.add.reduceat(self.w, start)
        return _Rows(self.x[start], np.add.reduceat(self.w * self.y, start) / w, w)


@dataclass
class _Piecewise(CalibrationMap):
    segments: int | None = None
    max_segments: int = 16
    cv: int = 10
    tolerance: float = 0.0
    ensemble: bool = True
    rng: Any = 0

    #: Whether the pieces are straight in log odds.
    _logistic: ClassVar[bool]

    def _learn(self, view: Predictions) -> None:
        self._check()
        rows, order = _Rows.of(self._axis(view.c), view)
        n = int(view.total) if view.counted else view.n
        choices = [self.segments] if self.segments is not None else list(range(1, self._most_segments(n) + 1))
        curves: list[list[Callable[[Array], Array]]] = []
        chosen = 0
        if n > 1 and (self.ensemble or len(choices) > 1):
            n_folds = min(self.cv, n)
            folds = rows.folds_of_copies(n_folds) if view.counted else rows.folds(_folds(n, n_folds, self.rng)[order])
            found = [
                fit for some in _several(folds, max(_TOGETHER // n, 1)) for fit in self._fit_without(some, choices)
            ]
            curves = [list(of_one_size) for of_one_size in zip(*(fitted for fitted, _ in found), strict=True)]
            scores = np.mean([losses for _, losses in found], axis=0)
            chosen = int(np.flatnonzero(scores <= scores.min() * (1.0 + self.tolerance))[0])
        self.segments_ = int(choices[chosen])
        if self.ensemble and curves:
            self.curves_ = curves[chosen]
        else:
            groups = rows.condensed()
            (knots,) = _searched([groups], self.segments_, logistic=self._logistic)
            self.curves_ = [self._fit_one(rows.distinct(), groups, knots)]
        self._caution()

    def for_refit(self) -> Self:
        again = super().for_refit()
        again.segments, again.ensemble = self.segments_, False
        return again

    def _fit_without(
        self, folds: list[tuple[_Rows, _Rows]], choices: list[int]
    ) -> list[tuple[list[Callable[[Array], Array]], list[float]]]:
        """For each fold: the curves without it for every number of pieces, and their mean squared errors on it."""
        distinct, groups = [seen.distinct() for seen, _ in folds], [seen.condensed() for seen, _ in folds]
        knots = [_searched(groups, k, logistic=self._logistic) for k in choices]
        found = []
        for f, (_, out) in enumerate(folds):
            curves = [self._fit_one(distinct[f], groups[f], of_each[f]) for of_each in knots]
            found.append((curves, [float(np.average((c(out.x) - out.y) ** 2, weights=out.w)) for c in curves]))
        return found

    def _check(self) -> None:
        for name, value in (("segments", self.segments), ("max_segments", self.max_segments)):
            if value is not None and value < 1:
                raise RefusedError(f"{name}={value!r} must be at least 1")
        if self.cv < 2:
            raise RefusedError(f"cv={self.cv!r} must be at least 2 folds")

    def _most_segments(self, n: int) -> int:
        # one segment cannot show under-confidence, so two are considered as soon as there are a few rows
        return min(max(1 + n // 200, 2 if n >= 20 else 1), self.max_segments)

    def _axis(self, c: Array) -> Array:
        raise NotImplementedError

    def _fit_one(self, rows: _Rows, groups: _Rows, knots: Array) -> Callable[[Array], Array]:
        """The curve with these inner knots, fitted to rows (those of equal x taken together) and to groups of them."""
        raise NotImplementedError

    def _caution(self) -> None:
        pass

    def _evaluate(self, c: Array) -> Array:
        x = self._axis(c)
        return np.mean([curve(x) for curve in self.curves_], axis=0)


def _folds(n: int, n_folds: int, rng: Any) -> Indices:
    """Fold of every row: scikit-learn's shuffled KFold."""
    fold = np.empty(n, dtype=np.intp)
    for f, part in enumerate(np.array_split(shuffled_as_published(n, rng), n_folds)):
        fold[part] = f
    return fold


def _several(folds: Iterator[tuple[_Rows, _Rows]], size: int) -> Iterator[list[tuple[_Rows, _Rows]]]:
    """Lists of so many folds; the last may be shorter."""
    while some := list(islice(folds, size)):
        yield some


def _searched(groups: list[_Rows], k: int, *, logistic: bool) -> list[Array]:
    """The inner knots of k pieces, for each of several sets of groups."""
    candidates = [np.unique(some.x[1:-1]) for some in groups]
    if not logistic:
        candidates = [each[(each > 0.0) & (each < 1.0)] for each in candidates]
    return search_knots_of_each([(some.x, some.y, some.w) for some in groups], candidates, k - 1, logistic)


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
        left, rise = np.concatenate(([0.0], self.knots)), np.cumsum(self.coef[1:])
        level = self.coef[0] + np.concatenate(([0.0], np.cumsum(rise[:-1] * np.diff(left))))
        piece = self.knots.searchsorted(x)
        return scipy.special.expit(level[piece] + rise[piece] * (x - left[piece]))


@dataclass
class PiecewiseLinear(_Piecewise):
    """A continuous curve of straight pieces from c = 0 to c = 1 (ECE-PL's map).

    Parameters
    ----------
    loss : "log" or "brier", what the values at the knots minimise
    segments : number of pieces; None chooses it by cross-validation, up to ``max_segments``
    cv : number of folds
    tolerance : use the fewest pieces within this share of the best score
    ensemble : the map is the mean of the folds' maps; False refits on all rows
    rng : seed or generator of the folds
    """

    loss: str = "log"

    _logistic: ClassVar[bool] = False

    def _check(self) -> None:
        super()._check()
        one_of("loss", self.loss, ("log", "brier"))

    def _axis(self, c: Array) -> Array:
        return c

    def _fit_one(self, rows: _Rows, groups: _Rows, knots: Array) -> Polygon:
        knots = np.concatenate(([0.0], knots, [1.0]))
        edge = 1e-12 if self.loss == "log" else 0.0
        v = 0.02 + 0.96 * knots
        # the optimum for few groups, kept away from the bounds, is a good start
        for data in (groups, *rows.coarser, rows):
            # confidences of 1 belong to the last piece
            start = np.concatenate(([0], data.x.searchsorted(knots[1:-1]), [len(data.x)]))
            ridge, share = (_RIDGE if self.loss == "log" else 2.0 * _RIDGE), data.w / data.w.sum()
            loss = PolygonLoss(data.x, data.y, share, start, knots, ridge, self.loss == "log")
            v = minimize_nearby(loss, np.clip(v, 0.001, 0.999), edge, 1.0 - edge)
        return Polygon(knots, v)

    def _caution(self) -> None:
        at_bounds = (np.allclose(curve(np.array([0.0, 1.0])), (0.0, 1.0), atol=1e-9) for curve in self.curves_)
        if self.segments_ == 1 and all(at_bounds):
            warn(
                "one segment from 0 to 1 is at its bounds: it cannot be steeper than the identity, so "
                "under-confidence is not detected; use ece_pl3 or segments=2"
            )


@dataclass
class PiecewiseLinearLogit(_Piecewise):
    """Straight pieces from log odds to log odds, with free slopes at the ends (ECE-PL3's map).

    Parameters
    ----------
    segments, max_segments, cv, tolerance, ensemble, rng : see :class:`PiecewiseLinear`
    """

    _logistic: ClassVar[bool] = True

    def _axis(self, c: Array) -> Array:
        return logit(c)

    def _fit_one(self, rows: _Rows, groups: _Rows, knots: Array) -> LogitPolygon:
        theta = np.zeros(len(knots) + 2)
        theta[1] = 1.0
        for data in (groups, *rows.coarser, rows):  # the optimum for few groups is a good start
            start = np.concatenate(([0], data.x.searchsorted(knots), [len(data.x)]))
            share = data.w / data.w.sum()
            theta = minimize_nearby(LogitPolygonLoss(data.x, data.y, share, start, knots, _RIDGE), theta)
        return LogitPolygon(knots, theta)


class Binned(CalibrationMap):
    """A map that is one straight piece per bin of confidence.

    Parameters
    ----------
    n_bins : int or "cv"
        Number of bins, or "cv" to choose it by cross-validation (:class:`calibrary.grouping.CrossValidated`, which
        explains ``max_bins``, ``cv``, ``tolerance``, ``folds`` and ``rng``).
    base : "mass" or "width"
        Equal-mass bins that start at their smallest confidence, or equal-width bins; all left-closed.
    roof : "tilted", "flat" or "free"
        c + mean label - mean confidence of the bin; or its mean label; or its least-squares line, clipped to [0, 1]
        (the family of piecewise linear maps with jumps, of which the other two are the cases of slope 1 and 0).
    empty : "zero" or "identity"
        The value of the map in a bin without data: 0 (the authors' code), or c itself.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("bins", n_bins=2, base="width").fit([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9])
    >>> curve([0.2, 0.7]).round(3)
    array([0.  , 0.95])
    """

    def __init__(
        self,
        n_bins: int | str = "cv",
        base: str = "mass",
        roof: str = "tilted",
        empty: str = "zero",
        *,
        max_bins: int = 40,
        cv: int = 10,
        tolerance: float = 0.0,
        folds: str = "shuffle",
        rng: Any = 1,
    ) -> None:
        one_of("base", base, ("mass", "width"))
        one_of("roof", roof, ROOFS)
        one_of("empty", empty, ("zero", "identity"))
        if isinstance(n_bins, str):
            one_of("n_bins", n_bins, ("cv",))
        self.n_bins = n_bins if isinstance(n_bins, str) else whole("n_bins", n_bins)
        self.base, self.roof, self.empty = base, roof, empty
        self.choice = {"max_bins": max_bins, "cv": cv, "tolerance": tolerance, "folds": folds, "rng": rng}

    def _learn(self, view: Predictions) -> None:
        n = self.n_bins
        if isinstance(n, str):
            if view.counted:
                raise RefusedError(
                    "n_bins='cv' puts rows in folds, but each of these rows represents many predictions: pass a "
                    "number of bins"
                )
            n = CrossValidated(self.base, roof=self.roof, empty=self.empty, **self.choice).fit_view(view).n_bins_
        self.chosen_ = n
        self.bins_ = bins_of_map(self.base, n).fit_view(view)
        groups = self.bins_.groups(view)
        self.n_bins_ = self.bins_.n_bins_
        self.offset_ = np.zeros(self.n_bins_)
        self.slope_ = np.full(self.n_bins_, 1.0 if self.empty == "identity" else 0.0)
        self.offset_[groups.position], self.slope_[groups.position] = roof_of(groups, self.roof)

    def for_refit(self) -> Self:
        again = super().for_refit()
        again.n_bins = self.chosen_
        return again

    def _evaluate(self, c: Array) -> Array:
        inside = self.bins_.assign(c)
        height: Array = self.offset_[inside] + self.slope_[inside] * c
        return np.clip(height, 0.0, 1.0) if self.roof == "free" else height

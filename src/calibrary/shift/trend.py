"""Test of a trend of the squared calibration error along ordered groups, by sums over pairs of units.

In each group and for each class, rows are divided into bins of equal mass. The squared gap of a bin minus its noise is
a sum of products of residuals of two different units, which is unbiased for any number of rows. A weighted trend of the
groups, or the difference of two groups, is again such a sum. A unit may occur in several groups, as the same image does
at every severity.

Such a sum is skewed if one small group has most of the weight. The test of trend therefore uses the null hypothesis
that all groups have the same calibration curve, that of all rows together. Mean, variance and skewness of the sum
follow from this curve and the sizes of the groups, and are those of a shifted gamma distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import group
from calibrary.numerics.draw import generator, shuffled

#: The number of bins of a group and class, and of cells of all groups and classes together.
BINS, _MOST_CELLS = 10, 3000
#: The fewest groups for the permutation test, and the most groups for which every order is tried.
LEAST_PERMUTED, _MOST_ORDERED = 5, 7


@dataclass(frozen=True)
class PairSums:
    """Residuals summed by unit and cell, from which the squared error of each group is estimated.

    Attributes
    ----------
    sums : residuals (units, cells)
    cell_group : the group of each cell
    factor : weight of a cell's pair products in the squared error of its group
    size : total weight of each group
    score : Brier score of each group
    curve : the expected residuals if all groups had the same calibration curve
    """

    sums: scipy.sparse.csr_array
    cell_group: Indices
    factor: Array
    size: Array
    score: Array
    curve: _OneCurve

    @classmethod
    def of(cls, p: Predictions, place: Indices, n_groups: int) -> PairSums:
        """The sums from predictions and the group of each row; a unit may have rows in several groups."""
        views = [p.view(p.y, p.probability)] if p.binary else [
            p.view((p.y == k).astype(np.intp), np.ascontiguousarray(p.p[:, k])) for k in range(p.k)
        ]  # fmt: skip
        bins = max(1, min(BINS, _MOST_CELLS // (n_groups * len(views))))
        residual = np.column_stack([view.residual for view in views])
        cells = _GroupCells.of(p, views, place, n_groups, bins)
        sums = cells.added(residual)
        curve = _OneCurve.of(p, _GroupCells.of(p, views, np.zeros_like(place), 1, bins), cells, residual)
        score = np.bincount(place, p.weight * (residual**2).sum(axis=1), n_groups) / cells.size / len(views)
        return cls(sums, cells.group, cells.factor, cells.size, score, curve)

    @once
    def _totals(self) -> Array:
        return np.asarray(self.sums.sum(axis=0)).ravel()

    @once
    def squared(self) -> Array:
        """The debiased squared error of each group."""
        own = np.asarray(self.sums.power(2).sum(axis=0)).ravel()
        return np.bincount(self.cell_group, self.factor * (self._totals**2 - own), len(self.size)).astype(np.float64)

    @once
    def _together(self) -> Array:
        """Sums of products of residuals of the same unit, for every two cells."""
        return np.asarray((self.sums.T @ self.sums).toarray())

    def combined(self, coefficient: Array) -> tuple[float, float]:
        """A linear combination of the groups' squared errors, and its standard error.

        The variance of a sum over pairs has a part that calibrated groups have too, and a part that grows with the
        error; both are estimated without bias.
        """
        a = coefficient[self.cell_group] * self.factor
        each = self.sums * a  # (units, cells)
        own = np.asarray((each * self.sums).sum(axis=1)).ravel()
        reach = each @ self._totals - own
        among = float(a @ self._together**2 @ a - own @ own)
        variance = max(4.0 * float(np.sum((reach - reach.mean()) ** 2)) - 2.0 * among, among)
        return float(coefficient @ self.squared), math.sqrt(max(variance, 0.0))

    def trend(self) -> tuple[float, float]:
        """The slope of the squared error over the groups, weighted by group size, and its p-value."""
        contrast = _slope_of(self.size)
        slope = float(contrast @ self.squared)
        variance, third = self.curve.moments(contrast[self.cell_group] * self.factor, self.sums)
        if variance <= 0.0:
            return slope, 1.0
        return slope, _two_sided(slope / math.sqrt(variance), third / variance / math.sqrt(variance))

    def permutation_test(self, n_resamples: int, rng: object) -> tuple[float, float]:
        """The slope with a p-value by permutation of the groups, which needs five or more groups of equal size."""
        n = len(self.size)
        if n < LEAST_PERMUTED or not np.allclose(self.size, self.size[0]):
            raise RefusedError(
                f"trend='permutation' needs at least {LEAST_PERMUTED} groups of equal size, and there are {n} of "
                f"{self.size.min():g} to {self.size.max():g} rows: use trend='weighted'"
            )
        contrast = _slope_of(self.size)
        seen = abs(float(contrast @ self.squared)) - 1e-12
        if n <= _MOST_ORDERED:  # every order, including the observed one
            orders: NDArray[np.intp] = np.array(list(permutations(range(n))))
            return float(contrast @ self.squared), float(np.mean(np.abs(self.squared[orders] @ contrast) >= seen))
        source = generator(rng, "order of groups")
        drawn = np.array([shuffled(n, source, "order of groups") for _ in range(n_resamples)])
        hits = int(np.sum(np.abs(self.squared[drawn] @ contrast) >= seen))
        return float(contrast @ self.squared), (1 + hits) / (n_resamples + 1)


def _slope_of(size: Array) -> Array:
    """The coefficients of the slope of a weighted regression on the position in the order."""
    place = np.arange(len(size), dtype=np.float64)
    away = size * (place - np.average(place, weights=size))
    return away / (away @ place)


def _two_sided(z: float, skewness: float) -> float:
    """Two-sided p-value of a standardized number by the shifted gamma distribution of this skewness."""
    if abs(skewness) < 1e-3:
        return float(2.0 * scipy.special.ndtr(-abs(z)))
    shape = 4.0 / skewness**2
    at = max(shape + math.copysign(z, z * skewness) * math.sqrt(shape), 0.0)
    return float(min(1.0, 2.0 * min(scipy.special.gammainc(shape, at), scipy.special.gammaincc(shape, at))))


@dataclass(frozen=True)
class _GroupCells:
    """The cell of each row and class, which is its group and its bin of equal mass among the rows of the group.

    ``at`` has the shape (rows, classes); ``unit`` and ``weight`` are those of the rows, ``size`` the total weight of
    each group.
    """

    at: Indices
    group: Indices
    unit: Indices
    weight: Array
    size: Array

    @classmethod
    def of(cls, p: Predictions, views: list[Predictions], place: Indices, n_groups: int, bins: int) -> _GroupCells:
        at = np.empty((p.n, len(views)), dtype=np.intp)
        of_group: list[int] = []
        for k, view in enumerate(views):
            for g in range(n_groups):
                rows = np.flatnonzero(place == g)
                index = np.unique(group(view.part(rows), "mass", n_bins=bins).index, return_inverse=True)[1].ravel()
                at[rows, k] = len(of_group) + index
                of_group += [g] * (int(index.max()) + 1)
        unit = np.arange(p.n) if p.units is None else p.units
        size = np.bincount(place, p.weight, n_groups).astype(np.float64)
        return cls(at, np.array(of_group), unit, p.weight, size)

    def added(self, values: Array) -> scipy.sparse.csr_array:
        """Weighted values (rows, classes), summed by unit and cell."""
        shape = int(self.unit.max()) + 1, len(self.group)
        where = np.repeat(self.unit, self.at.shape[1]), self.at.ravel()
        return scipy.sparse.csr_array(((self.weight[:, None] * values).ravel(), where), shape=shape)

    @once
    def total(self) -> Array:
        """The weight of each cell."""
        return np.bincount(self.at.ravel(), np.repeat(self.weight, self.at.shape[1]), len(self.group)).astype(
            np.float64
        )

    @once
    def share(self) -> Array:
        """The share of each cell in its group, for the mean over the classes, as in the Brier score."""
        return np.asarray(self.total / self.size[self.group] / self.at.shape[1])

    @once
    def factor(self) -> Array:
        """The weight of the products of pairs in each cell; 0 if one unit has the whole cell."""
        own = np.asarray(self.added(np.ones(self.at.shape)).power(2).sum(axis=0)).ravel()
        pairs = self.total**2 - own
        some = pairs > 1e-9 * self.total**2
        return np.where(some, self.share / np.where(some, pairs, 1.0), 0.0)


@dataclass(frozen=True)
class _OneCurve:
    """The expected residuals if all groups had the calibration curve of all rows together.

    Attributes
    ----------
    cells : the cells of the groups
    mean : mean residual of each row and class
    chance : probability of each class in each row
    alone : whether every row is a separate unit
    """

    cells: _GroupCells
    mean: Array
    chance: Array
    alone: bool

    @classmethod
    def of(cls, p: Predictions, pooled: _GroupCells, cells: _GroupCells, residual: Array) -> _OneCurve:
        """The mean residuals in bins of all rows, shrunk so that the sum of their squares is free of noise."""
        sums = pooled.added(residual)
        total, own = (np.asarray(x.sum(axis=0)).ravel() for x in (sums, sums.power(2)))
        gap = total / pooled.total
        shown, there = float(pooled.share @ gap**2), float(pooled.factor @ (total**2 - own))
        stated = np.column_stack([p.probability]) if p.binary else p.p
        chance = np.clip(stated + math.sqrt(max(there, 0.0) / shown if shown > 0.0 else 0.0) * gap[pooled.at], 0.0, 1.0)
        if not p.binary:
            chance /= chance.sum(axis=1, keepdims=True)
        return cls(cells, chance - stated, chance, p.units is None)

    def moments(self, a: Array, sums: scipy.sparse.csr_array) -> tuple[float, float]:
        """Variance and third moment of the sum over pairs, in which a cell has the weight ``a``.

        Labels of single rows are drawn from their chances; units vary as their residuals do around the curve.
        """
        mean = self.cells.added(self.mean)
        center = np.asarray(mean.sum(axis=0)).ravel()
        apart = 0.0
        if self.alone:
            spread, among, reach = self._of_rows(a, center)
            apart = self._few_rows(a)
        else:
            around = sums - mean
            own = np.asarray((around.power(2) * a).sum(axis=1)).ravel()
            spread = (around.T @ around).toarray()
            among = float(a @ spread**2 @ a - own @ own)
            drawn = around * a
            reach = float(np.sum((drawn @ center - np.asarray((drawn * mean).sum(axis=1)).ravel()) ** 2))
        scaled = a[:, None] * spread
        pull = spread @ (a * center)
        third = 8.0 * float(np.sum((scaled @ scaled) * scaled.T)) + 24.0 * float(pull @ (a * pull)) + apart
        return 2.0 * among + 4.0 * reach, third

    def _of_rows(self, a: Array, center: Array) -> tuple[Array, float, float]:
        """Covariance of the cells, its part from pairs of rows, and the part that grows with the error."""
        q, w = self.chance, self.cells.weight[:, None]
        drawn = self.cells.added(q)
        diagonal = np.bincount(self.cells.at.ravel(), (w**2 * q).ravel(), len(a))
        spread: Array = np.diag(diagonal) - (drawn.T @ drawn).toarray()
        each = a[self.cells.at]
        own = w**4 * each**2 * (q**2 * (1.0 - q) ** 2 - q**4)
        across = np.sum(w**2 * each * q**2, axis=1) ** 2
        away = w * each * (center[self.cells.at] - w * self.mean)
        reach = np.sum(q * away**2, axis=1) - np.sum(q * away, axis=1) ** 2
        return spread, float(a @ spread**2 @ a) - float(own.sum() + across.sum()), float(reach.sum())

    def _few_rows(self, a: Array) -> float:
        """How the third moment of sums over pairs of different rows differs from that of squares of normal sums."""
        q, w = self.chance, self.cells.weight[:, None]
        second = w**2 * q * (1.0 - q)
        third = w * second * (1.0 - 2.0 * q)
        v, v2, v3, s, s2 = (
            np.bincount(self.cells.at.ravel(), x.ravel(), len(a))
            for x in (second, second**2, second**3, third, third**2)
        )
        return float(a**3 @ (8.0 * (2.0 * v3 - 3.0 * v * v2) + 4.0 * (s**2 - s2)))

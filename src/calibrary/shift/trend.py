"""Does the squared calibration error grow along groups in an order? Sums over pairs of units, and their variance.

In each group and for each class, rows are put in bins of equal mass. The squared gap of a bin, less its noise, is a sum
of products of residuals of two different units, so that it is unbiased however few rows there are. A weighted trend of
the groups is again such a sum, and so is the difference of two groups. A unit may lie in several groups: the same image
at every severity.
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

#: Bins of a group and class, and cells of all groups and classes together.
BINS, _MOST_CELLS = 10, 3000
#: The permutation of groups is a test for at least so many groups, and tries every order up to so many.
LEAST_PERMUTED, _MOST_ORDERED = 5, 7


@dataclass(frozen=True)
class PairSums:
    """Residuals summed by unit and cell, and what pairs of units say about each group.

    Attributes
    ----------
    sums : residuals (units, cells)
    cell_group : the group of each cell
    factor : what the products of pairs in a cell count towards the squared error of its group
    size : total weight of each group
    score : Brier score of each group
    """

    sums: scipy.sparse.csr_array
    cell_group: Indices
    factor: Array
    size: Array
    score: Array

    @classmethod
    def of(cls, p: Predictions, place: Indices, n_groups: int) -> PairSums:
        """From predictions and the group of each row; rows of one unit belong together, in all groups."""
        views = [p.view(p.y, p.probability)] if p.binary else [
            p.view((p.y == k).astype(np.intp), np.ascontiguousarray(p.p[:, k])) for k in range(p.k)
        ]  # fmt: skip
        bins = max(1, min(BINS, _MOST_CELLS // (n_groups * len(views))))
        unit = np.arange(p.n) if p.units is None else p.units
        n_units = int(unit.max()) + 1
        blocks, weights, of_group = [], [], []
        for view in views:
            cell = _cells(view, place, n_groups, bins)
            n = int(cell.max()) + 1
            where = (unit, cell)
            blocks.append(scipy.sparse.csr_array((view.weight * view.residual, where), shape=(n_units, n)))
            weights.append(scipy.sparse.csr_array((view.weight, where), shape=(n_units, n)))
            first = np.zeros(n, dtype=np.intp)
            first[cell] = place
            of_group.append(first)
        cell_group = np.concatenate(of_group)
        size = np.bincount(place, p.weight, n_groups).astype(np.float64)
        weight = scipy.sparse.hstack(weights, format="csr")
        total = np.asarray(weight.sum(axis=0)).ravel()
        pairs = total**2 - np.asarray(weight.power(2).sum(axis=0)).ravel()
        some = pairs > 1e-9 * total**2
        share = total / size[cell_group] / len(views)  # the mean over the classes, as in the Brier score
        factor = np.where(some, share / np.where(some, pairs, 1.0), 0.0)
        square = sum((view.residual**2 for view in views), np.zeros(p.n))
        score = np.bincount(place, p.weight * square, n_groups) / size / len(views)
        return cls(scipy.sparse.hstack(blocks, format="csr"), cell_group, factor, size, score)

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
        """Products of residuals of the same unit, of every two cells."""
        products: Array = (self.sums.T @ self.sums).toarray()
        return products

    def combined(self, coefficient: Array) -> tuple[float, float]:
        """A sum of the groups' squared errors with these coefficients, and its standard error.

        The variance of a sum over pairs has a part that is there for calibrated groups too, and one that grows with
        the error; both are estimated without bias.
        """
        a = coefficient[self.cell_group] * self.factor
        each = self.sums * a  # (units, cells)
        own = np.asarray((each * self.sums).sum(axis=1)).ravel()
        reach = each @ self._totals - own
        among = float(a @ self._together**2 @ a - own @ own)
        variance = max(4.0 * float(np.sum((reach - reach.mean()) ** 2)) - 2.0 * among, among)
        return float(coefficient @ self.squared), math.sqrt(max(variance, 0.0))

    def trend(self) -> tuple[float, float]:
        """Growth of the squared error from group to group, groups weighted by their size, and its p-value."""
        slope, error = self.combined(_slope_of(self.size))
        if error <= 0.0:
            return slope, 1.0
        return slope, float(2.0 * scipy.special.ndtr(-abs(slope) / error))

    def permutation_test(self, n_resamples: int, rng: object) -> tuple[float, float]:
        """The same by permutation of the groups, which must be exchangeable: five or more, of equal size."""
        n = len(self.size)
        if n < LEAST_PERMUTED or not np.allclose(self.size, self.size[0]):
            raise RefusedError(
                f"trend='permutation' needs at least {LEAST_PERMUTED} groups of equal size, and there are {n} of "
                f"{self.size.min():g} to {self.size.max():g} rows: use trend='weighted'"
            )
        contrast = _slope_of(self.size)
        seen = abs(float(contrast @ self.squared)) - 1e-12
        if n <= _MOST_ORDERED:  # every order, the one that was seen among them
            orders: NDArray[np.intp] = np.array(list(permutations(range(n))))
            return float(contrast @ self.squared), float(np.mean(np.abs(self.squared[orders] @ contrast) >= seen))
        source = generator(rng, "order of groups")
        drawn = np.array([shuffled(n, source, "order of groups") for _ in range(n_resamples)])
        hits = int(np.sum(np.abs(self.squared[drawn] @ contrast) >= seen))
        return float(contrast @ self.squared), (1 + hits) / (n_resamples + 1)


def _slope_of(size: Array) -> Array:
    """Coefficients that give the slope of a weighted regression on the place in the order."""
    place = np.arange(len(size), dtype=np.float64)
    away = size * (place - np.average(place, weights=size))
    slope: Array = away / (away @ place)
    return slope


def _cells(view: Predictions, place: Indices, n_groups: int, bins: int) -> Indices:
    """The cell of each row: its group, and its bin of equal mass among the rows of the group."""
    cell = np.empty(view.n, dtype=np.intp)
    begun = 0
    for g in range(n_groups):
        rows = np.flatnonzero(place == g)
        index = np.unique(group(view.part(rows), "mass", n_bins=bins).index, return_inverse=True)[1].ravel()
        cell[rows] = begun + index
        begun += int(index.max()) + 1
    return cell

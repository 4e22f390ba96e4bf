"""The largest number of bins whose labels still rise with confidence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.errors import one_of
from calibrary.grouping.edges import SLACK, EqualMass, EqualWidth, Grouping, Intervals, UniqueValues
from calibrary.grouping.groups import Groups
from calibrary.predictions import Array, Indices, Predictions


class MonotonicSweep(Grouping):
    """As many equal-mass (or equal-width) bins as keep the mean labels non-decreasing.

    b is raised from 1 and the sweep stops at the first b that has a drop, even if a larger one has none by
    chance. After ``fit``, ``n_bins_`` is the number chosen. Blind spot: when accuracy falls with confidence
    one bin is left.
    """

    def __init__(self, base: str = "mass") -> None:
        one_of("base", base, ("mass", "width"))
        self.base = base

    def fit_view(self, view: Predictions) -> Self:
        sweep = _Sweep(view)
        if self.base == "mass":
            limit = int(np.ceil(view.total / view.ties.w.min() * (1 - SLACK)))
            ends = sweep.mass_ends
        else:
            limit = view.n
            ends = sweep.width_ends
        if sweep.rises(np.arange(1, len(view.ties.c) + 1)):
            best = limit
        else:
            best = next((b - 1 for b in range(2, limit + 1) if not sweep.rises(ends(b))), limit)
        self.n_bins_ = best
        self.chosen_ = self._bins(best, limit).fit_view(view)
        return self

    def _bins(self, n: int, limit: int) -> Intervals:
        if self.base == "width":
            return EqualWidth(n)
        return UniqueValues() if n == limit else EqualMass(n)

    def assign(self, c: Any) -> Indices:
        return self.chosen_.assign(c)

    def _split(self, view: Predictions) -> Groups:
        return self.chosen_._split(view)


class _Sweep:
    """Prefix sums over tie groups, from which the labels of any number of bins follow in O(b log N)."""

    def __init__(self, view: Predictions) -> None:
        ties = view.ties
        self.c = ties.c
        self.below = np.concatenate(([0.0], np.cumsum(ties.w)))
        self.positive = np.concatenate(([0.0], np.cumsum(ties.wy)))
        # whole numbers are compared exactly; weights only up to rounding
        self.slack = 0.0 if view.w is None else SLACK

    def mass_ends(self, b: int) -> Indices:
        """Number of tie groups up to the end of each of b equal-mass bins."""
        targets = np.arange(1, b) * (self.below[-1] / b)
        ends = np.searchsorted(self.below, targets * (1 - SLACK), side="left")
        return np.append(ends, len(self.c))

    def width_ends(self, b: int) -> Indices:
        return np.append(np.searchsorted(self.c, np.arange(1, b) / b, side="right"), len(self.c))

    def rises(self, ends: Indices) -> bool:
        w = np.diff(self.below[ends], prepend=0.0)
        wy = np.diff(self.positive[ends], prepend=0.0)
        if not w.all():
            w, wy = w[w > 0], wy[w > 0]
        return bool((_cross(wy, w) >= -self.slack * w[1:] * w[:-1]).all())


def _cross(wy: Array, w: Array) -> Array:
    """Sign of the rise from each bin to the next, without dividing: exact for whole numbers."""
    return wy[1:] * w[:-1] - wy[:-1] * w[1:]

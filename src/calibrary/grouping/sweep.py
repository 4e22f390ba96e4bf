"""The largest number of bins whose mean labels rise with confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import one_of
from calibrary.data.checks import Indices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked
from calibrary.grouping.edges import SLACK, EqualMass, EqualWidth, Grouping, Intervals, UniqueValues
from calibrary.grouping.groups import Groups
from calibrary.grouping.windows import prefix_sums

#: With weights that differ by a factor of a million, separating the light rows would need a million bins: the sweep
#: ends at this number, or at the number of rows if that is larger.
MOST_BINS = 20_000


class MonotonicSweep(Grouping):
    """The largest number of equal-mass (or equal-width) bins whose mean labels do not decrease.

    b is raised from 1 and the sweep stops at the first b with a decrease, even if a larger b has none by chance; at the
    latest at the number of rows (of copies up to 20,000, if weights differ). After ``fit``, ``n_bins_`` is the number
    chosen. Limitation: if accuracy falls with confidence, one bin remains.
    """

    def __init__(self, base: str = "mass") -> None:
        one_of("base", base, ("mass", "width"))
        self.base = base

    def fit_view(self, view: Predictions) -> Self:
        sweep, limit = _Sweep(view), self._limit(view)
        if sweep.always_rises():
            best = limit
        else:
            ends, most = self._ends(sweep), min(limit, max(view.n, MOST_BINS))
            best = next((b - 1 for b in range(2, most + 1) if not sweep.rises(ends(b))), most)
        self.n_bins_ = best
        self.chosen_ = self._bins(best, limit).fit_view(view)
        return self

    def of_each(self, view: Stacked) -> Iterator[tuple[NDArray[np.bool_], Intervals]]:
        """Replicates with other labels, and the bins that are chosen for them: together where the bins are the same."""
        if np.ndim(view.total):
            view.refuse_stack("the search for the number of bins")
        sweep, limit = _Sweep(view), self._limit(view)
        ends, most = self._ends(sweep), min(limit, max(view.n, MOST_BINS))
        best = np.where(sweep.always_rises(), limit, 0)
        for b in range(2, most + 1):
            search = best == 0
            if not search.any():
                break
            best[search] = np.where(sweep.rises(ends(b), search), 0, b - 1)
        best[best == 0] = most
        for b in np.unique(best):
            yield best == b, self._bins(int(b), limit)

    def _limit(self, view: Predictions) -> int:
        """The number of bins that have one confidence each."""
        if self.base == "width":
            return view.n
        return int(np.ceil(view.total / view.ties.w.min() * (1 - SLACK)))

    def _ends(self, sweep: _Sweep) -> Callable[[int], Indices]:
        return sweep.mass_ends if self.base == "mass" else sweep.width_ends

    def _bins(self, n: int, limit: int) -> Intervals:
        if self.base == "width":
            return EqualWidth(n)
        return UniqueValues() if n == limit else EqualMass(n)

    def assign(self, c: Any) -> Indices:
        return self.chosen_.assign(c)

    def _split(self, view: Predictions) -> Groups:
        return self.chosen_._split(view)


class _Sweep:
    """Prefix sums over tie groups, from which the mean labels of any number of bins follow in O(b log N)."""

    def __init__(self, view: Predictions) -> None:
        ties = view.ties
        self.c = ties.c
        whole = view.w is None and len(ties.c) == view.n
        self.below = np.arange(view.n + 1.0) if whole else prefix_sums(ties.w)
        self.positive = prefix_sums(ties.wy)
        # whole numbers are compared exactly; other weights up to rounding
        self.slack = 0.0 if view.w is None else SLACK

    def mass_ends(self, b: int) -> Indices:
        """Number of tie groups up to the end of each of b equal-mass bins, preceded by 0."""
        if b > 4 * len(self.c):
            return self._ends_of_groups(b)
        targets = np.arange(b) * (self.below[-1] / b)
        return self._closed(self.below.searchsorted(targets * (1 - SLACK)))

    def _ends_of_groups(self, b: int) -> Indices:
        # the same without empty bins: a group ends a bin if a target lies within it
        passed = np.minimum(np.floor(self.below * (b / (self.below[-1] * (1 - SLACK)))), b - 1)
        inner = np.flatnonzero(passed[1:-1] > passed[:-2]) + 1
        return self._closed(np.concatenate(((0,), inner)))

    def width_ends(self, b: int) -> Indices:
        ends = self.c.searchsorted(np.arange(b) / b, side="right")
        ends[0] = 0
        return self._closed(ends)

    def _closed(self, ends: Indices) -> Indices:
        return np.concatenate((ends, (len(self.c),)))

    def always_rises(self) -> Any:
        """Whether labels rise from each confidence to the next; usually a few are enough to show that they do not."""
        m = len(self.c)
        first = self.rises(np.arange(min(m, 1000) + 1))
        return first if m <= 1000 or not np.any(first) else self.rises(np.arange(m + 1))

    def rises(self, ends: Indices, which: Any = ...) -> Any:
        """Whether mean labels rise, or stay equal, from each bin to the next. Bins without rows are skipped.

        In a stack there is one answer for each of the replicates ``which``.
        """
        below, positive = self.below[ends], self.positive[which][..., ends]
        w, wy = below[1:] - below[:-1], positive[..., 1:] - positive[..., :-1]
        if not w.all():
            w, wy = w[w > 0], wy[..., w > 0]
        # the sign of each difference without division: exact for whole numbers
        rise = wy[..., 1:] * w[:-1] - wy[..., :-1] * w[1:]
        least = -self.slack * w[1:] * w[:-1] if self.slack else 0.0
        return (rise >= least).all(axis=-1)

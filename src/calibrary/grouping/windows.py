"""Overlapping groups: sliding windows over the sorted confidences, and nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices, slices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.compiled.nearest import nearest_ranges, range_deviations, range_means
from calibrary.numerics.runs import run_lengths, run_starts

#: Up to this many copies of each confidence, on average, listing the copies is faster than counting them.
_FEW_COPIES = 8


@dataclass(frozen=True)
class Windows:
    """Half-open ranges of sorted rows, one per window; they may overlap.

    Attributes
    ----------
    c : confidence of each sorted row
    wy, w : weighted label (the mean label of its tie group) and weight of each row; ``w`` is None if all weights are
        one
    below : weight of the rows before each position, one position more than rows
    first, last : where each window starts, and one past its end
    """

    c: Array
    wy: Array
    w: Array | None
    below: Array
    first: Indices
    last: Indices

    def __len__(self) -> int:
        return len(self.first)

    @once
    def weight(self) -> Array:
        """Total weight of each window."""
        return np.asarray(self.below[self.last] - self.below[self.first])

    @once
    def label(self) -> Array:
        """Mean label of each window."""
        return self._mean(self.wy)

    @once
    def gap(self) -> Array:
        """Mean label minus mean confidence of each window."""
        return self._mean(self.wy - self._wc)

    @once
    def deviation(self) -> Array:
        """Mean over each window of |its mean label - the row's own confidence|."""
        fast = self.wy.ndim == 1 and worth_compiling("nearest.range_deviations", 0.1 * len(self))
        moment, sums = prefix_sums(self._wc), compiled(range_deviations) if fast else _range_deviations
        return sums(self.c, self.below, moment, self.label, self.first, self.last)

    @property
    def number(self) -> float:
        """How many windows there are."""
        return float(len(self))

    @property
    def size(self) -> float:
        """Number of rows in each window, if all have the same number."""
        return float(self.last[0] - self.first[0])

    def mean_error(self, inner: str, last: bool = True) -> float:
        """Mean over the windows of their distance between label and confidence, with or without the last window."""
        errors = np.abs(self.gap) if inner == "bin" else self.deviation
        return as_number((errors if last else errors[..., :-1]).mean(axis=-1))

    @property
    def _wc(self) -> Array:
        return self.c if self.w is None else self.w * self.c

    def _mean(self, x: Array) -> Array:
        fast = x.ndim == 1 and worth_compiling("nearest.range_means", 0.02 * len(self))
        return (compiled(range_means) if fast else _range_means)(prefix_sums(x), self.below, self.first, self.last)


def _range_means(total: Array, below: Array, first: Indices, last: Indices) -> Array:
    """Weighted mean over every half-open range, from prefix sums of weight x value and of the weights."""
    return (total[..., last] - total[..., first]) / (below[last] - below[first])


def _range_deviations(x: Array, below: Array, moment: Array, center: Array, first: Indices, last: Indices) -> Array:
    """Weighted mean of |x - centre| over every half-open range of increasing x, from prefix sums of w and w x."""
    turn = np.clip(x.searchsorted(center, "right"), first, last)
    under = center * (below[turn] - below[first]) - (moment[turn] - moment[first])
    over = moment[last] - moment[turn] - center * (below[last] - below[turn])
    return np.maximum(under + over, 0.0) / (below[last] - below[first])


def prefix_sums(x: Array) -> Array:
    """Sum of everything before each position; one entry more than x."""
    total = np.empty((*x.shape[:-1], x.shape[-1] + 1))
    total[..., 0] = 0.0
    np.cumsum(x, axis=-1, out=total[..., 1:])
    return total


@dataclass(frozen=True)
class CopyWindows:
    """Runs of ``size`` consecutive copies, one starting at every copy, for rows that represent many copies each.

    ``c``, ``w`` and ``wy`` are the distinct confidences, ascending, with their copies and positive labels. Copies are
    counted, never listed: a table of 10^10 copies needs only the memory of its distinct confidences.
    """

    c: Array
    w: Array
    wy: Array
    size: float

    @once
    def below(self) -> Array:
        """Number of copies before each distinct confidence, and the total."""
        return prefix_sums(self.w)

    def _each_error(self, inner: str) -> Array:
        """The distance of every window, for so few copies that sums before each of them fit the memory."""
        copies, size = self.w.astype(np.int64), int(self.size)
        label, moment = (prefix_sums(np.repeat(x, copies)) for x in (self.wy / self.w, self.c))
        mean, inside = ((x[size:] - x[:-size]) / size for x in (label, moment))
        if inner == "bin":
            return np.abs(mean - inside)
        start = np.arange(len(mean))
        turn = np.clip(self.below.astype(np.int64)[self.c.searchsorted(mean, "right")], start, start + size)
        # the copies above the window's mean label less those below it: sums of confidences, and numbers of copies
        apart = moment[size:] + moment[:-size] - 2.0 * moment[turn]
        apart += mean * (2.0 * turn - (2.0 * start + size))
        return np.asarray(np.maximum(apart, 0.0) / size)

    @property
    def number(self) -> float:
        """How many windows there are."""
        return float(self.below[-1]) - self.size + 1.0

    def mean_error(self, inner: str, last: bool = True) -> float:
        """Mean over the windows of their distance between label and confidence, with or without the last window."""
        if self.below[-1] <= _FEW_COPIES * len(self.c) and not (self.w % 1.0).any():
            errors = self._each_error(inner)
            return float((errors if last else errors[:-1]).mean())
        number = self.number - (not last)
        whole = inner == "bin"
        label, moment = prefix_sums(self.wy), prefix_sums(self.w * self.c)
        bounds = np.concatenate([[0.0], np.ceil(self.below[1:-1]), np.ceil(self.below[1:] - self.size), [number]])
        bounds.sort()
        first = bounds[run_starts(bounds)]
        first = first[(first >= 0.0) & (first <= number)]
        total, n = 0.0, np.diff(first)
        for part in slices(len(n)):
            runs = _Runs.of(self, first[:-1][part], n[part], label, moment)
            total += runs.of_means() if whole else runs.of_copies()
        return float(total / number)


@dataclass(frozen=True)
class _Runs:
    """Runs of windows whose first copies are of one confidence, and whose next copies are of one confidence.

    Every quantity is a polynomial of the window's start there, so that a sum over any number of windows is one
    expression. ``leaves`` and ``enters`` are the places of the two confidences, ``mean`` and ``inside`` the mean label
    and the sum of confidences in the first window, ``slope`` and ``gain`` what they grow by from window to window.
    """

    windows: CopyWindows
    moment: Array
    start: Array
    n: Array
    leaves: Indices
    enters: Indices
    mean: Array
    slope: Array
    inside: Array
    gain: Array

    @classmethod
    def of(cls, windows: CopyWindows, start: Array, n: Array, label: Array, moment: Array) -> _Runs:
        x, below, size, most = windows.c, windows.below, windows.size, len(windows.c) - 1
        low, high = (np.minimum(below.searchsorted(at, "right") - 1, most) for at in (start, start + size))
        rate, gain = windows.wy / windows.w, x[high] - x[low]
        before, upto = start - below[low], start + size - below[high]
        mean = (label[high] + rate[high] * upto - label[low] - rate[low] * before) / size
        inside = moment[high] + x[high] * upto - moment[low] - x[low] * before
        return cls(windows, moment, start, n, low, high, mean, (rate[high] - rate[low]) / size, inside, gain)

    def of_means(self) -> float:
        """The sum over all windows of the distance between mean label and mean confidence."""
        size = self.windows.size
        first, step, n = self.mean - self.inside / size, self.slope - self.gain / size, self.n
        final = first + step * (n - 1.0)
        turns = first * final < 0.0
        crossed = np.clip(np.ceil(-first / np.where(turns, step, 1.0)), 1.0, np.maximum(n - 1.0, 1.0))
        before = np.where(turns, crossed, n)  # two sums where the sign changes
        upto, after = first + step * (before - 1.0), first + step * before
        return float((np.abs(first + upto) / 2.0 * before + np.abs(after + final) / 2.0 * (n - before)).sum())

    def of_copies(self) -> float:
        """The sum over all windows of the mean distance between the mean label and the confidences of its copies."""
        x, below, size = self.windows.c, self.windows.below, self.windows.size
        # the same copies lie below the mean label until it passes the next confidence: a run has several pieces
        turn = x.searchsorted(self.mean, "right")
        passed = x.searchsorted(self.mean + self.slope * (self.n - 1.0), "right") - turn
        pieces = np.abs(passed) + 1
        run = np.repeat(np.arange(len(pieces)), pieces)
        place = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        rises, later = passed[run] >= 0, place > 0
        turn = turn[run] + np.where(rises, place, -place)
        slope, mean, n = self.slope[run], self.mean[run], self.n[run]
        passing = x[np.clip(np.where(rises, turn - 1, turn), 0, len(x) - 1)]
        away = (passing - mean) / np.where(later, slope, 1.0)
        begin = np.where(later, np.clip(np.where(rises, np.ceil(away), np.floor(away) + 1.0), 0.0, n), 0.0)
        n[:-1] = np.where(later[1:], begin[1:], n[:-1])
        n = np.maximum(n - begin, 0.0)
        middle = begin + (n - 1.0) / 2.0
        start, low, high = self.start[run] + middle, self.leaves[run], self.enters[run]
        mean, inside = mean + slope * middle, self.inside[run] + self.gain[run] * middle
        none, every = turn <= low, turn > high
        under = np.where(none, 0.0, np.where(every, size, below[turn] - start))
        moment = self.moment[np.minimum(turn, high + 1)] - self.moment[low] - x[low] * (start - below[low])
        under_x = np.where(none, 0.0, np.where(every, inside, moment))
        each = n * (mean * (2.0 * under - size) + inside - 2.0 * under_x)
        # -2 slope is the coefficient of the square: a correction for the middle of the piece
        each -= np.where(none | every, 0.0, slope * n * (n * n - 1.0) / 6.0)
        return float(each.sum() / size)


def sliding_windows(view: Predictions, size: int | None = None) -> Windows | CopyWindows:
    """Every run of ``size`` consecutive rows in order of confidence; by default a tenth of the rows.

    The label of a row is its tie group's mean, so that the order of tied rows does not matter. A row of whole-number
    weight w counts as w rows. With fractional weights a window has ``size`` rows, whatever their weight; tied rows
    share their weight too.
    """
    if view.w is not None:
        view.refuse_stack("a window of weighted rows")
    ties = view.ties
    copies = view.w is not None and view.whole_weights
    n = int(ties.w.sum()) if copies else view.n
    size = max(1, n // 10) if size is None else size
    if not 1 <= size <= n:
        raise RefusedError(f"window={size} must be between 1 and the number of rows, {n}")
    if copies:
        # beyond 2^53 one more copy is the same number as a float: count in larger units
        unit = 2.0 ** max(0, n.bit_length() - 50)
        return CopyWindows(ties.c, ties.w / unit, ties.wy / unit, size / unit)
    if view.w is None:
        tied = len(ties.c) < n
        label = np.repeat(ties.wy / ties.w, run_lengths(ties.start, n), axis=-1) if tied else ties.wy
        c, wy, w = view.sorted.c, label, None
    else:
        rows = run_lengths(ties.start, n)
        c, wy, w = np.repeat((ties.c, ties.wy / rows, ties.w / rows), rows, axis=1)
    first: Indices = np.arange(n - size + 1)
    return Windows(c, wy, w, _below(w, n), first, first + size)


def nearest_windows(view: Predictions, k: int | None = None) -> Windows:
    """Every distinct confidence with its k nearest other rows and all equally near rows; one window for each.

    Neighbours are counted by weight (a row of weight 2 has a copy of itself as neighbour). Distances within 1e-12 of
    the k-th count as equal, so that rounded scores behave like exact decimals. By default ``k`` is the integer part of
    the square root of the number of rows.
    """
    if np.ndim(view.total):
        view.refuse_stack("the search for neighbours")
    ties = view.ties
    k = int(np.sqrt(view.total)) if k is None else k
    w = None if view.w is None and len(ties.c) == view.n else ties.w
    below = _below(w, len(ties.c))
    need = min(k + 1.0, view.total * (1 - 1e-12))

    def searched() -> tuple[Indices, Indices]:
        if worth_compiling("nearest.nearest_ranges", 60.0 + 0.2 * len(ties.c)):
            return compiled(nearest_ranges)(ties.c, below, need, 1e-12)
        return _nearest_ranges(ties.c, below, need, 1e-12)

    first, last = view.remember_place(("nearest", need), searched)
    return Windows(ties.c, ties.wy, w, below, first, last)


def _nearest_ranges(x: Array, below: Array, need: float, slack: float) -> tuple[Indices, Indices]:
    """The ranges of :func:`calibrary.numerics.compiled.nearest.nearest_ranges`, by binary searches."""
    n = len(x)
    start = np.arange(n)
    # the shortest run from each start with enough weight ends at `end`; sums are compared as in the loop
    end = np.minimum(below.searchsorted(below[:-1] + need, "left") - 1, n)
    end = np.where((end > start) & (below[end] - below[:-1] >= need), end - 1, end)
    end = np.where((end < n) & (below[np.minimum(end + 1, n)] - below[:-1] < need), end + 1, end)
    runs = int(np.count_nonzero(end < n))
    first, last = x[:runs], x[end[:runs]]
    # around x the nearest run is where its two ends are about equally far away: one of three adjacent runs
    near = (first + last).searchsorted(2.0 * x)
    radius = np.full(n, np.inf)
    for step in (-1, 0, 1):
        run = np.clip(near + step, 0, np.minimum(start, runs - 1))
        np.minimum(radius, np.maximum(x - first[run], last[run] - x), out=radius)
    reach = radius + slack
    return x.searchsorted(x - reach, "left"), x.searchsorted(x + reach, "right")


def _below(w: Array | None, n: int) -> Array:
    return np.arange(n + 1.0) if w is None else prefix_sums(w)

"""Groups that the data choose: splits at the mean, the monotonic sweep, and pooled neighbours (PAVA).

The tree splits the rows at the mean of their most variable coordinate. The sweep finds the largest number of bins whose
mean labels rise with confidence. PAVA pools neighbouring rows until labels rise, within limits on the size of groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked
from calibrary.grouping.edges import SLACK, EqualMass, EqualWidth, Grouping, Intervals, UniqueValues
from calibrary.grouping.groups import Groups, VectorGroups
from calibrary.grouping.windows import prefix_sums
from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.compiled.pava import pool, pool_lists
from calibrary.numerics.runs import segment_sums

#: Variances this close are equal (the first axis is used), and a value this close to the threshold lies above it:
#: otherwise rounding would make the tree depend on row order for decimal probabilities.
_SAME_VARIANCE = 1e-10
_BELOW = 1e-12


class MeanSplit(Grouping):
    """Groups from repeated splits at the mean of the coordinate with the largest variance.

    This works on confidences and on whole probability vectors (two classes: on the probability of class 1 only).

    Parameters
    ----------
    min_size : int
        Nodes with fewer rows are not split; leaves may be smaller.
    min_leaf : int
        A split that would leave fewer rows on one side is not carried out.
    split : "mean" or "median"
    """

    def __init__(self, min_size: int = 100, min_leaf: int = 1, split: str = "mean") -> None:
        self.min_size = whole("min_size", min_size)
        self.min_leaf = whole("min_leaf", min_leaf)
        one_of("split", split, ("mean", "median"))
        self.split = split

    def fit_view(self, view: Predictions) -> Self:
        self.tree_: Grouping = _Halves(self) if view.k == 2 else _Tree(self)
        self.tree_.fit_view(_class_one(view) if view.k == 2 else view)
        self.n_bins_ = self.tree_.n_bins_
        return self

    def assign(self, c: Any) -> Indices:
        c = as_array(c, "c")
        # p and 1-p have the same variance, so with both columns rounding would choose the axis and the side of ties
        return self.tree_.assign(c[:, 1] if c.ndim == 2 and c.shape[1] == 2 else c)

    def _split(self, view: Predictions) -> Groups:
        if view.binary or view.k > 2:
            return self.tree_._split(view)
        return VectorGroups(view, self.n_bins_, self.assign(view.p))


def _class_one(view: Predictions) -> Predictions:
    return view if view.binary else view.view(view.y, np.ascontiguousarray(view.p[:, 1]))


class _Halves(Intervals):
    """One coordinate: all nodes of a level are slices of the sorted rows, and are split together."""

    closed = "left"

    def __init__(self, rule: MeanSplit) -> None:
        self.rule = rule

    def _cuts(self, view: Predictions) -> Array:
        x, w = view.sorted.c, view.sorted.w
        bounds = np.array([0, view.n])
        # the number of rows before every row, or of copies if rows represent many
        before = np.concatenate(([0.0], np.cumsum(w))) if view.counted and w is not None else np.arange(view.n + 1)
        cuts: list[Array] = []
        open_ = np.array([True])  # nodes that may still be split
        while open_.any():
            threshold = self._thresholds(x, w, bounds) - _BELOW
            middle = np.clip(np.searchsorted(x, threshold, side="left"), bounds[:-1], bounds[1:])
            size = np.minimum(before[middle] - before[bounds[:-1]], before[bounds[1:]] - before[middle])
            split = open_ & (np.diff(before[bounds]) >= self.rule.min_size) & (size >= self.rule.min_leaf)
            cuts.append(threshold[split])
            open_ = np.repeat(split, 1 + split)  # both halves
            bounds = np.sort(np.append(bounds, middle[split]))
        return np.sort(np.concatenate(cuts))

    def _thresholds(self, x: Array, w: Array | None, bounds: Indices) -> Array:
        first, size = bounds[:-1], np.diff(bounds)
        if self.rule.split == "mean":
            if w is None:
                return segment_sums(x, bounds) / size
            return segment_sums(w * x, bounds) / segment_sums(w, bounds)
        if w is None:
            middle: Array = x[first + (size - 1) // 2] + x[first + size // 2]
            return 0.5 * middle
        return np.array([_median(x[a:b], w[a:b]) for a, b in zip(first, bounds[1:], strict=True)])


class _Node(NamedTuple):
    """Rows with coordinate ``axis`` below ``threshold`` go to ``low``; a leaf has only its ``leaf`` number."""

    axis: int = -1
    threshold: float = 0.0
    low: int = -1
    high: int = -1
    leaf: int = -1


class _Tree(Grouping):
    """Several coordinates: each node picks its axis."""

    def __init__(self, rule: MeanSplit) -> None:
        self.rule = rule

    def fit_view(self, view: Predictions) -> Self:
        self.nodes_: list[_Node] = [_Node()]
        self.index_: Indices = np.empty(view.n, dtype=np.intp)
        self.n_bins_ = 0
        pending = [(0, np.arange(view.n))]
        while pending:
            at, rows = pending.pop()
            found = self._best_split(view.p[rows], None if view.w is None else view.w[rows])
            if found is None:
                self.nodes_[at] = _Node(leaf=self.n_bins_)
                self.index_[rows] = self.n_bins_
                self.n_bins_ += 1
                continue
            axis, threshold, below = found
            low = len(self.nodes_)
            self.nodes_ += [_Node(), _Node()]
            self.nodes_[at] = _Node(axis, threshold, low, low + 1)
            pending += [(low + 1, rows[~below]), (low, rows[below])]
        return self

    def _best_split(self, x: Array, w: Array | None) -> tuple[int, float, NDArray[np.bool_]] | None:
        if len(x) < self.rule.min_size:
            return None
        mean = np.average(x, axis=0, weights=w)
        variance = np.average((x - mean) ** 2, axis=0, weights=w)
        axis = int(np.argmax(variance >= (1 - _SAME_VARIANCE) * variance.max()))
        values = x[:, axis]
        threshold = (float(mean[axis]) if self.rule.split == "mean" else _median(values, w)) - _BELOW
        below = values < threshold
        n_low = int(below.sum())
        if min(n_low, len(x) - n_low) < self.rule.min_leaf:
            return None
        return axis, threshold, below

    def assign(self, c: Any) -> Indices:
        x = as_array(c, "c")
        leaf: Indices = np.empty(len(x), dtype=np.intp)
        pending = [(0, np.arange(len(x)))]
        while pending:
            at, rows = pending.pop()
            node = self.nodes_[at]
            if node.leaf >= 0:
                leaf[rows] = node.leaf
            else:
                below = x[rows, node.axis] < node.threshold
                pending += [(node.low, rows[below]), (node.high, rows[~below])]
        return leaf

    def _split(self, view: Predictions) -> Groups:
        return VectorGroups(view, self.n_bins_, self.index_)


def _median(x: Array, w: Array | None) -> float:
    """Midpoint of the two middle values, where a row of weight 2 counts as two values."""
    if w is None:
        return float(np.median(x))
    order = np.argsort(x)
    below = np.cumsum(w[order])
    half = 0.5 * below[-1]
    lower = x[order[np.searchsorted(below, half * (1 - 1e-12), side="left")]]
    upper = x[order[min(int(np.searchsorted(below, half * (1 + 1e-12), side="right")), len(x) - 1)]]
    return float(0.5 * (lower + upper))


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
        below, positive = self.below[ends], self.positive[..., ends][which]
        w, wy = below[1:] - below[:-1], positive[..., 1:] - positive[..., :-1]
        if not w.all():
            w, wy = w[w > 0], wy[..., w > 0]
        # the sign of each difference without division: exact for whole numbers
        rise = wy[..., 1:] * w[:-1] - wy[..., :-1] * w[1:]
        least = -self.slack * w[1:] * w[:-1] if self.slack else 0.0
        return (rise >= least).all(axis=-1)


class BlockPAVA(Intervals):
    """Bins by pooling adjacent violators with block constraints (PAVA-BC).

    Equal confidences are one atom. Blocks are merged if together they have at most ``n_min`` rows, or at most ``n_max``
    and the mean label does not rise. The atoms at the top that together have ``n_min`` rows are first set aside, and
    joined to the last block at the end. Weights must be whole numbers.

    Parameters
    ----------
    n_min, n_max : int
        ``n_min=0, n_max=inf`` is the ordinary isotonic fit.
    last_bin : "atom", "released" or "strict"
        When the rows set aside join the last block. "released": if they and ``n_min`` more rows are at most ``n_max``
        (the inventors' code). "strict": if they and that block have at most ``n_max`` rows. "atom": as released, but a
        single tied confidence with ``n_min`` rows is not set aside. Without ties this is the released rule.

    Examples
    --------
    >>> from calibrary.grouping import BlockPAVA
    >>> BlockPAVA(n_min=0, n_max=4).fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1]).edges_
    array([0. , 0.1, 0.3, 1. ])
    """

    closed = "right"

    def __init__(self, n_min: int = 10, n_max: float = 1000, last_bin: str = "atom") -> None:
        one_of("last_bin", last_bin, ("atom", "released", "strict"))
        if not (n_min >= 0 and n_min == math.floor(n_min)):
            raise RefusedError(f"n_min={n_min!r} must be a whole number, 0 or more")
        if not n_max >= 1:
            raise RefusedError(f"n_max={n_max!r} must be at least 1")
        self.n_min = int(n_min)
        self.n_max = n_max
        self.last_bin = last_bin

    def _cuts(self, view: Predictions) -> Array:
        view.refuse_shares("pooling rows into blocks")
        view.counts("pooling rows into blocks")
        size = view.ties.w.astype(np.int64)
        starts = self._blocks(size, view.ties.wy.astype(np.int64))
        return view.ties.c[starts[1:] - 1]

    def _blocks(self, size: Indices, positive: Indices) -> Indices:
        """First atom of every bin."""
        kept = len(size) - self._n_set_aside(size)
        if kept == 0:
            return np.zeros(1, dtype=np.intp)
        largest = int(min(self.n_max, size.sum()))
        starts: Indices
        if worth_compiling("pava.pool", 0.7 * kept, 0.5):
            starts = compiled(pool)(size[:kept], positive[:kept], self.n_min, largest)
        else:
            starts = pool_lists(size[:kept].tolist(), positive[:kept].tolist(), self.n_min, largest)
        if kept == len(size):
            return starts
        tail = size[kept:].sum()
        beside = size[starts[-1] : kept].sum() if self.last_bin == "strict" else self.n_min
        return starts if tail + beside <= self.n_max else np.append(starts, kept)

    def _n_set_aside(self, size: Indices) -> int:
        """Number of atoms at the top that are set aside."""
        if self.n_min == 0 or (self.last_bin == "atom" and size[-1] >= max(2, self.n_min)):
            return 0
        from_top = np.cumsum(size[::-1])
        return min(int(np.searchsorted(from_top, self.n_min)) + 1, len(size))

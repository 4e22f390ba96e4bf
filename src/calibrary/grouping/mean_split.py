"""A tree that splits the rows at the mean of their most variable coordinate."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import one_of, whole
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import Grouping, Intervals
from calibrary.grouping.groups import Groups, VectorGroups
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
            new = middle[split]
            open_ = np.insert(split, np.flatnonzero(split) + 1, True)
            bounds = np.insert(bounds, np.flatnonzero(split) + 1, new)
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

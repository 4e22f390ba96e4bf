"""A tree that halves the cases at the mean of their most variable coordinate."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from calibrary.errors import one_of
from calibrary.grouping.edges import Grouping, whole
from calibrary.grouping.groups import Groups, VectorGroups
from calibrary.predictions import Array, Indices, Predictions, as_array

#: Variances this close are equal (the first axis wins), and a value this close to the threshold lies above it:
#: otherwise rounding would let row order decide on decimal probabilities.
_SAME_VARIANCE = 1e-10
_BELOW = 1e-12


class _Node(NamedTuple):
    """Rows with coordinate ``axis`` below ``threshold`` go to ``low``; a leaf has only its ``leaf`` number."""

    axis: int = -1
    threshold: float = 0.0
    low: int = -1
    high: int = -1
    leaf: int = -1


class MeanSplit(Grouping):
    """Groups from splitting, again and again, at the mean of the coordinate with the largest variance.

    Works on confidences and on whole probability vectors (two classes: on class 1's probability alone).

    Parameters
    ----------
    min_size : int
        Nodes with fewer rows are not split; leaves may be smaller.
    min_leaf : int
        A split that would leave fewer rows on one side is not made.
    split : "mean" or "median"
    """

    def __init__(self, min_size: int = 100, min_leaf: int = 1, split: str = "mean") -> None:
        self.min_size = whole("min_size", min_size)
        self.min_leaf = whole("min_leaf", min_leaf)
        one_of("split", split, ("mean", "median"))
        self.split = split

    def fit_view(self, view: Predictions) -> Self:
        x = _coordinates(view.probability)
        self.tree_: list[_Node] = [_Node()]
        self.index_: Indices = np.empty(view.n, dtype=np.intp)
        self.n_bins_ = 0
        pending = [(0, np.arange(view.n))]
        while pending:
            at, rows = pending.pop()
            found = self._best_split(x[rows], None if view.w is None else view.w[rows])
            if found is None:
                self.tree_[at] = _Node(leaf=self.n_bins_)
                self.index_[rows] = self.n_bins_
                self.n_bins_ += 1
                continue
            axis, threshold, below = found
            low = len(self.tree_)
            self.tree_ += [_Node(), _Node()]
            self.tree_[at] = _Node(axis, threshold, low, low + 1)
            pending += [(low + 1, rows[~below]), (low, rows[below])]
        return self

    def _best_split(self, x: Array, w: Array | None) -> tuple[int, float, Any] | None:
        if len(x) < self.min_size:
            return None
        mean = np.average(x, axis=0, weights=w)
        axis = 0
        if x.shape[1] > 1:
            variance = np.average((x - mean) ** 2, axis=0, weights=w)
            axis = int(np.argmax(variance >= (1 - _SAME_VARIANCE) * variance.max()))
        values = x[:, axis]
        threshold = float(mean[axis]) if self.split == "mean" else _median(values, w)
        below = values < threshold - _BELOW
        n_low = int(below.sum())
        if min(n_low, len(x) - n_low) < self.min_leaf:
            return None
        return axis, threshold, below

    def assign(self, c: Any) -> Indices:
        x = _coordinates(as_array(c, "c"))
        leaf: Indices = np.empty(len(x), dtype=np.intp)
        pending = [(0, np.arange(len(x)))]
        while pending:
            at, rows = pending.pop()
            node = self.tree_[at]
            if node.leaf >= 0:
                leaf[rows] = node.leaf
            else:
                below = x[rows, node.axis] < node.threshold - _BELOW
                pending += [(node.low, rows[below]), (node.high, rows[~below])]
        return leaf

    def _split(self, view: Predictions) -> Groups:
        if view.binary:
            return Groups(view, self.n_bins_, index=self.index_)
        return VectorGroups(view, self.n_bins_, self.index_)


def _coordinates(p: Array) -> Array:
    # p and 1-p have the same variance, so with both columns rounding would pick the axis and the side of ties
    if p.ndim == 1:
        return p[:, None]
    return p[:, 1:] if p.shape[1] == 2 else p


def _median(x: Array, w: Array | None) -> float:
    """Midpoint of the two middle values, a row of weight 2 being two values."""
    if w is None:
        return float(np.median(x))
    order = np.argsort(x)
    below = np.cumsum(w[order])
    half = 0.5 * below[-1]
    lower = x[order[np.searchsorted(below, half * (1 - 1e-12), side="left")]]
    upper = x[order[min(int(np.searchsorted(below, half * (1 + 1e-12), side="right")), len(x) - 1)]]
    return float(0.5 * (lower + upper))

"""Overlapping groups: windows that slide over the sorted confidences, and nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrary.predictions import Array, Indices, Predictions


@dataclass(frozen=True)
class Windows:
    """Half-open ranges of sorted rows, as many as there are windows; they may overlap.

    Attributes
    ----------
    c, y, w : confidence, label (its tie group's mean) and weight of each sorted row
    first, last : where each window starts, and one past where it ends
    """

    c: Array
    y: Array
    w: Array | None
    first: Indices
    last: Indices

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def weight(self) -> Array:
        """Total weight of each window."""
        return (self.last - self.first).astype(np.float64) if self.w is None else self._sum(self.w)

    @cached_property
    def label(self) -> Array:
        """Mean label of each window."""
        return self._sum(self.y if self.w is None else self.w * self.y) / self.weight

    @cached_property
    def gap(self) -> Array:
        """Mean label minus mean confidence of each window."""
        residual = self.y - self.c
        return self._sum(residual if self.w is None else self.w * residual) / self.weight

    @cached_property
    def deviation(self) -> Array:
        """Mean over each window of |its mean label - the row's own confidence|."""
        below = _prefix(np.ones(len(self.c)) if self.w is None else self.w)
        confidence = _prefix(self.c if self.w is None else self.w * self.c)
        # rows up to `turn` lie at or below the mean label, those after it above: two plain sums
        turn = np.clip(np.searchsorted(self.c, self.label, side="right"), self.first, self.last)
        under = self.label * (below[turn] - below[self.first]) - (confidence[turn] - confidence[self.first])
        over = confidence[self.last] - confidence[turn] - self.label * (below[self.last] - below[turn])
        return np.maximum(under + over, 0.0) / self.weight

    def _sum(self, x: Array) -> Array:
        prefix = _prefix(x)
        total: Array = prefix[self.last] - prefix[self.first]
        return total


def sliding_windows(view: Predictions, size: int | None = None) -> Windows:
    """Every run of ``size`` consecutive rows in the order of confidence; a tenth of them by default.

    The label of a row is its tie group's mean, so that the order of tied rows does not matter. A row of
    whole-number weight w is w rows. With fractional weights a window has ``size`` rows, whatever they weigh, and
    tied rows come in ascending order of weight.
    """
    ties = view.ties
    mean_label = ties.wy / ties.w
    if view.w is None or not (view.w % 1).any():
        copies = ties.w.astype(np.int64)
        c = view.sorted.c if view.w is None else np.repeat(ties.c, copies)
        y, w = mean_label if len(c) == len(ties.c) else np.repeat(mean_label, copies), None
    else:
        order = np.lexsort((view.weight, view.c))
        c, y, w = view.c[order], np.repeat(mean_label, np.diff(ties.start, append=view.n)), view.weight[order]
    n = len(c)
    size = max(1, n // 10) if size is None else size
    if not 1 <= size <= n:
        raise ValueError(f"window={size} must be between 1 and the number of rows, {n}")
    first: Indices = np.arange(n - size + 1)
    return Windows(c, y, w, first, first + size)


def nearest_windows(view: Predictions, k: int | None = None) -> Windows:
    """Every distinct confidence with its k nearest other rows and all that are as near; one window each.

    Neighbours are counted by weight (a row of weight 2 has a copy of itself beside it). Distances within 1e-12
    of the k-th count as equal, so that rounded scores behave as the decimals they are. ``k`` is the whole part of
    the square root of the number of rows unless given.
    """
    from calibrary.numerics.nearest import nearest_ranges

    ties = view.ties
    k = int(np.sqrt(view.total)) if k is None else k
    need = min(k + 1.0, view.total * (1 - 1e-12))
    first, last = nearest_ranges(ties.c, _prefix(ties.w), need, 1e-12)
    return Windows(ties.c, ties.wy / ties.w, ties.w, first, last)


def _prefix(x: Array) -> Array:
    return np.concatenate(([0.0], np.cumsum(x)))

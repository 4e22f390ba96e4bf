"""Residuals of labels and the probability of the outcome, checked in the same pass over the rows that computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]


@jit
def add_residuals(
    c: Array, y: NDArray[Any], edges: Array, right: bool, first: int, last: int, total: Array
) -> bool:  # pragma: no cover - compiled
    """Add y - c of the rows from first to last to the totals of their bins; edge k is the double next to k / n.

    A product c n that is a whole number, or nearly so, may have been rounded to the wrong side of an edge: the edge
    then decides. Returns whether all labels were 0 or 1 and all confidences in [0, 1]; stops at an invalid confidence.
    """
    n = len(edges) - 1
    labels = True
    for i in range(first, last):
        if not 0.0 <= c[i] <= 1.0:
            return False
        t = c[i] * n
        b = int(t)
        off = t - b
        if off < 1e-9 or off > 1.0 - 1e-9:
            b = int(t + 0.5)
            if right:
                b = max(b - 1 + int(c[i] > edges[b]), 0)
            else:
                b = min(b - int(c[i] < edges[b]), n - 1)
        labels &= (y[i] == 0) | (y[i] == 1)
        total[b] += y[i] - c[i]
    return labels


@jit
def residuals(c: Array, y: NDArray[Any], first: int, out: Array) -> bool:  # pragma: no cover - compiled
    """Write y - c of the rows from first on; return whether their labels are 0 or 1 and confidences in [0, 1]."""
    c, y = c[first : first + len(out)], y[first : first + len(out)]  # here a slice costs nothing
    good = True
    for i in range(len(c)):
        good &= (c[i] >= 0.0) & (c[i] <= 1.0) & ((y[i] == 0) | (y[i] == 1))
        out[i] = y[i] - c[i]
    return good


@jit
def of_outcome(c: Array, y: NDArray[Any], out: Array) -> bool:  # pragma: no cover - compiled
    """Write the probability of the outcome; return whether all labels are 0 or 1 and all confidences in [0, 1]."""
    good = True
    for i in range(len(c)):
        good &= (c[i] >= 0.0) & (c[i] <= 1.0) & ((y[i] == 0) | (y[i] == 1))
        out[i] = abs(1.0 - y[i] - c[i])
    return good


@jit
def of_class(p: Array, y: NDArray[Any], tolerance: float, out: Array) -> bool:  # pragma: no cover - compiled
    """Write the probability of each row's class; return whether labels are valid and rows of p sum to one."""
    n, k = p.shape
    for i in range(n):
        total = 0.0
        good = True
        for j in range(k):
            total += p[i, j]
            good &= (p[i, j] >= 0.0) & (p[i, j] <= 1.0)
        if not good or not abs(total - 1.0) <= tolerance or not 0 <= y[i] < k:
            return False
        out[i] = p[i, y[i]]
    return True


@jit
def class_residuals(
    p: Array, y: NDArray[Any], tolerance: float, first: int, out: Array
) -> bool:  # pragma: no cover - compiled
    """Write y - p of the rows from first on, y as a one-hot row; return whether all values are valid as in of_class."""
    p, y = p[first : first + len(out)], y[first : first + len(out)]
    m, k = out.shape
    for i in range(m):
        total = 0.0
        good = True
        for j in range(k):
            total += p[i, j]
            good &= (p[i, j] >= 0.0) & (p[i, j] <= 1.0)
            out[i, j] = -p[i, j]
        if not good or not abs(total - 1.0) <= tolerance or not 0 <= y[i] < k:
            return False
        out[i, y[i]] += 1.0
    return True

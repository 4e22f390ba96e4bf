"""When plain numpy arrays may use one compiled pass that checks and computes at once.

In a loop over a metric every extra pass over the rows costs time. A metric's ``direct`` function checks labels and
probabilities in the pass that uses them; all other input (other containers, weights, classes, an invalid number) goes
to the ordinary computation, which returns the same value or raises the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import CHUNK, ROW_SUM_TOLERANCE, Array, starts_as_classes
from calibrary.numerics.compiled import worth_compiling

_LABELS = frozenset((np.dtype(np.int64), np.dtype(bool), np.dtype(np.float64)))
_FLOAT, _NUMBERS = np.dtype(np.float64), np.dtype(np.int64)


def plain_arrays(y: Any, c: Any) -> bool:
    """Whether the data are numpy arrays with one number per row, in enough calls to be worth compiling."""
    return (
        type(y) is np.ndarray and type(c) is np.ndarray and c.dtype == _FLOAT and y.dtype in _LABELS
        and c.ndim == 1 and y.shape == c.shape and c.flags.c_contiguous and y.flags.c_contiguous and len(c) > 0
        and not starts_as_classes(c)
        and worth_compiling("width_bins.add_residuals", 20.0 + 0.01 * len(c))
    )  # fmt: skip


def plain_classes(y: Any, p: Any) -> bool:
    """Whether the data are numpy arrays of three or more classes with numbered labels, and compiling is worthwhile."""
    return plain_vectors(y, p) and worth_compiling("width_bins.of_class", 40.0 + 0.005 * p.size)


def plain_vectors(y: Any, p: Any) -> bool:
    """Whether the data are numpy arrays of three or more numbers per row, and of numbered labels."""
    return (
        type(y) is np.ndarray and type(p) is np.ndarray and p.dtype == _FLOAT and y.dtype == _NUMBERS
        and p.ndim == 2 and y.ndim == 1 and len(y) == len(p) > 0 and p.shape[1] > 2
        and p.flags.c_contiguous and y.flags.c_contiguous and not starts_as_classes(p)
    )  # fmt: skip


def class_residual_blocks(y: Any, p: Any) -> Iterator[Array | None]:
    """y - p of :func:`plain_vectors`, some rows at a time; None, as the last block, if a value is invalid."""
    if worth_compiling("width_bins.of_class", 40.0 + 0.005 * p.size):
        from calibrary.numerics.compiled.width_bins import class_residuals as residuals
    else:
        residuals = _class_residuals
    n, k = p.shape
    step = CHUNK // k or 1
    room: Array = np.empty((min(step, n), k))
    for first in range(0, n, step):
        e = room[: n - first]
        if not residuals(p, y, ROW_SUM_TOLERANCE, first, e):
            yield None
            return
        yield e


def _class_residuals(p: Array, y: NDArray[Any], tolerance: float, first: int, out: Array) -> bool:
    """As the compiled function of this name: write y - p, and return whether all values are valid."""
    p, y = p[first : first + len(out)], y[first : first + len(out)]
    m, k = out.shape
    if not (p.min() >= 0.0 and p.max() <= 1.0 and y.min() >= 0 and y.max() < k):
        return False
    if not np.abs(p @ np.ones(k) - 1.0).max() <= tolerance:
        return False
    np.negative(p, out=out)
    out.ravel()[np.arange(0, m * k, k) + y] += 1.0
    return True

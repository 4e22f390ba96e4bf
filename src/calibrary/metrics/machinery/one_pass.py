"""Common metrics of plain numpy arrays in one compiled pass that checks what it reads.

Who calls a metric again and again feels each pass over the rows. Here labels and probabilities are checked in the pass
that uses them; whatever is not plain (other containers, weights, classes, a number out of place) is left to the
ordinary way, which answers with the same number or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.data.checks import CHUNK, ROW_SUM_TOLERANCE, Array
from calibrary.grouping.edges import EqualWidth
from calibrary.numerics.compiled import worth_compiling

_LABELS = frozenset((np.dtype(np.int64), np.dtype(bool), np.dtype(np.float64)))
_FLOAT, _NUMBERS = np.dtype(np.float64), np.dtype(np.int64)
_FIFTEEN = EqualWidth(15)
#: Rows at a time, as the ordinary Brier score takes them: the same sums in the same order.
_BLOCK = CHUNK // 2


def _plain(y: Any, c: Any) -> bool:
    """One number per row in arrays as numpy makes them, and calls enough to start the compiler."""
    return (
        type(y) is np.ndarray and type(c) is np.ndarray and c.dtype == _FLOAT and y.dtype in _LABELS
        and c.ndim == 1 and y.shape == c.shape and c.flags.c_contiguous and y.flags.c_contiguous and len(c) > 0
        and worth_compiling("one pass", 20.0 + 0.01 * len(c))
    )  # fmt: skip


def _plain_classes(y: Any, p: Any) -> bool:
    """The same for one number per row and class, three or more, and labels that number them."""
    return (
        type(y) is np.ndarray and type(p) is np.ndarray and p.dtype == _FLOAT and y.dtype == _NUMBERS
        and p.ndim == 2 and y.ndim == 1 and len(y) == len(p) > 0 and p.shape[1] > 2
        and p.flags.c_contiguous and y.flags.c_contiguous
        and worth_compiling("one pass", 40.0 + 0.005 * p.size)
    )  # fmt: skip


def calibration_error(y: Any, c: Any, **others: Any) -> float | None:
    """The expected calibration error with its defaults; None for what is not plain."""
    if others or not _plain(y, c):
        return None
    from calibrary.numerics.compiled.width_bins import add_residuals

    total = np.zeros(15)
    for first in range(0, len(c), CHUNK):
        part = total if len(c) <= CHUNK else np.zeros(15)
        if not add_residuals(c, y, _FIFTEEN.edges_, True, first, min(first + CHUNK, len(c)), part):
            return None
        if part is not total:
            total += part
    return float(total.dot(np.sign(total))) / len(c)


def brier_score(y: Any, c: Any, scale: str = "1/K", **others: Any) -> float | None:
    """The Brier score on any of its scales; None for what is not plain."""
    if others or scale not in ("1/K", "sum", "half"):
        return None
    if _plain(y, c):
        mean, k = _mean_square(y, c), 2
    elif _plain_classes(y, c):
        mean, k = _mean_square_of_classes(y, c), c.shape[1]
    else:
        return None
    return mean if mean is None or scale == "1/K" else mean * (float(k) if scale == "sum" else k / 2)


def _mean_square(y: Any, c: Any) -> float | None:
    from calibrary.numerics.compiled.width_bins import residuals

    total = 0.0
    room: Array = np.empty(min(_BLOCK, len(c)))
    for first in range(0, len(c), _BLOCK):
        e = room[: len(c) - first]
        if not residuals(c, y, first, e):
            return None
        total += e.dot(e)
    return float(total) / len(c)


def _mean_square_of_classes(y: Any, p: Any) -> float | None:
    from calibrary.numerics.compiled.width_bins import class_residuals

    n, k = p.shape
    total: float = 0.0
    step = CHUNK // k or 1
    room: Array = np.empty((min(step, n), k))
    for first in range(0, n, step):
        e = room[: n - first]
        if not class_residuals(p, y, ROW_SUM_TOLERANCE, first, e):
            return None
        flat = e.ravel()
        for i in range(0, flat.size, _BLOCK):
            total += flat[i : i + _BLOCK].dot(flat[i : i + _BLOCK])
    return float(total) / float(n * k)


def log_likelihood(y: Any, c: Any, **others: Any) -> float | None:
    """The negative log likelihood with its defaults; None for what is not plain, or has a row of likelihood 0."""
    if others:
        return None
    if _plain(y, c):
        from calibrary.numerics.compiled.width_bins import of_outcome

        likelihood: Array = np.empty(len(c))
        good = of_outcome(c, y, likelihood)
    elif _plain_classes(y, c):
        from calibrary.numerics.compiled.width_bins import of_class

        likelihood = np.empty(len(c))
        good = of_class(c, y, ROW_SUM_TOLERANCE, likelihood)
    else:
        return None
    if not good or np.minimum.reduce(likelihood, None) == 0.0:
        return None
    np.log(likelihood, out=likelihood)
    return float(np.add.reduce(np.negative(likelihood, out=likelihood), 0, np.float64) / len(c)) + 0.0


#: By the id of the metric.
ONE_PASS: dict[str, Callable[..., float | None]] = {
    "ece": calibration_error,
    "bs": brier_score,
    "nll": log_likelihood,
}

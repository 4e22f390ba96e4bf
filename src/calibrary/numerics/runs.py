"""Runs of equal neighbours, such as tied confidences in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_starts(x: NDArray[Any]) -> NDArray[np.intp]:
    """The position of the first element of each run.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.runs import run_lengths, run_starts
    >>> starts = run_starts(np.array([0.2, 0.2, 0.5, 0.7, 0.7, 0.7]))
    >>> starts.tolist(), run_lengths(starts, 6).tolist()
    ([0, 2, 3], [2, 1, 3])
    """
    first = np.empty(len(x), dtype=bool)
    first[:1] = True
    np.not_equal(x[1:], x[:-1], out=first[1:])
    return first.nonzero()[0]


def run_lengths(starts: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """The number of elements in each run of n elements."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = n
    return ends - starts

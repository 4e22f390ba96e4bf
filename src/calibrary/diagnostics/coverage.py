"""The data of the coverage diagram for prediction sets of classes."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.data.checks import Array, as_floats
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.metrics.machinery.entry import Seen
from calibrary.metrics.point.set_coverage import at_levels, checked_level, set_coverage


class CoverageCurve(NamedTuple):
    """Observed coverage, mean size and stated probability of the prediction sets at each level."""

    level: Array
    coverage: Array
    size: Array
    claimed: Array
    gap: Array


@diagnostic(set_coverage)
def set_coverage_curve(views: Views, *, levels: Any = None, **common: Unpack[Seen]) -> CoverageCurve:
    """The data of the coverage diagram: :func:`set_coverage` at many levels.

    Parameters
    ----------
    levels : array-like, optional
        By default .01, .02, ..., .99.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.set_coverage_curve([0, 1], [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]], levels=[0.5, 0.8])
    >>> curve.coverage, curve.size
    (array([0.5, 1. ]), array([1., 2.]))
    """
    at = np.arange(1, 100) / 100 if levels is None else np.atleast_1d(as_floats(levels, "levels"))
    for level in at.tolist():
        checked_level(level)
    found = at_levels(only_view(views, "a coverage diagram"), at)
    return CoverageCurve(at, *(np.array(column) for column in zip(*found, strict=True)))

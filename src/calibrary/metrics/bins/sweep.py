"""ECE with the largest number of bins for which accuracy rises with confidence (row 29)."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked, as_number
from calibrary.grouping import MonotonicSweep, group
from calibrary.metrics.bins.bin_options import class_norm
from calibrary.metrics.machinery.declare import Common, metric


@metric("ece_sweep", combine=class_norm(1), stacks="labels")
def sweep_calibration_error(
    view: Predictions,
    *,
    base: str = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    binning: str | None = None,
    **common: Unpack[Common],
) -> float:
    r"""ECE with the largest number of bins for which accuracy still rises with confidence.

    The number of bins b increases from 1 until the mean labels of the bins decrease somewhere; the last b before that
    is used (``MonotonicSweep(base).fit(c, y).n_bins_``).

    Parameters
    ----------
    base : "mass" or "width"
        Equal-mass bins (the authors' recommendation) or equal-width ones.
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.
    binning : "mass" or "width", optional
        Another name for ``base``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9]
    >>> round(cal.sweep_calibration_error(y, p), 4)
    0.1833
    """
    sweep = MonotonicSweep(base if binning is None else binning)
    if isinstance(view, Stacked):
        found = np.empty(len(view.y))
        for which, bins in sweep.of_each(view):
            found[which] = group(view.some(which), bins).gap_norm(norm)
        return as_number(found)
    return group(view, sweep).gap_norm(norm)

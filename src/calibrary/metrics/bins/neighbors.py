"""Overlapping bins (rows 46 and 47): sliding windows and nearest neighbours."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from calibrary.base.errors import one_of, undefined
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, inner
from calibrary.grouping.edges import whole
from calibrary.grouping.windows import nearest_windows, sliding_windows
from calibrary.metrics.machinery.declare import Common, metric


@metric(
    "calbin",
    renamed={"literal": ("definition", {True: "review", False: "authors"})},
    lenses=("binary", "class-wise", "top-label"),
    default_lens="class-wise",
    stacks="labels",
)
def calbin(
    view: Predictions,
    *,
    window: int | None = None,
    inner: str = "point",
    definition: str = "authors",
    **common: Unpack[Common],
) -> float:
    r"""Mean distance of confidences from the mean label, over all runs of consecutive rows in order of confidence.

    .. math:: \frac{1}{N - s + 1} \sum_b \frac{1}{s} \sum_{i \in b} |\bar y_b - c_i|

    The mean is over the windows of s consecutive rows in order of confidence. Tied rows share their mean label, so the
    order of the rows does not matter.

    Parameters
    ----------
    window : int, optional
        Number s of rows in a window; by default a tenth of all rows. With 1 the value is the mean absolute error.
    inner : "point" or "bin"
        Compare the mean label with every confidence, or with the mean confidence (CAL of Caruana and Niculescu-Mizil,
        never larger).
    definition : "authors" or "review"
        "review" is equation (57) as printed: sums instead of means, and without the last window.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.calbin([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], window=3), 4)
    0.1778
    """
    one_of("inner", inner, ("point", "bin"))
    windows = sliding_windows(view, None if window is None else whole("window", window))
    if definition == "authors":
        return windows.mean_error(inner)
    if windows.number == 1:
        return undefined("(57) of the review has no window if one window contains every row: use a smaller window")
    return windows.size * windows.mean_error(inner, last=False)


@metric("ece_knn", renamed={"k": "n_neighbors"}, lenses=("binary", "top-label", "class-wise"), stacks="labels")
def nearest_neighbor_calibration_error(
    view: Predictions, *, n_neighbors: int | None = None, **common: Unpack[Common]
) -> float:
    r"""Mean gap between label and confidence in the neighbourhood of every prediction.

    .. math:: \frac{1}{N} \sum_i |\bar y_i - \bar c_i|

    The means are over row i and its k nearest other rows in confidence. All rows as near as the k-th neighbour are
    included, so tied rows need no order.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours k, counted by weight; by default the integer part of sqrt(N). From N - 1 on, the value is
        the gap of the whole data set.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.nearest_neighbor_calibration_error([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], n_neighbors=2), 4)
    0.1267
    """
    windows = nearest_windows(view, None if n_neighbors is None else whole("n_neighbors", n_neighbors))
    return as_number(inner(view.ties.w, np.abs(windows.gap)) / view.total)

"""The mean of the reliability map (row 60): how much the true probability varies at a given confidence."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import warn
from calibrary.data.lens import BINARY_LENSES, Lens, code, code_matrix
from calibrary.data.predictions import Predictions
from calibrary.maps.reliability import ReliabilityMap
from calibrary.metrics.machinery.declare import CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.literature import cited

#: With more rows than this, a sub-problem does not keep its sorted rows beside those of the others.
_MANY_ROWS = 100_000


@metric(
    "ls_ecoc_r",
    measures="fit",
    costly=True,
    family="curve",
    row=60,
    aliases=(
        "LS-ECOC-R", "LS-ECOC-Reliability", "reliability map",
        "least squares error correcting output codes reliability",
    ),
    range=(0.001, 0.999),
    perfect=None,
    better="higher",
    sign="higher is better: 1 means that the confidence determines the true probability; a smaller value "
        "means that inputs of equal confidence have different true probabilities",
    tail="less",
    lenses=(*BINARY_LENSES, "full"),
    default_lens="full",
    weights="rows",
    weights_note="clusters consist of rows; weights enter the calibration map and the final mean",
    order_free=False,
    order_note="rows of equal confidence are assigned to blocks and cells in their order",
    no_interval="copies of a row in a bootstrap sample fall into one cluster, which lowers the score, so the interval "
    "can exclude the estimate itself: compute the score on new rows to see how it varies",
    cells=CellFacts("sample"),
    cost="O(N log N)",
    equation="(80), (81)",
    references=cited("kull2014"),
    use="With features, use this score to detect grouping loss, which calibration errors cannot detect. The "
    "reliability map itself shows where grouping loss occurs.",
    avoid="Without features the score contains no information about grouping. Below a few thousand rows use a larger "
    "bandwidth.",
    corrections=(
        Correction(
            "type",
            "the metric has the type Kernel",
            "the metric is listed with the curves: it fits a map, which the kernel only smooths",
        ),
        Correction("range", "the range is [0, 1]", "the range is [0.001, 0.999], where section 5.5 clips the map"),
        Correction(
            "r = 1",
            "r = 1 means that the true probability equals c",
            "r = 1 means that the true probability equals yhat(c), the calibrated confidence",
        ),
        Correction(
            "clusters",
            "clusters consist of points of similar c and yhat(c)",
            "with such clusters (81) is always 1 in expectation, whatever the data: clusters must be similar in "
            "features",
        ),
        Correction(
            "what it is",
            "LS-ECOC-R is a metric with low bias and better results",
            "LS-ECOC-R combines probabilities, and the review praises that method; the value here, the mean of the "
            "reliability map, is this library's definition",
        ),
    ),
)  # fmt: skip
def reliability_map_score(
    view: Predictions,
    *,
    features: Any = None,
    clusters: Any = None,
    code: str | NDArray[Any] = "one-vs-rest",
    bandwidth: float = 0.01,
    map_bandwidth: float | None = None,
    cluster_size: int = 10,
    calibration: str = "map",
    **common: Unpack[Common],
) -> float:
    """Mean reliability: whether inputs of equal confidence have equal true probability.

    The mean of :class:`ReliabilityMap` over the rows of each binary sub-problem, then over the sub-problems. The review
    defines no single number; this one is our definition.

    Parameters
    ----------
    features : array-like of shape (N, d), optional
        Features of the inputs: clusters consist of inputs with similar features.
    clusters : array-like of shape (N,), optional
        Clusters already computed, in place of ``features``.
    code : "one-vs-rest", "pairwise" or matrix
        The sub-problems of several classes.
    bandwidth, map_bandwidth, cluster_size, calibration : see :class:`ReliabilityMap`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1] * 10, [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9] * 10
    >>> 0 < cal.reliability_map_score(y, p, bandwidth=0.3) < 1
    True
    """
    if features is None and clusters is None and calibration == "map":
        warn("without features or clusters the score contains no information about grouping: pass features=")
    if view.n * bandwidth < 20:
        warn(f"bandwidth={bandwidth:g} is narrow for {view.n} rows: raise it until N * bandwidth is 20 or more")
    means = []
    for part in (view,) if view.binary else view.through(_code_lens(code, view.k)).views:
        reliability = ReliabilityMap(bandwidth, map_bandwidth, cluster_size, calibration)
        reliability.fit(part, features=features, clusters=clusters)
        means.append(float(np.sum(part.ties.w * reliability(part.ties.c))) / part.total)
        if part is not view and part.n > _MANY_ROWS:
            part.forget(everything=True)
    return float(np.mean(means))


def _code_lens(given: str | NDArray[Any], k: int) -> Lens:
    return code(code_matrix(k, given) if isinstance(given, str) else given)

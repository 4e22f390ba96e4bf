"""The mean of the reliability map (row 60): how much the true probability varies at a given confidence."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import warn
from calibrary.data.lens import BINARY_LENSES, Lens, code, code_matrix
from calibrary.data.predictions import Predictions
from calibrary.maps.reliability import ReliabilityMap
from calibrary.metrics.machinery.declare import Common, metric

#: With more rows than this, a sub-problem does not keep its sorted rows beside those of the others.
_MANY_ROWS = 100_000


@metric("ls_ecoc_r", lenses=(*BINARY_LENSES, "full"), default_lens="full")
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
    if isinstance(code, str) or np.ndim(code) == 0:  # also of two classes, which need no code
        code_matrix(view.k, code)  # type: ignore[arg-type]  # a word, or what is refused
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

"""The reliability map (row 60): how far the true probability still varies at a given confidence, and its combiners.

Three things of Kull and Flach's: a map from confidence to reliability, a least-squares combination of binary
probabilities into class probabilities, and the combination weighted by reliability. The number of row 60 is the
mean of the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary._errors import one_of, undefined, warn
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.lens import BINARY_LENSES, Lens, code, code_matrix
from calibrary.data.predictions import Predictions, predictions
from calibrary.maps.local_linear import LIMIT, LocalLinear, smooth_line
from calibrary.metrics.declare import Common, Correction, metric

__all__ = ["ReliabilityMap", "ls_ecoc", "ls_ecoc_r", "reliability_map_score"]


class ReliabilityMap:
    """How reliable a confidence is: 1 - Var(P | c) / (yhat (1 - yhat)), P the true probability, yhat the calibrated c.

    Rows are put in clusters whose members share, as far as features tell, one true probability. In each the spread of
    the labels is compared with that of a binomial, and the result is smoothed over confidence.

    Parameters
    ----------
    bandwidth : float
        Of the local linear calibration map.
    map_bandwidth : float, optional
        Of the reliability map; ten times ``bandwidth`` by default.
    cluster_size : int
        Clusters have from this many rows to twice as many less one.
    calibration : "map" or "identity"
        Compare with yhat, or with the confidence itself: then miscalibration lowers the reliability too.

    Attributes
    ----------
    calibration_map_ : LocalLinear
    n_clusters_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary import ReliabilityMap
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 1))
    >>> c = 1 / (1 + np.exp(-x[:, 0]))
    >>> y = (rng.random(4000) < c).astype(int)
    >>> reliability = ReliabilityMap(bandwidth=0.05).fit(y, c, features=x)
    >>> bool(reliability(0.5) > 0.9)
    True
    """

    def __init__(
        self,
        bandwidth: float = 0.01,
        map_bandwidth: float | None = None,
        cluster_size: int = 10,
        calibration: str = "map",
    ) -> None:
        one_of("calibration", calibration, ("map", "identity"))
        if not bandwidth > 0.0 or (map_bandwidth is not None and not map_bandwidth > 0.0):
            raise ValueError(f"bandwidth={bandwidth!r} and map_bandwidth={map_bandwidth!r} must be positive")
        if cluster_size < 2:
            raise ValueError(f"cluster_size={cluster_size!r} must be at least 2")
        self.bandwidth = bandwidth
        self.map_bandwidth = 10.0 * bandwidth if map_bandwidth is None else map_bandwidth
        self.cluster_size = cluster_size
        self.calibration = calibration

    def fit(
        self, y: Any, c: Any = None, sample_weight: Any = None, *, features: Any = None, clusters: Any = None
    ) -> Self:
        """Learn from labels and confidences, with ``features`` (N, d) or ready ``clusters`` of the rows."""
        view = predictions(y, c, sample_weight=sample_weight)
        self.calibration_map_ = LocalLinear(self.bandwidth).fit(view)
        size, total_c, ones = self._clusters(view, features, clusters)
        several = size > 1
        self.n_clusters_ = int(several.sum())
        n, ones = size[several], ones[several]
        mean_c = total_c[several] / n
        q = self.calibration_map_(mean_c) if self.calibration == "map" else np.clip(mean_c, LIMIT, 1.0 - LIMIT)
        spread = (ones - n * q) ** 2 / (n * (n - 1.0) * q * (1.0 - q))
        self._x, place = np.unique(mean_c, return_inverse=True)
        self._w = np.bincount(place).astype(np.float64)
        self._r = np.bincount(place, 1.0 + 1.0 / (n - 1.0) - spread) / self._w if len(n) else np.empty(0)
        return self

    def predict(self, c: Any) -> Array:
        """Reliability at these confidences, from 0.001 to 0.999."""
        given = np.asarray(c, dtype=np.float64)
        if not self.n_clusters_:
            return np.full(given.shape, undefined("no cluster has two rows, so there is no reliability map"))
        flat = np.atleast_1d(given).ravel()
        return smooth_line(self._x, self._r, self._w, flat, self.map_bandwidth).reshape(given.shape)

    def __call__(self, c: Any) -> Array:
        return self.predict(c)

    def _clusters(self, view: Predictions, features: Any, clusters: Any) -> tuple[Array, Array, Array]:
        """Number of rows, sum of confidences and of labels in each cluster."""
        if clusters is not None:
            member: Indices = np.unique(view.align(clusters, "clusters"), return_inverse=True)[1].reshape(-1)
        elif features is not None:
            given = view.align(features, "features").astype(np.float64)
            member = _cells(np.column_stack([view.c, given.reshape(view.n, -1)]), self.cluster_size)
        else:
            return _blocks(view, max(view.n // self.cluster_size, 1))
        size: Array = np.bincount(member).astype(np.float64)
        return size, np.bincount(member, view.c).astype(float), np.bincount(member, view.y).astype(float)


def _blocks(view: Predictions, k: int) -> tuple[Array, Array, Array]:
    """Size, sum of confidences and of labels of k blocks of rows in order of confidence, none larger by two."""
    if len(view.ties.c) == view.n:
        c, y = view.sorted.c, view.sorted.y
    else:  # rows of equal confidence stay in their order
        order = np.argsort(view.c, kind="stable")
        c, y = view.c[order], view.y[order].astype(np.float64)
    size = np.full(k, view.n // k)
    size[: view.n % k] += 1
    start = np.cumsum(size) - size
    return size.astype(np.float64), np.add.reduceat(c, start), np.add.reduceat(y, start)


def _cells(x: Array, smallest: int) -> Indices:
    """Balanced k-d cells of ``smallest`` to twice as many rows: halved along the widest standardised coordinate."""
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise ValueError(f"features[{row}] holds a value that is not finite: fill or drop missing features")
    spread = x.std(axis=0)
    x = x / np.where(spread > 0.0, spread, 1.0)
    member = np.empty(len(x), dtype=np.intp)
    cells, n_done = [np.arange(len(x))], 0
    while cells:
        cell = cells.pop(0)
        if len(cell) < 2 * smallest:
            member[cell] = n_done
            n_done += 1
            continue
        widest = int(np.argmax(np.ptp(x[cell], axis=0)))
        ordered = cell[np.argsort(x[cell, widest], kind="stable")]
        cells += [ordered[: len(cell) // 2], ordered[len(cell) // 2 :]]
    return member


# -- combining binary probabilities -----------------------------------------------------------------


def ls_ecoc(p: Any, matrix: Any, weights: Any = None) -> Array:
    """Class probabilities that agree best, in least squares, with the probabilities of binary sub-problems.

    For each row, q on the simplex minimising :math:`\\sum_j w_j (p_j \\sum_{M_{kj} \\ne 0} q_k -
    \\sum_{M_{kj} = 1} q_k)^2`. Probabilities that are consistent are recovered exactly.

    Parameters
    ----------
    p : array-like of shape (N, L)
        Probability of the + side of each sub-problem.
    matrix : array-like of shape (K, L)
        Code matrix of +1, -1 and 0; see :func:`calibrary.code_matrix`.
    weights : array-like of shape (L,) or (N, L), optional

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.ls_ecoc([[0.2, 0.3, 0.5]], cal.code_matrix(3, "ovr")).round(6).tolist()
    [[0.2, 0.3, 0.5]]
    """
    from scipy.optimize import nnls

    given = np.atleast_2d(as_array(p, "p").astype(np.float64))
    m = as_array(matrix, "matrix")
    if m.ndim != 2 or m.shape[1] != given.shape[1]:
        raise ValueError(f"matrix has shape {m.shape} and p has {given.shape[1]} columns: one column per sub-problem")
    w = np.ones(given.shape) if weights is None else np.broadcast_to(as_array(weights, "weights"), given.shape)
    part, plus = (m != 0).T.astype(np.float64), (m == 1).T.astype(np.float64)
    result = np.empty((len(given), len(m)))
    right = np.zeros(given.shape[1] + 1)
    right[-1] = 1.0
    for i, row in enumerate(given):
        system = np.sqrt(w[i])[:, None] * (row[:, None] * part - plus)
        # A penalty on sum q = 1 only scales the solution of a homogeneous system, so rescaling it is exact.
        scale = np.sqrt(np.mean(system**2)) or 1.0
        q, _ = nnls(np.vstack([system / scale, np.ones(len(m))]), right)
        result[i] = q / q.sum()
    return result


def ls_ecoc_r(p: Any, matrix: Any, maps: Sequence[ReliabilityMap]) -> Array:
    """Class probabilities from binary ones, each calibrated and weighted by its reliability (LS-ECOC-R).

    The weight is the inverse of the estimated variance of the true probability,
    :math:`1 / ((1 - \\hat r) \\hat y (1 - \\hat y))`.

    Parameters
    ----------
    p : array-like of shape (N, L)
        Probability of the + side of each sub-problem.
    matrix : array-like of shape (K, L)
    maps : sequence of L fitted ReliabilityMap

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1] * 30, [0.3, 0.6] * 30
    >>> one = cal.ReliabilityMap(bandwidth=0.5).fit(y, c)
    >>> cal.ls_ecoc_r([[0.6, 0.4]], cal.code_matrix(2, "ovr"), [one, one]).shape
    (1, 2)
    """
    given = np.atleast_2d(as_array(p, "p").astype(np.float64))
    if len(maps) != given.shape[1]:
        raise ValueError(f"there are {len(maps)} maps and p has {given.shape[1]} columns: one map per sub-problem")
    columns = range(given.shape[1])
    calibrated = np.column_stack([maps[j].calibration_map_(given[:, j]) for j in columns])
    reliable = np.column_stack([maps[j](given[:, j]) for j in columns])
    return ls_ecoc(calibrated, matrix, 1.0 / ((1.0 - reliable) * calibrated * (1.0 - calibrated)))


# -- the number -------------------------------------------------------------------------------------


@metric(
    "ls_ecoc_r",
    costly=True,
    family="curve",
    row=60,
    aliases=("LS-ECOC-R",),
    range=(0.001, 0.999),
    perfect=None,
    better="higher",
    sign="higher is better: 1 means that the true probability is known once the confidence is; smaller means that "
    "cases of equal confidence differ",
    tail="less",
    lenses=(*BINARY_LENSES, "full"),
    default_lens="full",
    weights="rows",
    weights_note="clusters are made of rows; weights enter the calibration map and the final mean",
    order_free=False,
    order_note="rows of equal confidence are put in blocks and cells in their order",
    cost="O(N log N)",
    equation="(80), (81)",
    references=("Kull & Flach (2014), Reliability maps: a tool to enhance probability estimates and improve "
                "classification accuracy",),
    use="With features: see grouping loss, which calibration errors cannot. The reliability map itself says where.",
    avoid="Without features it carries no information about grouping. Below a few thousand rows raise the bandwidth.",
    corrections=(
        Correction(
            "r = 1",
            "the true probability equals c",
            "it equals yhat(c), the calibrated confidence",
        ),
        Correction(
            "clusters",
            "points of similar c and yhat(c)",
            "that makes (81) vacuous (its expectation is 1 whatever the data): clusters must be similar in features",
        ),
        Correction(
            "what it is",
            "a metric with low bias and better results",
            "LS-ECOC-R is a combiner of probabilities and the praise is of that; the number here, the mean of the "
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
    """Mean reliability: do cases of equal confidence really have equal probability?

    Mean of :class:`ReliabilityMap` over the rows of each binary sub-problem, then over the sub-problems. The review
    gives no number; this is ours.

    Parameters
    ----------
    features : array-like of shape (N, d), optional
        What distinguishes the cases: clusters are made of similar ones.
    clusters : array-like of shape (N,), optional
        Ready clusters, in place of ``features``.
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
        warn("without features or clusters the reliability carries no information about grouping")
    if view.n * bandwidth < 20:
        warn(f"bandwidth={bandwidth:g} is narrow for {view.n} rows: raise it until N * bandwidth is 20 or more")
    means = []
    for part in (view,) if view.binary else view.through(_code_lens(code, view.k)).views:
        reliability = ReliabilityMap(bandwidth, map_bandwidth, cluster_size, calibration)
        reliability.fit(part, features=features, clusters=clusters)
        means.append(float(np.sum(part.ties.w * reliability(part.ties.c))) / part.total)
    return float(np.mean(means))


def _code_lens(given: str | NDArray[Any], k: int) -> Lens:
    return code(code_matrix(k, given) if isinstance(given, str) else given)

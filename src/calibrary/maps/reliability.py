"""The reliability of a confidence: one minus the relative variance of the true probability there (row 60)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions, predictions
from calibrary.maps.loess import LIMIT, LocalLinear, smooth_line

__all__ = ["ReliabilityMap"]


class ReliabilityMap:
    """Whether rows of equal confidence have equal true probability: the reliability, from 0 to 1, at each confidence.

    The reliability is 1 - Var(P | c) / (yhat (1 - yhat)), P the true probability, yhat the calibrated c. Rows are put
    in clusters whose members have, as far as features show, one true probability. In each cluster the variance of the
    labels is compared with that of a binomial, and the result is smoothed over confidence.

    Parameters
    ----------
    bandwidth : float
        Bandwidth of the local linear calibration map.
    map_bandwidth : float, optional
        Bandwidth of the reliability map; ten times ``bandwidth`` by default.
    cluster_size : int
        Clusters have from this many rows to one less than twice as many.
    calibration : "map" or "identity"
        Compare with yhat, or with the confidence itself: miscalibration then lowers the reliability too.

    Attributes
    ----------
    calibration_map_ : LocalLinear
    n_clusters_ : int
    points_ : the clusters' mean confidences, their estimates (81), and how many there are of each

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

    @checks_options
    def __init__(
        self,
        bandwidth: float = 0.01,
        map_bandwidth: float | None = None,
        cluster_size: int = 10,
        calibration: str = "map",
    ) -> None:
        one_of("calibration", calibration, ("map", "identity"))
        if not bandwidth > 0.0 or (map_bandwidth is not None and not map_bandwidth > 0.0):
            raise RefusedError(f"bandwidth={bandwidth!r} and map_bandwidth={map_bandwidth!r} must be positive")
        if cluster_size < 2:
            raise RefusedError(f"cluster_size={cluster_size!r} must be at least 2")
        self.bandwidth = bandwidth
        self.map_bandwidth = 10.0 * bandwidth if map_bandwidth is None else map_bandwidth
        self.cluster_size = cluster_size
        self.calibration = calibration

    def fit(
        self, y: Any, c: Any = None, sample_weight: Any = None, *, features: Any = None, clusters: Any = None
    ) -> Self:
        """Learn from labels and confidences, with ``features`` (N, d) or ``clusters`` of the rows."""
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

    @property
    def points_(self) -> tuple[Array, Array, Array]:
        """The points that the map smooths: mean confidence, estimate (81) and number of clusters, by confidence."""
        return self._x, self._r, self._w

    def predict(self, c: Any) -> Array:
        """Reliability at these confidences, from 0.001 to 0.999."""
        given = np.asarray(c, dtype=np.float64)
        if not self.n_clusters_:
            why = "no cluster has two rows, so there is no reliability map: use a smaller cluster_size or more rows"
            return np.full(given.shape, undefined(why))
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
    """Size, sum of confidences and of labels of k blocks of rows in order of confidence, of nearly equal size."""
    if len(view.ties.c) == view.n:
        c, y = view.sorted.c, view.sorted.y
    else:  # rows of equal confidence stay in order
        order = np.argsort(view.c, kind="stable")
        c, y = view.c[order], view.y[order].astype(np.float64)
    size = np.full(k, view.n // k)
    size[: view.n % k] += 1
    start = np.cumsum(size) - size
    return size.astype(np.float64), np.add.reduceat(c, start), np.add.reduceat(y, start)


def _cells(x: Array, smallest: int) -> Indices:
    """Balanced k-d cells of ``smallest`` to twice as many rows: split along the widest standardised coordinate."""
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise RefusedError(f"features[{row}] contains a value that is not finite: fill or drop missing features")
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

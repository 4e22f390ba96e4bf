"""Where in the image, or at which box sizes, scores and precision disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedCallError, warn
from calibrary.base.moved import takes_old_keywords
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.grouping.edges import whole
from calibrary.metrics.detection.binned import DetectionCells, feature_names, grid_of
from calibrary.metrics.detection.front import Matching, read_matches
from calibrary.metrics.machinery.declare import Result


@dataclass(frozen=True)
class DetectionMap(Result):
    """The D-ECE over the image plane or the box sizes, as returned by :func:`d_ece_map`.

    Every array has one axis per feature, in their order: ``map[i, j]`` has cx (or w) in bin i and cy (or h) in bin j.
    ``map`` is NaN where there are no detections, and 0 where no score bin has ``min_count`` detections
    (``n_kept`` = 0); such a 0 is not an estimate. ``n`` and ``n_kept`` count detections (or sum their weights).
    """

    map: Array
    n: Array
    n_kept: Array
    mean_score: Array
    precision: Array
    kept_share: float
    features: tuple[str, ...]
    edges: tuple[Array, ...]


@takes_old_keywords
@checks_options
def d_ece_map(
    ground_truth: Any,
    results: Any = None,
    *,
    features: str | Sequence[str] = "location",
    n_bins: int | Sequence[int] | None = None,
    min_count: int = 8,
    closed: str = "left",
    bins: int | Sequence[int] | None = None,
    **data: Unpack[Matching],
) -> DetectionMap:
    r"""Where in the image, or at which box sizes, scores and precision disagree: the data of a heat map.

    .. math:: \text{map}_{cell} = \sum_{b\ \text{kept}} \frac{n_{b,cell}}{n_{cell}}
              |\text{precision}_{b,cell} - \text{mean score}_{b,cell}|

    Parameters
    ----------
    ground_truth, results, features, n_bins, min_count, closed
        As in :func:`detection_expected_calibration_error` (``bins`` is another name of ``n_bins``).
    **data
        Options of matching.

    Examples
    --------
    >>> import calibrary as cal
    >>> box, size = [[0, 0, 20, 20], [80, 80, 20, 20]], (100, 100)
    >>> cal.d_ece_map([1, 0], [0.9, 0.6], box=box, image_size=size, n_bins=2, min_count=1).map.round(2)
    array([[0.1, nan],
           [nan, 0.6]])
    """
    keywords: dict[str, Any] = dict(data)
    matches = read_matches(ground_truth, results, keywords)
    if keywords:
        raise RefusedCallError(f"d_ece_map has no option {next(iter(keywords))!r}")
    code, shape = grid_of(matches, features, n_bins if bins is None else bins, closed)
    inner = shape[1:]
    size = int(np.prod(inner))
    cells = DetectionCells.of(code, matches.weight, matches.score, matches.correct)
    kept = cells.rows >= whole("min_count", min_count)
    if len(matches) and not kept.any():
        warn(f"no bin has {min_count} detections, so the map is empty: use fewer bins or a smaller min_count")

    def per_cell(values: Array) -> Array:
        return np.bincount(cells.code % size, weights=values, minlength=size).astype(np.float64)

    n, n_kept = per_cell(cells.weight), per_cell(cells.weight * kept)
    planes = [
        np.divide(per_cell(v), n, out=np.full(size, np.nan), where=n > 0.0)
        for v in (cells.gap * kept, cells.score, cells.value)
    ]
    return DetectionMap(
        planes[0].reshape(inner),
        n.reshape(inner),
        n_kept.reshape(inner),
        planes[1].reshape(inner),
        planes[2].reshape(inner),
        float(n_kept.sum() / n.sum()) if len(matches) else float("nan"),
        feature_names(features),
        tuple(np.arange(b + 1) / b for b in inner),
    )

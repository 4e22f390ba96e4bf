"""The reliability of each confidence: how nearly rows of that confidence have one true probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.inference.draw.bands import on_rows, pointwise
from calibrary.maps.loess import smooth_line
from calibrary.maps.reliability import ReliabilityMap
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn

#: Groups of clusters, in order of confidence, whose mean is drawn as a point.
_POINTS = 12


@dataclass(frozen=True)
class ReliabilityMapData(FigureData):
    """The reliability map on a grid, and the data from which it is computed.

    Attributes
    ----------
    grid, reliability : the map, equation (80); low, high : its pointwise band over resampled clusters
    calibration : the calibration map it refers to
    confidence, estimate, count : mean confidence, mean of (81) and number of clusters of a dozen groups of clusters
    score : mean reliability over the rows (``ls_ecoc_r``)
    n_clusters : number of clusters with two rows or more
    """

    grid: Array
    reliability: Array
    low: Array
    high: Array
    calibration: Array
    confidence: Array
    estimate: Array
    count: Array
    score: float
    n_clusters: int
    n: float
    lens: str
    level: float


def reliability_map_data(
    y_true: Any,
    y_prob: Any,
    features: Any = None,
    *,
    clusters: Any = None,
    bandwidth: float = 0.05,
    map_bandwidth: float | None = 0.15,
    cluster_size: int = 10,
    calibration: str = "map",
    grid: int = 200,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> ReliabilityMapData:
    """The map of :class:`calibrary.ReliabilityMap`, with a band from resampling its clusters.

    Parameters
    ----------
    y_true, y_prob : as everywhere
    features, clusters : features that distinguish the rows, or given clusters of rows; one of them is needed
    bandwidth, map_bandwidth, cluster_size, calibration : of the map. The review's bandwidths, 0.01 and 0.1, need
        some thousand rows; the figure's are wider
    grid : int
        Points of the curve.
    n_resamples, confidence_level, rng : of the band
    """
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    if features is None and clusters is None:
        raise RefusedError("a reliability map distinguishes rows by their features: pass features= or clusters=")
    made = ReliabilityMap(bandwidth, map_bandwidth, cluster_size, calibration)
    made.fit(view, features=features, clusters=clusters)
    t = (np.arange(grid) + 0.5) / grid
    curve = made(t)
    x, r, w = made.points_
    low = high = curve
    if n_resamples and len(x):

        def lines(counts: Any) -> Any:
            return np.array([smooth_line(x[k > 0], r[k > 0], k[k > 0], t, made.map_bandwidth) for k in counts])

        low, high = pointwise(on_rows(lines, w, n_resamples, rng), confidence_level)
    groups = np.array_split(np.repeat(np.arange(len(x)), w.astype(int)), min(_POINTS, max(len(x), 1)))
    table = np.array([[x[g].mean(), r[g].mean(), len(g)] for g in groups if len(g)]).reshape(-1, 3)
    confidence, estimate, count = table.T
    ties = view.ties
    return ReliabilityMapData(
        t, curve, low, high, made.calibration_map_(t), confidence, estimate, count,
        float(np.sum(ties.w * made(ties.c)) / view.total), made.n_clusters_, view.total, name, confidence_level,
    )  # fmt: skip


@drawn(ReliabilityMapData, reliability_map_data, size=(5.6, 4.8))
def plot_reliability_map(ax: Any, look: style.Look, data: ReliabilityMapData) -> Said:
    """The reliability of each confidence: 1 if rows of that confidence share one probability, 0 if each is certain.

    Takes the arguments of :func:`reliability_map_data` or its result. Returns the matplotlib Axes.
    """
    ax.fill_between(
        data.grid, data.low, data.high, color=look.model, alpha=0.2, lw=0, label=f"{data.level:.0%} bootstrap band"
    )
    ax.plot(data.grid, data.reliability, color=look.model, lw=2.0, label="reliability")
    inside = (data.estimate >= -0.1) & (data.estimate <= 1.15)
    size = 10 + 50 * data.count / data.count.max(initial=1.0)
    ax.scatter(
        data.confidence[inside], data.estimate[inside], s=size[inside], color=look.ink, alpha=0.7, lw=0, zorder=3,
        label="mean of neighbouring clusters",
    )  # fmt: skip
    ax.axhline(1.0, color=look.gray, lw=1.0, ls="--", zorder=1)
    ax.set(xlim=(0, 1), ylim=(-0.1, 1.15), xlabel="Predicted probability", ylabel="Reliability")
    return Said(
        "Reliability map",
        f"mean reliability {data.score:.3f} · {data.n_clusters:,} clusters · {facts(data.n, data.lens)}",
        "1: all cases of that confidence have the same true probability. Below 1: cases to which the model gives the "
        "same confidence have different true probabilities, which the features distinguish (grouping loss).",
    )

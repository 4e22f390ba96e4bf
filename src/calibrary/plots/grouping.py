"""Rows of equal confidence whose true probabilities differ: the grouping diagram, and the map of reliability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, warn
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import EqualWidth
from calibrary.inference.draw.bands import on_rows, pointwise
from calibrary.maps.loess import smooth_line
from calibrary.maps.reliability import ReliabilityMap
from calibrary.metrics.segments.grouping_loss import leaf_of_each
from calibrary.numerics.draw import shuffled
from calibrary.numerics.laws import clopper_pearson
from calibrary.plots import style
from calibrary.plots.axis import axis_names
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn, said

#: Groups of clusters, in order of confidence, whose mean is drawn as a point.
_POINTS = 12


@dataclass(frozen=True)
class GroupingData(FigureData):
    """One entry per leaf of the trees, and the mean curve over bins, all on held-out rows.

    Attributes
    ----------
    bin, count, confidence, frequency, low, high : the leaf's bin, cases, means, and Clopper-Pearson bounds
    significant : whether the leaf's bounds exclude the frequency of its bin
    bin_confidence, bin_frequency : the mean curve
    """

    bin: Indices
    count: Array
    confidence: Array
    frequency: Array
    low: Array
    high: Array
    significant: NDArray[np.bool_]
    bin_confidence: Array
    bin_frequency: Array
    n: float
    n_bins: int
    lens: str
    level: float


def grouping_data(
    y_true: Any,
    y_prob: Any,
    features: Any = None,
    *,
    n_bins: int = 15,
    n_groups: int = 2,
    test_size: float = 0.5,
    confidence_level: float = 0.95,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> GroupingData:
    """In every confidence bin, split half of the rows by the features that matter most; test on the other half.

    Needs scikit-learn (``pip install calibrary[sklearn]``). A regression tree with leaves of at least n/n_groups cases
    is fitted to the training half of each bin, and its leaves are evaluated on the other half.
    """
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    if features is None:
        raise RefusedError("the grouping diagram splits cases by their features: pass features=, one row per case")
    x = np.asarray(view.align(features, "features"), dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    index = EqualWidth(n_bins, "right").fit(view.c).assign(view.c)
    training = np.zeros(view.n, dtype=bool)
    training[shuffled(view.n, rng, "halves")[: round((1 - test_size) * view.n)]] = True
    leaves: list[list[float]] = []
    curve: list[list[float]] = []
    for b in range(n_bins):
        learn, judge = np.flatnonzero((index == b) & training), np.flatnonzero((index == b) & ~training)
        if len(judge):
            leaf = leaf_of_each(x, view, learn, judge, n_groups)
            curve.append(_means(view, judge))
            leaves += [[b, *_means(view, judge[leaf == k])] for k in np.unique(leaf)]
    table = np.array(leaves).reshape(-1, 4)
    if len(table) == 0 or np.median(table[:, 1]) < 20:
        warn("half of the groups hold fewer than 20 held-out cases, too few to compare: use fewer bins (n_bins=)")
    return _judged(table, np.array(curve).reshape(-1, 3), view.total, n_bins, name, confidence_level)


def _means(view: Predictions, rows: Indices) -> list[float]:
    w = view.weight[rows]
    return [float(w.sum()), float(np.average(view.c[rows], weights=w)), float(np.average(view.y[rows], weights=w))]


def _judged(table: Array, curve: Array, n: float, n_bins: int, lens: str, level: float) -> GroupingData:
    b = table[:, 0].astype(np.intp)
    count, confidence, frequency = table[:, 1:].T
    low, high = clopper_pearson(frequency, count, level)
    bins, of_bin, members = np.unique(b, return_inverse=True, return_counts=True)
    everyone = curve[:, 2][of_bin] if len(bins) else np.empty(0)
    apart = (members[of_bin] > 1) & ((everyone < low) | (everyone > high))
    return GroupingData(
        b, count, confidence, frequency, low, high, apart, curve[:, 1], curve[:, 2], n, n_bins, lens, level
    )


# -- drawing ----------------------------------------------------------------------------------------


@drawn(GroupingData, grouping_data)
def plot_grouping(ax: Any, look: style.Look, data: GroupingData) -> Said:
    """Two groups of rows within each confidence bin, found from the features; a large distance means grouping loss.

    Takes the arguments of :func:`grouping_data` or its result. Returns the matplotlib Axes.
    """
    style.unit_square(ax, look, *axis_names(data.lens))
    ax.plot(
        data.bin_confidence, data.bin_frequency, color=look.ink, lw=1.2, marker=".", ms=5, label="all cases of the bin"
    )
    for b in np.unique(data.bin):
        at = data.bin == b
        middle = float(data.confidence[at].mean())
        ax.vlines(middle, data.frequency[at].min(), data.frequency[at].max(), color=look.gray, lw=1, zorder=2)
    error = np.maximum([data.frequency - data.low, data.high - data.frequency], 0)
    ax.errorbar(data.confidence, data.frequency, yerr=error, fmt="none", ecolor=look.light, elinewidth=2.4, zorder=1.8)
    size = 12 + 110 * data.count / data.count.max(initial=1.0)
    kinds = ((False, look.model, "o", "group"), (True, look.gap, "D", "group that differs significantly"))
    for flag, color, marker, text in kinds:
        at = data.significant == flag
        if at.any():
            ax.scatter(
                data.confidence[at], data.frequency[at], s=size[at], color=color, marker=marker, edgecolor=look.paper,
                lw=0.7, zorder=3, label=text,
            )  # fmt: skip
    return said("grouping", facts(f"{data.n:,.0f}, half of it held out", data.lens, f"{data.n_bins} bins"), data=data)


# -- the reliability of each confidence --------------------------------------------------------------


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
    style.band(ax, data.grid, data.low, data.high, look.model, 0.2, f"{data.level:.0%} bootstrap band")
    ax.plot(data.grid, data.reliability, color=look.model, lw=2.0, label="reliability")
    inside = (data.estimate >= -0.1) & (data.estimate <= 1.15)
    size = 10 + 50 * data.count / data.count.max(initial=1.0)
    ax.scatter(
        data.confidence[inside], data.estimate[inside], s=size[inside], color=look.ink, alpha=0.7, lw=0, zorder=3,
        label="mean of neighbouring clusters",
    )  # fmt: skip
    ax.axhline(1.0, color=look.gray, lw=1.0, ls="--", zorder=1)
    ax.set(xlim=(0, 1), ylim=(-0.1, 1.15), xlabel="Predicted probability", ylabel="Reliability")
    return said(
        "reliability-map",
        f"mean reliability {data.score:.3f} · {data.n_clusters:,} clusters · {facts(data.n, data.lens)}",
    )

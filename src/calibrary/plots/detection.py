"""Figures of detectors: heat maps of D-ECE, lines along one feature, reliability with overlap and missed objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.moved import RenamedFields, takes_old_keywords
from calibrary.base.numbers import counted, number, percent
from calibrary.data.checks import Array
from calibrary.diagnostics.detection import d_ece_map
from calibrary.grouping import EqualWidth
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import tooltips
from calibrary.plots.reliability import wilson
from calibrary.plots.simplex import color_bar

_AXES = {
    "cx": "Horizontal place in the image",
    "cy": "Vertical place in the image",
    "w": "Relative width",
    "h": "Relative height",
}
#: The level of the intervals of single bins.
_LEVEL = 0.95


@dataclass(frozen=True)
class DetectionReliabilityData(FigureData):
    """Score bins with detections, and the objects that were missed.

    Attributes
    ----------
    lower, upper, n, score : edges, detections and mean score of each bin
    precision, overlap : share of correct detections, and the mean IoU of these
    n_missed, n_detections : over all classes
    d_ece, la_ece : mean gap of the score to the precision, and to precision times overlap, over these bins
    egce : the same as d_ece with every missed object counted as a wrong detection of score 1
    """

    lower: Array
    upper: Array
    n: Array
    score: Array
    precision: Array
    overlap: Array
    n_missed: float
    n_detections: float
    d_ece: float
    la_ece: float
    egce: float
    n_bins: int
    iou_threshold: float
    matching: str


def detection_reliability(matches: Any, *, n_bins: int = 10) -> DetectionReliabilityData:
    """Precision and overlap by score, all classes together, and the number of missed objects."""
    index = EqualWidth(n_bins, "left").fit(matches.score).assign(matches.score)

    def per_bin(values: Any) -> Array:
        return np.bincount(index, matches.weights * values, minlength=n_bins).astype(np.float64)

    n, correct = per_bin(1.0), per_bin(matches.correct)
    some = np.maximum(n, np.finfo(float).tiny)
    score, precision = per_bin(matches.score) / some, correct / some
    overlap = per_bin(matches.correct * matches.iou) / np.maximum(correct, np.finfo(float).tiny)
    missed, total = float(matches.n_missed.sum()), float(n.sum())
    # missed objects join the bin of score 1, where they are wrong by 1
    gap = n * (precision - score)
    with_missed = np.abs(gap - missed * (np.arange(n_bins) == n_bins - 1)).sum()
    used = n > 0
    edges = np.arange(n_bins + 1) / n_bins
    sums = (np.abs(gap).sum(), total), ((n * np.abs(precision * overlap - score)).sum(), total)
    errors = (float(x / of) if of else float("nan") for x, of in (*sums, (with_missed, total + missed)))
    bins = (values[used] for values in (edges[:-1], edges[1:], n, score, precision, overlap))
    iou = float("nan") if matches.iou_threshold is None else float(matches.iou_threshold)
    found: list[Any] = [*bins, missed, total, *errors, n_bins, iou, matches.matching or "given"]
    return DetectionReliabilityData(*found)


@drawn(DetectionReliabilityData, detection_reliability, size=(5.4, 6.0))
def plot_detection_reliability(ax: Any, look: style.Look, data: DetectionReliabilityData) -> Said:
    """Precision and precision times overlap by score, with missed objects as a separate bar at confidence 1.

    Takes what :func:`calibrary.match_detections` returns, or the result of :func:`detection_reliability`. Returns the
    matplotlib Axes.
    """
    style.unit_square(ax, look, "Confidence", "Share")
    width = data.upper - data.lower
    ax.bar(
        data.lower, data.precision * data.overlap, width, align="edge", color=look.model, alpha=0.5,
        edgecolor=look.paper, lw=0.8, label="precision × overlap",
    )  # fmt: skip
    ax.bar(
        data.lower + 0.3 * width, data.n / max(data.n_detections, 1), 0.4 * width, align="edge", color=look.gray,
        alpha=0.55, lw=0, label="share of detections",
    )  # fmt: skip
    ax.plot(data.score, data.precision, "o-", color=look.model, mec=look.paper, lw=1.5, ms=6.5, label="precision")
    tooltips(ax, data.score, data.precision, lambda i: _words(data, i), series="precision")
    missed = data.n_missed / max(data.n_detections + data.n_missed, 1)
    ax.bar(1.06, missed, 0.07, color=look.gap, hatch="////", edgecolor=look.paper, lw=0, label="missed objects")
    share = f"{counted(data.n_missed, 'missed object')}, {percent(missed)} of all boxes"
    tooltips(ax, [1.06], [missed], lambda _: share, series="missed objects")
    ax.set_xlim(-0.02, 1.12)
    at = f" at IoU {data.iou_threshold:g}" if np.isfinite(data.iou_threshold) else ""
    return said(
        "detection-reliability",
        f"D-ECE {data.d_ece:.3f} · LaECE {data.la_ece:.3f} · EGCE {data.egce:.3f} · classes together · "
        f"{data.n_bins} bins · {data.n_detections:,.0f} detections · {data.n_missed:,.0f} missed objects · "
        f"matching {data.matching}{at}",
    )


def _words(data: DetectionReliabilityData, i: int) -> str:
    """The tooltip of a bin."""
    low, high = wilson(data.precision[i : i + 1], data.n[i : i + 1], _LEVEL)
    overlap = data.precision[i] * data.overlap[i]  # NaN where detections were matched elsewhere, without overlaps
    return (
        f"{data.lower[i]:.3g} to {data.upper[i]:.3g}: {counted(data.n[i], 'detection')}\n"
        f"confidence {percent(data.score[i])}, precision {percent(data.precision[i])}\n"
        f"{percent(_LEVEL)} interval {percent(low[0])} to {percent(high[0])}"
        + ("" if np.isnan(overlap) else f"\nprecision × overlap {percent(overlap)}")
    )


# -- along one or two features ----------------------------------------------------------------------


@dataclass(frozen=True)
class MapData(RenamedFields, FigureData):
    """D-ECE by cell of one or two features, from :func:`calibrary.d_ece_map`; the CSV has a row per cell.

    Attributes
    ----------
    features : names of the features; arrays have one axis for each
    edges : edges of the cells, one array per feature
    map, precision, mean_score : NaN without detections; ``map`` also where ``min_count`` is nowhere reached
    n, n_kept : detections, and those in score bins that reach ``min_count``
    """

    features: tuple[str, ...]
    edges: tuple[Array, ...]
    map: Array
    precision: Array
    mean_score: Array
    n: Array
    n_kept: Array
    kept_share: float
    min_count: int

    def to_csv(self) -> str:
        """One row per cell: the lower edge of every feature, then the numbers."""
        at = np.indices(self.n.shape).reshape(self.n.ndim, -1)
        columns = {f"{name}_from": self.edges[i][at[i]] for i, name in enumerate(self.features[-self.n.ndim :])}
        names = ("map", "precision", "mean_score", "n", "n_kept")
        columns |= {name: getattr(self, name).ravel() for name in names}
        rows = zip(*(c.tolist() for c in columns.values()), strict=True)
        return "\r\n".join([",".join(columns), *(",".join(f"{v:.12g}" for v in row) for row in rows), ""])


#: Numbers of bins of every feature to try after the metric's own, until most detections are in bins with enough.
_COARSER = (10, 8, 6, 5, 4, 3, 2)


@takes_old_keywords
def d_ece_map_data(matches: Any, *, features: Any = "location", n_bins: Any = None, min_count: int = 8) -> MapData:
    """D-ECE, precision and mean score over the image plane ("location"), box sizes ("shape") or one feature.

    ``n_bins`` is by default the metric's own number, or the largest number of bins with which most detections are in
    bins of at least ``min_count``.
    """
    with collected_warnings():  # the figure hatches such bins and says their share
        found = d_ece_map(matches, features=features, n_bins=n_bins, min_count=min_count)
        for coarser in _COARSER if n_bins is None else ():
            if found.kept_share >= 0.5:
                break
            found = d_ece_map(matches, features=features, n_bins=coarser, min_count=min_count)
    known = np.where(found.n_kept > 0, found.map, np.nan)
    return MapData(**vars(found) | {"map": known}, min_count=min_count)


@takes_old_keywords
@drawn(MapData, d_ece_map_data, size=lambda data, **_: (5.6, 5.0) if data.n.ndim == 1 else (5.8, 5.8))
def plot_d_ece_map(ax: Any, look: style.Look, data: MapData, *, counts: bool = False) -> Said:
    """Heat map of D-ECE over the image plane (y downwards) or over box sizes; lines along one feature.

    Cells without detections are blank, cells with too few are hatched; nothing is interpolated. ``counts`` writes the
    number of detections in every cell. Takes matches or the result of :func:`d_ece_map_data`. Returns the matplotlib
    Axes.
    """
    from matplotlib.patches import Rectangle

    if data.n.ndim == 1:
        return _along(ax, look, data)
    if data.n.ndim != 2:
        raise RefusedError(f"a heat map shows one or two features, not {data.n.ndim}: pass features='location'")
    x, y = data.edges
    shown = np.ma.masked_invalid(data.map).T
    mesh = ax.pcolormesh(x, y, shown, cmap="cividis", vmin=0, vmax=float(shown.max() or 1.0) if shown.count() else 1.0)
    hatched: dict[str, Any] = {"fill": False, "hatch": "////", "edgecolor": look.light, "lw": 0}
    for i, j in np.argwhere((data.n > 0) & (data.n_kept == 0)):
        ax.add_patch(Rectangle((x[i], y[j]), x[i + 1] - x[i], y[j + 1] - y[j], **hatched))
    if counts:
        _write_counts(ax, data)
    cells = np.argwhere(data.n > 0)
    middle = [(edges[:-1] + edges[1:]) / 2 for edges in data.edges]
    tooltips(ax, middle[0][cells[:, 0]], middle[1][cells[:, 1]], lambda k: _cell_words(data, tuple(cells[k])))
    reach = 1.0 if data.features[-1] == "cy" else _reach(data)
    ax.set(xlim=(0, reach), ylim=(0, reach))
    across, up = (_AXES.get(name, name) for name in data.features[-2:])
    ax.set(xlabel=across, ylabel=up, aspect="equal")
    if data.features[-1] == "cy":
        ax.invert_yaxis()
    color_bar(ax.figure.colorbar(mesh, ax=ax, shrink=0.75, pad=0.02), look, "D-ECE")
    return said(
        "d-ece-map", f"{data.n.sum():,.0f} detections · {data.kept_share:.0%} in bins with at least {data.min_count}"
    )


def _reach(data: MapData) -> float:
    """The largest edge of a cell with detections: boxes as large as the image are rare."""
    cells = np.argwhere(data.n > 0)
    ends = [edges[cells[:, i].max() + 1] for i, edges in enumerate(data.edges)] if len(cells) else [1.0]
    return float(max(ends))


def _cell_words(data: MapData, at: tuple[int, ...]) -> str:
    """The tooltip of a cell."""
    found = "too few detections to say" if np.isnan(data.map[at]) else f"D-ECE {number(data.map[at])}"
    return (
        f"{counted(data.n[at], 'detection')}: {found}\nmean confidence {percent(data.mean_score[at])}, "
        f"precision {percent(data.precision[at])}"
    )


def _write_counts(ax: Any, data: MapData) -> None:
    from matplotlib.patheffects import withStroke

    x, y = data.edges
    outline = [withStroke(linewidth=2, foreground="#222222")]
    for i, j in np.argwhere(data.n > 0):
        ax.text(
            (x[i] + x[i + 1]) / 2, (y[j] + y[j + 1]) / 2, f"{data.n[i, j]:g}", ha="center", va="center",
            fontsize=8, color="white", path_effects=outline,
        )  # fmt: skip


def _along(ax: Any, look: style.Look, data: MapData) -> Said:
    edges = data.edges[0]
    center = (edges[:-1] + edges[1:]) / 2
    used, kept = data.n > 0, data.n_kept > 0
    ax.bar(center[kept], data.map[kept], width=0.8 * np.diff(edges)[kept], color=look.gap, alpha=0.55, label="D-ECE")
    ax.plot(center[used], data.precision[used], "o-", color=look.model, ms=5.5, lw=1.6, label="precision")
    ax.plot(center[used], data.mean_score[used], "s--", color=look.second, ms=5.5, lw=1.6, label="mean score")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="Share")
    ax.set_xlabel(_AXES.get(data.features[-1], data.features[-1]))
    return said(
        "d-ece-line", f"{data.n.sum():,.0f} detections · {data.kept_share:.0%} in bins with at least {data.min_count}"
    )

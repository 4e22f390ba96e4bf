"""Figures of detectors: heat maps of D-ECE, lines along one feature, reliability with overlap and missed objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.grouping import EqualWidth
from calibrary.metrics.detection import DetectionMap, d_ece_map
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.predictions import Array

_AXES = {
    "cx": "horizontal place in the image",
    "cy": "vertical place in the image",
    "w": "relative width",
    "h": "relative height",
}


@dataclass(frozen=True)
class DetectionReliabilityData(FigureData):
    """Score bins: edges, detections, mean score, precision, mean overlap of the correct ones; missed objects."""

    lower: Array
    upper: Array
    n: Array
    score: Array
    precision: Array
    overlap: Array
    n_missed: float
    n_detections: float
    iou_threshold: float
    matching: str


def detection_reliability(matches: Any, *, n_bins: int = 10) -> DetectionReliabilityData:
    """Precision and overlap by score, and how many objects no detection found."""
    grouping = EqualWidth(n_bins, "left")
    index = grouping.fit(matches.score).assign(matches.score)

    def per_bin(values: Array) -> Array:
        return np.bincount(index, matches.weights * values, minlength=n_bins).astype(np.float64)

    n = per_bin(np.ones(len(matches)))
    correct = per_bin(matches.correct.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        score, precision = per_bin(matches.score) / n, correct / n
        overlap = np.where(correct > 0, per_bin(matches.correct * matches.iou) / correct, 0.0)
    used = n > 0
    edges = np.arange(n_bins + 1) / n_bins
    return DetectionReliabilityData(
        edges[:-1][used],
        edges[1:][used],
        n[used],
        score[used],
        precision[used],
        overlap[used],
        float(matches.n_missed.sum()),
        float(n.sum()),
        float("nan") if matches.iou_threshold is None else float(matches.iou_threshold),
        matches.matching or "given",
    )


def plot_detection_reliability(
    matches: Any, *, ax: Any = None, n_bins: int = 10, caption: bool = True, theme: str = "light"
) -> Any:
    """Precision and precision times overlap by score; missed objects as a bar of their own at confidence 1."""
    data = matches if isinstance(matches, DetectionReliabilityData) else detection_reliability(matches, n_bins=n_bins)
    ax = style.new_axes(ax, theme=theme)
    style.unit_square(ax, "Detection score", "Share of detections")
    width = data.upper - data.lower
    ax.bar(
        data.lower,
        data.n / data.n_detections,
        width,
        align="edge",
        color=style.LIGHT,
        alpha=0.6,
        lw=0,
        label="share of detections",
    )
    ax.bar(
        data.lower,
        data.precision * data.overlap,
        width,
        align="edge",
        color=style.MODEL,
        alpha=0.55,
        edgecolor="white",
        lw=0.6,
        label="precision × overlap",
    )
    ax.plot(data.score, data.precision, "o-", color=style.MODEL, lw=1.4, ms=5, label="precision")
    missed = data.n_missed / max(data.n_detections + data.n_missed, 1)
    ax.bar(1.06, missed, 0.06, color=style.GAP, hatch="///", edgecolor="white", lw=0, label="missed objects")
    ax.set_xlim(-0.02, 1.11)
    style.title(ax, "Reliability of detections")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(
            ax,
            f"{data.n_detections:,.0f} detections, {data.n_missed:,.0f} missed objects, matching {data.matching}"
            + (f" at IoU {data.iou_threshold:g}" if np.isfinite(data.iou_threshold) else "")
            + ". A calibrated detector's precision follows the diagonal; the red bar is the share of boxes that should "
            "have been there.",
        )
    return ax


@dataclass(frozen=True)
class MapData(FigureData):
    """D-ECE per cell of two features, with counts; what :func:`calibrary.d_ece_map` found."""

    map: Array
    n: Array
    n_kept: Array
    features: tuple[str, ...]
    kept_share: float


def plot_d_ece_map(
    matches: Any,
    *,
    ax: Any = None,
    features: Any = "location",
    n_bins: Any = None,
    min_samples: int = 8,
    counts: bool = False,
    caption: bool = True,
    theme: str = "light",
) -> Any:
    """Heat map of D-ECE over the image plane (y downwards) or over box sizes; a line for one feature.

    Cells without detections stay blank, cells with too few are hatched; nothing is interpolated.
    """
    found = (
        matches
        if isinstance(matches, DetectionMap)
        else d_ece_map(matches, features=features, n_bins=n_bins, min_samples=min_samples)
    )
    if found.map.ndim == 1:
        return _along(found, ax, caption, theme)
    if found.map.ndim != 2:
        raise ValueError(f"a heat map shows one or two features, not {len(found.features)}: pass features='location'")
    ax = style.new_axes(ax, size=(5.6, 5.0), theme=theme)
    x, y = found.edges
    shown = np.ma.masked_invalid(np.where(found.n_kept > 0, found.map, np.nan)).T
    mesh = ax.pcolormesh(x, y, shown, cmap="cividis", vmin=0, vmax=max(float(shown.max() or 0.0), 1e-9))
    few = (found.n > 0) & (found.n_kept == 0)
    for i, j in np.argwhere(few):
        ax.add_patch(_hatched(x[i], y[j], x[i + 1] - x[i], y[j + 1] - y[j]))
    if counts:
        for i, j in np.argwhere(found.n > 0):
            ax.text(
                (x[i] + x[i + 1]) / 2,
                (y[j] + y[j + 1]) / 2,
                f"{found.n[i, j]:g}",
                ha="center",
                va="center",
                fontsize=7,
                color="white",
                path_effects=_outline(),
            )
    ax.set_xlabel(_AXES.get(found.features[-2], found.features[-2]))
    ax.set_ylabel(_AXES.get(found.features[-1], found.features[-1]))
    ax.set_aspect("equal")
    if found.features[-1] == "cy":
        ax.invert_yaxis()
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.8)
    bar.outline.set_visible(False)
    bar.set_label("D-ECE", color=ax.xaxis.label.get_color())
    bar.ax.tick_params(labelsize=8, colors=ax.xaxis.label.get_color())
    style.title(ax, "Where scores and precision part")
    if caption:
        style.caption(
            ax,
            f"{found.n.sum():,.0f} detections, {found.kept_share:.0%} in bins with enough of them. Hatched: too "
            "few detections to say; blank: none.",
        )
    return ax


def _hatched(x: float, y: float, w: float, h: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), w, h, fill=False, hatch="////", edgecolor=style.LIGHT, lw=0)


def _outline() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2, foreground="#333333")]


def _along(found: DetectionMap, ax: Any, caption: bool, theme: str) -> Any:
    ax = style.new_axes(ax, size=(5.6, 4.2), theme=theme)
    centre = (found.edges[0][:-1] + found.edges[0][1:]) / 2
    used = found.n > 0
    ax.plot(centre[used], found.precision[used], "o-", color=style.MODEL, ms=5, label="precision")
    ax.plot(centre[used], found.mean_score[used], "s--", color=style.COLOURS[4], ms=5, label="mean score")
    kept = used & (found.n_kept > 0)
    ax.bar(centre[kept], found.map[kept], width=0.8 / len(centre), color=style.GAP, alpha=0.5, label="D-ECE")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(_AXES.get(found.features[-1], found.features[-1]))
    style.title(ax, "Scores and precision along one feature")
    style.legend(ax, loc="best")
    if caption:
        style.caption(
            ax, f"{found.n.sum():,.0f} detections. A gap between the lines is miscalibration at that place or size."
        )
    return ax


def detection_overview(matches: Any, *, theme: str = "light") -> Any:
    """Reliability, heat map of place (or the line of scores without image sizes), smooth and cumulative figures."""
    from calibrary.plots.cumulative import plot_cumulative
    from calibrary.plots.smooth import plot_smooth_reliability

    figure = style.new_figure((11, 10.4), theme=theme)
    axes = figure.subplots(2, 2)
    plot_detection_reliability(matches, ax=axes[0, 0], theme=theme)
    try:
        plot_d_ece_map(matches, ax=axes[0, 1], theme=theme)
    except ValueError as missing_sizes:
        style.new_axes(axes[0, 1], theme=theme).axis("off")
        axes[0, 1].text(
            0.5,
            0.5,
            f"no map of places:\n{missing_sizes}",
            ha="center",
            va="center",
            fontsize=8,
            wrap=True,
            color=style.GREY,
        )
    p = matches.as_predictions()
    plot_smooth_reliability(p, ax=axes[1, 0], theme=theme)
    plot_cumulative(p, ax=axes[1, 1], theme=theme)
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.1, hspace=0.02, wspace=0.05)
    return figure


DRAWN: dict[str, Callable[..., Any]] = {
    "overview": detection_overview,
    "detection": plot_detection_reliability,
    "d-ece-map": plot_d_ece_map,
    "d-ece-shape": lambda matches, **o: plot_d_ece_map(matches, features="shape", **o),
}

"""The figures of a study: values by chance, power, ranking, correlations of metrics, and several classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.plots import style
from calibrary.study.panel import full_name
from calibrary.study.result import StudyResult, clusters, rows_of

#: Well-known or representative metrics; the others are grey.
_SHOWN = ("ece", "ece, 100 width", "mce", "smece", "ici", "fott_beta", "lkce", "emax")
_NAMED = (
    "ece", "ece, 5 width", "ece, 100 width", "mce", "smece", "ece_sweep", "ici", "fott_beta", "atb", "emax", "skce_uq",
    "spiegelhalter", "bs", "nll", "hl", "ecce_r", "sce", "variational_error", "eo", "cis.slope", "mmce", "ece_knn",
    "nses", "sbct", "wcr", "mdca", "ecd",
)  # fmt: skip
#: Metrics of several classes that show the dependence on K.
_OF_CLASSES = ("spiegelhalter", "ecd", "skce_uq", "ece", "smece", "mdca", "cece")


def null_figure(found: StudyResult, theme: str = "light") -> Any:
    """The mean of metrics on calibrated models, by number of rows."""
    ax, colors = _by_rows(found, theme, "null", 0.02)
    laws = {world["law"] for world in found.found["worlds"].values()}
    ax.set(xscale="log", yscale="log", xlabel="Number of rows N", ylabel="Mean value for calibrated models")
    style.finish(
        ax, colors, "Metrics are above 0 for a calibrated model",
        f"mean over {len(laws)} distributions of the confidence",
        "The dashed line is 0.02. A metric above it at your N shows an error of more than 0.02 by chance alone. A line "
        "that becomes flat stays above 0 for any number of rows.",
        legend="above",
    )  # fmt: skip
    return ax.figure


def _by_rows(found: StudyResult, theme: str, column: str, bar: float) -> tuple[Any, style.Look]:
    """Axes with the numbers of a column of the metrics, by the number of rows, and a dashed line."""
    ax, colors = style.new_axes(None, theme, (6.4, 5.6))
    for i, name in enumerate(name for name in _SHOWN if name in found.names):
        known = [(n, row[column]) for n, row in rows_of(found, name) if row.get(column) is not None]
        if rows := [(n, x) for n, x in known if x > 0.0 or column != "null"]:  # which has a logarithmic axis
            line = {"marker": style.MARKERS[i % 8], "ms": 4, "label": full_name(name)}
            ax.plot(*zip(*rows, strict=True), **line, **colors.nth(i))
    ax.axhline(bar, color=colors.gray, lw=0.8, ls=style.DASHED)
    return ax, colors


def power_figure(found: StudyResult, theme: str = "light", n: int = 1000) -> Any:
    """Power against the share of pairs in the right order: all metrics, and an enlarged upper right corner."""
    rows = found.found["sizes"].get(str(n), {})
    both = {name: (row.get("across"), row.get("power")) for name, row in rows.items()}
    points = {name: at for name, at in both.items() if None not in at}
    named = {name: at for name, at in points.items() if name in _NAMED}
    if not named:
        return None
    colors = style.look(theme)
    figure = style.new_figure((11.0, 6.0), theme)
    whole, corner = figure.subplots(1, 2)
    low = tuple(np.quantile([at[i] for at in named.values()], 0.35) for i in (0, 1))
    near = {name: at for name, at in named.items() if at[0] >= low[0] and at[1] >= low[1]}
    for ax in (whole, corner):
        style.quiet(ax, colors)
        ax.scatter(*zip(*points.values(), strict=True), s=12, color=colors.light)
        ax.scatter(*zip(*named.values(), strict=True), s=22, color=colors.model)
        ax.set(
            xlabel="Share of pairs of models in the right order, across distributions",
            ylabel="Share of errors detected (level 5%)",
        )
    x, y = ([at[i] for at in near.values()] for i in (0, 1))
    if near:
        corner.set(xlim=(min(x) - 0.012, max(x) + 0.45 * (max(x) - min(x))), ylim=(min(y) - 0.012, max(y) + 0.012))
    for ax, shown in ((whole, {name: at for name, at in named.items() if name not in near}), (corner, near)):
        _labels(ax, colors, shown)
    whole.axvline(0.5, color=colors.gray, lw=0.8, ls=style.DASHED)
    style.finish(
        whole, colors, f"Errors detected, and the ranking of models (N = {n:,})",
        f"{len(found.found['worlds'])} simulated settings · {len(points)} metrics and variants",
        "Metrics farther right rank models better; metrics farther up detect more errors. The dashed line is the share "
        "of a random order. Do not rank models by metrics near it.",
    )  # fmt: skip
    style.finish(corner, colors, "The upper right corner, enlarged", "grey: other metrics",
                 "Differences of less than two percentage points are within the error of the study.")  # fmt: skip
    style.level([whole, corner])
    return figure


#: The width of a letter and the height of a line of a label, as parts of the axes.
_LETTER, _LINE = 0.0118, 0.03


def _labels(ax: Any, colors: style.Look, points: dict[str, tuple[float, float]]) -> None:
    """Write names next to their points, moved up or down until they overlap neither each other nor a point."""
    to_axes = ax.transLimits.transform
    taken = [(x - 0.01, x + 0.01, y - 0.012, y + 0.012) for x, y in (to_axes(at) for at in points.values())]
    shifts = [0.0] + [side * 0.5 * _LINE * k for k in range(1, 60) for side in (1, -1)]
    for name, at in sorted(points.items(), key=lambda item: -item[1][1]):
        x, y = to_axes(at)
        text = full_name(name)
        width = _LETTER * len(text)
        places = [(start, y + shift) for shift in shifts for start in (x + 0.02, x - 0.02 - width)]
        boxes = [(start, start + width, middle - 0.5 * _LINE, middle + 0.5 * _LINE) for start, middle in places]
        inside = [box for box in boxes if box[0] > 0.0 and box[1] < 1.05]
        free = next((box for box in inside if not any(_overlap(box, other) for other in taken)), boxes[0])
        taken.append(free)
        left = free[0] < x
        ax.annotate(
            text, at, (free[1] if left else free[0], (free[2] + free[3]) / 2), textcoords="axes fraction", fontsize=6.5,
            color=colors.ink, va="center", ha="right" if left else "left",
            arrowprops={"arrowstyle": "-", "color": colors.gray, "lw": 0.4, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def cluster_figure(found: StudyResult, theme: str = "light") -> Any:
    """The rank correlations of metrics over the simulated settings."""
    correlation = found.found["correlation"]
    if not correlation:
        return None
    groups = clusters(correlation)
    order = [name for group in groups for name in group]
    places = {name: i for i, name in enumerate(correlation["names"])}
    rho = np.array(correlation["rho"], dtype=np.float64)[np.ix_(*[[places[n] for n in order]] * 2)]
    ax, colors = style.new_axes(None, theme, (12.5, 11.6))
    image = ax.imshow(rho, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(len(order)), order, rotation=90, fontsize=5.5)
    ax.set_yticks(range(len(order)), [full_name(name) for name in order], fontsize=5.5)
    start = 0
    for group in groups:
        if len(group) > 1:
            ax.add_patch(_square(start, len(group), colors.ink))
        start += len(group)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.4)
    bar.ax.tick_params(labelsize=8, labelcolor=colors.ink)
    many = sum(len(group) > 1 for group in groups)
    style.finish(
        ax, colors, "Metrics that agree",
        f"rank correlation over {len(found.found['worlds'])} simulated settings at N = {correlation['n']:,} · "
        f"{len(order)} metrics and variants",
        f"The {many} frames contain metrics whose mean rank correlation is 0.9 or more: metrics of one frame rank "
        "models nearly the same. Rows have names and columns ids, in the same order.",
        drop=86.0,
    )  # fmt: skip
    return ax.figure


def _square(start: int, size: int, color: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((start - 0.5, start - 0.5), size, size, fill=False, edgecolor=color, lw=1.0)


def bias_figure(found: StudyResult, theme: str = "light") -> Any:
    """Bias divided by the standard deviation, by number of rows."""
    ax, colors = _by_rows(found, theme, "bias_over_sd", 1.0)
    ax.set(xscale="log", xlabel="Number of rows N", ylabel="|bias| / standard deviation", ylim=(0, None))
    style.finish(
        ax, colors, "Bias over standard deviation",
        "settings with a true error of 0.03 to 0.08; bias from the metric's own limit",
        "Above the dashed line the bias of a metric is larger than its standard deviation: an interval around the "
        "estimate covers the true value too seldom. Compare such a metric with its value for a calibrated model.",
        legend="above",
    )  # fmt: skip
    return ax.figure


def class_figure(found: StudyResult, theme: str = "light", n: int = 1000) -> Any:
    """Several classes: the class-wise error and the power, by K."""
    several = found.found["classes"]
    rows = several.get("sizes", {}).get(str(n), {})
    if not rows:
        return None
    figure = style.new_figure((10.5, 5.4), theme)
    left, right = figure.subplots(1, 2)
    colors = style.look(theme)
    for ax in (left, right):
        style.quiet(ax, colors)
        ax.set(xscale="log", xlabel="Number of classes K")
    ks = sorted({int(law.split()[0]) for by in rows.values() for law in by if "unequal" not in law})
    for i, family in enumerate(("calibrated", "over-confident")):
        for lens, name in (("class-wise", "ece, class-wise"), ("top-label", "ece")):
            values = [rows.get(name, {}).get(f"{k} classes", {}).get(family) for k in ks]
            line = {"color": colors.colors[i], "ls": "-" if lens == "top-label" else "--", "marker": "o"}
            _by_classes(left, ks, values, f"ECE {lens}, {family}", line)
    for lens, ls in (("top-label", "-"), ("class-wise", "--")):
        truth = [several["worlds"].get(f"{k} classes, over-confident 1.3", {}).get(lens) for k in ks]
        label = f"true error {lens}, over-confident"
        left.plot(ks, truth, color=colors.gray, lw=1, ls=ls, marker="x", ms=4, label=label)
    left.set(yscale="log", ylabel="Expected calibration error")
    for i, name in enumerate(name for name in _OF_CLASSES if name in rows):
        values = [rows[name].get(f"{k} classes", {}).get("power", {}).get("over-confident") for k in ks]
        _by_classes(right, ks, values, full_name(name), {"marker": style.MARKERS[i % 8], **colors.nth(i)})
    right.set(ylabel="Share of errors detected", ylim=(-0.03, 1.03))
    for ax in (left, right):
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.minorticks_off()
    style.finish(left, colors, "Mean ECE by number of classes", f"N = {n:,}, temperature 1.3",
                 "Where the lines of calibrated and over-confident models meet, the value is mostly bias.",
                 legend="above")  # fmt: skip
    style.finish(right, colors, "Over-confidence detected", f"N = {n:,}, temperature 1.3, level 5%",
                 "Each metric uses its own lens: the predicted class, each class, or all of them.",
                 legend="above")  # fmt: skip
    style.level([left, right])
    return figure


def _by_classes(ax: Any, ks: list[int], values: list[Any], label: str, line: dict[str, Any]) -> None:
    if known := [(k, v) for k, v in zip(ks, values, strict=True) if v is not None]:
        ax.plot(*zip(*known, strict=True), ms=4, label=label, **line)


FIGURES: dict[str, Callable[[StudyResult], Any]] = {
    "null-reading": null_figure,
    "power-and-rank": power_figure,
    "clusters": cluster_figure,
    "bias": bias_figure,
    "classes": class_figure,
}

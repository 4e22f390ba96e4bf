"""The figures of a study: values by chance, power, ranking, correlations of metrics, and several classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.plots import style
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
    ax, colors = style.new_axes(None, theme, (6.4, 5.6))
    names = [name for name in _SHOWN if name in found.names]
    for i, name in enumerate(names):
        rows = [(n, row["null"]) for n, row in rows_of(found, name) if (row.get("null") or 0.0) > 0.0]
        if rows:
            ax.plot(*zip(*rows, strict=True), marker=style.MARKERS[i % 8], ms=4, label=name, **colors.nth(i))
    ax.axhline(0.02, color=colors.gray, lw=0.8, ls=style.DASHED)
    ax.set(xscale="log", yscale="log", xlabel="rows N", ylabel="mean on calibrated models")
    style.finish(
        ax, colors, "A calibrated model does not show 0", f"mean over {len(_laws(found))} laws of the confidence",
        "The dashed line is 0.02. What lies above it at your N is noise that looks like an error; a line that goes "
        "flat stays above 0 however many rows there are.",
        legend="above",
    )  # fmt: skip
    return ax.figure


def power_figure(found: StudyResult, theme: str = "light", n: int = 1000) -> Any:
    """Power against the share of pairs in the right order: all metrics, and an enlarged upper right corner."""
    rows = found.found["sizes"].get(str(n), {})
    points = {
        name: (row["across"], row["power"])
        for name, row in rows.items()
        if row.get("across") is not None and row.get("power") is not None
    }
    named = {name: at for name, at in points.items() if name in _NAMED}
    if not named:
        return None
    colors = style.look(theme)
    figure = style.new_figure((11.0, 6.0), theme)
    whole, corner = figure.subplots(1, 2)
    low = tuple(np.quantile([at[i] for at in named.values()], 0.35) for i in (0, 1))
    near = {name: at for name, at in named.items() if at[0] >= low[0] and at[1] >= low[1]}
    for ax, shown in ((whole, {name: at for name, at in named.items() if name not in near}), (corner, near)):
        style.quiet(ax, colors)
        ax.scatter(*zip(*points.values(), strict=True), s=12, color=colors.light)
        ax.scatter(*zip(*named.values(), strict=True), s=22, color=colors.model)
        ax.set(
            xlabel="pairs of models in the right order, across distributions",
            ylabel="share of errors detected (level 5%)",
        )
        if shown:
            _labels(ax, colors, shown)
    x, y = ([at[i] for at in near.values()] for i in (0, 1))
    if near:
        corner.set(xlim=(min(x) - 0.012, max(x) + 0.03), ylim=(min(y) - 0.012, max(y) + 0.012))
    whole.axvline(0.5, color=colors.gray, lw=0.8, ls=style.DASHED)
    style.finish(
        whole, colors, f"What metrics detect, and how they rank models (N = {n:,})",
        f"{len(found.found['worlds'])} worlds · {len(points)} numbers",
        "Right is better for comparing models, up for noticing an error. The dashed line is a coin. Metrics at the "
        "lower left describe; they do not rank.",
    )  # fmt: skip
    style.finish(corner, colors, "The upper right corner, enlarged", "grey: other metrics",
                 "Differences of less than two points are within the study's own error.")  # fmt: skip
    style.level([whole, corner])
    return figure


def _labels(ax: Any, colors: style.Look, points: dict[str, tuple[float, float]]) -> None:
    """Names beside their points, moved down where they would overlap."""
    placed: list[tuple[float, float]] = []
    span_x = max(x for x, _ in points.values()) - min(x for x, _ in points.values()) or 1.0
    span_y = max(y for _, y in points.values()) - min(y for _, y in points.values()) or 1.0
    for name, (x, y) in sorted(points.items(), key=lambda item: -item[1][1]):
        at = y
        while any(abs(at - b) < 0.034 * span_y and abs(x - a) < 0.3 * span_x for a, b in placed):
            at -= 0.004 * span_y
        placed.append((x, at))
        ax.annotate(
            name, (x, y), (x + 0.02 * span_x, at), fontsize=7.5, color=colors.ink, va="center",
            arrowprops={"arrowstyle": "-", "color": colors.gray, "lw": 0.4, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def cluster_figure(found: StudyResult, theme: str = "light") -> Any:
    """The rank correlations of metrics over the simulated settings."""
    correlation = found.found["correlation"]
    if not correlation:
        return None
    groups = clusters(correlation)
    order = [name for group in groups for name in group]
    places = {name: i for i, name in enumerate(correlation["names"])}
    rho = np.array(correlation["rho"], dtype=np.float64)[np.ix_(*[[places[n] for n in order]] * 2)]
    ax, colors = style.new_axes(None, theme, (12.5, 13.0))
    image = ax.imshow(rho, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(len(order)), order, rotation=90, fontsize=5.5)
    ax.set_yticks(range(len(order)), order, fontsize=5.5)
    start = 0
    for group in groups:
        if len(group) > 1:
            ax.add_patch(_square(start, len(group), colors.ink))
        start += len(group)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.4)
    bar.ax.tick_params(labelsize=8, labelcolor=colors.ink)
    many = sum(len(group) > 1 for group in groups)
    style.finish(
        ax, colors, "Which metrics agree",
        f"rank correlation over {len(found.found['worlds'])} worlds at N = {correlation['n']:,} · {len(order)} numbers",
        f"The {many} frames hold metrics whose mean rank correlation is 0.9 or more: two metrics of one frame give "
        "the same information.",
        drop=86.0,
    )  # fmt: skip
    return ax.figure


def _square(start: int, size: int, color: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((start - 0.5, start - 0.5), size, size, fill=False, edgecolor=color, lw=1.0)


def bias_figure(found: StudyResult, theme: str = "light") -> Any:
    """Bias divided by the standard deviation, by number of rows."""
    ax, colors = style.new_axes(None, theme, (6.4, 5.6))
    for i, name in enumerate(name for name in _SHOWN if name in found.names):
        rows = [(n, row["bias_over_sd"]) for n, row in rows_of(found, name) if row.get("bias_over_sd") is not None]
        if rows:
            ax.plot(*zip(*rows, strict=True), marker=style.MARKERS[i % 8], ms=4, label=name, **colors.nth(i))
    ax.axhline(1.0, color=colors.gray, lw=0.8, ls=style.DASHED)
    ax.set(xscale="log", xlabel="rows N", ylabel="|bias| / standard deviation", ylim=(0, None))
    style.finish(
        ax, colors, "Where bias dominates",
        "worlds with a true error of 0.03 to 0.08, each metric against its own limit",
        "Above the dashed line a metric is further off by its bias than by chance: an interval around it misses, and "
        "it must be compared with its reading for a calibrated model.",
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
        ax.set(xscale="log", xlabel="classes K")
    ks = sorted({int(law.split()[0]) for by in rows.values() for law in by if "unequal" not in law})
    for i, family in enumerate(("calibrated", "over-confident")):
        for lens, name in (("class-wise", "ece, class-wise"), ("top-label", "ece")):
            values = [rows.get(name, {}).get(f"{k} classes", {}).get(family) for k in ks]
            known = [(k, v) for k, v in zip(ks, values, strict=True) if v is not None]
            if known:
                line = {"color": colors.colors[i], "ls": "-" if lens == "top-label" else "--"}
                left.plot(*zip(*known, strict=True), marker="o", ms=4, label=f"ECE {lens}, {family}", **line)
    for lens, ls in (("top-label", "-"), ("class-wise", "--")):
        truth = [several["worlds"].get(f"{k} classes, over-confident 1.3", {}).get(lens) for k in ks]
        left.plot(ks, truth, color=colors.gray, lw=1, ls=ls, marker="x", ms=4, label=f"truth {lens}, over-confident")
    left.set(yscale="log", ylabel="reading")
    for i, name in enumerate(name for name in _OF_CLASSES if name in rows):
        values = [rows[name].get(f"{k} classes", {}).get("power", {}).get("over-confident") for k in ks]
        known = [(k, v) for k, v in zip(ks, values, strict=True) if v is not None]
        if known:
            right.plot(*zip(*known, strict=True), marker=style.MARKERS[i % 8], ms=4, label=name, **colors.nth(i))
    right.set(ylabel="share of errors detected", ylim=(-0.03, 1.03))
    for ax in (left, right):
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.minorticks_off()
    style.finish(left, colors, "What ECE shows", f"N = {n:,}, temperature 1.3", "Where calibrated and over-confident "
                 "lines meet, the value is only bias.", legend="above")  # fmt: skip
    style.finish(right, colors, "What detects over-confidence", f"N = {n:,}, temperature 1.3, level 5%",
                 "Each through its own lens.", legend="above")  # fmt: skip
    style.level([left, right])
    return figure


def _laws(found: StudyResult) -> set[str]:
    return {world["law"] for world in found.found["worlds"].values()}


FIGURES: dict[str, Callable[[StudyResult], Any]] = {
    "null-reading": null_figure,
    "power-and-rank": power_figure,
    "clusters": cluster_figure,
    "bias": bias_figure,
    "classes": class_figure,
}

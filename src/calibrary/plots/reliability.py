"""Reliability diagrams from bins: line, bars, tilted roof, small multiples, several models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.errors import one_of
from calibrary.grouping import group
from calibrary.lens import as_lens
from calibrary.plots import style
from calibrary.plots.data import FigureData, axis_names, binary_view
from calibrary.predictions import Array, Predictions, predictions

KINDS = ("line", "bar", "tilted-roof")
ERRORS = ("se", "wilson", "clopper-pearson", "consistency", None)


@dataclass(frozen=True)
class ReliabilityData(FigureData):
    """Non-empty bins: edges, weight, mean confidence, mean label, bounds of the error bar, and the ECE they give."""

    lower: Array
    upper: Array
    weight: Array
    confidence: Array
    label: Array
    low: Array
    high: Array
    ece: float
    n: float
    n_bins: int
    lens: str
    error: str | None
    mean_confidence: float
    mean_label: float

    @property
    def gap(self) -> Array:
        return self.label - self.confidence

    def points(self) -> Array:
        """Rows of n, mean confidence, mean label, standard error."""
        se = np.sqrt(self.label * (1 - self.label) / self.weight)
        return np.column_stack([self.weight, self.confidence, self.label, se])

    def roofs(self) -> Array:
        """Rows of left edge, right edge, height at each: lines of slope 1, whose gap to the diagonal is constant."""
        return np.column_stack([self.lower, self.upper, self.lower + self.gap, self.upper + self.gap])


def reliability_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = 15,
    binning: Any = "width",
    closed: str = "right",
    lens: Any = "auto",
    error: str | None = "se",
    confidence_level: float | None = None,
    rng: Any = 0,
    **options: Any,
) -> ReliabilityData:
    """Bins behind a reliability diagram; by default the bins of ECE, so that the picture shows the number.

    Parameters
    ----------
    error : "se", "wilson", "clopper-pearson", "consistency" or None
        One standard error (default); 95% Wilson or Clopper-Pearson intervals of the frequency; or the range in
        which 95% of the frequencies of a calibrated model would lie, drawn around the diagonal.
    """
    one_of("error", error if error is not None else "se", [e for e in ERRORS if e])
    checked = {k: options.pop(k) for k in ("sample_weight", "labels", "pos_label") if k in options}
    view, name = binary_view(y_true, y_prob, lens=lens, r=options.pop("r", None), **checked)
    bins = group(view, binning, n_bins=n_bins, closed=closed, **options)
    if bins.lower is None or bins.upper is None:
        raise ValueError("a reliability diagram needs bins that are intervals: pass binning='width' or 'mass'")
    level = 0.95 if confidence_level is None else confidence_level
    low, high = _bounds(view, bins, error, level, rng)
    return ReliabilityData(
        bins.lower,
        bins.upper,
        bins.weight,
        bins.confidence,
        bins.label,
        low,
        high,
        bins.gap_norm(1),
        view.total,
        n_bins,
        name,
        error,
        float(view.mean(view.c)),
        float(view.mean(view.y)),
    )


def _bounds(view: Predictions, bins: Any, error: str | None, level: float, rng: Any) -> tuple[Array, Array]:
    n, y = bins.weight, bins.label
    if error is None:
        return y, y
    if error == "se":
        se = np.sqrt(y * (1 - y) / n)
        return y - se, y + se
    if error == "consistency":
        return _consistency(view, bins, level, rng)
    from scipy.special import betaincinv, ndtri

    if error == "wilson":
        z = ndtri(0.5 + level / 2)
        centre = (y + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(y * (1 - y) / n + z * z / (4 * n * n))
        return centre - half, centre + half
    k, a = y * n, (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-12), n - k + 1, a), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-12), 1 - a), 1.0)
    return low, high


def _consistency(view: Predictions, bins: Any, level: float, rng: Any, draws: int = 400) -> tuple[Array, Array]:
    generator = np.random.default_rng(rng)
    means = np.empty((draws, len(bins)))
    for b in range(draws):
        means[b] = bins.mean((generator.random(view.n) < view.c).astype(np.float64))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def plot_reliability(
    y_true: Any,
    y_prob: Any = None,
    *,
    kind: str = "line",
    ax: Any = None,
    label: str | None = None,
    colour: str | None = None,
    labels_shown: bool = True,
    histogram: bool = True,
    true_curve: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Reliability diagram: does an event predicted with 80% happen 80% of the time?

    Parameters
    ----------
    y_true, y_prob : as everywhere, or ``y_true`` may be a :class:`ReliabilityData` or a dict of models
    kind : "line", "bar" or "tilted-roof"
        Markers at the mean confidence with error bars; bars with the gap to the mean confidence; or roofs of slope 1
        whose vertical distance to the diagonal is each bin's error, so that its mean over cases is exactly ECE.
    ax : matplotlib axes, optional
    labels_shown, histogram : bool
        Jittered labels at 0 and 1 (at most 2,000), and a strip with the distribution of the predictions.
    true_curve : callable, optional
        The true frequency as a function of confidence, for synthetic data.

    Returns
    -------
    matplotlib Axes
    """
    one_of("kind", kind, KINDS)
    if isinstance(y_true, Mapping):
        return _several(y_true, y_prob, ax, caption=caption, theme=theme, **options)
    view = None
    if isinstance(y_true, ReliabilityData):
        data = y_true
    else:
        keep = {k: options[k] for k in ("lens", "r", "sample_weight", "labels", "pos_label") if k in options}
        view, _ = binary_view(y_true, y_prob, **keep)
        data = reliability_data(y_true, y_prob, **options)
    ax = style.new_axes(ax, theme=theme)
    style.unit_square(ax, *axis_names(data.lens))
    {"line": _line, "bar": _bars, "tilted-roof": _roof}[kind](ax, data, colour or style.MODEL, label)
    if true_curve is not None:
        t = np.linspace(0, 1, 201)
        ax.plot(t, true_curve(t), color=style.GOOD, lw=1.5, label="true frequency")
    if view is not None and labels_shown and kind == "line":
        _labels(ax, view)
    if view is not None and histogram:
        _strip(ax, view, theme)
    style.title(ax, "Reliability diagram")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(ax, _caption(data, kind))
    return ax


def _line(ax: Any, data: ReliabilityData, colour: str, label: str | None) -> None:
    if data.error == "consistency":
        ax.vlines(data.confidence, data.low, data.high, color=style.LIGHT, lw=5, zorder=2, label="if calibrated")
    elif data.error is not None:
        error = np.maximum([data.label - data.low, data.high - data.label], 0.0)
        ax.errorbar(
            data.confidence, data.label, yerr=error, fmt="none", ecolor=colour, elinewidth=1.2, capsize=2.5, zorder=3
        )
    size = 18 + 60 * np.sqrt(data.weight / data.weight.max())
    ax.plot(data.confidence, data.label, color=colour, lw=1.3, alpha=0.7, zorder=3)
    ax.scatter(data.confidence, data.label, s=size, color=colour, edgecolor="white", lw=0.8, zorder=4, label=label)


def _bars(ax: Any, data: ReliabilityData, colour: str, label: str | None) -> None:
    width = data.upper - data.lower
    bars = ax.bar(
        data.lower,
        data.label,
        width=width,
        align="edge",
        color=colour,
        alpha=0.85,
        edgecolor="white",
        lw=0.8,
        label=label or "observed",
        zorder=2,
    )
    shade = 0.35 + 0.6 * np.sqrt(data.weight / data.weight.max())
    for bar, alpha in zip(bars, shade, strict=True):
        bar.set_alpha(float(alpha))
    ax.bar(
        data.lower,
        data.confidence - data.label,
        bottom=data.label,
        width=width,
        align="edge",
        fill=False,
        edgecolor=style.GAP,
        hatch="////",
        lw=0.8,
        label="gap to mean prediction",
        zorder=3,
    )


def _roof(ax: Any, data: ReliabilityData, colour: str, label: str | None) -> None:
    from matplotlib.collections import PolyCollection

    roofs = data.roofs()
    polygons = [[(lo, 0), (lo, a), (hi, b), (hi, 0)] for lo, hi, a, b in roofs]
    ax.add_collection(
        PolyCollection(polygons, facecolor=colour, alpha=0.25, edgecolor="none", zorder=2, clip_on=True, label=label)
    )
    for lo, hi, a, b in roofs:
        ax.plot([lo, hi], [a, b], color=colour, lw=2, zorder=3, solid_capstyle="butt")
        ax.vlines((lo + hi) / 2, (lo + hi) / 2, (a + b) / 2, color=style.GAP, lw=1.2, zorder=3)


def _labels(ax: Any, view: Predictions) -> None:
    shown = style.thinned(view.n, 2000)
    jitter = np.random.default_rng(0).uniform(-0.025, 0.025, len(shown))
    alpha = float(np.clip(60 / max(len(shown), 1), 0.05, 0.5))
    y = np.where(view.y[shown] == 1, 1.0, 0.0) + jitter
    ax.scatter(view.c[shown], y, s=3, color=style.GREY, alpha=alpha, lw=0, zorder=1.5, clip_on=False)


def _strip(ax: Any, view: Predictions, theme: str) -> None:
    """A histogram of the predictions inside the lower edge of the axes."""
    inset = ax.inset_axes([0.0, 1.005, 1.0, 0.1])
    inset.hist(
        view.c, bins=np.linspace(0, 1, 41), weights=view.w, color=style.LIGHT if theme == "light" else style.GREY
    )
    inset.set_xlim(ax.get_xlim())
    inset.axis("off")
    ax.title.set_position((0, 1.12))
    ax.title.set_transform(ax.transAxes)


def _caption(data: ReliabilityData, kind: str) -> str:
    bars = (
        {
            "se": "bars: one standard error",
            "wilson": "bars: 95% Wilson",
            "clopper-pearson": "bars: 95% Clopper-Pearson",
            "consistency": "grey: where 95% of a calibrated model's points would lie",
            None: "",
        }[data.error]
        if kind == "line"
        else ""
    )
    side = "above" if data.mean_label > data.mean_confidence else "below"
    parts = [
        f"N = {data.n:,.0f}, lens {data.lens}, {len(data.weight)} of {data.n_bins} bins used, ECE = {data.ece:.4f}",
        bars,
        f"Points {side} the diagonal: the event is {'more' if side == 'above' else 'less'} frequent than predicted",
    ]
    return ". ".join(p for p in parts if p) + "."


def _several(models: Mapping[str, Any], y_prob: Any, ax: Any, *, caption: bool, theme: str, **options: Any) -> Any:
    """Several models on one diagram: {"name": (y, p), ...}."""
    ax = style.new_axes(ax, theme=theme)
    texts = []
    for i, (name, (y, p)) in enumerate(models.items()):
        data = reliability_data(y, p, **options)
        if i == 0:
            style.unit_square(ax, *axis_names(data.lens))
        colour = style.COLOURS[i % len(style.COLOURS)]
        error = np.maximum([data.label - data.low, data.high - data.label], 0.0)
        ax.errorbar(data.confidence, data.label, yerr=error, fmt="none", ecolor=colour, elinewidth=1, alpha=0.6)
        ax.plot(
            data.confidence,
            data.label,
            color=colour,
            marker=style.MARKERS[i % len(style.MARKERS)],
            ms=5,
            ls=style.LINES[i % len(style.LINES)],
            lw=1.4,
            label=f"{name} (ECE {data.ece:.3f})",
        )
        texts.append(f"{name}: N = {data.n:,.0f}")
    style.title(ax, "Reliability of several models")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(ax, "; ".join(texts) + ". Error bars: one standard error. Closer to the diagonal is better.")
    return ax


def small_multiples(
    y_true: Any,
    y_prob: Any = None,
    *,
    lens: Any = "class-wise",
    n_bins: int = 10,
    most: int = 36,
    theme: str = "light",
    sample_weight: Any = None,
    labels: Any = None,
) -> Any:
    """One small reliability diagram per class (or pair); classes with the largest error first when there are many."""
    p = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels)
    views = p.through(as_lens(lens))
    data = [reliability_data(v, n_bins=n_bins, lens="binary") for v in views.views]
    chosen = sorted(range(len(data)), key=lambda i: -data[i].ece)[:most] if len(data) > most else range(len(data))
    columns = min(6, int(np.ceil(np.sqrt(len(list(chosen))))))
    n_rows = int(np.ceil(len(list(chosen)) / columns))
    figure = style.new_figure((2.1 * columns, 2.25 * n_rows + 0.5), theme=theme)
    for place, i in enumerate(chosen):
        ax = style.new_axes(figure.add_subplot(n_rows, columns, place + 1), theme=theme)
        style.unit_square(ax, "", "")
        _line(ax, data[i], style.MODEL, None)
        ax.set_xticks([0, 0.5, 1])
        ax.set_yticks([0, 0.5, 1])
        key = views.keys[i]
        name = f"{p.classes[key[0]]} v {p.classes[key[1]]}" if isinstance(key, tuple) else str(p.classes[key])
        ax.set_title(f"{name}  ECE {data[i].ece:.3f}", fontsize=8, loc="left", color=ax.xaxis.label.get_color())
        ax.tick_params(labelsize=7, labelbottom=place >= len(list(chosen)) - columns, labelleft=place % columns == 0)
    left = f" (the {most} worst of {len(data)})" if len(data) > most else ""
    figure.suptitle(
        f"Reliability by class{left}, N = {p.total:,.0f}", fontsize=11, x=0.01, ha="left", color=style._INK[theme]
    )
    figure.supxlabel("Predicted probability", fontsize=9, color=style._INK[theme])
    figure.supylabel("Observed frequency", fontsize=9, color=style._INK[theme])
    return figure

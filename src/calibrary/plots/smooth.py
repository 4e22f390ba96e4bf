"""Reliability without bins: the smooth diagram with its band, and any other calibration map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.catalogue import catalogue
from calibrary.plots import style
from calibrary.plots.data import FigureData, axis_names, binary_view
from calibrary.predictions import Array, Predictions

#: Confidences closer than this are drawn as one; the line moves by less than a thousandth of its width.
CELLS = 4096


@dataclass(frozen=True)
class SmoothData(FigureData):
    """A smooth reliability curve on a grid, a band of bootstrap curves, the density of the predictions, smECE."""

    grid: Array
    curve: Array
    low: Array
    high: Array
    density: Array
    smece: float
    sigma: float
    n: float
    lens: str
    map: str


def smooth_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    map: Any = "smece",
    grid: int = 200,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> SmoothData:
    """Nadaraya-Watson curve with the reflected Gaussian kernel, at the width smECE chooses by itself.

    ``map`` may also be the name of a calibration map ("loess", "isotonic", "beta", "platt", "rcs", ...) or an object
    with ``fit`` and ``predict``; its band comes from the same bootstrap.
    """
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    smece = float(catalogue["smece"].measure(view, lens="binary"))
    sigma = float(np.clip(smece, 0.01, 0.5))
    t = (np.arange(grid) + 0.5) / grid
    x, w1, w0 = _cells(view)
    kernel = _reflected(t, x, sigma)
    density = kernel @ (w1 + w0) / view.total
    generator = np.random.default_rng(rng)
    if isinstance(map, str) and map == "smece":
        curve = _ratio(kernel @ w1, kernel @ (w1 + w0))
        curves = [_ratio(kernel @ a, kernel @ (a + b)) for a, b in _resampled(w1, w0, generator, n_resamples)]
        label = "smECE kernel"
    else:
        from calibrary.maps import as_map

        def fitted(a: Array, b: Array) -> Array:
            y, c, w = np.repeat([1, 0], len(x)), np.tile(x, 2), np.concatenate([a, b])
            used = w > 0
            return np.asarray(as_map(map).fit(y[used], c[used], w[used]).predict(t), dtype=float)

        curve = fitted(w1, w0)
        curves = [fitted(a, b) for a, b in _resampled(w1, w0, generator, n_resamples)]
        label = map if isinstance(map, str) else type(map).__name__
    tail = (1 - confidence_level) / 2
    with np.errstate(all="ignore"):
        low, high = np.nanquantile(curves, [tail, 1 - tail], axis=0) if curves else (curve, curve)
    return SmoothData(t, curve, low, high, density, smece, sigma, view.total, name, label)


def _cells(view: Predictions) -> tuple[Array, Array, Array]:
    """Distinct confidences (or cells of them, if there are very many) with the weight of positives and negatives."""
    ties = view.ties
    if len(ties.c) <= CELLS:
        return ties.c, ties.wy, ties.w - ties.wy
    cell = np.minimum((ties.c * CELLS).astype(np.intp), CELLS - 1)
    w: Array = np.bincount(cell, ties.w, minlength=CELLS).astype(np.float64)
    used = w > 0
    x = np.bincount(cell, ties.w * ties.c, minlength=CELLS)[used] / w[used]
    positive: Array = np.bincount(cell, ties.wy, minlength=CELLS)[used].astype(np.float64)
    return x, positive, w[used] - positive


def _reflected(t: Array, x: Array, sigma: float) -> Array:
    """Gaussian kernel with mirror images at both ends, so that no mass leaves [0, 1]."""
    shifts = np.arange(-2, 3) * 2.0
    total = np.zeros((len(t), len(x)))
    for shift in shifts:
        total += np.exp(-0.5 * ((t[:, None] - x + shift) / sigma) ** 2)
        total += np.exp(-0.5 * ((t[:, None] + x + shift) / sigma) ** 2)
    total /= sigma * np.sqrt(2 * np.pi)
    return total


def _ratio(top: Array, bottom: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 1e-12 * bottom.max(), top / bottom, np.nan)


def _resampled(w1: Array, w0: Array, rng: np.random.Generator, draws: int) -> Any:
    both = np.concatenate([w1, w0])
    n = max(round(both.sum()), 1)
    for _ in range(draws):
        counts = rng.multinomial(n, both / both.sum()).astype(np.float64)
        yield counts[: len(w1)], counts[len(w1) :]


def plot_smooth_reliability(
    y_true: Any, y_prob: Any = None, *, ax: Any = None, caption: bool = True, theme: str = "light", **options: Any
) -> Any:
    """Reliability without bins; the line is thick where the predictions are.

    Takes the arguments of :func:`smooth_data`, or its result. Returns the matplotlib Axes.
    """
    data = y_true if isinstance(y_true, SmoothData) else smooth_data(y_true, y_prob, **options)
    ax = style.new_axes(ax, theme=theme)
    style.unit_square(ax, *axis_names(data.lens))
    from matplotlib.collections import LineCollection

    ax.fill_between(data.grid, data.low, data.high, color=style.MODEL, alpha=0.18, lw=0, label="95% bootstrap band")
    strength = np.sqrt(data.density / data.density.max())
    points = np.column_stack([data.grid, data.curve])
    segments = np.stack([points[:-1], points[1:]], axis=1)
    middle = (strength[:-1] + strength[1:]) / 2
    colours = np.zeros((len(segments), 4))
    from matplotlib.colors import to_rgb

    colours[:, :3] = to_rgb(style.MODEL)
    colours[:, 3] = 0.35 + 0.65 * middle
    ax.add_collection(
        LineCollection(list(segments), linewidths=0.8 + 4.2 * middle, colors=colours, capstyle="round", zorder=4)
    )
    inset = ax.inset_axes([0.0, 1.005, 1.0, 0.1])
    inset.fill_between(data.grid, data.density, color=style.LIGHT if theme == "light" else style.GREY, lw=0)
    inset.set_xlim(ax.get_xlim())
    inset.set_ylim(0)
    inset.axis("off")
    style.title(ax, "Smooth reliability diagram")
    ax.title.set_position((0, 1.12))
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, lens {data.lens}, {data.map}, smECE = {data.smece:.4f}"
            f" (width {data.sigma:.3f}). Line width follows the density of the predictions; above the diagonal the "
            "event is more frequent than predicted.",
        )
    return ax

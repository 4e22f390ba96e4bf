"""Reliability without bins: the smooth diagram with its band, and any other calibration map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import percent, with_interval
from calibrary.base.text import for_figure
from calibrary.data.checks import Array
from calibrary.inference.draw.bands import on_rows, pointwise
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import measure
from calibrary.plots import style
from calibrary.plots.axis import WHOLE, Axis, axis_names, axis_of, direction, expit, logit, square, strip_of, together
from calibrary.plots.data import ConfidenceCells, FigureData, binary_view, cells, facts, interval_of
from calibrary.plots.frame import Said, drawn, on_one_axis, said
from calibrary.plots.pointed import near_words, series, tooltips

#: The smallest width of the kernel: a narrower one could not be resolved by the grid.
_LEAST_WIDTH = 1e-3
#: The smallest number of cases near a point (a fraction of one) at which the curve is drawn.
_LEAST_CASES = 1e-3
#: Expected events, and expected non-events, near a point at which the curve is drawn in full; and the smallest part of
#: them at which it is drawn at all.
_ENOUGH, _HARDLY = 5.0, 0.15
#: The curve in the legend.
_SMOOTHED = "smooth curve"
_SYNONYMS = {"kde": "nadaraya_watson"}


@dataclass(frozen=True)
class SmoothData(FigureData):
    """A smooth reliability curve on a grid and what belongs to it.

    Attributes
    ----------
    grid, curve : the curve; NaN where no prediction is near
    low, high : pointwise band of bootstrap curves
    density, density_1, density_0 : of all predictions, and its parts with label 1 and 0
    support : how well each point is supported by predictions near it, from 0 to 1: 1 where five expected events and
        five expected non-events lie within one width of the kernel
    smece, smece_low, smece_high : the smooth calibration error, and its interval by :func:`calibrary.interval`
    sigma : width of the kernel, in probability or in log odds
    near : number of cases within one width of the kernel; None in data that version 0.2 made
    axis : the kind of axis and its ends
    """

    grid: Array
    curve: Array
    low: Array
    high: Array
    density: Array
    density_1: Array
    density_0: Array
    support: Array
    smece: float
    smece_low: float
    smece_high: float
    sigma: float
    n: float
    lens: str
    map: str
    level: float
    near: Array | None = None
    axis: Axis = WHOLE


def smooth_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    map: Any = "smece",
    grid: int = 200,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    lens: Any = "auto",
    axis: Any = "auto",
    rng: Any = 0,
    interval: bool = True,
    **checked: Any,
) -> SmoothData:
    """Nadaraya-Watson curve with the reflected Gaussian kernel, at the width that smECE chooses.

    On an axis of log odds the kernel is one of log odds, of a width that follows the number of expected events. There
    the odds of the events near a point, divided by their predicted odds, multiply the odds of the point, so that a wide
    kernel leaves a calibrated model on the diagonal.

    Parameters
    ----------
    y_true, y_prob : as everywhere; ``sample_weight``, ``labels``, ``pos_label`` and ``r`` too
    map : str or map
        "smece", or the name of a calibration map ("loess", "spline", "isotonic", "beta", "logistic", "kde", "pl", ...)
        or an object with ``fit`` and ``predict``; its band comes from the same bootstrap, with a number of pieces, bins
        or a width that was cross-validated kept as chosen on the whole sample.
    grid : int
        Points of the curve.
    axis : as in :func:`reliability_data`
    n_resamples, confidence_level, rng : of the band and of the interval of smECE
    interval : bool
        Whether to compute the interval of smECE too, by :func:`calibrary.interval` with these settings.
    """
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    smece = float(measure(catalogue["smece"], view))
    drawn_on = axis_of(view, axis)
    t = drawn_on.grid(grid)
    some = cells(view)
    odds = drawn_on.kind == "log odds"
    sigma = _odds_width(some) if odds else max(smece, _LEAST_WIDTH)
    kernel = _on_log_odds(t, some.c, sigma) if odds else _reflected(t, some.c, sigma)
    if isinstance(map, str) and map == "smece":
        curves = _odds_curves(kernel, t, some.c) if odds else _kernel_curves(kernel, sigma)
    else:
        curves = _map_curves(map, t, some.c)
    whole = some.positive[None], some.negative[None]
    curve = curves(*whole)[0]
    low, high = curve, curve
    if n_resamples:
        both = np.concatenate([some.positive, some.negative])
        drawn = on_rows(lambda counts: curves(*np.hsplit(counts, 2)), both, n_resamples, rng)
        low, high = pointwise(drawn, confidence_level)
    settings = {"n_resamples": n_resamples if interval else 0, "confidence_level": confidence_level, "rng": rng}
    ones, zeros = kernel @ some.positive / view.total, kernel @ some.negative / view.total
    near, support = _near_and_support(t, some, sigma, odds)
    return SmoothData(
        t, curve, low, high, ones + zeros, ones, zeros, support,
        smece, *interval_of("smece", y_true, y_prob, lens=lens, **settings, **checked),
        sigma, view.total, name, map if isinstance(map, str) else type(map).__name__, confidence_level, near, drawn_on,
    )  # fmt: skip


def _near_and_support(t: Array, some: ConfidenceCells, sigma: float, odds: bool) -> tuple[Array, Array]:
    """The cases within one width of each point t, and how well the curve is supported by them, from 0 to 1.

    The support is 1 where at least five expected events and five expected non-events lie within one width of t. It is
    lower where the smoothed predictions lie mostly on one side of t, or far from it: the curve then shows their
    frequency, not that at t.
    """
    place, at = (logit(some.c), logit(t)) if odds else (some.c, t)
    near = np.abs(at[:, None] - place) <= sigma
    events, others = near @ (some.weight * some.c), near @ (some.weight * (1.0 - some.c))
    images = (place,) if odds else (place, -place, 2.0 - place)  # the kernel reflects predictions at 0 and at 1
    # the mean distance of evenly spread predictions from t is 0, and their root mean square distance is one width
    mean, square = _away(at, images, some.weight, sigma)
    here = np.clip(np.minimum(2.0 - 2.0 * np.abs(mean), (2.0 - square) / 0.75), 0.0, 1.0)
    return near @ some.weight, np.asarray(np.clip(np.minimum(events, others) / _ENOUGH, 0.0, 1.0) * here)


def _away(t: Array, images: tuple[Array, ...], weight: Array, sigma: float) -> tuple[Array, Array]:
    """The weighted mean and mean square of the distances from each t to the smoothed predictions, in widths."""
    total, mean, square = (np.zeros(len(t)) for _ in range(3))
    for image in images:
        away = (image - t[:, None]) / sigma
        near = np.exp(-0.5 * away**2)
        total += near @ weight
        near *= away
        mean += near @ weight
        near *= away
        square += near @ weight
    total = np.maximum(total, np.finfo(float).tiny)
    return mean / total, square / total


def _odds_width(some: ConfidenceCells) -> float:
    """The width of a kernel of log odds: the normal reference rule, with as many cases as there is information."""
    place, weight = logit(some.c), some.weight * some.c * (1.0 - some.c)
    if not weight.sum() > 0.0:
        return 1.0
    spread = float(np.sqrt(np.cov(place, aweights=weight, ddof=0)))
    return float(np.clip(1.06 * spread * max(float(weight.sum()), 1.0) ** -0.2, 0.15, 1.5))


def _on_log_odds(t: Array, x: Array, sigma: float) -> Array:
    return np.asarray(np.exp(-0.5 * ((logit(t)[:, None] - logit(x)) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi)))


def _reflected(t: Array, x: Array, sigma: float) -> Array:
    """Gaussian kernel with mirror images at both ends, so that no mass leaves [0, 1]."""
    total = np.zeros((len(t), len(x)))
    reach = int(np.ceil(4 * sigma)) + 1
    for shift in 2.0 * np.arange(-reach, reach + 1):
        for image in (x + shift, shift - x):
            if image.max() > -9 * sigma and image.min() < 1 + 9 * sigma:
                total += np.exp(-0.5 * ((t[:, None] - image) / sigma) ** 2)
    total /= sigma * np.sqrt(2 * np.pi)
    return total


#: A function from the weights of positives and negatives at every confidence (one row per resample) to the curves.
Curves = Callable[[Array, Array], Array]


def _kernel_curves(kernel: Array, sigma: float) -> Curves:
    def curves(ones: Array, zeros: Array) -> Array:
        near = (ones + zeros) @ kernel.T
        enough = near * sigma * np.sqrt(2 * np.pi) > _LEAST_CASES
        return np.where(enough, ones @ kernel.T / np.where(enough, near, 1.0), np.nan)

    return curves


def _odds_curves(kernel: Array, t: Array, c: Array) -> Curves:
    """Curves whose odds are those of t times the ratio of observed to predicted odds near t."""

    def curves(ones: Array, zeros: Array) -> Array:
        both = ones + zeros
        events, others = ones @ kernel.T, zeros @ kernel.T
        expected, unexpected = (both * c) @ kernel.T, (both * (1.0 - c)) @ kernel.T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(events) - np.log(others) - np.log(expected) + np.log(unexpected)
        return np.where(events + others > 0.0, expit(logit(t) + np.clip(ratio, -30.0, 30.0)), np.nan)

    return curves


def _map_curves(map: Any, t: Array, c: Array) -> Curves:
    from calibrary.maps import as_map
    from calibrary.maps.base import CalibrationMap

    y, both = np.repeat([1, 0], len(c)), np.tile(c, 2)
    whole: list[CalibrationMap] = []  # the map of the whole sample, whose choices are kept in every resample

    def fitted(w: Array) -> Array:
        used = w > 0
        if whole:
            chosen: Any = whole[0].for_refit()
        else:
            chosen = as_map(_SYNONYMS.get(map, map) if isinstance(map, str) else map)
        chosen = chosen.fit(y[used], both[used], w[used])
        if not whole and isinstance(chosen, CalibrationMap):
            whole.append(chosen)
        return np.asarray(chosen.predict(t), dtype=np.float64)

    def curves(ones: Array, zeros: Array) -> Array:
        weights = np.concatenate([ones, zeros], axis=1)
        if len(weights) == 1:
            return fitted(weights[0])[None]
        return np.array([_or_nothing(fitted, w, len(t)) for w in weights])

    return curves


def _or_nothing(fitted: Callable[[Array], Array], w: Array, n: int) -> Array:
    # a resample may hold one class only, to which some maps cannot be fitted
    try:
        return fitted(w)
    except RefusedError:
        return np.full(n, np.nan)


# -- drawing ----------------------------------------------------------------------------------------


def _several(ax: Any, look: style.Look, models: dict[str, SmoothData]) -> Said:
    first, axis = next(iter(models.values())), together(data.axis for data in models.values())
    square(ax, look, axis, *axis_names(first.lens))
    above = strip_of(ax, axis)
    for i, (name, data) in enumerate(models.items()):
        line = look.nth(i)
        _band(ax, data, line["color"], 0.14)
        above.plot(axis.place(data.grid), data.density / data.density.max(), lw=1.1, **line)
        text = f"{for_figure(name)}: smECE {with_interval(data.smece, data.smece_low, data.smece_high)}"
        shown = np.where(data.support >= _HARDLY, data.curve, np.nan)
        ax.plot(data.grid, shown, lw=1.8, label=text, zorder=3, **line)
    return said(
        "smooth-of-several-models",
        facts(models, first.lens, f"{first.level:.0%} bootstrap bands", axis.said),
        way=direction(first.lens, "Above"),
        top=style.ABOVE_STRIP,
    )


@drawn(SmoothData, smooth_data, several=_several, gather=on_one_axis)
def plot_smooth_reliability(ax: Any, look: style.Look, data: SmoothData) -> Said:
    """Reliability diagram without bins: a smooth curve, thicker where there are more predictions.

    Takes the arguments of :func:`smooth_data`, its result, or a dict of models {"name": (y, p), ...}. Returns the
    matplotlib Axes.
    """
    square(ax, look, data.axis, *axis_names(data.lens))
    band = f"{data.level:.0%} bootstrap band"
    with series(ax, band):
        _band(ax, data, look.model, 0.2, band)
    with series(ax, _SMOOTHED):
        _weighted_line(ax, look, data)
    _split_densities(ax, look, data)
    wide = f"{data.sigma:.2g} of log odds" if data.axis.kind == "log odds" else f"{data.sigma:.3f}"
    kernel = f"kernel width {wide}" if data.map == "smece" else f"calibration map {data.map}"
    side = "Above" if (data.density_1 - data.density * data.grid).sum() > 0.0 else "Below"  # where the mean lies
    return said(
        "smooth-reliability",
        f"smECE {with_interval(data.smece, data.smece_low, data.smece_high)} · "
        + facts(data.n, data.lens, kernel, data.axis.said),
        way=direction(data.lens, side),
        legend="upper left",
        top=style.ABOVE_STRIP,
    )


def _band(ax: Any, data: SmoothData, color: str, alpha: float, label: str | None = None) -> None:
    """The band, where the curve is drawn."""
    low, high = map(data.axis.near, (data.low, data.high))
    style.band(ax, data.grid, low, high, color, alpha, label, where=data.support >= _HARDLY)


def _weighted_line(ax: Any, look: style.Look, data: SmoothData) -> None:
    """The curve, thicker where there are more predictions, and thin where few events are expected."""
    from matplotlib.collections import LineCollection

    points = np.column_stack([data.grid, data.curve])
    segments = np.stack([points[:-1], points[1:]], axis=1)
    strength = np.sqrt(data.density / max(float(data.density.max()), np.finfo(float).tiny))
    support = np.minimum(data.support[:-1], data.support[1:])
    width = np.where(support < 1.0 - 1e-9, 0.9, 1.6 + 2.4 * (strength[:-1] + strength[1:]) / 2)
    there = np.isfinite(segments).all(axis=(1, 2)) & (support >= _HARDLY)
    pieces: dict[str, Any] = {"linewidths": width[there], "colors": look.model, "capstyle": "butt", "zorder": 4}
    ax.add_collection(LineCollection(list(segments[there]), **pieces))
    ax.plot([], [], color=look.model, lw=2.5, label=_SMOOTHED)  # the first piece of the line may be thin
    seen = np.where(data.support >= _HARDLY, data.curve, np.nan)
    tooltips(ax, data.grid, seen, lambda i: _words(data, i), series=_SMOOTHED, curve=True)


def _words(data: SmoothData, i: int) -> str:
    """The tooltip of a point of the curve."""
    band = f"\n{percent(data.level)} band {percent(data.low[i])} to {percent(data.high[i])}"
    near = "" if data.near is None else "\n" + near_words(data.near[i], *_reach(data, i))
    return f"predicted {percent(data.grid[i])}\nobserved, smoothed: {percent(data.curve[i])}{band}{near}"


def _reach(data: SmoothData, i: int) -> tuple[float, float]:
    """The predictions within one width of the kernel from a point."""
    at = data.grid[i]
    if data.axis.kind != "log odds":
        return max(at - data.sigma, 0.0), min(at + data.sigma, 1.0)
    return float(expit(logit(at) - data.sigma)), float(expit(logit(at) + data.sigma))


def _split_densities(ax: Any, look: style.Look, data: SmoothData) -> None:
    inset, at = strip_of(ax, data.axis), data.axis.place(data.grid)
    inset.fill_between(at, data.density_1, color=look.model, alpha=0.7, lw=0)
    inset.fill_between(at, -data.density_0, color=look.gray, alpha=0.55, lw=0)
    reach = max(float(data.density_1.max()), float(data.density_0.max()), np.finfo(float).tiny)
    inset.set_ylim(-1.05 * reach, 1.05 * reach)

"""Brier curves: the cost of acting on the probabilities, at every trade-off between the two kinds of error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.maps.isotonic import pooled_frequencies
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view
from calibrary.predictions import Array


@dataclass(frozen=True)
class BrierCurveData(FigureData):
    """Exact corners of the Brier curve (both one-sided limits at each score) and of the cost curve.

    ``t`` is both the decision threshold and the share of cost of false alarms; ``class_0`` and ``class_1`` are the two
    terms of the curve, ``total`` their sum; ``area`` holds the three areas (the first is the Brier score).
    ``cost_t``, ``cost`` are the corners of the cost curve: the least cost any threshold could reach.
    """

    t: Array
    total: Array
    class_0: Array
    class_1: Array
    area: Array
    cost_t: Array
    cost: Array
    cost_area: float
    lines: Array
    n: float
    lens: str

    def at(self, t: float) -> Array:
        """Total, class-0 and class-1 terms at one threshold (the value "class 1 if c > t")."""
        i = int(np.searchsorted(self.t, t, side="right")) - 1
        if i + 1 < len(self.t) and self.t[i + 1] > self.t[i]:
            part = (t - self.t[i]) / (self.t[i + 1] - self.t[i])
        else:
            part = 0.0
        j = min(i + 1, len(self.t) - 1)
        return np.array([(1 - part) * x[i] + part * x[j] for x in (self.total, self.class_0, self.class_1)])

    def cost_at(self, t: float) -> float:
        """The cost curve at one trade-off."""
        return float(np.interp(t, self.cost_t, self.cost))


def brier_curve(y_true: Any, y_prob: Any = None, *, lens: Any = "auto", **checked: Any) -> BrierCurveData:
    """The Brier curve 2t P(y=0, c>t) + 2(1-t) P(y=1, c<=t), exactly, with its cost lines and cost curve."""
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    ties = view.ties
    t, class_0, class_1, lines = _corners(ties.c, ties.w - ties.wy, ties.wy)
    # choosing the best threshold for every trade-off is acting on the isotonic fit: the cost curve is its Brier curve
    cost_t, cost_0, cost_1, _ = _corners(pooled_frequencies(view), ties.w - ties.wy, ties.wy)
    area_0, area_1 = float(view.mean((view.y == 0) * view.c**2)), float(view.mean((view.y == 1) * (1 - view.c) ** 2))
    cost = cost_0 + cost_1
    return BrierCurveData(
        t,
        class_0 + class_1,
        class_0,
        class_1,
        np.array([area_0 + area_1, area_0, area_1]),
        cost_t,
        cost,
        float(np.dot(np.diff(cost_t), (cost[1:] + cost[:-1]) / 2)),
        lines,
        view.total,
        name,
    )


def _corners(score: Array, negative: Array, positive: Array) -> tuple[Array, Array, Array, Array]:
    """Corners of the curve of ascending scores: t, the two class terms, and the cost line of every rule.

    Between neighbouring scores the rule "class 1 if score > t" does not change, so both terms are straight there.
    """
    first = np.flatnonzero(np.concatenate(([True], np.diff(score) > 0)))
    total = float(negative.sum() + positive.sum())
    alarms = np.concatenate(([0.0], np.cumsum(np.add.reduceat(negative, first)))) / total
    alarms = alarms[-1] - alarms
    misses = np.concatenate(([0.0], np.cumsum(np.add.reduceat(positive, first)))) / total
    ends = np.concatenate(([0.0], score[first], [1.0]))
    t = np.column_stack([ends[:-1], ends[1:]]).ravel()
    return t, 2 * t * np.repeat(alarms, 2), 2 * (1 - t) * np.repeat(misses, 2), 2 * np.column_stack([misses, alarms])


def plot_brier_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    cost_lines: bool = False,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Brier curve with its two class terms; the area under it is the Brier score, under the cost curve what is left
    after the best monotone recalibration.

    ``y_true`` may be a dict {"model": (y, p), ...}: the curves are overlaid with their pointwise minimum, the hybrid.
    Returns the matplotlib Axes.
    """
    if isinstance(y_true, Mapping):
        return _several(y_true, ax, caption, theme, **options)
    data = y_true if isinstance(y_true, BrierCurveData) else brier_curve(y_true, y_prob, **options)
    ax = style.new_axes(ax, size=(5.6, 4.6), theme=theme)
    t, low, high = _thinned(data)
    ax.fill_between(t, 0, low, color=style.MODEL, alpha=0.35, lw=0, label="class 0: false alarms")
    ax.fill_between(t, low, high, color=style.COLOURS[4], alpha=0.45, lw=0, label="class 1: misses")
    ax.plot(t, high, color=ax.xaxis.label.get_color(), lw=1.2, label="Brier curve")
    if cost_lines:
        for a, b in data.lines[style.thinned(len(data.lines), 60)]:
            ax.plot([0, 1], [a, b], color=style.GREY, lw=0.4, alpha=0.5)
    ax.plot(data.cost_t, data.cost, color=style.GAP, lw=2, ls="--", label="cost curve (best threshold)")
    _frame(ax, max(float(high.max()), 1e-12))
    style.title(ax, "Brier curve")
    style.legend(ax, loc="upper right")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, lens {data.lens}. Area under the curve = Brier score {data.area[0]:.4f} (false alarms "
            f"{data.area[1]:.4f}, misses {data.area[2]:.4f}); under the cost curve {data.cost_area:.4f}: the "
            "difference is miscalibration that a monotone recalibration would remove.",
        )
    return ax


def _frame(ax: Any, top: float) -> None:
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.12 * top)
    ax.set_xlabel("Share of cost of false alarms = threshold")
    ax.set_ylabel("Cost")


def _thinned(data: BrierCurveData, most: int = 6000) -> tuple[Array, Array, Array]:
    i = np.arange(len(data.t)) if len(data.t) <= most else np.linspace(0, len(data.t) - 1, most).astype(int)
    return data.t[i], data.class_0[i], data.total[i]


def _several(models: Mapping[str, Any], ax: Any, caption: bool, theme: str, **options: Any) -> Any:
    ax = style.new_axes(ax, size=(5.6, 4.6), theme=theme)
    grid = np.linspace(0, 1, 1001)
    curves = []
    for i, (name, (y, p)) in enumerate(models.items()):
        data = brier_curve(y, p, **options)
        curves.append(np.array([data.at(float(t))[0] for t in grid]))
        ax.plot(
            grid,
            curves[-1],
            color=style.COLOURS[i % len(style.COLOURS)],
            lw=1.6,
            ls=style.LINES[i % len(style.LINES)],
            label=f"{name} (Brier {data.area[0]:.4f})",
        )
    hybrid = np.min(curves, axis=0)
    ax.fill_between(grid, 0, hybrid, color=style.LIGHT, alpha=0.5, lw=0, label=f"hybrid (area {np.mean(hybrid):.4f})")
    _frame(ax, float(np.max(curves)))
    style.title(ax, "Brier curves of several models")
    style.legend(ax, loc="upper right")
    if caption:
        style.caption(ax, "Lower is better at that trade-off. The hybrid takes the better model at each threshold.")
    return ax

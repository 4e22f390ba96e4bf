"""Brier curves: the cost of deciding by the probabilities, for every ratio of the costs of the two errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.text import for_figure
from calibrary.data.checks import Array, Indices, as_floats
from calibrary.maps.isotonic import pooled_frequencies
from calibrary.numerics.runs import run_starts
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn, each_model, said

#: Corners of a curve whose fill is drawn; more would only make the file larger.
_MOST = 1500


@dataclass(frozen=True)
class BrierCurveData(FigureData):
    """Exact corners of the Brier curve (both one-sided limits at each score) and of the cost curve.

    Attributes
    ----------
    t : decision threshold, and cost share of false alarms; in pairs, the two ends of each linear piece
    total, class_0, class_1 : the curve and its two terms
    area : the three areas; the first is the Brier score
    cost_t, cost, cost_area : corners and area of the cost curve, the smallest cost over all thresholds
    lines : for each rule "class 1 if c > threshold", its cost at t = 0 and at t = 1
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
        j = min(i + 1, len(self.t) - 1)
        part = (t - self.t[i]) / (self.t[j] - self.t[i]) if self.t[j] > self.t[i] else 0.0
        return np.array([(1 - part) * x[i] + part * x[j] for x in (self.total, self.class_0, self.class_1)])

    def cost_at(self, t: float) -> float:
        """The cost curve at one cost ratio."""
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
        t, class_0 + class_1, class_0, class_1, np.array([area_0 + area_1, area_0, area_1]),
        cost_t, cost, _area(cost_t, cost), lines, view.total, name,
    )  # fmt: skip


def _area(t: Array, value: Array) -> float:
    return float(np.dot(np.diff(t), (value[1:] + value[:-1]) / 2))


def _corners(score: Array, negative: Array, positive: Array) -> tuple[Array, Array, Array, Array]:
    """Corners of the curve of ascending scores: t, the two class terms, and the cost line of every rule.

    Between adjacent scores the rule "class 1 if score > t" does not change, so both terms are linear there.
    """
    first = np.flatnonzero(np.concatenate(([True], np.diff(score) > 0)))
    total = float(negative.sum() + positive.sum())
    alarms = np.concatenate(([0.0], np.cumsum(np.add.reduceat(negative, first)))) / total
    alarms = alarms[-1] - alarms
    misses = np.concatenate(([0.0], np.cumsum(np.add.reduceat(positive, first)))) / total
    ends = np.concatenate(([0.0], score[first], [1.0]))
    t = np.column_stack([ends[:-1], ends[1:]]).ravel()
    return t, 2 * t * np.repeat(alarms, 2), 2 * (1 - t) * np.repeat(misses, 2), 2 * np.column_stack([misses, alarms])


# -- several models ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class HybridData(FigureData):
    """The pointwise minimum of several Brier curves: exact corners, in pairs, and the area below.

    Attributes
    ----------
    models : their names
    winner : position in ``models`` of the best one on each straight piece; the first of equally good ones
    """

    t: Array
    cost: Array
    area: float
    models: tuple[str, ...]
    winner: Indices

    @property
    def ranges(self) -> tuple[tuple[float, float, str], ...]:
        """The ranges of thresholds in which each model is best: (from, to, name), from 0 to 1."""
        first = run_starts(self.winner)
        ends = np.append(self.t[2 * first[1:]], 1.0)
        return tuple(
            (float(self.t[2 * i]), float(end), self.models[self.winner[i]]) for i, end in zip(first, ends, strict=True)
        )

    def best_at(self, threshold: float) -> str:
        """The best model if false alarms have this share of the cost."""
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold={threshold!r} must lie between 0 and 1")
        piece = int(np.searchsorted(self.t[0::2], threshold, side="right")) - 1
        return self.models[int(self.winner[piece])]

    def decide(self, threshold: float, probabilities: Mapping[str, Any]) -> NDArray[np.bool_]:
        """The hybrid classifier: decide by the best model's probabilities of new rows at this threshold."""
        name = self.best_at(threshold)
        if name not in probabilities:
            raise ValueError(
                f"probabilities lack the model {name!r}, which is best at threshold {threshold:g}: pass it"
            )
        return np.asarray(as_floats(probabilities[name], f"probabilities[{name!r}]") > threshold)


def hybrid_curve(models: Mapping[str, Any], **options: Any) -> HybridData:
    """The cost of deciding by the better model at every cost ratio, and which model that is.

    Examples
    --------
    >>> from calibrary.plots import hybrid_curve
    >>> y = [0, 0, 1, 1]
    >>> hybrid = hybrid_curve({"low": (y, [0.1, 0.3, 0.2, 0.4]), "high": (y, [0.7, 0.6, 0.8, 0.9])})
    >>> hybrid.best_at(0.15), hybrid.best_at(0.65)
    ('low', 'high')
    """
    made = each_model(models, brier_curve, **options)
    curves = [(d.t, d.total, np.full(len(d.t) // 2, i)) for i, d in enumerate(made.values())]
    t, cost, winner = reduce(_lower, curves)
    return HybridData(t, cost, _area(t, cost), tuple(made), winner)


_Curve = tuple[Array, Array, Indices]


def _lower(a: _Curve, b: _Curve) -> _Curve:
    """Pointwise minimum of two piecewise linear curves, and which curve is lower on each piece."""
    edges = np.unique(np.concatenate([a[0], b[0]]))
    left, right = edges[:-1], edges[1:]
    a0, a1 = _on_pieces(a[0], a[1], left, right)
    b0, b1 = _on_pieces(b[0], b[1], left, right)
    of_a, of_b = (x[2][np.searchsorted(x[0][0::2], left, side="right") - 1] for x in (a, b))
    before, after = a0 - b0, a1 - b1
    cross = before * after < 0
    share = before[cross] / (before[cross] - after[cross])
    place, height = left[cross] + share * (right - left)[cross], a0[cross] + share * (a1 - a0)[cross]
    low0, low1 = np.minimum(a0, b0), np.minimum(a1, b1)
    pieces = np.column_stack([left, right, low0, low1])
    second = np.column_stack([place, right[cross], height, low1[cross]])
    pieces[cross, 1], pieces[cross, 3] = place, height
    every = np.concatenate([pieces, second])
    whose = np.concatenate([np.where(before + after * ~cross <= 0, of_a, of_b), np.where(after < 0, of_a, of_b)[cross]])
    order = np.lexsort((every[:, 1], every[:, 0]))
    every = every[order]
    return every[:, :2].ravel(), every[:, 2:].ravel(), whose[order]


def _on_pieces(t: Array, value: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """One-sided values at both ends of intervals that no corner of the curve divides."""
    piece = np.searchsorted(t[0::2], left, side="right") - 1
    start, end = t[0::2][piece], t[1::2][piece]
    first, last = value[0::2][piece], value[1::2][piece]
    slope = (last - first) / np.where(end > start, end - start, 1.0)
    return first + slope * (left - start), first + slope * (right - start)


# -- drawing ----------------------------------------------------------------------------------------


def _several(ax: Any, look: style.Look, models: dict[str, BrierCurveData]) -> Said:
    for i, (name, data) in enumerate(models.items()):
        at = style.corners(data.total, 2 * _MOST)
        ax.plot(
            data.t[at], data.total[at], lw=1.6, label=f"{for_figure(name)}: Brier {data.area[0]:.4f}", **look.nth(i)
        )
    hybrid = hybrid_curve(models)
    at = style.corners(hybrid.cost, _MOST)
    shade = {"color": look.light, "alpha": 0.6, "lw": 0, "zorder": 1, "label": f"hybrid: {hybrid.area:.4f}"}
    ax.fill_between(hybrid.t[at], 0, hybrid.cost[at], **shade)
    _frame(ax, max(float(d.total.max()) for d in models.values()))
    for low, high, name in hybrid.ranges:  # a strip along the axis in the colour of the best model
        color = look.nth(hybrid.models.index(name))["color"]
        ax.axvspan(low, high, ymin=0.0, ymax=0.025, color=color, lw=0, zorder=4)
    first = next(iter(models.values()))
    return said("brier-of-several-models", facts(models, first.lens, "areas are Brier scores"))


@drawn(BrierCurveData, brier_curve, size=(5.6, 5.2), several=_several)
def plot_brier_curve(ax: Any, look: style.Look, data: BrierCurveData, *, cost_lines: bool = False) -> Said:
    """Brier curve with its two class terms; the area under it is the Brier score, under the cost curve what is left
    after the best monotone recalibration.

    Takes the arguments of :func:`brier_curve` or its result; or a dict {"model": (y, p), ...}, whose curves are
    overlaid with their pointwise minimum, the hybrid. ``cost_lines`` draws the cost of fixed thresholds. Returns the
    matplotlib Axes.
    """
    at = style.corners(data.total, _MOST)
    t, low, high = data.t[at], data.class_0[at], data.total[at]
    ax.fill_between(t, 0, low, color=look.model, alpha=0.4, lw=0, label="class 0: false alarms")
    ax.fill_between(t, low, high, color=look.second, alpha=0.5, lw=0, label="class 1: misses")
    ax.plot(t, high, color=look.ink, lw=1.3, label="Brier curve")
    if cost_lines:
        _cost_lines(ax, look, data)
    at = style.corners(data.cost, _MOST)
    ax.plot(data.cost_t[at], data.cost[at], color=look.gap, lw=2, ls="--", label="cost curve: best threshold")
    _frame(ax, float(data.total.max()))
    return said(
        "brier-curve",
        f"Brier score {data.area[0]:.4f} = false alarms {data.area[1]:.4f} + misses {data.area[2]:.4f} · "
        + facts(data.n, data.lens),
        data=data,
        removed=data.area[0] - data.cost_area,
    )


def _cost_lines(ax: Any, look: style.Look, data: BrierCurveData) -> None:
    from matplotlib.collections import LineCollection

    at = np.unique(np.linspace(0, len(data.lines) - 1, min(len(data.lines), 41)).astype(int))
    lines = [[(0, a), (1, b)] for a, b in data.lines[at]]
    ax.add_collection(
        LineCollection(lines, color=look.gray, lw=0.6, alpha=0.6, zorder=1.5, label="cost of one fixed threshold")
    )


def _frame(ax: Any, top: float) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * max(top, 1e-9)), ylabel="Cost")
    ax.set_xlabel("Threshold = share of cost of false alarms")

"""The decision curve with the regret of miscalibrated probabilities, and the Murphy diagram of several models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.numbers import ends, number, percent
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions, predictions
from calibrary.diagnostics.decisions import checked_thresholds, decision_curve, murphy_curve, regret_curve
from calibrary.inference.draw.bands import on_labels
from calibrary.metrics.decision.cost import Regret, cost_curve, cost_of
from calibrary.plots import style
from calibrary.plots.axis import Axis, along, apart, axis_of, part_of
from calibrary.plots.data import FigureData, binary_view, cells, facts
from calibrary.plots.frame import Said, drawn, each_model, said
from calibrary.plots.pointed import tooltips

#: Thresholds at which smooth lines are drawn, and corners of an exact one.
_POINTS, _CORNERS = 400, 1500
#: The curve of the model in the legend.
_MODEL = "acting on the model"
_TICKS = np.array(
    [1e-5, 1e-4, 1e-3, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1 - 1e-4, 1 - 1e-5]
)


@dataclass(frozen=True)
class DecisionData(FigureData):
    """Net benefit and regret over thresholds.

    Attributes
    ----------
    threshold, net_benefit, low, high : the decision curve and its pointwise interval
    treat_all : net benefit of acting on everybody (on nobody: 0)
    corner, regret : corners of the regret curve, in pairs: the two ends of each linear piece
    regret_null : mean regret of a calibrated model with these confidences, at ``threshold``
    score : the distinct confidences (a sample of very many), at which decisions change
    used, benefit_used : the given thresholds, and the net benefit there
    prevalence, decision_loss, worst : share of the event; largest regret over max(t, 1-t), and its threshold
    """

    threshold: Array
    net_benefit: Array
    low: Array
    high: Array
    treat_all: Array
    corner: Array
    regret: Array
    regret_null: Array
    score: Array
    used: Array
    benefit_used: Array
    prevalence: float
    decision_loss: float
    worst: float
    n: float
    lens: str
    level: float
    standardized: bool
    axis: str


def decision_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    thresholds: Any = None,
    limits: tuple[float, float] | None = None,
    axis: str = "auto",
    standardized: bool = False,
    confidence_level: float = 0.95,
    n_resamples: int = 99,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> DecisionData:
    """Net benefit and regret for thresholds within ``limits``.

    ``thresholds`` are marked on the curve. ``axis="log odds"`` (or "logit") is for rare events, with the limits of the
    scores; "probability" (or "linear") is the other; "auto" chooses as :func:`reliability_data` does. ``n_resamples``
    draws of labels give the regret of a calibrated model by chance; 0 omits it.
    """
    one_of("axis", axis, ("auto", "linear", "logit", "probability", "log odds"))
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    if axis == "auto":
        axis = axis_of(view).kind
    axis = "logit" if axis in ("logit", "log odds") else "linear"
    t = _grid(view, axis, limits)
    options: dict[str, Any] = {"standardized": standardized, "confidence_level": confidence_level, "lens": "binary"}
    curve, regret = decision_curve(view, thresholds=t, **options), regret_curve(view, lens="binary")
    used = np.empty(0) if thresholds is None else checked_thresholds(thresholds)
    benefit = decision_curve(view, thresholds=used, **options).net_benefit if len(used) else used
    corner = style.corners(regret.regret, 2 * _CORNERS)
    c = view.ties.c
    return DecisionData(
        t, curve.net_benefit, curve.low, curve.high, curve.treat_all,
        regret.threshold[corner], regret.regret[corner], _null_regret(view, t, n_resamples, rng),
        c[style.thinned(len(c), 500)], used, benefit,
        curve.prevalence, regret.decision_loss, regret.worst, view.total, name, confidence_level, standardized, axis,
    )  # fmt: skip


def _grid(view: Predictions, axis: str, limits: tuple[float, float] | None) -> Array:
    """Thresholds evenly spaced on the axis."""
    if limits is None:
        limits = (0.0025, 0.9975) if axis == "linear" else _span(view)
    pair = as_floats(limits, "limits")
    if pair.shape != (2,) or not 0.0 <= pair[0] < pair[1] <= 1.0:
        raise RefusedError(f"limits={limits!r} must be two thresholds, 0 <= low < high <= 1")
    low, high = np.clip(limits, 1e-6, 1 - 1e-6)
    if axis == "linear":
        return np.linspace(low, high, _POINTS)
    return scipy.special.expit(np.linspace(scipy.special.logit(low), scipy.special.logit(high), _POINTS))


def _span(view: Predictions) -> tuple[float, float]:
    """The range of nearly all scores, and at least 0.3 to 0.7."""
    reached = np.cumsum(view.ties.w) / view.total
    low, high = view.ties.c[np.minimum(np.searchsorted(reached, (0.005, 0.995)), len(reached) - 1)]
    return float(np.clip(low, 1e-5, 0.3)), float(np.clip(high, 0.7, 1 - 1e-5))


def _null_regret(view: Predictions, t: Array, draws: int, rng: Any) -> Array:
    """Mean regret at t of labels drawn from the confidences (merged into cells where there are very many)."""
    from scipy.optimize import isotonic_regression

    if not draws:
        return np.full(len(t), np.nan)
    some = cells(view)
    n = np.maximum(np.rint(some.weight), 1.0)

    def regret(events: Any) -> Array:
        ones = events.astype(np.float64)
        fitted = isotonic_regression(ones / n, weights=n).x
        return Regret(cost_curve(some.c, n, ones), cost_curve(fitted, n, ones)).at(t)

    return on_labels(regret, n.astype(np.int64), np.clip(some.c, 0.0, 1.0), draws, rng).mean(axis=0)


# -- drawing ------------------------------------------------------------------------------------------


def _several(ax: Any, look: style.Look, models: dict[str, DecisionData]) -> Said:
    first = next(iter(models.values()))
    _references(ax, look, first)
    _frame(ax, list(models.values()))
    below = _regret_panel(ax, look, list(models.values()))
    for i, (name, data) in enumerate(models.items()):
        text = f"{name}: decision loss {data.decision_loss:.3f}"
        ax.plot(data.threshold, data.net_benefit, lw=1.7, label=text, zorder=3, **look.nth(i))
        t, regret = _inside(data)
        at = style.corners(regret, 600)
        below.plot(t[at], regret[at], lw=1.1, **look.nth(i))
    for t in first.used:
        ax.axvline(t, color=look.second, lw=1.0, zorder=1)
    return said(
        "decision-of-several-models", f"prevalence {first.prevalence:.3g} · {facts(models, first.lens)}", below=below
    )


def _alike(models: Mapping[str, Any], make: Any, **options: Any) -> dict[str, DecisionData]:
    """The data of each model, on one kind of axis."""
    made = each_model(models, make, **options)
    if len({data.axis for data in made.values()}) > 1:
        made = each_model(models, make, **options | {"axis": "linear"})
    return made


@drawn(DecisionData, decision_data, size=(5.8, 6.8), several=_several, gather=_alike)
def plot_decision(ax: Any, look: style.Look, data: DecisionData) -> Said:
    """Decision curve: net benefit with its interval, compared with acting on everybody and nobody; below, the regret.

    Takes the arguments of :func:`decision_data` or its result; or several models, as ``models={"name": y_prob, ...}``
    on the same labels or as a dict {"name": (y, p), ...} in place of the labels. Returns the matplotlib Axes.
    """
    _references(ax, look, data)
    style.band(ax, data.threshold, data.low, data.high, look.model, 0.2, f"{data.level:.0%} interval")
    ax.plot(data.threshold, data.net_benefit, color=look.model, lw=1.8, label=_MODEL, zorder=3)
    tooltips(ax, data.threshold, data.net_benefit, lambda i: _words(data, i), series=_MODEL, curve=True)
    ax.vlines(data.score, 0.0, 0.018, transform=ax.get_xaxis_transform(), color=look.gray, lw=0.5, alpha=0.6, zorder=1)
    _in_use(ax, look, data)
    _frame(ax, [data])
    below = _regret_panel(ax, look, [data])
    t, regret = _inside(data)
    below.fill_between(t, 0, regret, color=look.gap, alpha=0.3, lw=0)
    below.plot(t, regret, color=look.gap, lw=1.1)
    tooltips(below, t, regret, lambda i: f"act from {number(t[i])}\nregret {number(regret[i])}", curve=True)
    if np.isfinite(data.regret_null).any():
        dashed = {"color": look.gray, "lw": 1.2, "ls": style.DASHED}
        below.plot(data.threshold, data.regret_null, label="mean if calibrated", **dashed)
        below.legend(frameon=False, fontsize=7.5, labelcolor=look.ink, loc="upper right", borderpad=0.1)
    return said(
        "decision",
        f"prevalence {data.prevalence:.3g} · {facts(data.n, data.lens)} · decision loss "
        f"{data.decision_loss:.4f}, at threshold {data.worst:.3g}",
        below=below,
    )


def _words(data: DecisionData, i: int) -> str:
    """The tooltip of a threshold."""
    return (
        f"act from {number(data.threshold[i])}\nnet benefit {number(data.net_benefit[i])}, "
        f"{percent(data.level)} interval {ends(data.low[i], data.high[i])}\n"
        f"acting on everybody {number(data.treat_all[i])}, on nobody 0"
    )


def _references(ax: Any, look: style.Look, data: DecisionData) -> None:
    """The reference lines: acting on everybody and on nobody."""
    ax.axhline(0, color=look.ink, lw=1.1, ls=style.DASHED, zorder=2, label="acting on nobody")
    ax.plot(data.threshold, data.treat_all, color=look.gray, lw=1.3, ls="-.", zorder=2, label="acting on everybody")


def _in_use(ax: Any, look: style.Look, data: DecisionData) -> None:
    """The given thresholds, each with its net benefit."""
    for t, value in zip(data.used, data.benefit_used, strict=True):
        ax.axvline(t, color=look.second, lw=1.0, zorder=1)
        ax.plot(t, value, "o", color=look.second, ms=6, mec=look.paper, zorder=5)
        ax.annotate(
            f"{t:g}: {value:.3f}", (t, value), xytext=(5, 6), textcoords="offset points", fontsize=8, color=look.ink,
            zorder=6,
        )  # fmt: skip


def _frame(ax: Any, models: list[DecisionData]) -> None:
    first = models[0]
    highest = max(float(d.high.max()) for d in models)
    top = 1.08 * max(highest, 1.0 if first.standardized else first.prevalence, 1e-6)
    lowest = min(float(np.min(d.net_benefit)) for d in models)
    ax.set_ylim(max(min(1.15 * lowest, -0.12 * top), -0.5 * top), top)
    ax.set(xlabel="Threshold probability", ylabel="Standardized net benefit" if first.standardized else "Net benefit")
    _threshold_axis(ax, first)


def _threshold_axis(ax: Any, data: DecisionData) -> None:
    low, high = float(data.threshold[0]), float(data.threshold[-1])
    if data.axis == "linear":
        ax.set_xlim(0.0 if low < 0.01 else low, 1.0 if high > 0.99 else high)
        return
    ax.set_xscale("logit")
    ax.set_xlim(low, high)
    inside = _TICKS[(low <= _TICKS) & (high >= _TICKS)]
    ticks = apart(inside.tolist(), Axis("log odds", low, high), 0.085)
    ax.set_xticks(ticks, [percent(tick) for tick in ticks])
    ax.set_xticks([], minor=True)


def _regret_panel(ax: Any, look: style.Look, models: list[DecisionData]) -> Any:
    below = style.panel(ax, look, height=0.3)
    seen = [float(np.nanmax(np.append(d.regret, d.regret_null))) for d in models]
    below.set(ylim=(0, 1.25 * max([*seen, 1e-9])), ylabel="Regret")
    return below


def _inside(data: DecisionData) -> tuple[Array, Array]:
    """The corners of the regret inside the axis limits; a log-odds axis has no 0 and 1."""
    kept = (data.corner >= data.threshold[0]) & (data.corner <= data.threshold[-1])
    return data.corner[kept], data.regret[kept]


# -- Murphy diagram -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MurphyData(FigureData):
    """The cost of deciding by a model at every threshold: corners, in pairs: the two ends of each linear piece.

    ``prevalence`` is the share of the event, from which the cost of predicting it for every row follows.
    """

    threshold: Array
    cost: Array
    brier: float
    n: float
    lens: str
    prevalence: float = float("nan")


@dataclass(frozen=True)
class MurphyDifference(FigureData):
    """Cost of one model minus that of another on the same rows, with a pointwise interval."""

    threshold: Array
    difference: Array
    low: Array
    high: Array
    level: float


def murphy_data(y_true: Any, y_prob: Any = None, *, lens: Any = "auto", **checked: Any) -> MurphyData:
    """Elementary scores (1-t) P(y=1, c<=t) + t P(y=0, c>t) of one model."""
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    curve = murphy_curve(view, lens="binary")
    return MurphyData(curve.threshold, curve.cost, curve.brier, view.total, name, float(view.mean(view.y)))


def murphy_difference(
    a: Predictions, b: Predictions, *, confidence_level: float = 0.95, lens: Any = "auto"
) -> MurphyDifference:
    """Cost of a minus cost of b, two sets of predictions of the same rows, with the paired pointwise interval."""
    one, other = binary_view(a, lens=lens)[0], binary_view(b, lens=lens)[0]
    if not np.array_equal(one.y, other.y):
        raise RefusedError("the models have different labels: a Murphy difference needs predictions of the same rows")
    t = np.linspace(0.0025, 0.9975, _POINTS)
    difference = cost_of(one).at(t) - cost_of(other).at(t)
    y, w = one.y == 1, one.weight / one.total
    square = np.empty(len(t))
    for i, s in enumerate(t):  # a row counts at thresholds at which the two models lead to different decisions
        apart = (one.c > s) != (other.c > s)
        square[i] = float(w @ (apart * np.where(y, 1.0 - s, s) ** 2))
    error = np.sqrt(np.maximum(square - difference**2, 0.0) / one.total)
    half = float(scipy.special.ndtri(0.5 + confidence_level / 2.0)) * error
    return MurphyDifference(t, difference, difference - half, difference + half, confidence_level)


def plot_murphy(
    y_true: Any,
    y_prob: Any = None,
    *,
    models: Mapping[str, Any] | None = None,
    ax: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Murphy diagram: the cost at every threshold; a model that is lower everywhere is better in every proper score.

    Takes one model, ``models={"name": y_prob, ...}`` on the same labels, or a dict {"name": (y, p), ...}. For two
    models of the same rows the difference is drawn below, with its pointwise 95% interval. Returns the matplotlib Axes.
    """
    if models is not None:
        y_true = {name: (y_true, p) for name, p in models.items()}
    given = y_true if isinstance(y_true, Mapping) else {"": y_true if y_prob is None else (y_true, y_prob)}
    made = each_model(given, murphy_data, **options)
    gap = _difference(list(given.values()), options) if len(made) == 2 else None
    ax, look = style.new_axes(ax, theme, size=(5.8, 5.0 + 0.1 * len(made) + (1.7 if gap else 0.0)))
    for i, (name, data) in enumerate(made.items()):
        at = style.corners(data.cost, 2 * _CORNERS)
        label = f"{name}: Brier {data.brier:.4f}" if name else f"Brier score {data.brier:.4f}"
        ax.plot(data.threshold[at], data.cost[at], lw=1.5, label=label, **look.nth(i))
    share = next(iter(made.values())).prevalence
    if np.isfinite(share):
        t = np.linspace(0.0, 1.0, 501)
        label = f"predicting {percent(share)} for every case"
        cost = np.minimum((1.0 - t) * share, t * (1.0 - share))
        ax.plot(t, cost, color=look.gray, lw=1.1, ls=style.DASHED, label=label, zorder=1)
    highest = max([share * (1.0 - share) if share >= 0.0 else 0.0, *(float(d.cost.max()) for d in made.values())])
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * max(highest, 1e-9)), xlabel="Threshold", ylabel="Mean elementary score")
    stated = np.concatenate([data.threshold for data in made.values()])
    axis = part_of(stated[(stated > 0.0) & (stated < 1.0)])
    if not axis.whole:
        along(ax, axis)
    below = None if gap is None else _difference_panel(ax, look, gap, list(made))
    first = next(iter(made.values()))
    return style.finish(
        ax,
        look,
        "Murphy diagram",
        facts(first.n, first.lens, "twice the area under a line is its Brier score"),
        "The cost of acting above each threshold, misses weighing 1 - t and false alarms t. Lower is better; lower "
        "everywhere is better in every proper score. Dashed: the share of the event predicted for every case."
        + (" The threshold is drawn where there are predictions." if not axis.whole else "")
        + ("" if gap is None else f" Below: the difference with its pointwise {gap.level:.0%} interval."),
        caption=caption,
        legend="above",
        below=below,
    )


def _difference(given: list[Any], options: dict[str, Any]) -> MurphyDifference | None:
    """The difference of two models, where both are predictions of the same rows."""
    lens = options.get("lens", "auto")
    checked = {name: value for name, value in options.items() if name != "lens"}
    if any(isinstance(g, FigureData) for g in given):
        return None
    a, b = (predictions(*g, **checked) if isinstance(g, tuple | list) else predictions(g, **checked) for g in given)
    return murphy_difference(a, b, lens=lens) if a.n == b.n and np.array_equal(a.y, b.y) else None


def _difference_panel(ax: Any, look: style.Look, gap: MurphyDifference, names: list[str]) -> Any:
    below = style.panel(ax, look, height=0.34)
    below.axhline(0, color=look.gray, lw=1, ls=style.DASHED)
    below.fill_between(gap.threshold, gap.low, gap.high, color=look.gap, alpha=0.25, lw=0)
    below.plot(gap.threshold, gap.difference, color=look.gap, lw=1.3)
    below.set_ylabel("Difference")
    below.text(
        0.01, 0.97, f"below 0: {names[0]} is better", transform=below.transAxes, va="top", fontsize=7.5, color=look.gray
    )
    return below

"""Decisions at the thresholds in use: net benefit of acting on the model, and regret from its miscalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import counted, ends, percent
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.diagnostics.decisions import checked_thresholds, decision_curve
from calibrary.maps.cross_fitted import assigned_folds, cross_fitted
from calibrary.recalibrate.scores import MeanWithError
from calibrary.reporting.sections import Context, Figure, Section, Table, section

#: With fewer rows, or fewer of either outcome, decisions are not judged.
LEAST_ROWS, LEAST_EVENTS = 30, 5
#: Rows up to which the figure shows the regret expected by chance, from redrawn labels.
_DRAWN_ROWS = 200_000


@dataclass(frozen=True)
class ThresholdDecision:
    """Acting at one threshold.

    Attributes
    ----------
    threshold, acted : the threshold, and the share of rows at or above it
    net_benefit, low, high : true positives less false ones at the threshold's exchange rate, per row, with interval
    treat_all : net benefit of acting on every row; acting on none is 0
    advantage, advantage_low, advantage_high : net benefit less that of the better of the two
    regret, regret_low, regret_high : cost saved by acting on recalibrated probabilities, on rows the map has not seen
    """

    threshold: float
    acted: float
    net_benefit: float
    low: float
    high: float
    treat_all: float
    advantage: float
    advantage_low: float
    advantage_high: float
    regret: float
    regret_low: float
    regret_high: float


Decision = ThresholdDecision  # its name in 0.2, which pickles and imports may have


@section("decisions")
def decisions(context: Context) -> Section | None:
    """Net benefit and regret at every threshold in use, against acting on every row and on none."""
    asked = context.asked.thresholds
    if asked is None or not np.size(asked):
        return None
    thresholds, view = np.unique(checked_thresholds(asked)), context.view
    why = too_little(view)
    title = "Decisions"
    if why:
        return Section("decisions", title, (f"Decisions were not judged: {why}.",))
    level = context.question.confidence_level
    question = context.question
    found = assessed(view, thresholds, level, question.weight_type, question.rng)
    return Section(
        "decisions",
        title,
        tuple(decision_words(d, level) for d in found),
        (_table(found, level),),
        (_figure(context, thresholds),),
        {"decisions": [asdict(d) for d in found], "confidence_level": level, "lens": context.headline_view[1]},
    )


def too_little(view: Predictions) -> str:
    """The reason why decisions cannot be judged; empty if they can."""
    if view.fractional:
        return "the labels are shares, and an action is right or wrong"
    if view.n < LEAST_ROWS and view.total < LEAST_ROWS:
        return f"{counted(view.n, 'row')} are too few (at least {LEAST_ROWS} are needed)"
    events = view.total * float(view.mean(view.y))
    rarer = min(events, view.total - events)
    return (
        f"only {rarer:.3g} rows have the rarer outcome (at least {LEAST_EVENTS} are needed)"
        if rarer < LEAST_EVENTS
        else ""
    )


def assessed(
    view: Predictions, thresholds: Array, level: float, weight_type: str = "frequency", rng: Any = 0
) -> list[ThresholdDecision]:
    """Every threshold with its numbers; intervals are normal, from each row's contribution to the difference."""
    curve = decision_curve(view, thresholds=thresholds, confidence_level=level, lens="binary")
    with collected_warnings():
        fitted = _recalibrated(view, rng)
    mean = _interval_of_mean(view, level, weight_type)
    found = []
    for t, all_rows in zip(curve.threshold.tolist(), curve.treat_all.tolist(), strict=True):
        worth = np.where(view.y == 1, 1.0, -t / (1.0 - t))  # of acting on a row
        acts = view.c >= t
        benefit = mean(np.where(acts, worth, 0.0))
        other = worth if all_rows > 0.0 else np.zeros(view.n)
        advantage = mean(np.where(acts, worth, 0.0) - other)
        regret = mean((1.0 - t) * worth * ((fitted >= t) * 1.0 - acts))
        found.append(ThresholdDecision(t, float(view.mean(acts)), *benefit, all_rows, *advantage, *regret))
    return found


def _interval_of_mean(
    view: Predictions, level: float, weight_type: str
) -> Callable[[Array], tuple[float, float, float]]:
    """A function that gives the mean of a number per row, and its normal interval over rows or units."""
    whole = view.w is None or bool((view.w == np.rint(view.w)).all())
    of_rows = MeanWithError(view, weight_type if whole else "importance")  # no counts: factors
    z = float(scipy.special.ndtri(0.5 + level / 2.0))

    def mean(x: Array) -> tuple[float, float, float]:
        value, error = of_rows(x)
        return value, value - z * error, value + z * error

    return mean


def _recalibrated(view: Predictions, rng: Any) -> Array:
    """Every row's probability by the isotonic map of the other folds."""
    return np.clip(cross_fitted(view, "isotonic", assigned_folds(view, 5, rng)), 0.0, 1.0)


# -- sentences ---------------------------------------------------------------------------------------


def decision_words(d: ThresholdDecision, level: float) -> Sentence:
    """One threshold: better or worse than acting on everybody or nobody, or not significant; and the regret."""
    other = "acting on every row" if d.treat_all > 0.0 else "acting on none"
    if d.advantage_low > 0.0:
        more, size = "better than", (d.advantage, d.advantage_low, d.advantage_high)
    elif d.advantage_high < 0.0:
        more, size = "worse than", (-d.advantage, -d.advantage_high, -d.advantage_low)
    else:
        more, size = "not significantly better or worse than", (d.advantage, d.advantage_low, d.advantage_high)
    decided = d.advantage_low > 0.0 or d.advantage_high < 0.0
    value, low, high = map(_thousand, size)
    said = (
        f"At threshold {d.threshold:g}, acting on the model is {more} {other}"
        f"{', by' if decided else '; the difference is'} "
        f"{value} net true positives per 1,000 rows ({percent(level)} interval {low} to {high})."
    )
    default = "every row" if d.treat_all > 0.0 else "none"
    shown = (Claim(said, "worth acting", threshold=d.threshold, default=default, sign=math.copysign(1.0, d.advantage)),)
    return Sentence.joined(" ", [Sentence(said, *(shown if decided else ())), _regret_words(d)])


def _regret_words(d: ThresholdDecision) -> Sentence:
    """Whether decisions by recalibrated probabilities would cost less."""
    if d.regret_low > 0.0:
        said = (
            "Recalibrated probabilities would improve decisions at this threshold: they would lower the cost by "
            f"{_thousand(d.regret)} per 1,000 rows, where a miss costs {1.0 - d.threshold:.4g} and a false alarm "
            f"{d.threshold:g}."
        )
        return Sentence(said, Claim(said, "decides better", threshold=d.threshold))
    return Sentence("There is no evidence that recalibration would improve decisions at this threshold.")


def _thousand(x: float) -> str:
    return f"{1000.0 * x:.1f}"


def _table(found: list[ThresholdDecision], level: float) -> Table:
    rows = tuple(
        (f"{d.threshold:g}", d.acted, d.net_benefit, ends(d.low, d.high), d.treat_all, d.advantage,
         ends(d.advantage_low, d.advantage_high), d.regret, ends(d.regret_low, d.regret_high))
        for d in found
    )  # fmt: skip
    head = (
        "threshold", "acted on", "net benefit", "interval", "acting on all", "more than the better default", "interval",
        "regret", "interval",
    )  # fmt: skip
    return Table(
        head,
        rows,
        "Net benefit: true positives per row minus t/(1-t) times the false positives per row, at the threshold t; "
        "acting on none has net benefit 0. Regret: what acting on recalibrated probabilities would save per row, where "
        f"a miss costs 1-t and a false alarm t, on rows the map was not fitted to. {percent(level)} intervals.",
    )


def _figure(context: Context, thresholds: Array) -> Figure:
    from calibrary.plots.decision import plot_decision

    view = context.view
    draws = 0 if view.n > _DRAWN_ROWS else min(context.draws, 99)
    chance = "; the dashed line is the mean of a calibrated model" if draws else ""
    caption = (
        f"Net benefit with its {percent(context.question.confidence_level)} interval; the thresholds in use are "
        "marked. Acting on the model is better than both defaults where its line is above both others. Below: the "
        "regret of acting on the given instead of recalibrated probabilities, with the map fitted and judged on the "
        f"same rows{chance}."
    )
    draw = partial(
        plot_decision, view, thresholds=thresholds, n_resamples=draws, lens="binary", axis=_axis(view), caption=False,
        confidence_level=context.question.confidence_level,
    )  # fmt: skip
    return Figure("Decision curve", caption, draw)


def _axis(view: Predictions) -> str:
    """Thresholds of rare events lie close to 0: in log odds they have room."""
    share = float(view.mean(view.y))
    return "logit" if min(share, 1.0 - share) < 0.05 else "linear"

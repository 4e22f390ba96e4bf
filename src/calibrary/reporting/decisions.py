"""Decisions at the thresholds in use: net benefit of acting on the model, and regret from its miscalibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import counted, ends, percent
from calibrary.base.saved import SavedFileError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.diagnostics.decisions import checked_thresholds, decision_curve
from calibrary.inference.result import Estimate
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
    net_benefit : true positives less false ones at the threshold's exchange rate, per row
    treat_all : net benefit of acting on every row; acting on none is 0
    advantage : net benefit less that of the better of the two
    regret : cost saved by acting on recalibrated probabilities, on rows the map has not seen
    """

    threshold: float
    acted: float
    treat_all: float
    net_benefit: Estimate
    advantage: Estimate
    regret: Estimate

    def to_dict(self) -> dict[str, float]:
        """The numbers in a saved report."""
        found = {"threshold": self.threshold, "acted": self.acted, "treat_all": self.treat_all}
        for name, start in (("net_benefit", ""), ("advantage", "advantage_"), ("regret", "regret_")):
            each = getattr(self, name)
            found |= {name: each.value, f"{start}low": each.low, f"{start}high": each.high}
        return found


Decision = ThresholdDecision  # its name in 0.2, which pickles and imports may have


@section("decisions")
def decisions(context: Context) -> Section | None:
    """Net benefit and regret at every threshold in use, against acting on every row and on none."""
    asked = context.settings.thresholds
    if asked is None or not np.size(asked):
        return None
    thresholds, view = np.unique(checked_thresholds(asked)), context.view
    why = too_little(view)
    title = "Decisions"
    if why:
        return Section("decisions", title, (f"Decisions were not judged: {why}.",))
    question, level = context.question, context.question.confidence_level
    found = assessed(view, thresholds, level, question.weight_type, question.rng)
    data = {"decisions": [d.to_dict() for d in found], "confidence_level": level, "lens": context.headline_view[1]}
    said, figures = tuple(decision_words(d, level) for d in found), (_figure(context, thresholds),)
    return Section("decisions", title, said, (_table(found, level),), figures, data)


def too_little(view: Predictions) -> str:
    """The reason why decisions cannot be judged; empty if they can."""
    if view.fractional:
        return "the labels are shares, and an action is right or wrong"
    if view.n < LEAST_ROWS and view.total < LEAST_ROWS:
        return f"{counted(view.n, 'row')} are too few (at least {LEAST_ROWS} are needed)"
    events = view.total * float(view.mean(view.y))
    rarer = min(events, view.total - events)
    said = f"only {rarer:.3g} rows have the rarer outcome (at least {LEAST_EVENTS} are needed)"
    return said if rarer < LEAST_EVENTS else ""


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
        found.append(ThresholdDecision(t, float(view.mean(acts)), all_rows, benefit, advantage, regret))
    return found


def _interval_of_mean(view: Predictions, level: float, weight_type: str) -> Callable[[Array], Estimate]:
    """A function that gives the mean of a number per row, and its normal interval over rows or units."""
    whole = view.w is None or bool((view.w == np.rint(view.w)).all())
    of_rows = MeanWithError(view, weight_type if whole else "importance")  # no counts: factors
    z = float(ndtri(0.5 + level / 2.0))

    def mean(x: Array) -> Estimate:
        value, error = of_rows(x)
        return Estimate(value, value - z * error, value + z * error, level, error)

    return mean


def _recalibrated(view: Predictions, rng: Any) -> Array:
    """Every row's probability by the isotonic map of the other folds."""
    return np.clip(cross_fitted(view, "isotonic", assigned_folds(view, 5, rng)), 0.0, 1.0)


# -- sentences ---------------------------------------------------------------------------------------


def decision_words(d: ThresholdDecision, level: float) -> Sentence:
    """One threshold: better or worse than acting on everybody or nobody, or not significant; and the regret."""
    other = "acting on every row" if d.treat_all > 0.0 else "acting on none"
    size = (d.advantage.value, *d.advantage)
    decided = d.advantage.low > 0.0 or d.advantage.high < 0.0
    more = "better than" if d.advantage.low > 0.0 else "not significantly better or worse than"
    if d.advantage.high < 0.0:
        more, size = "worse than", (-d.advantage.value, -d.advantage.high, -d.advantage.low)
    value, low, high = map(_thousand, size)
    said = (
        f"At threshold {d.threshold:g}, acting on the model is {more} {other}"
        f"{', by' if decided else '; the difference is'} "
        f"{value} net true positives per 1,000 rows ({percent(level)} interval {low} to {high})."
    )
    facts = {"default": other.removeprefix("acting on "), "sign": math.copysign(1.0, d.advantage.value)}
    shown = [Claim(said, "worth acting", threshold=d.threshold, **facts)] if decided else []
    return Sentence.joined(" ", [Sentence(said, *shown), _regret_words(d)])


def _regret_words(d: ThresholdDecision) -> Sentence:
    """Whether decisions by recalibrated probabilities would cost less."""
    if d.regret.low > 0.0:
        said = (
            "Recalibrated probabilities would improve decisions at this threshold: they would lower the cost by "
            f"{_thousand(d.regret.value)} per 1,000 rows, where a miss costs {1.0 - d.threshold:.4g} and a false alarm "
            f"{d.threshold:g}."
        )
        return Sentence(said, Claim(said, "decides better", threshold=d.threshold))
    return Sentence("There is no evidence that recalibration would improve decisions at this threshold.")


def _thousand(x: float) -> str:
    return f"{1000.0 * x:.1f}"


def _table(found: list[ThresholdDecision], level: float) -> Table:
    rows = tuple(
        (f"{d.threshold:g}", d.acted, d.net_benefit.value, ends(*d.net_benefit), d.treat_all, d.advantage.value,
         ends(*d.advantage), d.regret.value, ends(*d.regret))
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
    share = float(view.mean(view.y))
    axis = "logit" if min(share, 1.0 - share) < 0.05 else "linear"  # thresholds of rare events lie close to 0
    draw = partial(
        plot_decision, view, thresholds=thresholds, n_resamples=draws, lens="binary", axis=axis, caption=False,
        confidence_level=context.question.confidence_level,
    )  # fmt: skip
    return Figure.captioned("decision", draw, level=percent(context.question.confidence_level), chance=chance)


# -- acting on rows at or above a threshold, for each threshold of a page -----------------------------------


#: The thresholds offered: steps of 0.001 up to 0.02, of 0.005 up to 0.1, of 0.01 from there.
GRID = tuple(
    round(float(t), 4)
    for t in (*np.arange(1, 20) * 0.001, *np.arange(4, 20) * 0.005, *np.arange(10, 100) * 0.01, 0.995)
)
#: Segments whose alarms are listed.
_MOST_SEGMENTS = 12


@dataclass(frozen=True)
class Acting:
    """The effects of acting at each threshold, as shares of all rows, each with its standard error."""

    alarms: tuple[float, ...]
    alarms_se: tuple[float, ...]
    found: tuple[float, ...]
    found_se: tuple[float, ...]
    net: tuple[float, ...]
    net_se: tuple[float, ...]


@dataclass(frozen=True)
class SegmentActing:
    """A segment: its rows, its event rate, and at each threshold its alarms and the events among them."""

    name: str
    n: float
    events: float
    alarms: tuple[float, ...]
    found: tuple[float, ...]


@dataclass(frozen=True)
class ThresholdCurve:
    """Acting on the given probabilities, on recalibrated ones, and in each segment, at the thresholds ``t``.

    ``start`` is the threshold that is shown first, ``events`` how often the event happens, and ``z`` the factor that
    makes an interval of a standard error.
    """

    t: tuple[float, ...]
    start: int
    events: float
    n: float
    z: float
    before: Acting
    after: Acting | None
    map: str
    segments: tuple[SegmentActing, ...]

    def __post_init__(self) -> None:
        size = len(self.t)
        columns = [self.t, *vars(self.before).values(), *(vars(self.after).values() if self.after else ())]
        columns += [x for s in self.segments for x in (s.alarms, s.found)]
        if not 0 <= self.start < size or any(len(x) != size for x in columns):
            raise SavedFileError("the thresholds of a figure have columns of different length")
        if not all(math.isfinite(x) for column in columns for x in column):
            raise SavedFileError("the thresholds of a figure lack some numbers")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words."""
        return asdict(self)


def threshold_curve(
    view: Predictions,
    asked: Any,
    level: float,
    weight_type: str,
    after: tuple[str, Predictions] | None,
    segments: Sequence[tuple[str, Predictions]],
) -> ThresholdCurve | None:
    """The data of the page's threshold slider; None if decisions cannot be judged."""
    if too_little(view):
        return None
    given = [] if asked is None else [float(t) for t in np.unique(asked)]
    t = np.unique([*GRID, *given])
    events = float(view.mean(view.y))
    first = given[0] if given else events
    share, n, z = map(_round, (events, view.total, float(ndtri(0.5 + level / 2.0))))
    name, mapped = ("", None) if after is None else (after[0], _acting(after[1], t, weight_type))
    parts = tuple(_in_segment(name, part, t) for name, part in segments[:_MOST_SEGMENTS])
    acting, start = _acting(view, t, weight_type), int(np.abs(t - first).argmin())
    return ThresholdCurve(tuple(t.tolist()), start, share, n, z, acting, mapped, name, parts)


def _acting(view: Predictions, thresholds: Array, weight_type: str) -> Acting:
    """Every threshold with its three shares and their standard errors."""
    means = _of_counts(view) if view.w is None and view.units is None else _of_rows(view, weight_type)
    table = np.array([means(float(t)) for t in thresholds])
    return Acting(*(tuple(map(_round, column)) for column in table.T.tolist()))


def _of_counts(view: Predictions) -> Callable[[float], tuple[float, ...]]:
    """Means and standard errors for rows that count once, from the numbers of each outcome above a threshold."""
    s, n = view.sorted, view.n
    events = np.append(np.cumsum(s.y[::-1])[::-1], 0.0)

    def error(of_squares: float, mean: float) -> float:
        return math.sqrt(max(of_squares / n - mean * mean, 0.0) / (n - 1.0))

    def means(t: float) -> tuple[float, ...]:
        first = int(s.c.searchsorted(t, side="left"))
        acted, hits, odds = n - first, float(events[first]), t / (1.0 - t)
        a, f, b = acted / n, hits / n, (hits - (acted - hits) * odds) / n
        return a, error(acted, a), f, error(hits, f), b, error(hits + (acted - hits) * odds * odds, b)

    return means


def _of_rows(view: Predictions, weight_type: str) -> Callable[[float], tuple[float, ...]]:
    """The same for rows with weights or units."""
    whole = view.w is None or bool((view.w == np.rint(view.w)).all())
    mean = MeanWithError(view, weight_type if whole else "importance")

    def means(t: float) -> tuple[float, ...]:
        acts = (view.c >= t).astype(np.float64)
        benefit: Array = acts * np.where(view.y == 1, 1.0, -t / (1.0 - t))
        return (*mean(acts), *mean(acts * view.y), *mean(benefit))

    return means


def _in_segment(name: str, part: Predictions, thresholds: Array) -> SegmentActing:
    s = part.sorted
    w = np.ones(part.n) if s.w is None else s.w
    first = s.c.searchsorted(thresholds, side="left")
    above = [np.append(np.cumsum(x[::-1])[::-1], 0.0)[first] / part.total for x in (w, w * s.y)]
    shares = (tuple(map(_round, x.tolist())) for x in above)
    return SegmentActing(name, _round(part.total), _round(float(part.mean(part.y))), *shares)


def _round(x: float) -> float:
    return float(f"{x:.5g}")

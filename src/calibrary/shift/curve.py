"""``shift_curve``: a metric along ordered groups, such as severities of a corruption, months or sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError, one_of
from calibrary.base.markup import Told, html_table, markup
from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.data.asked import checks_options
from calibrary.data.checks import Indices, absent, as_array
from calibrary.data.identity import knows_rows, refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import alpha_of, check_draws, check_level
from calibrary.inference.draw.statistic import entry_of, read_call
from calibrary.inference.result import Estimate
from calibrary.inference.verbs.interval import interval
from calibrary.metrics.machinery.declare import Entry
from calibrary.numerics.draw import seed_of
from calibrary.shift.trend import PairSums

TRENDS = ("weighted", "permutation")
_PARTS = ("Brier score", "calibration part")


@dataclass(frozen=True)
class ShiftCurve(Told, Estimate):
    """A metric along ordered groups: an :class:`Estimate` whose numbers are arrays, one entry for each group.

    Attributes
    ----------
    groups : names of the groups, in order
    n : total weight of each group
    band_low, band_high : the simultaneous band, which contains the true values of all groups at the level
    trend, trend_pvalue : growth of the debiased squared calibration error from group to group (groups weighted by
        size), and the two-sided p-value of no trend
    score, calibration, accuracy : Brier score of each group, its part that is miscalibration (the debiased squared
        error of the classes), and the rest, which is lack of accuracy
    growth : Brier score of the last group minus that of the first
    calibration_share, accuracy_share : shares of the growth that are loss of calibration and loss of accuracy; NaN
        if the score does not grow
    calibration_growth, calibration_growth_se : the part of the growth that is loss of calibration, and its standard
        error
    metric, n_resamples, n_units : the settings; ``n_units`` is 0 without units
    spoken : the short name of the metric
    by : the name of the column of groups, if it has one
    """

    groups: tuple[str, ...] = ()
    n: Any = ()
    band_low: Any = ()
    band_high: Any = ()
    trend: float = math.nan
    trend_pvalue: float = math.nan
    score: Any = ()
    calibration: Any = ()
    accuracy: Any = ()
    growth: float = math.nan
    calibration_share: float = math.nan
    accuracy_share: float = math.nan
    calibration_growth: float = math.nan
    calibration_growth_se: float = math.nan
    metric: str = ""
    n_resamples: int = 0
    n_units: int = 0
    spoken: str = ""
    by: str = ""

    def __len__(self) -> int:
        return len(self.groups)

    def table(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The heading and the rows of the table, one row for each group."""
        head = (self.by or "group", "rows", self.spoken, "interval", "simultaneous band", *_PARTS)
        numbers: list[Any] = [self.n, self.value, self.low, self.high, self.band_low, self.band_high]
        columns = zip(self.groups, *numbers, self.score, self.calibration, strict=True)
        rows = [
            (name, f"{n:,.0f}", number(value), ends(low, high), ends(*band), number(score), number(part))
            for name, n, value, low, high, *band, score, part in columns
        ]
        return head, rows

    def _repr_html_(self) -> str:
        """The sentence and the table as HTML, for notebooks."""
        head, rows = self.table()
        return markup(html_table(("", ""), [("", self.sentence)]), html_table(head, rows))

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw the curve with its intervals and band; returns the matplotlib Axes."""
        from calibrary.plots.results import plot_shift_curve

        return plot_shift_curve(self, ax=ax, caption=caption, theme=theme)


@knows_rows
@checks_options
def shift_curve(
    metric: Any,
    y_true: Any,
    y_prob: Any = None,
    groups: Any = None,
    *,
    order: Sequence[Any] | None = None,
    units: Any = None,
    trend: str = "weighted",
    sample_weight: Any = None,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    weight_type: str = "frequency",
    **options: Any,
) -> ShiftCurve:
    r"""A metric along ordered groups, with a simultaneous band, a test of trend, and a decomposition of the growth.

    The trend is that of the debiased squared calibration error, in bins of equal mass for each group and class. The
    squared error is a sum of products of residuals of two different units, which is unbiased for any number of rows.
    The growth of the Brier score from the first to the last group is split into loss of calibration (the growth of that
    squared error) and loss of accuracy (the rest).

    Parameters
    ----------
    metric : str or callable
        As in :func:`calibrary.interval`.
    y_true, y_prob, sample_weight
        As for every metric.
    groups : array-like of shape (N,)
        The severity, month or site of each row. Numbers and dates are sorted, names are sorted alphabetically,
        unless ``order`` gives the order.
    order : sequence, optional
        The groups from first to last.
    units : array-like of shape (N,), optional
        The unit of each row, which may occur in several groups: the image that was corrupted at every severity.
    trend : "weighted" or "permutation"
        "permutation" permutes the groups and needs five or more groups of equal size.
    n_resamples, confidence_level, rng, weight_type, **options
        As in :func:`calibrary.interval`. The band consists of intervals of level 1 - alpha / groups.

    Returns
    -------
    ShiftCurve

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> severity = np.repeat([0, 1, 2, 3], 500)
    >>> z = rng.normal(0, 2, 2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-z / (1 + severity)))
    >>> found = cal.shift_curve("ece", y, 1 / (1 + np.exp(-z)), severity, n_resamples=99, rng=0)
    >>> found.groups, bool(found.trend_pvalue < 0.01), bool(found.calibration_share > 0.2)
    (('0', '1', '2', '3'), True, True)
    """
    level = check_level(confidence_level)
    one_of("trend", trend, TRENDS)
    refuse_misaligned(y_true=y_true, y_prob=y_prob, groups=groups, units=units, sample_weight=sample_weight)
    keywords = {**options, "sample_weight": sample_weight, "units": units}
    sample, question = read_call(metric, y_true, y_prob, keywords, weight_type=weight_type, confidence_level=level)
    if not sample.of_rows or sample.p.fractional or sample.p.y.ndim != 1:
        raise RefusedError("shift_curve takes predictions with one label a row: pass y_true and y_prob")
    p, importance = sample.p, weight_type == "importance"
    names, place = _places(p, groups, order)
    check_draws(n_resamples, alpha_of(level) / len(names))
    seed = seed_of(rng)
    kept = {**question.options, "lens": question.lens, "average": question.average, "r": question.r}
    settings = {"n_resamples": n_resamples, "rng": seed, "weight_type": weight_type, **_asked(metric, kept)}
    found = []
    for g in range(len(names)):
        part = p.part(np.flatnonzero(place == g))
        own, band = (
            interval(metric, part, confidence_level=at, **settings)
            for at in (level, 1.0 - alpha_of(level) / len(names))
        )
        if own.parts:
            raise RefusedError(f"{metric} has {len(own.parts)} values: choose a metric with one value")
        found.append((own.value, own.low, own.high, min(band.low, own.low), max(band.high, own.high)))
    single = p if importance or p.w is None or p.units is not None else None
    rows, of_row = (p, place) if single is not None else _copies(p, place)
    pairs = PairSums.of(rows, of_row, len(names))
    slope, tested = pairs.trend() if trend == "weighted" else pairs.permutation_test(n_resamples, seed)
    last = np.zeros(len(names))
    last[0], last[-1] = -1.0, 1.0
    lost, error = pairs.combined(last)
    growth = float(pairs.score[-1] - pairs.score[0])
    share = lost / growth if growth > 0.0 else math.nan
    value, low, high, band_low, band_high = np.array(found, dtype=np.float64).T
    result = ShiftCurve(
        value, low, high, level, groups=names, n=pairs.size, band_low=band_low, band_high=band_high, trend=slope,
        trend_pvalue=tested, score=pairs.score, calibration=pairs.squared, accuracy=pairs.score - pairs.squared,
        growth=growth, calibration_share=share, accuracy_share=1.0 - share, calibration_growth=lost,
        calibration_growth_se=error, metric=_name(metric), n_resamples=n_resamples,
        n_units=0 if p.units is None else int(p.units.max()) + 1, spoken=_spoken(metric),
    )  # fmt: skip
    by = getattr(groups, "name", None)  # of a column of pandas or polars
    return replace(result, sentence=_sentence(result, trend), by=by if isinstance(by, str) else "")


def _asked(metric: Any, kept: dict[str, Any]) -> dict[str, Any]:
    """The options of the call that apply to the metric; a user's function gets only its own options."""
    if entry_of(metric) is None:
        return {name: value for name, value in kept.items() if name not in ("lens", "average", "r")}
    return {name: value for name, value in kept.items() if not (name == "r" and value is None)}


def _places(p: Predictions, groups: Any, order: Sequence[Any] | None) -> tuple[tuple[str, ...], Indices]:
    """The names of the groups in order, and the index of each row's group."""
    if groups is None:
        raise RefusedError("groups is missing: pass the severity, month or site of each row")
    values: NDArray[Any] = p.align(as_array(groups, "groups"), "groups")
    gone = absent(values)
    if gone.any():
        at = int(gone.argmax())
        at = at if p.rows is None else int(p.rows[at])
        raise RefusedError(f"groups[{at}] is missing: drop such rows, or assign them to a group")
    if values.dtype.kind == "O":
        numbers = all(isinstance(value, int | float) for value in values)
        values = np.array(values.tolist()) if numbers else values.astype(str)
    known = list(np.unique(values) if order is None else as_array(order, "order").reshape(-1))
    place = np.full(len(values), -1, dtype=np.intp)
    for i, value in enumerate(known):
        place[values == (value if values.dtype.kind not in "US" else str(value))] = i
    for row in np.flatnonzero(place < 0):
        raise RefusedError(f"order does not name the group {values[row]!s}: list every group from first to last")
    empty = [str(value) for i, value in enumerate(known) if not (place == i).any()]
    if empty:
        raise RefusedError(f"the group {empty[0]} of order has no rows: remove it from order")
    if len(known) < 2:
        raise RefusedError(f"groups has only one value ({known[0]!s}): a curve needs at least two groups")
    sizes = np.maximum(np.bincount(place), np.bincount(place, p.weight))
    if sizes.min() < 2:
        raise RefusedError(
            f"the group {known[int(sizes.argmin())]!s} has {sizes.min():g} rows: each group needs at least two; merge "
            "it with a neighbour"
        )
    return tuple(str(value) for value in known), place


def _copies(p: Predictions, place: Indices) -> tuple[Predictions, Indices]:
    """The data with each copy of a weighted row as a separate row."""
    row = np.repeat(np.arange(p.n), p.counts("the trend"))
    part = p.part(row)
    part.w = None
    return part, place[row]


def _name(metric: Any) -> str:
    entry: Entry | None = entry_of(metric)
    return getattr(metric, "__name__", "metric") if entry is None else entry.key


def _spoken(metric: Any) -> str:
    entry = entry_of(metric)
    return _name(metric) if entry is None else entry.spoken or entry.name


def _sentence(r: ShiftCurve, trend: str) -> Sentence:
    values, first, last = np.ravel(r.value), r.groups[0], r.groups[-1]
    said = (
        f"The {r.spoken} is {number(values[0])} in the first group ({first}) and {number(values[-1])} in the last "
        f"({last}); the {percent(r.level)} band of all {counted(len(r), 'group')} at once is "
        f"{ends(r.band_low[0], r.band_high[0])} in the first and {ends(r.band_low[-1], r.band_high[-1])} in the last."
    )
    bands = [
        Claim(said, "interval", metric=f"{r.metric} in {name}", low=r.band_low[i], high=r.band_high[i])
        for i, name in ((0, first), (len(r) - 1, last))
    ]
    how = f"{trend} trend of the squared calibration error, {pvalue(r.trend_pvalue)}"
    second = f"There is no evidence of a trend ({how})."
    if r.trend_pvalue <= alpha_of(r.level):
        way = "grows" if r.trend > 0.0 else "falls"
        second = Claim(f"There is evidence that miscalibration {way} ({how}).", "trend", slope=r.trend)
    third = f"The Brier score does not grow: it changes by {number(r.growth)}."
    if r.growth > 0.0:
        third = (
            f"The Brier score grows by {number(r.growth)}: {number(r.growth - r.calibration_growth)} of it "
            f"({percent(r.accuracy_share)}) is loss of accuracy and {number(r.calibration_growth)} "
            f"({percent(r.calibration_share)}) is loss of calibration (se {number(r.calibration_growth_se)})."
        )
    grown = measured(third, growth=r.growth, calibration=r.calibration_growth)
    return Sentence.joined(" ", [Sentence(said, *bands), second, grown])

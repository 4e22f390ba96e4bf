"""What the numbers say, in sentences a decision maker can quote. Never more than the data show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Row

#: Ranges with fewer cases are not named, however large their gap.
LEAST_CASES = 10


@dataclass(frozen=True)
class Direction:
    """Which way the probabilities err: mean outcome minus mean confidence, its standard error, and in words."""

    gap: float
    standard_error: float
    words: str

    @property
    def clear(self) -> bool:
        """Is the gap more than two standard errors of a calibrated model?"""
        return self.standard_error > 0 and abs(self.gap) > 2 * self.standard_error


def direction(view: Predictions, lens: str) -> Direction:
    """The sign of the miscalibration of a binary view, with the standard error a calibrated model would have."""
    gap = float(view.mean(view.residual))
    variance = float((view.weight**2 @ (view.c * (1 - view.c))) / view.total**2)
    if lens == "binary":
        words = "too low" if gap > 0 else "too high"
        text = f"on average {words} (mean prediction {_percent(gap_mean(view))}, observed {_percent(seen(view))})"
    else:
        words = "under-confident" if gap > 0 else "over-confident"
        text = f"{words} (mean confidence {_percent(gap_mean(view))}, accuracy {_percent(seen(view))})"
    return Direction(gap, math.sqrt(variance), text)


def gap_mean(view: Predictions) -> float:
    """Mean confidence."""
    return float(view.mean(view.c))


def seen(view: Predictions) -> float:
    """Observed frequency."""
    return float(view.mean(view.y))


def headline(row: Row, way: Direction, n: float, null_mean: float | None, null_high: float | None, level: float) -> str:
    """One paragraph: size with interval, evidence, direction, and whether the data could show it."""
    what = f"{row.name} {_value(row.value)}"
    if row.low is not None and row.high is not None:
        what += f" ({_percent(level)} interval {_value(row.low)} to {_value(row.high)})"
    expected = (
        ""
        if null_mean is None
        else (f"; a perfectly calibrated model would read about {_value(null_mean)} on {n:,.0f} such cases")
    )
    if row.pvalue is None or math.isnan(row.pvalue):
        return f"{_capital(what)}{expected}. No test was made, so this says how large, not how sure."
    if row.pvalue < 0.05:
        lean = f" They are {way.words}." if way.clear else " There is no clear lean to one side overall."
        return f"The probabilities are not calibrated: {what}{expected} ({_p(row.pvalue)}).{lean}"
    power = (
        ""
        if null_high is None
        else (f" With this many cases, errors below about {_value(null_high)} cannot be told from chance.")
    )
    return f"No evidence of miscalibration was found: {what}{expected} ({_p(row.pvalue)}).{power}"


def where(low: Array, high: Array, count: Array, confidence: Array, label: Array, variance: Array) -> list[str]:
    """The confidence ranges that err by more than chance, worst contribution first.

    ``variance`` is the null variance of each range's mean label; Bonferroni over the ranges.
    """
    from scipy.special import ndtri

    gap = label - confidence
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(gap) / np.sqrt(variance)
    sure = (z > -ndtri(0.025 / max(len(gap), 1))) & (count >= LEAST_CASES)
    ranked = np.argsort(-np.abs(gap) * count, kind="stable")
    return [
        f"between {low[b]:.2g} and {high[b]:.2g} ({count[b]:,.0f} cases, {_percent(confidence[b])} predicted) "
        f"it happened {_percent(label[b])} of the time"
        for b in ranked
        if sure[b]
    ][:3]


def verdict(row: Row) -> str:
    """A plain word about one row: what its p-value allows, never that a model is calibrated."""
    if math.isnan(row.value):
        return "undefined here"
    p = row.pvalue if row.primary else row.pvalue_adjusted
    if p is None or math.isnan(p):
        return ""
    if p < 0.01:
        return "miscalibrated"
    return "probably miscalibrated" if p < 0.05 else "no evidence against"


def _value(x: float | None) -> str:
    return "undefined" if x is None or math.isnan(x) else f"{x:.3g}" if abs(x) < 0.01 else f"{x:.3f}"


def _percent(x: float) -> str:
    return f"{100 * x:.3g}%"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

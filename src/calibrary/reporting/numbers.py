"""How numbers are written: one rule for the headline, the tables, the captions and the terminal."""

from __future__ import annotations

import math

from calibrary.base.numbers import number
from calibrary.evaluation import Evaluation
from calibrary.inference.overall.decision import pvalue_text

__all__ = ["draws_of", "ends", "number", "pvalue", "quoted", "with_interval"]


def pvalue(p: float | None, draws: int = 10**6) -> str:
    """A p-value as a table shows it: a bound where so many draws can say no more."""
    if p is None or math.isnan(p):
        return ""
    return pvalue_text(p, draws).removeprefix("p ").removeprefix("= ")


def draws_of(evaluation: Evaluation) -> int:
    """How many draws the p-values of a table rest on."""
    return int(evaluation.settings.get("n_resamples", 10**6))


def ends(low: float | None, high: float | None) -> str:
    """An interval as a table shows it; nothing where there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low)} to {number(high)}"


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """A number and its interval in running text."""
    between = ends(low, high)
    return f"{number(value)} ({between})" if between else number(value)


def quoted(evaluation: Evaluation, id: str, name: str) -> str:
    """A number of the table as the beginning of a caption, or nothing where the table has none."""
    rows = [row for row in evaluation.rows if row.id == id and not row.part]
    return "".join(f"{name} {with_interval(row.value, row.low, row.high)}. " for row in rows)

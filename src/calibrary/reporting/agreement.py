"""Consistent verdicts on a page: one rule of significance for a number's row, the sentences about it and the headline.

There are three sources of evidence about a number: its p-value, its interval, and the overall test of the page. They
mostly agree. If they do not (as with a bootstrap interval of a nearly certain model), the number is "unclear", and no
sentence calls it miscalibrated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import ends
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Evaluation, Row
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.overall.decision import Decision, headline_view
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.question import Question

#: The standing of a number: significant by p-value and interval, by one of them only, or by neither.
BEYOND, UNCLEAR, WITHIN = "significant", "unclear", "not significant"


def one_truth(evaluation: Evaluation, decision: Decision | None, data: Data, question: Question) -> Evaluation:
    """The table with the p-values of the overall test in the rows that are its statistics.

    The same statistic adjusted once for four tests and once for ninety would have two p-values on one page. The slope
    must pass a second test: in the overall test a wrong mean also moves the slope's statistic, although the slope by
    itself (given the intercept) may be right.
    """
    if decision is None:
        return evaluation
    p = data.read_as("predictions", "report")
    alone = not data.in_groups and (p.fractional or p.y.ndim == 2)  # labels that cannot be drawn
    rows = tuple(
        as_decided(_without_biased_ends(row) if alone else row, _decides(row), decision, p, question)
        for row in evaluation.rows
    )
    return replace(evaluation, rows=rows, settings={**evaluation.settings, "rejected": decision.rejected})


def _without_biased_ends(row: Row) -> Row:
    """An error that grows from a perfect value without its bootstrap interval, which misses 0 for calibrated models.

    A page states an interval as the place of the true value.
    """
    if row.method != "basic" or not catalogue[row.id].at_its_end:
        return row
    note = f"{row.note}; it is not shown on a page"
    return replace(row, low=None, high=None, standard_error=None, method="", note=note)


def as_decided(row: Row, statistic: str, decision: Decision, p: Predictions, question: Question) -> Row:
    """A row with the p-values of its statistic in the overall test; unchanged if it is not one of them."""
    same = next((s for s in decision.rows if s.id == statistic), None)
    if same is None or row.pvalue is None or not math.isfinite(same.pvalue):
        return row
    lens = catalogue[row.id].lens_for(p, question.of(catalogue[row.id].options)).name
    if lens != ("binary" if p.binary else decision.lens):
        return row
    least = slope_alone(p, question, decision, row.pvalue) if same.id == "slope" else 0.0
    alone, among = max(same.pvalue, least), max(same.pvalue_adjusted, least)
    return replace(row, pvalue=alone, pvalue_adjusted=among, among=len(decision.rows))


def slope_alone(p: Predictions, question: Question, decision: Decision, drawn: float) -> float:
    """The p-value of Cox's slope given its intercept, by the likelihood ratio; with units, the resampled ``drawn``."""
    if decision.path == "units":
        return drawn
    found = cox_of(headline_view(p, question)[0], question.weight_type)
    return drawn if math.isnan(found.lr_slope_pvalue) else found.lr_slope_pvalue


def cox_of(view: Predictions, weight_type: str = "frequency") -> CoxResult:
    """Cox's intercept and slope of a view, without warnings: NaN where they are undefined."""
    with collected_warnings():
        return cox_intercept_slope(view, weight_type=weight_type)


def _decides(row: Row) -> str:
    """The statistic of the overall test that is this row of the table; empty if none is."""
    return catalogue[row.id].overall.get(row.part, "") if row.id in catalogue else ""


def deciding(evaluation: Evaluation | None, id: str) -> tuple[Row, ...]:
    """The rows of the table that are this statistic of the overall test."""
    rows = () if evaluation is None else evaluation.rows
    return tuple(row for row in rows if row.among is not None and _decides(row) == id)


def pvalue_of(row: Row) -> float | None:
    """The p-value by which a row is judged: unadjusted if the row was chosen in advance, else adjusted."""
    p = row.pvalue if row.primary and row.among is None else row.pvalue_adjusted
    return None if p is None or math.isnan(p) else p


def alpha_for(evaluation: Evaluation | None) -> float:
    """The significance level of this page."""
    return alpha_of(0.95 if evaluation is None else evaluation.settings.get("confidence_level", 0.95))


def standing(row: Row, evaluation: Evaluation | None = None) -> str:
    """The standing of a number (significant, unclear or not); empty if it was not tested."""
    p = pvalue_of(row)
    if p is None:
        return ""
    if p > alpha_for(evaluation):
        return WITHIN
    return UNCLEAR if holds_ideal(row) or not_decided(evaluation) else BEYOND


def not_decided(evaluation: Evaluation | None) -> bool:
    """Whether the overall test of the page does not reject."""
    return evaluation is not None and evaluation.settings.get("rejected") is False


def holds_ideal(row: Row) -> bool:
    """Whether the interval of a number includes the value of a calibrated model."""
    return _ideal_and_interval(row) and bool(row.low <= row.perfect <= row.high)


def leaves_out_ideal(row: Row) -> bool:
    """Whether a number has an interval that excludes the value of a calibrated model."""
    return _ideal_and_interval(row) and not holds_ideal(row)


def _ideal_and_interval(row: Row) -> bool:
    return all(x is not None and math.isfinite(x) for x in (row.low, row.high, row.perfect))


def doubt(rows: Iterable[Row]) -> str:
    """The interval that contradicts a sentence; empty if none does."""
    return next(
        (f", but the interval of {row.name}, {ends(row.low, row.high)}, includes {row.perfect:g}"
         for row in rows if holds_ideal(row)), "",
    )  # fmt: skip

"""One truth on a page: how a number stands to chance, the same for its row, the sentences about it and the headline.

Three things speak of a number: its p-value, which asks what a calibrated model would show; its interval, which says
where the truth lies; and the decision of the page. They mostly agree. Where they do not (a bootstrap interval of a
nearly certain model), the number is "unclear", and nobody calls it miscalibrated.
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
from calibrary.inference.overall.decision import NO_EVIDENCE, Decision, headline_view
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.question import Question

#: How a number stands to chance: beyond it by every account, by some only, by none.
BEYOND, UNCLEAR, WITHIN = "beyond chance", "unclear", "not significant"


def one_truth(evaluation: Evaluation, decision: Decision | None, data: Data, question: Question) -> Evaluation:
    """The table with the decision's own p-values where a row is one of the statistics of the overall test.

    Two tests of one thing, adjusted among four and among ninety, would say two things about it on one page. The slope
    must pass a second test: the overall test asks whether the model is calibrated, and a wrong mean moves that sum too,
    where the slope by itself (given the intercept) may be right.
    """
    if decision is None:
        return evaluation
    p = data.read_as("predictions", "report")
    rows = tuple(as_decided(row, _decides(row), decision, p, question) for row in evaluation.rows)
    return replace(evaluation, rows=rows, settings={**evaluation.settings, "decision": decision.calibrated})


def as_decided(row: Row, statistic: str, decision: Decision, p: Predictions, question: Question) -> Row:
    """A row with the p-values of the statistic of the overall test that it is; as it was where it is none."""
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
    """The p-value of Cox's slope given its intercept: of the likelihood ratio; of units, as it was ``drawn``."""
    if decision.path == "units":
        return drawn
    with collected_warnings():
        view = headline_view(p, question)[0]
        found: CoxResult = cox_intercept_slope(view, weight_type=question.weight_type)
    return drawn if math.isnan(found.lr_slope_pvalue) else found.lr_slope_pvalue


def _decides(row: Row) -> str:
    """Which statistic of the decision a row of the table is; empty for none."""
    return catalogue[row.id].overall.get(row.part, "") if row.id in catalogue else ""


def deciding(evaluation: Evaluation | None, id: str) -> tuple[Row, ...]:
    """The rows of the table that are this statistic of the decision."""
    rows = () if evaluation is None else evaluation.rows
    return tuple(row for row in rows if row.among is not None and _decides(row) == id)


def pvalue_of(row: Row) -> float | None:
    """The p-value by which a row is judged: its own where it was chosen in advance, else among all that were tested."""
    p = row.pvalue if row.primary and row.among is None else row.pvalue_adjusted
    return None if p is None or math.isnan(p) else p


def alpha_for(evaluation: Evaluation | None) -> float:
    """What counts as chance on this page."""
    return alpha_of(0.95 if evaluation is None else evaluation.settings.get("confidence_level", 0.95))


def standing(row: Row, evaluation: Evaluation | None = None) -> str:
    """How a number stands to chance; empty where it was not tested."""
    p = pvalue_of(row)
    if p is None:
        return ""
    if p > alpha_for(evaluation):
        return WITHIN
    return UNCLEAR if holds_ideal(row) or not_decided(evaluation) else BEYOND


def not_decided(evaluation: Evaluation | None) -> bool:
    """Did the decision of the page find no evidence?"""
    return evaluation is not None and evaluation.settings.get("decision") == NO_EVIDENCE


def holds_ideal(row: Row) -> bool:
    """Does the interval of a number hold what a calibrated model has?"""
    return _ideal_and_interval(row) and row.low <= row.perfect <= row.high  # type: ignore[operator]


def leaves_out_ideal(row: Row) -> bool:
    """Has a number an interval that does not hold what a calibrated model has?"""
    return _ideal_and_interval(row) and not holds_ideal(row)


def _ideal_and_interval(row: Row) -> bool:
    return all(x is not None and math.isfinite(x) for x in (row.low, row.high, row.perfect))


def doubt(rows: Iterable[Row]) -> str:
    """Which interval contradicts what a sentence says; empty where none does."""
    return next(
        (f", though the interval of {row.name}, {ends(row.low, row.high)}, includes {row.perfect:g}"
         for row in rows if holds_ideal(row)), "",
    )  # fmt: skip

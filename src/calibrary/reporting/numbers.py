"""Names of metrics, counts and numbers of an evaluation in sentences."""

from __future__ import annotations

import math

from calibrary.base.numbers import EXACT, number, with_interval
from calibrary.evaluation import Evaluation
from calibrary.lookup import catalogue

__all__ = ["draws_of", "if_calibrated", "quoted"]

#: The 95% quantile of a normal distribution.
_QUANTILE = 1.645


def draws_of(evaluation: Evaluation) -> int:
    """The number of draws behind the p-values of a table."""
    return int(evaluation.settings.get("n_resamples", EXACT))


def quoted(evaluation: Evaluation, id: str, name: str) -> str:
    """A number of the table as the beginning of a caption; empty if the table does not contain it."""
    rows = [row for row in evaluation.rows if row.id == id and not row.part]
    return "".join(f"{name} {with_interval(row.value, row.low, row.high)}. " for row in rows)


def if_calibrated(mean: float | None, high: float | None, perfect: float | None, evaluation: Evaluation) -> str:
    """What a calibrated model shows: its mean over the draws, or the perfect value if their noise alone is between.

    ``high`` is the 95% quantile of the draws.
    """
    if mean is None or high is None or perfect is None:
        return number(mean)
    noise = 2.0 * (high - mean) / _QUANTILE / math.sqrt(draws_of(evaluation))
    return number(perfect if abs(mean - perfect) <= noise else mean)


# -- names of metrics and counts in the sentences of a page's sections -----------------------------


def metric_words(id: str, name: str) -> str:
    """The name of a metric in a sentence."""
    return (catalogue[id].spoken if id in catalogue else "") or name


def whole_number(n: float) -> float:
    """A count as an integer, if it is one."""
    return int(n) if float(n).is_integer() else n

"""Numbers of an evaluation in sentences: the number of draws, and a number of the table quoted in a caption."""

from __future__ import annotations

from calibrary.base.numbers import EXACT, with_interval
from calibrary.evaluation import Evaluation

__all__ = ["draws_of", "quoted"]


def draws_of(evaluation: Evaluation) -> int:
    """The number of draws behind the p-values of a table."""
    return int(evaluation.settings.get("n_resamples", EXACT))


def quoted(evaluation: Evaluation, id: str, name: str) -> str:
    """A number of the table as the beginning of a caption; empty if the table does not contain it."""
    rows = [row for row in evaluation.rows if row.id == id and not row.part]
    return "".join(f"{name} {with_interval(row.value, row.low, row.high)}. " for row in rows)

"""Numbers of an evaluation in words: how many draws they rest on, and a number of its table quoted in a caption."""

from __future__ import annotations

from calibrary.base.numbers import EXACT, with_interval
from calibrary.evaluation import Evaluation

__all__ = ["draws_of", "quoted"]


def draws_of(evaluation: Evaluation) -> int:
    """How many draws the p-values of a table rest on."""
    return int(evaluation.settings.get("n_resamples", EXACT))


def quoted(evaluation: Evaluation, id: str, name: str) -> str:
    """A number of the table as the beginning of a caption, or nothing where the table has none."""
    rows = [row for row in evaluation.rows if row.id == id and not row.part]
    return "".join(f"{name} {with_interval(row.value, row.low, row.high)}. " for row in rows)

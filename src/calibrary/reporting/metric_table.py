"""The table of every metric: grouped by what the numbers measure, with one row for numbers that are the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrary.data.predictions import NEEDS_DETECTIONS
from calibrary.evaluation import Evaluation, Row
from calibrary.lookup import catalogue

#: The titles of the table's groups, in their order on the page, by the fact ``measures`` of the entries.
GROUPS = {
    "calibration": "Calibration error",
    "bias": "Bias: calibration on the whole",
    "calibration and sharpness": "Scores: calibration and sharpness together",
    "ranking": "Ranking: whether confident predictions are right",
    "fit": "Fit of a map",
    "consistency": "Consistency of repeated predictions",
}


@dataclass(frozen=True)
class Folded:
    """One row of the table and the labels of the other metrics with exactly the same number here."""

    row: Row
    same: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.row.label


def grouped(evaluation: Evaluation) -> dict[str, list[Folded]]:
    """The rows by what they measure, each number once; of equal numbers the metric chosen in advance is shown."""
    by_group: dict[str, list[Row]] = {title: [] for title in GROUPS.values()}
    for row in sorted(evaluation.rows, key=lambda row: not row.primary):
        by_group[GROUPS[catalogue[row.id].measures]].append(row)
    return {title: _folded(rows) for title, rows in by_group.items() if rows}


def left_out(evaluation: Evaluation) -> dict[str, list[str]]:
    """The metrics that were not computed, grouped by the reason."""
    by_reason: dict[str, list[str]] = {}
    for id, why in evaluation.skipped.items():
        # a reason for a function call, in words for the reader of a page
        reason = why.removeprefix(f"{id} ").replace(NEEDS_DETECTIONS, "is about the boxes of a detector")
        by_reason.setdefault(reason, []).append(id)
    return by_reason


def _folded(rows: list[Row]) -> list[Folded]:
    found: list[Folded] = []
    for row in rows:
        twin = next((i for i, f in enumerate(found) if _same(f.row, row)), None)
        if twin is None:
            found.append(Folded(row))
        else:
            found[twin] = Folded(found[twin].row, (*found[twin].same, row.label))
    return found


def _same(a: Row, b: Row) -> bool:
    """Whether they are the same number; not if it is exactly 0 or 1, where different metrics may agree by chance."""
    if a.id == b.id or not math.isfinite(a.value) or a.value in (0.0, 1.0, -1.0):
        return False
    return math.isclose(a.value, b.value, rel_tol=1e-12) and a.perfect == b.perfect and a.better == b.better

"""A report as items of the TRIPOD+AI checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrary.base.numbers import counted, percent, with_interval
from calibrary.reporting.model import Report, form

if TYPE_CHECKING:
    from calibrary.validation.tripod import TripodTable


@form("tripod")
def tripod(report: Report) -> TripodTable:
    """The items that a report of predictions can answer; items about model development are "not given"."""
    from calibrary.validation.tripod import TripodTable

    shown = [f"{key.name} {with_interval(key.value, key.low, key.high)}" for key in report.short_list]
    groups = [f"{group.name}: {with_interval(group.value, group.low, group.high)}" for group in report.groups]
    level = percent(report.question.confidence_level)
    helps = next((section for section in report.sections if section.key == "help"), None)
    size = counted(report.evaluation.n, "row")
    return TripodTable.of(
        {
            "10": size,
            "12d": f"performance was measured in {counted(len(groups), 'group')}" if groups else "",
            "12e": ", ".join(key.name for key in report.short_list),
            "12g": "the predictions were given; no model was refitted",
            "21": size,
            "23a": "; ".join([*shown, *groups]) + (f" (intervals: {level})" if shown else ""),
            "24": "" if helps is None else " ".join(helps.sentences),
        }
    )

"""A report as items of the TRIPOD+AI checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrary.base.numbers import counted, percent, with_interval
from calibrary.reporting.facts import left_out_words
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
    said = {section.key: section.sentences for section in report.sections}
    size = counted(report.evaluation.n, "row")
    over = said.get("centres", ())
    clusters = [
        f"performance was measured in {counted(len(groups), 'group')}" if groups else "",
        "performance in each centre was pooled by random effects (restricted maximum likelihood, Hartung-Knapp), with "
        "prediction intervals of a new centre" if over else "",
    ]  # fmt: skip
    return TripodTable.of(
        {
            "10": " ".join([f"{size}.", *said.get("precision", ())]) if "precision" in said else size,
            "11": left_out_words(report.facts),
            "12d": "; ".join(filter(None, clusters)),
            "12e": ", ".join(key.name for key in report.short_list),
            "12g": "the predictions were given; no model was refitted",
            "21": size,
            "23a": "; ".join([*shown, *groups]) + (f" (intervals: {level})" if shown else ""),
            "23b": " ".join(over),
            "24": " ".join(said.get("help", ())),
        }
    )

"""The items of the TRIPOD+AI checklist that can be answered from the computed results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from calibrary.base.markup import html_table

#: The text for an item without an answer.
NOT_GIVEN = "not given"


class TripodItem(NamedTuple):
    """One item: its number in the checklist, a paraphrase of its question, and the answer."""

    item: str
    asks: str
    answer: str


#: The items that a validation or a report may answer, with their questions.
ASKED = {
    "10": "how many rows there are, and whether they suffice",
    "11": "how missing data were handled",
    "12a": "how the data were used to develop and to evaluate the model",
    "12c": "type of model, and the method of internal validation",
    "12d": "whether and how differences between clusters, such as sites, were handled and measured",
    "12e": "measures of performance and why they were chosen",
    "12f": "updating of the model, such as recalibration, that followed from its evaluation",
    "12g": "how the predictions that were evaluated were computed",
    "16": "differences between the data of development and of evaluation",
    "21": "number of rows and of events in each analysis",
    "23a": "performance with intervals, also in key subgroups",
    "23b": "differences of performance between units or sites",
    "24": "results of updating the model",
}


@dataclass(frozen=True)
class TripodTable:
    """Items of TRIPOD+AI with the computed answers; the other items are marked as not given."""

    rows: tuple[TripodItem, ...]

    @classmethod
    def of(cls, answers: dict[str, str]) -> TripodTable:
        """The table with these answers, given by the number of the item."""
        return cls(tuple(TripodItem(item, asks, answers.get(item, "") or NOT_GIVEN) for item, asks in ASKED.items()))

    def __getitem__(self, item: str) -> str:
        for row in self.rows:
            if row.item == item:
                return row.answer
        raise KeyError(f"item {item!r} cannot be answered from results; the possible items are: {', '.join(ASKED)}")

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The heading and the cells of the table."""
        return ["TRIPOD+AI item", "asks for", "answer"], [list(row) for row in self.rows]

    def to_markdown(self) -> str:
        """The table in Markdown, for a paper's supplement."""
        head, body = self.cells()
        lines = [head, ["---"] * len(head), *body]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def __repr__(self) -> str:
        return "\n".join(f"{row.item:4s} {row.asks}: {row.answer}" for row in self.rows)

    def _repr_html_(self) -> str:
        return html_table(*self.cells())

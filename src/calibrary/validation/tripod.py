"""The items of the TRIPOD+AI checklist that can be answered from the computed results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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
ASKED = dict(
    line.split(": ", 1) for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)


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

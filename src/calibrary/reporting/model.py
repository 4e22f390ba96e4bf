"""A report as data: the settings, the results, and the sentences about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from calibrary.base.moved import RenamedFields
from calibrary.data.asked import checks_options
from calibrary.evaluation import Evaluation
from calibrary.inference.overall.decision import Decision
from calibrary.question import Question
from calibrary.reporting.live import Live
from calibrary.reporting.parts import GroupRow as GroupRow
from calibrary.reporting.sections import Figure, Section
from calibrary.reporting.short import KeyNumber

if TYPE_CHECKING:
    from calibrary.validation.tripod import TripodTable

F = TypeVar("F", bound=Callable[..., Any])

#: The formats of a report by name: each renderer registers itself, so that this module imports none of them.
FORMS: dict[str, Callable[..., Any]] = {}


def form(name: str) -> Callable[[F], F]:
    """Register a renderer under this name."""

    def enter(render: F) -> F:
        FORMS[name] = render
        return render

    return enter


@dataclass(frozen=True)
class ClassRow:
    """One class of a multi-class problem: its expected and its observed share."""

    name: str
    n: float
    mean_prediction: float
    frequency: float
    value: float
    clear: bool


@dataclass(frozen=True)
class Report(RenamedFields):
    """The report of one model. Print it, ``save("report.html")`` it, or use its parts.

    Attributes
    ----------
    headline : the answer in a paragraph
    decision : what the headline rests on; None where nothing was redrawn, a dict in a report read from its JSON
    statements : further sentences: direction, where, which classes, whether the data suffice
    short_list : the six to eight numbers that suit these data
    figures : the figures of the page
    curve : points of the smooth reliability curve, None where there are no predictions; to draw several models together
    sections : what would help, who is affected, over time, decisions, provenance
    evaluation : every metric that applies, with intervals and p-values, and what was left out and why
    data : summary of the predictions
    classes, groups : one row per class (several classes) and per subgroup (if requested)
    settings : everything needed to make the report again, with versions
    predictions : what was evaluated; None in a report read from its JSON
    question : the settings, the same for headline, table and figures
    about : purpose, author and date of the page, where they were given
    live : cells from which the page draws the figures that a reader can change; None where it has none
    verdict : "not calibrated", "not calibrated, but within tolerance", "calibrated within tolerance" or "cannot tell";
        empty if no test was made
    tolerance : the ECE up to which a model counts as calibrated
    facts : rows, events and what they are of, columns, rows left out and why, and what was guessed
    """

    title: str
    headline: str
    statements: tuple[str, ...]
    evaluation: Evaluation
    primary: str
    data: dict[str, Any]
    settings: dict[str, Any]
    predictions: Any = field(repr=False)
    question: Question = field(repr=False, default_factory=Question)
    classes: tuple[ClassRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = field(repr=False, default=())
    short_list: tuple[KeyNumber, ...] = ()
    figures: tuple[Figure, ...] = field(repr=False, default=())
    curve: tuple[tuple[float, float | None], ...] = field(repr=False, default=())
    decision: Decision | Mapping[str, Any] | None = None
    live: Live | None = field(repr=False, default=None)
    about: dict[str, str] = field(default_factory=dict)
    verdict: str = ""
    tolerance: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return FORMS["plain"](self)

    def _repr_html_(self) -> str:
        return FORMS["fragment"](self)

    @property
    def rejected(self) -> bool | None:
        """Whether the test in the headline rejects calibration; None if no test was made."""
        sampled = next((s.data for s in self.sections if s.key == "sampled"), {})
        found = self.decision if isinstance(self.decision, Mapping) else vars(self.decision) if self.decision else {}
        return sampled.get("rejected", found.get("rejected"))

    def tripod(self) -> TripodTable:
        """The items of the TRIPOD+AI checklist that this report answers; the others are "not given"."""
        return FORMS["tripod"](self)

    def to_dict(self) -> dict[str, Any]:
        """Everything on the page as plain dictionaries, figures as SVG: :meth:`from_dict` reproduces the page."""
        return FORMS["dict"](self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Report:
        """The report from the result of :meth:`to_dict`, also after it was saved as JSON; its page is the same."""
        return FORMS["from_dict"](saved)

    @checks_options
    def to_html(self, *, interactive: bool = True) -> str:
        """One self-contained page; ``interactive=False`` leaves out the interactive figures."""
        return FORMS["page"]([self], interactive=interactive)

    @checks_options
    def save(self, *paths: str | Path, interactive: bool = True) -> None:
        """Write the report; the extension chooses the format: .html, .pdf, .md, .json or .csv.

        ``interactive=False`` writes an .html page with static figures only.
        """
        FORMS["save"]([self], paths, interactive=interactive)

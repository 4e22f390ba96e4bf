"""What comes in, checked once: predictions, or detections matched with objects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeGuard, runtime_checkable

from numpy.typing import NDArray

from calibrary.data.arrays import matched_detections
from calibrary.data.boxes import Boxes, boxes
from calibrary.data.checks import Array, Indices
from calibrary.data.matches import Matches
from calibrary.data.matching import match_detections
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.readers import read_yolo
from calibrary.data.segmentation import Pixels, segmentation
from calibrary.data.survival import Horizon, horizon
from calibrary.data.views import Looks, Views

__all__ = [
    "Boxes",
    "Data",
    "Horizon",
    "Matches",
    "Pixels",
    "Predictions",
    "as_data",
    "as_matches",
    "boxes",
    "horizon",
    "is_data",
    "match_detections",
    "matched_detections",
    "predictions",
    "read_yolo",
    "segmentation",
]


@runtime_checkable
class Data(Protocol):
    """What was measured. Nobody above this room asks which kind it is."""

    @property
    def plain(self) -> bool:
        """Binary predictions of classes, which a binary lens would show as they are."""

    @property
    def weighted(self) -> bool: ...

    @property
    def versions(self) -> tuple[Any, ...]:
        """The data sets to average over: one, or the same boxes matched at several thresholds."""

    def read_as(self, kind: str, reader: str) -> Any:
        """The data in the form that a metric takes ("predictions" or "matches"), refused where there is none."""

    def usual_lens(self, facts: Any, average: Any) -> str:
        """The lens that a metric uses unless told otherwise."""

    @property
    def size(self) -> float:
        """How much there is of it: total weight of the rows, or number of images."""

    def parts(self, by: Any) -> list[tuple[Any, Any]]:
        """The data split by columns: what the rows of a part share, and the part."""

    def part(self, rows: Indices) -> Any:
        """Some of the data, by positions in a column: rows, or images with all that is in them."""

    @property
    def probability(self) -> Array:
        """What was stated: one number for each row (or detection), or one for each class as well."""

    def with_probability(self, probability: Array) -> Any:
        """The same data with other confidences."""

    @property
    def total(self) -> float:
        """How many rows, or detections, there are; weights, if there are any."""

    # -- what travels with the data

    def in_units(self, units: Any = None, blocks: Any = None) -> Self:
        """The same data, of which some rows belong together: by an array of units, or as runs in time order."""

    def at_times(self, time: Any = None) -> Self:
        """The same data with the date of each value of a column, or a number such as a year."""

    def one_by_one(self) -> Self:
        """The same data without units; the detections of an image stay together."""

    @property
    def in_groups(self) -> bool:
        """Was it said which rows belong together?"""

    @property
    def units(self) -> Indices | None:
        """What each row, or detection, belongs to, numbered 0, 1, ...; None where each is by itself."""

    @property
    def time(self) -> NDArray[Any] | None:
        """When each value of a column was: dates or numbers; None where nobody said."""

    # -- columns: one value for each row, or for each image of detections

    @property
    def n_places(self) -> int:
        """How many values a column has."""

    def align(self, values: Any, name: str) -> NDArray[Any]:
        """A column for the data that are here, refused where its length is wrong."""

    def rows_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """The value of each row, or detection, in a column."""

    def summed(self, x: Array) -> Array:
        """A number of each row, or detection, added up for each value of a column."""

    # -- words

    @property
    def noun(self) -> str:
        """What one of them is called: "row" or "detection"."""

    @property
    def nouns(self) -> str: ...

    @property
    def class_noun(self) -> str:
        """What a class is called: "class" or "category"."""

    @property
    def class_nouns(self) -> str: ...

    @property
    def outcome(self) -> str:
        """What the mean of the outcomes is called: "observed" or "precision"."""

    @property
    def own_view(self) -> str | None:
        """The name of the one view that the data have of themselves; None: a lens shows one."""

    @property
    def positive(self) -> Hashable | None:
        """The name of the class whose probability is stated; None where there is no such class."""

    @property
    def contents(self) -> dict[str, Any]:
        """What the data are about, in words and numbers."""

    @property
    def making(self) -> dict[str, Any]:
        """How the outcomes came to be, in words and numbers."""

    @property
    def digest_parts(self) -> tuple[tuple[Hashable, ...], tuple[NDArray[Any], ...]]:
        """What tells these data from others: names, then arrays."""

    @property
    def exchangeable(self) -> bool:
        """Is each row one prediction, so that its label could be another row's?"""

    def by_class(self) -> Any:
        """The data of each class apart, where each row belongs to one (:class:`ByCategory`); else None."""

    def note_for(self, facts: Any, question: Any) -> str:
        """What must be said beside a metric of these data."""

    def check_labels(self, facts: Any, lens: Looks) -> None:
        """Refuse labels that the metric's formula cannot take through this lens."""

    def check_law(self, lens: Looks) -> None:
        """Refuse data for which the law of a test's statistic does not hold through this lens."""

    def through(self, lens: Looks) -> Views:
        """The views a lens shows."""

    def drawn_by(self, lens: Looks) -> Any:
        """The rows that are drawn again for the uncertainty of what the lens shows; refused where none were kept."""


def is_data(given: Any) -> TypeGuard[Data]:
    """Is it data that were checked before, rather than an array?"""
    return hasattr(given, "read_as")


def as_matches(given: Any) -> Matches | None:
    """The matched detections that are given, or that a state of detections stands for; None for anything else."""
    if hasattr(given, "as_matches"):
        given = given.as_matches()
    return given if isinstance(given, Matches) else None


def as_data(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Data:
    """The data of a call; takes the keywords that belong to them out of ``keywords``."""
    if hasattr(y_true, "as_matches"):
        y_true = y_true.as_matches()
    sample_weight = keywords.pop("sample_weight", None)
    labels, pos_label = keywords.pop("labels", None), keywords.pop("pos_label", None)
    percent = keywords.pop("percent", False)
    named = labels is not None or pos_label is not None or percent
    if sample_weight is None and y_prob is None and not named and is_data(y_true):
        return y_true
    return predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label, percent=percent)

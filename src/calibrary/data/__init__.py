"""The input data, checked once: predictions, or detections matched with objects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeGuard, runtime_checkable

from numpy.typing import NDArray

from calibrary.data.arrays import matched_detections
from calibrary.data.boxes import Boxes, boxes
from calibrary.data.checks import Array, Indices
from calibrary.data.identity import Identity
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
    """The interface that all data have. Code outside this package does not distinguish the types of data."""

    @property
    def plain(self) -> bool:
        """Whether these are binary predictions of classes, which a binary lens would show unchanged."""

    @property
    def weighted(self) -> bool: ...

    @property
    def versions(self) -> tuple[Any, ...]:
        """The data sets to average over: one, or the same boxes matched at several thresholds."""

    def read_as(self, kind: str, reader: str) -> Any:
        """The data in the format of a metric ("predictions" or "matches"); an error if there is none."""

    def usual_lens(self, facts: Any, average: Any) -> str:
        """The lens that a metric uses by default."""

    @property
    def size(self) -> float:
        """The size of the data: total weight of the rows, or number of images."""

    def parts(self, by: Any) -> list[tuple[Any, Any]]:
        """The data split by columns: the shared value of each part, and the part."""

    def part(self, rows: Indices) -> Any:
        """Some of the data, by positions in a column: rows, or images with all their detections."""

    @property
    def probability(self) -> Array:
        """The stated probabilities: one number for each row (or detection), or one for each row and class."""

    def with_probability(self, probability: Array) -> Any:
        """The same data with other confidences."""

    @property
    def total(self) -> float:
        """Number of rows, or detections; the total weight if there are weights."""

    # -- what belongs to the data

    def in_units(self, units: Any = None, blocks: Any = None) -> Self:
        """The same data with rows that belong together: by an array of units, or as blocks in time order."""

    def at_times(self, time: Any = None) -> Self:
        """The same data with the date of each entry of a column, or a number such as a year."""

    def one_by_one(self) -> Self:
        """The same data without units; the detections of an image still belong together."""

    @property
    def in_groups(self) -> bool:
        """Whether units or blocks of dependent rows were given."""

    @property
    def units(self) -> Indices | None:
        """The unit of each row, or detection, numbered 0, 1, ...; None if every row is its own unit."""

    @property
    def time(self) -> NDArray[Any] | None:
        """The time of each entry of a column: dates or numbers; None if not given."""

    @property
    def identity(self) -> Identity:
        """What says which rows, or images, these are."""

    # -- columns: one entry for each row, or for each image of detections

    @property
    def n_places(self) -> int:
        """Number of entries in a column."""

    def align(self, values: Any, name: str) -> NDArray[Any]:
        """A column for the rows of these data; an error if its length is wrong."""

    def rows_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """The value of each row, or detection, in a column."""

    def summed(self, x: Array) -> Array:
        """A number of each row, or detection, summed for each entry of a column."""

    # -- words

    @property
    def noun(self) -> str:
        """The noun for one row: "row" or "detection"."""

    @property
    def nouns(self) -> str: ...

    @property
    def class_noun(self) -> str:
        """The noun for a class: "class" or "category"."""

    @property
    def class_nouns(self) -> str: ...

    @property
    def outcome(self) -> str:
        """The name for the mean of the outcomes: "observed" or "precision"."""

    @property
    def own_view(self) -> str | None:
        """The name of the only view of the data; None if a lens determines the view."""

    @property
    def positive(self) -> Hashable | None:
        """The name of the class whose probability is stated; None if there is no such class."""

    @property
    def contents(self) -> dict[str, Any]:
        """The contents of the data, in words and numbers."""

    @property
    def making(self) -> dict[str, Any]:
        """How the outcomes were obtained, in words and numbers."""

    @property
    def digest_parts(self) -> tuple[tuple[Hashable, ...], tuple[NDArray[Any], ...]]:
        """The names and arrays that identify these data."""

    @property
    def exchangeable(self) -> bool:
        """Whether each row is one prediction, so that its label could be exchanged with another row's."""

    def by_class(self) -> Any:
        """The data of each class separately, if each row belongs to one class (:class:`ByCategory`); otherwise None."""

    def note_for(self, facts: Any, question: Any) -> str:
        """The note that must accompany a metric of these data."""

    def check_labels(self, facts: Any, lens: Looks) -> None:
        """Raise an error for labels that the metric's formula cannot use with this lens."""

    def check_law(self, lens: Looks) -> None:
        """Raise an error for data for which the null distribution of a test is not valid with this lens."""

    def through(self, lens: Looks) -> Views:
        """The views that a lens gives."""

    def drawn_by(self, lens: Looks) -> Any:
        """The rows that are resampled for the uncertainty of a lens's views; an error if none were stored."""


def is_data(given: Any) -> TypeGuard[Data]:
    """Whether the argument is data that were checked before, rather than an array."""
    return hasattr(given, "read_as")


def as_matches(given: Any) -> Matches | None:
    """The matched detections in the argument, or those of a state of detections; None for anything else."""
    if hasattr(given, "as_matches"):
        given = given.as_matches()
    return given if isinstance(given, Matches) else None


def as_data(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Data:
    """The data of a call; removes the keywords that belong to the data from ``keywords``."""
    if y_prob is None and not keywords and is_data(y_true):
        return y_true
    if hasattr(y_true, "as_matches"):
        y_true = y_true.as_matches()
    sample_weight = keywords.pop("sample_weight", None)
    labels, pos_label = keywords.pop("labels", None), keywords.pop("pos_label", None)
    percent, rescale = keywords.pop("percent", False), keywords.pop("rescale", False)
    named = labels is not None or pos_label is not None or percent or rescale
    if sample_weight is None and y_prob is None and not named and is_data(y_true):
        return y_true
    how = {"labels": labels, "pos_label": pos_label, "percent": percent, "rescale": rescale}
    return predictions(y_true, y_prob, sample_weight=sample_weight, **how)

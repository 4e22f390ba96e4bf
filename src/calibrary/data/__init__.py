"""What comes in, checked once: predictions, or detections matched with objects."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from calibrary.data.arrays import matched_detections
from calibrary.data.boxes import Boxes, boxes
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
    "boxes",
    "horizon",
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
        """The data in the form a metric reads ("predictions" or "matches"), refused where there is none."""

    def usual_lens(self, facts: Any, average: Any) -> str:
        """The lens that a metric uses unless told otherwise."""

    @property
    def size(self) -> float:
        """How much there is of it: total weight of the rows, or number of images."""

    def parts(self, by: Any) -> list[tuple[Any, Any]]:
        """The data split by columns: what the rows of a part share, and the part."""

    def check_labels(self, facts: Any, lens: Looks) -> None:
        """Refuse labels that the metric's formula cannot take through this lens."""

    def check_law(self, lens: Looks) -> None:
        """Refuse data for which the law of a test's statistic does not hold through this lens."""

    def through(self, lens: Looks) -> Views:
        """The views a lens shows."""

    def drawn_by(self, lens: Looks) -> Any:
        """The rows that are drawn again for the uncertainty of what the lens shows; refused where none were kept."""


def as_data(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Data:
    """The data of a call; takes the keywords that belong to them out of ``keywords``."""
    if hasattr(y_true, "as_matches"):
        y_true = y_true.as_matches()
    sample_weight = keywords.pop("sample_weight", None)
    labels, pos_label = keywords.pop("labels", None), keywords.pop("pos_label", None)
    percent = keywords.pop("percent", False)
    named = labels is not None or pos_label is not None or percent
    if sample_weight is None and y_prob is None and not named and hasattr(y_true, "read_as"):
        return y_true  # type: ignore[no-any-return]
    return predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label, percent=percent)

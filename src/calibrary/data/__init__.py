"""The input data, checked once: predictions, or detections matched with objects."""

from __future__ import annotations

from typing import Any, TypeGuard

from calibrary.data.arrays import matched_detections
from calibrary.data.boxes import Boxes, boxes
from calibrary.data.matches import Matches
from calibrary.data.matching import match_detections
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.readers import read_yolo
from calibrary.data.segmentation import Pixels, segmentation
from calibrary.data.survival import Horizon, horizon

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


#: The input of every function. Code outside this package does not distinguish the two types, and uses what both have.
Data = Predictions | Matches


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

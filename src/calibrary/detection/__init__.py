"""Object detection: boxes in, matched detections out. The metrics of them live in ``metrics/detection``."""

from __future__ import annotations

from calibrary.detection.arrays import matched_detections
from calibrary.detection.inputs import Boxes, boxes
from calibrary.detection.matches import Matches
from calibrary.detection.matching import match_detections
from calibrary.detection.readers import read_yolo

__all__ = ["Boxes", "Matches", "boxes", "match_detections", "matched_detections", "read_yolo"]

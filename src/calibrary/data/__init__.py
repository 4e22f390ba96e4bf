"""Object detection: boxes in, matched detections out. The metrics of them live in ``metrics/detection``."""

from __future__ import annotations

from calibrary.data.arrays import matched_detections
from calibrary.data.boxes import Boxes, boxes
from calibrary.data.matches import Matches
from calibrary.data.matching import match_detections
from calibrary.data.readers import read_yolo

__all__ = ["Boxes", "Matches", "boxes", "match_detections", "matched_detections", "read_yolo"]

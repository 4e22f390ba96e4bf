"""Predictions larger than memory: one mergeable table of whole numbers, filled by any engine.

A :class:`State` is a GROUP BY: how many predictions of each label fell in each cell of confidence, and where in the
cell. It is filled by :func:`scan` (Parquet, CSV and Arrow files, in one pass), by any database (:func:`sql` gives the
text), or batch by batch; states add up in any order to the same bytes; and every function of calibrary that takes
predictions takes a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrary.base.errors import installed, room
from calibrary.scale.accuracy import Accuracy, accuracy
from calibrary.scale.classes import VectorState
from calibrary.scale.detections import DetectionState
from calibrary.scale.engines import dask, merged, spark
from calibrary.scale.read import scan
from calibrary.scale.sql import sql
from calibrary.scale.state import State
from calibrary.scale.store import Store
from calibrary.scale.store_numbers import segment_sql, segment_table
from calibrary.scale.store_watch import StoreWatch, watch

if TYPE_CHECKING:
    from calibrary.scale import torch as torch

__all__ = [
    "Accuracy",
    "DetectionState",
    "State",
    "Store",
    "StoreWatch",
    "VectorState",
    "accuracy",
    "dask",
    "merged",
    "scan",
    "segment_sql",
    "segment_table",
    "spark",
    "sql",
    "watch",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "torch":
        return room("calibrary.scale.torch")
    raise AttributeError(f"module 'calibrary.scale' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(["torch"] if installed("torch") else [])])

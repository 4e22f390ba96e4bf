"""Predictions larger than memory: a mergeable histogram with integer counts, computed by any engine.

A :class:`State` is the result of a GROUP BY: for each cell (narrow interval of confidence) and label, the number of
predictions and the sum of their positions in the cell. It is computed by :func:`scan` (Parquet, CSV and Arrow files, in
one pass), by any database (:func:`sql` gives the query), or batch by batch. States can be added in any order with
identical results, and every function of calibrary that takes predictions also takes a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrary.base.errors import installed, room
from calibrary.scale.accuracy import Accuracy, accuracy
from calibrary.scale.classes import VectorState
from calibrary.scale.detections import DetectionState
from calibrary.scale.read import dask, merged, scan, spark
from calibrary.scale.sql import sql
from calibrary.scale.state import State
from calibrary.scale.store import Store
from calibrary.scale.store_numbers import segment_sql, segment_table
from calibrary.scale.store_watch import StoreWatch, watch

if TYPE_CHECKING:
    from calibrary.scale import torch as torch

__all__ = [
    "Accuracy", "DetectionState", "State", "Store", "StoreWatch", "VectorState", "accuracy", "dask", "merged", "scan",
    "segment_sql", "segment_table", "spark", "sql", "watch",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "torch":
        return room("calibrary.scale.torch")
    raise AttributeError(f"module 'calibrary.scale' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(["torch"] if installed("torch") else [])])

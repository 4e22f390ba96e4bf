"""Read the predictions of a command: a table, or a log of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrary.cli.logs import opened
from calibrary.tables import read
from calibrary.tables.layout import PredictionFile, Reading
from calibrary.tables.sources import InputError

__all__ = ["InputError", "PredictionFile", "Reading", "read_predictions"]


def read_predictions(source: str | Path | Sequence[str | Path], **options: Any) -> PredictionFile:
    """As :func:`calibrary.tables.read.read_predictions`, also from logs of language models."""
    return read.read_predictions(source, opened, **options)

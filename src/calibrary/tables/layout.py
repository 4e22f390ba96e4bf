"""What was read from a file of predictions, and how the file is to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, predictions
from calibrary.tables.sources import InputError
from calibrary.tables.table import Columns, FileTable

#: Names that are tried before it is known whether the table has them.
Names = Sequence[str]


def refuse_guesses(by_content: Sequence[str], why: str) -> None:
    """Refuse columns for which nothing speaks but their values, if a reason is given not to accept them."""
    if why and by_content:
        raise InputError(
            f"{by_content[0]}: no name confirms this guess, and {why}: name columns with --label and --prob"
        )


@dataclass(frozen=True)
class PredictionFile:
    """The content of a file of predictions: labels, one set of probabilities per model, weights, other columns.

    ``notes`` states every guess that was made, ``classes`` the class names in column order, ``others`` further columns
    that were requested by name (units, groups, dates). ``unit`` and ``by`` name the column of units and the columns of
    segments that the file itself declares, such as the epochs and tasks of a log. ``outcomes`` holds one array of
    labels per model where each model has its own labels (is its answer right?); ``y`` is then that of the first model.
    ``left_out`` counts the rows that were left out by reason.
    """

    source: str
    y: NDArray[np.intp]
    models: dict[str, Array]
    classes: tuple[str, ...]
    weight: Array | None = None
    group: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    n_dropped: int = 0
    columns: dict[str, Any] = field(default_factory=dict)
    others: Columns = field(default_factory=dict)
    unit: str = ""
    by: str = ""
    outcomes: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    #: Guesses for which no name speaks, only what the columns hold: a gate and an agent must name such columns.
    by_content: tuple[str, ...] = ()

    def refuse_guesses(self, why: str) -> None:
        """Refuse columns for which nothing speaks but their values."""
        refuse_guesses(self.by_content, why)

    def predictions(self, model: str | None = None) -> Predictions:
        """The checked predictions of one model (the first by default), with the class names of the file."""
        name = model or next(iter(self.models))
        p = predictions(self.outcomes.get(name, self.y), self.models[name])
        named = Predictions(p.y, p.probability, classes=self.classes)
        return named if self.weight is None else predictions(named, sample_weight=self.weight)


@dataclass(frozen=True)
class FileLayout:
    """How to read a file: the role of each column, and whether its numbers are probabilities, percentages or logits."""

    label: str | None = None
    prob: Names | None = None
    models: Names | None = None
    weight: str | None = None
    group: str | None = None
    positive: str | None = None
    labels: Names | None = None
    logits: bool = False
    percent: bool = False
    drop_missing: bool = False
    drop_invalid: bool = False
    drop_label: Names | None = None
    rescale: bool = False
    others: Names = ()
    segments: Names = ()
    id: str | None = None
    model_column: str | None = None
    class_column: str | None = None
    scorer: str | None = None
    normalize: str = "none"


@dataclass
class UsedColumns:
    """The columns of a file that are used, as they are written there, and which of its rows are kept."""

    table: FileTable
    how: FileLayout
    source: str
    label: str
    columns: dict[str, list[str]]
    values: Columns
    keep: NDArray[np.bool_]
    notes: list[str]
    #: Which rows have none of the labels that are left out; a note names these labels.
    known: NDArray[np.bool_]
    #: Whether there are other files, whose rows are left out together with those of this one.
    several: bool = False


Reading = FileLayout  # its name in 0.2, which pickles and imports may have

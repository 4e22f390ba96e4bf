"""The preview of a file in the app: its first rows, and guesses for the roles of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.base.text import plain
from calibrary.cli.large import is_state
from calibrary.cli.logs import log_of
from calibrary.cli.report import is_saved
from calibrary.tables.files import open_table
from calibrary.tables.guess import Guess, guessed_columns
from calibrary.tables.schema import ColumnFacts, facts_of, first_look
from calibrary.tables.table import FileTable

#: The largest numbers of rows and columns that are shown, of letters in a cell, and of columns that can be chosen.
_ROWS, _SHOWN, _LETTERS, _CHOICES = 8, 40, 40, 2000

#: Usual names of the columns for each role; a name may also end in _id.
_NAMED = {
    "unit": ("patient", "subject", "person", "participant", "user", "customer", "image", "prompt", "question",
             "document", "unit", "units", "cluster"),
    "by": ("group", "site", "hospital", "center", "centre", "clinic", "country", "region", "sex", "gender", "race",
           "ethnicity", "segment", "subgroup", "cohort", "age_group", "device", "language", "task", "domain"),
    "time": ("date", "time", "timestamp", "datetime", "day", "month", "year", "week", "visit_date"),
    "weight": ("weight", "weights", "sample_weight", "w", "sampling_weight", "survey_weight"),
}  # fmt: skip
#: The values of a column with at most this many are listed, so that one can be chosen as the class of interest.
_MOST_CLASSES = 12
#: A column can split the rows into groups if it has from two to this many values.
_MOST_GROUPS = 50


@dataclass(frozen=True)
class FilePreview:
    """The beginning of a file: ``kind`` is table, log, state or report; guesses are names of columns, or empty."""

    name: str
    kind: str
    columns: list[str] = field(default_factory=list)
    rows: int | None = None
    first: list[list[str]] = field(default_factory=list)
    label: str = ""
    prob: list[str] = field(default_factory=list)
    by: str = ""
    time: str = ""
    unit: str = ""
    weight: str = ""
    id: str = ""
    values: dict[str, list[str]] = field(default_factory=dict)
    numbers: str = ""
    said: dict[str, str] = field(default_factory=dict)
    facts: dict[str, ColumnFacts] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        shown = asdict(replace(self, facts={}))
        del shown["facts"]
        return {**shown, "columns": self.columns[:_CHOICES], "n_columns": len(self.columns)}


def preview(path: Path, scorer: str | None = None) -> FilePreview:
    """The preview of a file; no metric is computed."""
    if is_saved(str(path)):
        note = "a saved report: its page is written again, without any computation"
        return FilePreview(path.name, "report", notes=[note])
    if is_state(path):
        return FilePreview(
            path.name, "state", notes=["a saved state (histogram): its columns were chosen when it was created"]
        )
    found = log_of(path, scorer, "none", None)
    if found is not None:
        table, label, prob = found
        seen = _seen(table, list(table.names))
        guesses = replace(seen, kind="log", label=label, prob=list(prob or []))
        return replace(guesses, name=path.name, unit=table.unit, by=table.by, id=table.id)
    table = open_table(path)
    return replace(_guessed(_seen(table, list(table.names))), name=path.name)


def _seen(table: FileTable, names: list[str]) -> FilePreview:
    """The first rows of the first columns, and what the columns hold; of a large file the rows are not counted."""
    values = first_look(table)
    n = len(next(iter(values.values()), ()))
    first = [[_cell(values.get(name), i) for name in names[:_SHOWN]] for i in range(min(n, _ROWS))]
    facts = facts_of(values)
    return FilePreview(
        table.name, "table", names, n if table.beginning is None else None, first, notes=[*table.notes], id=table.id,
        by=_grouping(facts), unit=_repeated(facts), time=_time(facts), weight=_weight(facts),
        values={name: sorted(found.words) for name, found in facts.items() if 0 < len(found.words) <= _MOST_CLASSES},
        said={name: found.said for name, found in facts.items()}, facts=facts,
    )  # fmt: skip


def _cell(values: NDArray[Any] | None, i: int) -> str:
    if values is None:
        return "…"
    value = values[i]
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return "" if value is None else plain(value, _LETTERS)


def _guessed(found: FilePreview) -> FilePreview:
    taken = [name for name in (found.unit, found.by, found.time, found.weight) if name]
    label, prob, notes = guessed_columns(found.columns, taken, lambda: found.facts)
    used = {label, *prob}
    others = {name: "" for name in ("unit", "by", "time", "weight") if getattr(found, name) in used}
    numbers = next((note.unit for note in notes if isinstance(note, Guess) and note.unit), "")
    said = [*found.notes, *map(str, notes)]
    return replace(found, label=label, prob=prob, notes=said, numbers=numbers, **others)  # type: ignore[arg-type]


def _called(facts: Mapping[str, ColumnFacts], purpose: str) -> str:
    words = _NAMED[purpose]
    return next((n for n in facts if n.lower() in words or n.lower().removesuffix("_id") in words), "")


def _time(facts: Mapping[str, ColumnFacts]) -> str:
    """The column of times: by its name, or the only one that holds dates."""
    dates = [name for name, found in facts.items() if found.kind == "date"]
    return _called(facts, "time") or (dates[0] if len(dates) == 1 else "")


def _repeated(facts: Mapping[str, ColumnFacts]) -> str:
    """The column of units (patients, prompts), if some of its values occur more than once; otherwise empty."""
    name = _called(facts, "unit")
    return name if name and 10 <= facts[name].distinct < facts[name].rows else ""


def _grouping(facts: Mapping[str, ColumnFacts]) -> str:
    words = _NAMED["by"]
    return next((n for n, found in facts.items() if n.lower() in words and 2 <= found.distinct <= _MOST_GROUPS), "")


def _weight(facts: Mapping[str, ColumnFacts]) -> str:
    name = _called(facts, "weight")
    numbers = facts[name].numbers if name else ()
    return name if len(numbers) and len(numbers) == facts[name].rows and min(numbers) >= 0 else ""


def together(previews: Sequence[FilePreview]) -> dict[str, Any]:
    """One preview for several files, each with one model; the columns are those of the first file."""
    first = previews[0].as_dict()
    if len(previews) > 1:
        first["notes"] = [*first["notes"], f"{counted(len(previews), 'file')}: one model in each, on the same rows"]
    return {**first, "files": [{"name": p.name, "kind": p.kind, "rows": p.rows} for p in previews]}

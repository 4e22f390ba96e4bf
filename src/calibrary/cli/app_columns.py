"""The preview of a file in the app: its first rows, and guesses for the roles of its columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.base.text import plain
from calibrary.cli.files import KINDS, Columns, FileTable, kind_of_table, open_table
from calibrary.cli.large import is_state
from calibrary.cli.logs import log_of
from calibrary.cli.read import guessed_columns, words_of
from calibrary.cli.report import is_saved
from calibrary.cli.sources import InputError

#: The largest numbers of rows and columns that are shown, of letters in a cell, and of columns that can be chosen.
_ROWS, _SHOWN, _LETTERS, _CHOICES = 8, 40, 40, 2000
#: Of a file with more bytes than the first number, only the beginning is read: the second number of bytes.
_LARGE, _BEGINNING = 20 << 20, 1 << 20
#: The number of first rows that are read from a large Parquet file.
_FIRST = 1000

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
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "columns": self.columns[:_CHOICES], "n_columns": len(self.columns)}


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
    return replace(_guessed(_seen(*_beginning(path))), name=path.name)


def _beginning(path: Path) -> tuple[FileTable, list[str], int | None]:
    """The table of a file (of its beginning if it is large), its column names, and -1 if its rows are not counted."""
    table = open_table(path)
    names, size = list(table.names), path.stat().st_size
    if size <= _LARGE:
        return table, names, None
    with path.open("rb") as file:
        head = file.read(_BEGINNING)
    kind = kind_of_table(path.name, head[:4096])
    if kind == "parquet":
        return _of_parquet(path, table), names, -1
    if kind == "csv" and b"\n" in head and head[:2] != b"\x1f\x8b":
        return KINDS["csv"].open(path.name, head[: head.rindex(b"\n") + 1]), names, -1
    return table, names, None


def _of_parquet(path: Path, table: FileTable) -> FileTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from calibrary.cli.files import from_arrow

    def read(wanted: Sequence[str]) -> Columns:
        file = pq.ParquetFile(path)
        batch = next(file.iter_batches(batch_size=_FIRST, columns=list(wanted)), None)
        return {} if batch is None else from_arrow(pa.Table.from_batches([batch]), wanted, path.name)

    return replace(table, read=read)


def _seen(table: FileTable, names: list[str], rows: int | None = None) -> FilePreview:
    """The first rows of the first columns; ``rows`` is -1 if the rows were not counted."""
    shown = names[:_SHOWN]
    values = _readable(table, shown)
    n = len(next(iter(values.values()), ()))
    first = [[_cell(values.get(name), i) for name in shown] for i in range(min(n, _ROWS))]
    return FilePreview(
        table.name, "table", names, n if rows is None else None, first, notes=[*table.notes], id=table.id,
        by=_grouping(values), unit=_repeated(values), time=_called(values, "time"), weight=_weight(values),
        values={name: words for name, column in values.items() if (words := words_of(column, _MOST_CLASSES))},
    )  # fmt: skip


def _readable(table: FileTable, names: list[str]) -> Columns:
    """The columns that can be read; a column that cannot, such as one of lists, is left out."""
    try:
        return table.columns(names)
    except InputError:
        found: Columns = {}
        for name in names:
            try:
                found.update(table.columns([name]))
            except InputError:  # shown without its values; a user who chooses the column gets the error
                continue
        if not found:
            raise
        return found


def _cell(values: NDArray[Any] | None, i: int) -> str:
    if values is None:
        return "…"
    value = values[i]
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return "" if value is None else plain(value, _LETTERS)


def _guessed(found: FilePreview) -> FilePreview:
    taken = [name for name in (found.unit, found.by, found.time, found.weight) if name]
    label, prob, notes = guessed_columns(found.columns, taken)
    used = {label, *prob}
    others = {name: "" for name in ("unit", "by", "time", "weight") if getattr(found, name) in used}
    return replace(found, label=label, prob=prob, notes=[*found.notes, *notes], **others)  # type: ignore[arg-type]


def _called(values: Columns, purpose: str) -> str:
    words = _NAMED[purpose]
    return next((n for n in values if n.lower() in words or n.lower().removesuffix("_id") in words), "")


def _repeated(values: Columns) -> str:
    """The column of units (patients, prompts), if some of its values occur more than once; otherwise empty."""
    name = _called(values, "unit")
    distinct = len(set(values[name].tolist())) if name else 0
    return name if name and 10 <= distinct < len(values[name]) else ""


def _grouping(values: Columns) -> str:
    words = _NAMED["by"]
    for name in values:
        if name.lower() in words and 2 <= len(set(itertools.islice(values[name].tolist(), 100_000))) <= _MOST_GROUPS:
            return name
    return ""


def _weight(values: Columns) -> str:
    name = _called(values, "weight")
    return name if name and values[name].dtype.kind in "fiu" and (values[name] >= 0).all() else ""


def together(previews: Sequence[FilePreview]) -> dict[str, Any]:
    """One preview for several files, each with one model; the columns are those of the first file."""
    first = previews[0].as_dict()
    if len(previews) > 1:
        first["notes"] = [*first["notes"], f"{counted(len(previews), 'file')}: one model in each, on the same rows"]
    return {**first, "files": [{"name": p.name, "kind": p.kind, "rows": p.rows} for p in previews]}

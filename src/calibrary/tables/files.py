"""Open a table: one list of endings and formats for everything that reads or writes rows.

The source is a path, a folder of parts, a pipe or standard input; the format is recognized by the name, else by the
content. Only the requested columns are read. Each error is one sentence that names the file and what is wrong.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra
from calibrary.tables import sources
from calibrary.tables.arrow_files import open_arrow, open_parquet
from calibrary.tables.json_files import open_json
from calibrary.tables.sources import InputError
from calibrary.tables.table import LARGEST_EXACT, MOST_COLUMNS, Columns, FileTable, as_column
from calibrary.tables.text_files import open_csv


def arrays_in(name: str, content: Path | bytes) -> dict[str, Any]:
    """The arrays of an NPZ file by their names."""
    with sources.as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an NPZ file: write one with numpy.savez(file, label=..., prob=...)")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            size = sum(info.file_size for info in packed.infolist())
            stored = sum(info.compress_size for info in packed.infolist())
        if size > max(sources.MOST_BYTES, stored):
            raise InputError(
                f"{name} unpacks to more than {sources.in_gib(sources.MOST_BYTES)}: save it uncompressed, with "
                "numpy.savez"
            )
        file.seek(0)
        arrays: dict[str, Any] = {}
        # allow_pickle stays off, because a pickle in a downloaded file could run any code
        with np.load(file, allow_pickle=False) as found:
            for key in found.files:
                try:
                    arrays[key] = found[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise InputError(
                        f"{name} cannot be read as NPZ: {key!r} holds Python objects, which are not opened because "
                        "they can run code; save plain numbers or text"
                    ) from None
    return arrays


def _of_arrays(name: str, arrays: Mapping[str, Any]) -> FileTable:
    columns: Columns = {}
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{key!r} in {name} is not an array: save plain arrays of numbers or text")
        if array.ndim == 2 and array.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"{key!r} in {name} has {array.shape[1]:,} columns: one row per prediction is expected (is it "
                "transposed?)"
            )
        if array.ndim == 2:
            columns.update({f"{key}{j}": array[:, j] for j in range(array.shape[1])})
        elif array.ndim == 1:
            columns[key] = array
    if not columns:
        raise InputError(f"{name} holds no one- or two-dimensional arrays")
    return FileTable(name, tuple(columns), lambda wanted: {c: columns[c] for c in wanted})


def open_torch(name: str, content: Path | bytes) -> FileTable:
    with extra("torch", "reading tensors"):
        import torch

    with sources.as_file(content) as file:
        try:
            # weights_only, because a pickle in a downloaded file could run any code
            found = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise InputError(
                f"{name} cannot be read as tensors: save a dictionary of them, "
                "torch.save({'label': y, 'logits': z}, file)"
            ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"{name} holds tensors without names: save a dictionary, torch.save({{'label': y, 'logits': z}}, file)"
        )
    tensors = {str(k): v for k, v in found.items() if isinstance(v, torch.Tensor)}
    return _of_arrays(
        name, {k: (v.float() if v.dtype == torch.bfloat16 else v).detach().numpy() for k, v in tensors.items()}
    )


def refuse_npy(name: str, content: Path | bytes) -> FileTable:
    raise InputError(
        f"{name} holds one array without a name: save named arrays with numpy.savez(file, label=..., prob=...)"
    )


#: The first bytes of the files of old versions of Excel, and of protected workbooks.
OLE = b"\xd0\xcf\x11\xe0"
#: The most cells of a spreadsheet: a small file can declare a value in the last column of every row.
_MOST_CELLS = 20_000_000
#: The most bytes of a spreadsheet's text: its cells take ten times as much memory.
_MOST_SHEET = 1 << 28


def open_excel(name: str, content: Path | bytes) -> FileTable:
    with extra("excel", "reading Excel files"):
        import openpyxl

    with sources.as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an Excel file (.xlsx): save it as .xlsx or .csv")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            if sum(info.file_size for info in packed.infolist()) > _MOST_SHEET:
                raise InputError(
                    f"{name} unpacks to more than {sources.in_gib(_MOST_SHEET)}: save it as .csv or Parquet"
                )
        file.seek(0)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = list(_filled_rows(sheet, name))
        several = len(book.worksheets)
    if not rows:
        raise InputError(f"{name} has no rows")
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    place = {column: j for j, column in enumerate(names) if column}

    def read(wanted: Sequence[str]) -> Columns:
        def cell(row: tuple[Any, ...], j: int) -> Any:
            return row[j] if j < len(row) else None

        columns = {c: [cell(row, place[c]) for row in rows[1:]] for c in wanted}
        for column, values in columns.items():
            if any(isinstance(v, float) and LARGEST_EXACT < abs(v) < math.inf for v in values):
                raise InputError(
                    f"column {column!r} of {name} holds whole numbers beyond 2^53, of which a spreadsheet keeps 15 "
                    "digits: write ids as text, or save the file as .csv or Parquet"
                )
        return {c: as_column(values, c, name) for c, values in columns.items()}

    note = (f"only the first of {several} sheets of {name} was read: {sheet.title}",) if several > 1 else ()
    return FileTable(name, tuple(c for c in names if c), read, note, first_row=2)


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows that are not empty, without the empty cells at the end of each."""
    cells_read = 0
    for row in sheet.iter_rows(values_only=True):
        cells_read += len(row)
        if cells_read > _MOST_CELLS:
            raise InputError(
                f"{name} has more than {_MOST_CELLS:,} cells, empty ones included: delete empty columns, or save the "
                "sheet as .csv or Parquet"
            )
        filled = len(row)
        while filled and row[filled - 1] is None:
            filled -= 1
        if filled:
            yield row[:filled]


Table = FileTable  # the name in version 0.2, which pickles and imports may use


def open_table(source: str | Path) -> FileTable:
    """The table in a file, a folder of parts, a pipe, or standard input ("-")."""
    if str(source) != "-" and sources.is_folder(Path(source)):
        return _parts(Path(source))
    other = sources.NOT_READ.get(Path(str(source)).suffix.lower())
    if other is not None:
        raise InputError(f"{source} is {other}")
    name, content = sources.content_of(source)
    found = kind_of_table(name, content[:4096] if isinstance(content, bytes) else sources.head_of(content))
    kind = KINDS[found]
    with sources.named_errors(name, f" as {kind.title}"):
        table = kind.open(name, content)
    if _by_name(name) in (None, found):
        return table
    return replace(table, notes=(f"{name} is a file of {kind.title}, whatever its name says", *table.notes))


def files_in(folder: Path) -> list[Path]:
    """The table files of a folder, sorted by name, without hidden files and those whose names begin with _."""
    try:
        inside = sorted(p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._" and _by_name(p.name))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not inside:
        raise InputError(f"{folder} is a folder without any file of predictions ({', '.join(_ENDINGS)})")
    return inside


def _parts(folder: Path) -> FileTable:
    """Read a folder as one table whose parts are its files, as Spark and Dask write tables."""
    tables = [open_table(path) for path in files_in(folder)]
    first = tables[0]
    for other in tables[1:]:
        if set(other.names) != set(first.names):
            lacking = sorted(set(first.names) ^ set(other.names))[0]
            raise InputError(
                f"{other.name} and {first.name} are not parts of one table (only one of them has {lacking!r}): name "
                "the files one by one, or write a report for each with --folder"
            )

    def read(wanted: Sequence[str]) -> Columns:
        parts = [table.columns(wanted) for table in tables]
        return {name: _joined([part[name] for part in parts]) for name in wanted}

    several = (f"{len(tables)} files of {folder} read as one",) if len(tables) > 1 else ()
    return FileTable(str(folder), first.names, read, (*several, *first.notes))


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and not kinds <= set("iuf"):
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _refuse_old_workbook(name: str, content: Path | bytes) -> FileTable:
    with sources.as_file(content) as file:
        head = file.read(1 << 20)
    if "EncryptedPackage".encode("utf-16-le") in head:
        raise InputError(f"{name} is a workbook that is protected by a password: save it without one")
    if head[:4] == OLE:
        raise InputError(f"{name} is an old Excel workbook (.xls) or protected by a password: save it as .xlsx or .csv")
    raise InputError(f"{name} is not an Excel workbook, though its name ends in .xls: rename it if it is text (.csv)")


@dataclass(frozen=True)
class Kind:
    """A file format: its title, and the function that opens it."""

    title: str
    open: Callable[[str, Path | bytes], FileTable]


KINDS = {
    "npz": Kind("NPZ", lambda name, content: _of_arrays(name, arrays_in(name, content))),
    "npy": Kind("NPY", refuse_npy),
    "parquet": Kind("Parquet", open_parquet),
    "arrow": Kind("Arrow", open_arrow),
    "json": Kind("JSON", open_json),
    "excel": Kind("Excel", open_excel),
    "old": Kind("Excel", _refuse_old_workbook),
    "torch": Kind("torch", open_torch),
    "csv": Kind("CSV", open_csv),
}
_ENDINGS = tuple(sources.by_ending(*KINDS))
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUM": "npy", OLE: "old"}


def _by_name(name: str) -> str | None:
    plain = name.lower().removesuffix(".gz")
    return next((kind for kind, endings in sources.ENDINGS.items() if plain.endswith(endings)), None)


def kind_of_table(name: str, head: bytes) -> str:
    """The format of a file: of one whose name says text, but whose first bytes do not, that of its content."""
    found = _by_name(name)
    content = _by_content(head)
    if found is not None and content != "old" and not (found in ("csv", "json") and content):
        return found
    return content or ("json" if head.lstrip()[:1] in (b"{", b"[") else "csv")


def _by_content(head: bytes) -> str:
    if head[:4] == b"PK\x03\x04":
        return "excel" if b"[Content_Types]" in head or b"xl/" in head else "npz"
    return _MAGIC.get(head[:4], "")

"""The first sheet of an Excel workbook."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrary.base.errors import extra
from calibrary.tables.sources import InputError, as_file, in_gib
from calibrary.tables.table import LARGEST_EXACT, Columns, FileTable, as_column

#: The first bytes of the files of old versions of Excel, and of protected workbooks.
OLE = b"\xd0\xcf\x11\xe0"
#: The most cells of a spreadsheet: a small file can declare a value in the last column of every row.
_MOST_CELLS = 20_000_000
#: The most bytes of a spreadsheet's text: its cells take ten times as much memory.
_MOST_SHEET = 1 << 28


def open_excel(name: str, content: Path | bytes) -> FileTable:
    with extra("excel", "reading Excel files"):
        import openpyxl

    with as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an Excel file (.xlsx): save it as .xlsx or .csv")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            if sum(info.file_size for info in packed.infolist()) > _MOST_SHEET:
                raise InputError(f"{name} unpacks to more than {in_gib(_MOST_SHEET)}: save it as .csv or Parquet")
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

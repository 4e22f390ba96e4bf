"""Open a table: one list of endings and formats for everything that reads or writes rows.

The source is a path, a folder of parts, a pipe or standard input; the format is recognized by the name, else by the
content. Only the requested columns are read. Each error is one sentence that names the file and what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.tables.array_files import open_npz, open_torch, refuse_npy
from calibrary.tables.arrow_files import open_arrow, open_parquet
from calibrary.tables.endings import ENDINGS, by_ending
from calibrary.tables.json_files import open_json
from calibrary.tables.sheets import OLE, open_excel
from calibrary.tables.sources import InputError, as_file, content_of, head_of, is_folder, named_errors
from calibrary.tables.table import Columns, FileTable
from calibrary.tables.text_files import open_csv

Table = FileTable  # the name in version 0.2, which pickles and imports may use

#: Formats that are not supported, by the file name's extension: what they are and what to do.
_NOT_READ = {
    **dict.fromkeys((".bz2", ".xz", ".zst", ".7z", ".tar", ".zip"), "an archive: unpack it first (.gz can be read)"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle, which can run any program: save CSV or Parquet"),
    **dict.fromkeys((".dta", ".sav", ".sas7bdat", ".rds", ".rdata", ".mat"),
                    "a file of a statistics package: export CSV or Parquet"),
}  # fmt: skip


def open_table(source: str | Path) -> FileTable:
    """The table in a file, a folder of parts, a pipe, or standard input ("-")."""
    if str(source) != "-" and is_folder(Path(source)):
        return _parts(Path(source))
    other = _NOT_READ.get(Path(str(source)).suffix.lower())
    if other is not None:
        raise InputError(f"{source} is {other}")
    name, content = content_of(source)
    kind = KINDS[found := kind_of_table(name, content[:4096] if isinstance(content, bytes) else head_of(content))]
    with named_errors(name, f" as {kind.title}"):
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
    with as_file(content) as file:
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
    "npz": Kind("NPZ", open_npz),
    "npy": Kind("NPY", refuse_npy),
    "parquet": Kind("Parquet", open_parquet),
    "arrow": Kind("Arrow", open_arrow),
    "json": Kind("JSON", open_json),
    "excel": Kind("Excel", open_excel),
    "old": Kind("Excel", _refuse_old_workbook),
    "torch": Kind("torch", open_torch),
    "csv": Kind("CSV", open_csv),
}
_ENDINGS = tuple(by_ending(*KINDS))
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUM": "npy", OLE: "old"}


def _by_name(name: str) -> str | None:
    plain = name.lower().removesuffix(".gz")
    return next((kind for kind, endings in ENDINGS.items() if plain.endswith(endings)), None)


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

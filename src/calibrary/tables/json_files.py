"""Tables in JSON: one object per line, a list of objects, or lists by name; nested values have names with dots."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from calibrary.tables.json_stream import JsonStream, UnreadableError
from calibrary.tables.sources import InputError, as_file
from calibrary.tables.table import Columns, FileTable, as_column

#: Most commas and brackets in one JSON value of a packed file: each may become an object of up to 200 bytes.
_MOST_MARKS = 10_000_000
#: The number of rows of a JSON file that are searched for the names of its columns.
_NAMING_ROWS = 1000

Record = dict[str, Any]


def open_json(name: str, content: Path | bytes) -> FileTable:
    """The table of a file, of which a list of objects or lines of objects are never in memory as a whole."""

    def text() -> IO[str]:
        return as_lines(as_file(content), name)

    with text() as file:
        start = _begins(file)
    if start[:1] == "[":
        return _of_records(name, lambda: objects_of_list(text(), name))
    if start[:1] != "{":
        raise InputError(f"{name} cannot be read as JSON: it begins with {start!r}, not with {{ or [")
    loads = functools.partial(_bounded, name) if isinstance(content, bytes) else json.loads
    whole = _whole_object(text, loads)
    if whole is None:
        return _of_records(name, lambda: objects_of_lines(text(), name, loads))
    if whole and all(isinstance(v, list) and not (v and isinstance(v[0], dict)) for v in whole.values()):
        return FileTable(name, tuple(whole), lambda wanted: {c: as_column(whole[c], c, name) for c in wanted})
    lists = [key for key, v in whole.items() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if len(lists) == 1:
        note = f"the records of {name} were taken from its list {lists[0]!r}"
        return _of_records(name, lambda: _objects(whole[lists[0]], name), (note,))
    if lists:
        raise InputError(f"{name} holds several lists of records ({', '.join(lists)}): save one of them as a file")
    return _of_records(name, lambda: [whole])


def as_lines(file: IO[bytes], name: str) -> IO[str]:
    """The text of a file whose lines end with a line feed alone: a JSON string may contain other separators."""
    mark = file.read(2)
    file.seek(0)
    encoding = "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return io.TextIOWrapper(file, encoding=encoding, newline="\n")


def _begins(file: IO[str]) -> str:
    """The first characters that are no space."""
    return next((begins[:20] for part in iter(lambda: file.read(4096), "") if (begins := part.lstrip())), "")


def _bounded(name: str, value: str) -> Any:
    """One value of a packed file, which may unpack to a million times its size."""
    if len(value) > _MOST_MARKS and sum(value.count(mark) for mark in ",[{") > _MOST_MARKS:
        raise InputError(
            f"{name} has more than {_MOST_MARKS:,} commas and brackets in one value: save one object per line, or "
            "Parquet"
        )
    return json.loads(value)


def _whole_object(text: Callable[[], IO[str]], loads: Callable[[str], Any]) -> dict[str, Any] | None:
    """The file parsed as one JSON object; None if it holds one object per line."""
    with text() as file:
        lines = (line for line in file if line.strip())
        try:
            loads(next(lines))
            if next(lines, None) is not None:
                return None
        except json.JSONDecodeError:  # the object spans several lines, or the file is not JSON
            pass
    with text() as file:
        try:
            found = loads(file.read())
        except json.JSONDecodeError:
            return None
    return found if isinstance(found, dict) else None


def _objects(values: Iterable[Any], name: str) -> Iterator[Record]:
    for value in values:
        if not isinstance(value, dict):
            raise InputError(f"{name} holds {str(value)[:40]!r} in its list, not an object such as {{...}}")
        yield value


def objects_of_list(file: IO[str], name: str) -> Iterator[Record]:
    """The objects of a JSON list, one after the other."""
    with file:
        try:
            yield from _objects(JsonStream(file).elements(), name)
        except UnreadableError as error:
            raise InputError(f"{name} cannot be read as JSON: {error}") from None


def objects_of_lines(lines: IO[str], name: str, loads: Callable[[str], Any] = json.loads) -> Iterator[Record]:
    """The JSON object of each line that is not empty."""
    with lines:
        for i, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{name}: line {i:,} is not JSON ({error.msg})") from None
            except RecursionError:
                raise InputError(f"{name}: line {i:,} is nested too deeply: a flat record is expected") from None
            if not isinstance(found, dict):
                raise InputError(f"{name}: line {i:,} is not an object such as {{...}}")
            yield found


def _of_records(name: str, records: Callable[[], Iterable[Record]], notes: tuple[str, ...] = ()) -> FileTable:
    first = list(islice(records(), _NAMING_ROWS + 1))
    names = dict.fromkeys(path for record in first[:_NAMING_ROWS] for path in _paths(record))

    start = FileTable(name, tuple(names), functools.partial(_columns, name, lambda: first[:_NAMING_ROWS]))
    beginning = (lambda: start) if len(first) > _NAMING_ROWS else None
    return FileTable(name, tuple(names), functools.partial(_columns, name, records), notes, beginning=beginning)


def _columns(name: str, records: Callable[[], Iterable[Record]], wanted: Sequence[str]) -> Columns:
    cells: dict[str, list[Any]] = {column: [] for column in wanted}
    for record in records():
        for column, values in cells.items():
            values.append(_at(record, column))
    return {column: as_column(values, column, name) for column, values in cells.items()}


def _paths(record: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[str]:
    """The names of the values; a nested value is named with a dot, as in answer.confidence."""
    for key, value in record.items():
        if isinstance(value, dict) and depth < 5:
            yield from _paths(value, f"{before}{key}.", depth + 1)
        else:
            yield f"{before}{key}"


def _at(record: Any, path: str) -> Any:
    if not isinstance(record, dict):
        return None
    if path in record:
        return record[path]
    head, dot, rest = path.partition(".")
    return _at(record.get(head), rest) if dot else None

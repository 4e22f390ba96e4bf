"""Tables in JSON: one object per line, a list of objects, or lists by name; nested values have names with dots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrary.tables.sources import InputError, as_bytes, as_text
from calibrary.tables.table import Columns, FileTable, as_column

#: Most commas and brackets in one JSON value of a packed file: each may become an object of up to 200 bytes.
_MOST_MARKS = 10_000_000
#: The number of rows of a JSON file that are searched for the names of its columns.
_NAMING_ROWS = 1000


def open_json(name: str, content: Path | bytes) -> FileTable:
    text = as_text(as_bytes(content), name)

    def loads(value: str) -> Any:
        packed = isinstance(content, bytes) and len(value) > _MOST_MARKS
        if packed and sum(value.count(mark) for mark in ",[{") > _MOST_MARKS:
            raise InputError(
                f"{name} has more than {_MOST_MARKS:,} commas and brackets in one value: save one object per line, or "
                "Parquet"
            )
        return json.loads(value)

    start = text.lstrip()[:1]
    if start == "[":
        return _of_records(name, lambda: _records(loads(text), name))
    if start != "{":
        raise InputError(f"{name} cannot be read as JSON: it begins with {text.lstrip()[:20]!r}, not with {{ or [")
    whole = _whole_object(text, loads)
    if whole is None:
        return _of_records(name, lambda: objects_of_lines(text.split("\n"), name, loads))
    if whole and all(isinstance(v, list) and not (v and isinstance(v[0], dict)) for v in whole.values()):
        return FileTable(name, tuple(whole), lambda wanted: {c: as_column(whole[c], c, name) for c in wanted})
    lists = [key for key, v in whole.items() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if len(lists) == 1:
        note = f"the records of {name} were taken from its list {lists[0]!r}"
        return _of_records(name, lambda: _records(whole[lists[0]], name), (note,))
    if lists:
        raise InputError(f"{name} holds several lists of records ({', '.join(lists)}): save one of them as a file")
    return _of_records(name, lambda: [whole])


def _whole_object(text: str, loads: Callable[[str], Any]) -> dict[str, Any] | None:
    """The file parsed as one JSON object; None if it holds one object per line."""
    lines = (line for line in text.split("\n") if line.strip())  # a JSON string may contain other line separators
    try:
        loads(next(lines))
        if next(lines, None) is not None:
            return None
    except json.JSONDecodeError:  # the object spans several lines, or the file is not JSON
        if not text.rstrip().endswith("}"):
            return None
    try:
        found = loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _records(found: Any, name: str) -> list[dict[str, Any]]:
    bad = next((r for r in found if not isinstance(r, dict)), None)
    if bad is not None:
        raise InputError(f"{name} holds {str(bad)[:40]!r} in its list, not an object such as {{...}}")
    return list(found)


def objects_of_lines(lines: Any, name: str, loads: Callable[[str], Any] = json.loads) -> Iterator[dict[str, Any]]:
    """The JSON object of each line that is not empty."""
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            found = loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{name}: line {i + 1:,} is not JSON ({error.msg})") from None
        except RecursionError:
            raise InputError(f"{name}: line {i + 1:,} is nested too deeply: a flat record is expected") from None
        if not isinstance(found, dict):
            raise InputError(f"{name}: line {i + 1:,} is not an object such as {{...}}")
        yield found


def _of_records(name: str, records: Callable[[], Any], notes: tuple[str, ...] = ()) -> FileTable:
    names: dict[str, None] = {}
    for i, record in enumerate(records()):
        if i == _NAMING_ROWS:
            break
        names.update(dict.fromkeys(_paths(record)))

    def read(wanted: Sequence[str]) -> Columns:
        cells: dict[str, list[Any]] = {column: [] for column in wanted}
        for record in records():
            for column, values in cells.items():
                values.append(_at(record, column))
        return {column: as_column(values, column, name) for column, values in cells.items()}

    return FileTable(name, tuple(names), read, notes)


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

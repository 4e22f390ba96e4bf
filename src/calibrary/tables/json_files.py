"""Tables in JSON: one object per line, a list of objects, or lists by name; nested values have names with dots."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from calibrary.tables.sources import InputError, as_file
from calibrary.tables.table import Columns, FileTable, as_column

_CHUNK = 1 << 20
#: Largest size of one value (a sample, a line, a member of a packed log) in bytes or characters.
MOST_SIZE = 1 << 27
#: Most commas and brackets in one value: each may become an object of up to 200 bytes.
MOST_MARKS = 4_000_000


class UnreadableError(ValueError):
    """A log that is damaged, is not JSON or exceeds a bound; the text says why and what to do."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UnreadableError(f"the key {twice[:60]!r} occurs twice in one object: keep one of the two values")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parsed(data: bytes) -> Any:
    """The value of a JSON text in UTF-8; its size is checked before it is parsed."""
    marks = data.count(b",") + data.count(b"[") + data.count(b"{")
    _refuse_large(len(data), marks)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(f"byte {error.start:,}") from None
    try:
        value, end = _decoded(text.lstrip(), 0)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"it is not JSON near character {error.pos:,}: copy the file again") from None
    if text.lstrip()[end:].strip():
        raise UnreadableError("it is not JSON: more text follows its value; copy the file again")
    return value


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise UnreadableError("its values are nested too deeply: write the log without them") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnreadableError):
            raise
        raise UnreadableError("a number has thousands of digits: correct it") from None


def _refuse_large(size: int, marks: int) -> None:
    if size > MOST_SIZE:
        raise UnreadableError(
            f"one sample or value is longer than {MOST_SIZE >> 20} MiB: log fewer fields of each sample"
        )
    if marks > MOST_MARKS:
        raise UnreadableError(
            f"one sample or value has more than {MOST_MARKS:,} commas and brackets: log fewer fields of each sample"
        )


def _not_utf8(where: str) -> UnreadableError:
    return UnreadableError(f"it is not UTF-8 text at {where}: save it as UTF-8")


class JsonStream:
    """Values of a JSON text in order; at most one value and a chunk are in memory."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text, self._at, self._before = "", 0, 0

    def items(self, listed: str) -> Iterator[tuple[str, Any]]:
        """Keys and values of the object; the list ``listed`` is returned element by element, under the same key."""
        keys: set[str] = set()
        for _ in self._within("{}"):
            key = self._value()
            if not isinstance(key, str) or key in keys:
                said = "occurs twice: a file holds one log" if key in keys else "is not a text: copy the file again"
                raise UnreadableError(f"its key {key!r:.60} {said}")
            keys.add(key)
            self._expect(":")
            if key != listed:
                yield key, self._value()
            elif self._peek() == "[":
                for _ in self._within("[]"):
                    yield key, self._value()
            elif self._value() is not None:
                raise UnreadableError(f"its {listed!r} is not a list: check that this is a log of Inspect")
        if self._skip_space():
            raise UnreadableError(f"{self._place(0)} begins more text after the log: a file holds one log, so split it")

    def elements(self) -> Iterator[Any]:
        """The elements of the list, which is all of the text."""
        for _ in self._within("[]"):
            yield self._value()
        if self._skip_space():
            raise self._damaged("begins more text after the list")

    def _within(self, brackets: str) -> Iterator[None]:
        """One step for each element between two brackets; the caller reads the element."""
        self._expect(brackets[0])
        found = "," if self._peek() != brackets[1] else ""
        while found == ",":
            yield
            found = self._peek()
            if found not in ("," + brackets[1]):
                raise self._damaged(f"is {found!r} where ',' is expected")
            self._at += 1
        if not found:
            self._at += 1

    # -- characters

    def _place(self, ahead: int) -> str:
        return f"character {self._before + self._at + ahead:,}"

    def _damaged(self, what: str) -> UnreadableError:
        return UnreadableError(f"it was cut off or is damaged: {self._place(0)} {what}; copy it again")

    def _more(self, size: int = _CHUNK) -> bool:
        try:
            new = self._file.read(size)
        except UnicodeDecodeError:
            raise _not_utf8(f"a place after character {self._before + len(self._text):,}") from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + new, 0
        return bool(new)

    def _skip_space(self) -> bool:
        """Whether anything but space follows."""
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return True
                self._at += 1
            if not self._more():
                return False

    def _peek(self) -> str:
        if not self._skip_space():
            raise self._damaged("is its end, within an object")
        return self._text[self._at]

    def _expect(self, wanted: str) -> None:
        found = self._peek()
        if found != wanted:
            raise self._damaged(f"is {found!r} where {wanted!r} is expected")
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        size = _CHUNK
        while True:
            try:
                value, end = _decoded(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more(size):
                    raise self._damaged(f"begins a value that is not JSON near {self._place(error.pos)}") from None
            else:
                if end < len(self._text) or not self._more(size):  # a number may continue
                    self._at = end
                    return value
            size = min(2 * size, MOST_SIZE)
            pending = len(self._text) - self._at
            if pending > 2 * _CHUNK:  # less may hold several values, and is small
                _refuse_large(pending, sum(self._text.count(mark, self._at) for mark in ",[{"))


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

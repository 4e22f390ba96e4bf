"""Tables in text: CSV, TSV and other separators, decimal commas, comments before the header."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.base.text import plain
from calibrary.tables.arrow import arrow_csv, pa, pc
from calibrary.tables.arrow_files import as_numpy, from_arrow
from calibrary.tables.sources import InputError, as_arrow, as_bytes, as_file, as_text, is_large
from calibrary.tables.table import LARGEST_EXACT, Columns, FileTable, as_column
from calibrary.tables.values import parsed

DELIMITERS = ",\t;|"


def open_csv(name: str, content: Path | bytes) -> FileTable:
    content, notes = _as_utf8(name, content)
    skipped, first, second = _header(content)
    line = as_text(first, name)
    if not line.strip():
        raise InputError(f"the first line of {name} is empty: name the columns there")
    if "\0" in line:
        raise InputError(f"{name} is not text: it holds the bytes of another format, whatever its name says")
    if "\r" in line.rstrip("\r\n"):
        raise InputError(f"the lines of {name} end with a carriage return alone: save it with line feeds")
    delimiter = delimiter_of(line)
    names = next(csv.reader([line], delimiter=delimiter))
    if all(parsed(each) is not None for each in names) and names != [str(j) for j in range(len(names))]:
        raise InputError(
            f"the first line of {name} holds only numbers ({line.strip()[:40]}), so it is a row, and the names of the "
            "columns are missing: begin the file with a line of names, such as label,prob"
        )
    decimal = "," if delimiter == ";" and b"," in second and b"." not in second else "."
    content, total = _without_total(content, delimiter, len(names))
    reader = _plain_reader if find_spec("pyarrow") is None else _arrow_reader
    read = reader(name, content, names, skipped, delimiter, decimal)
    if skipped:
        notes.append(f"{counted(skipped, 'line')} of comments before the header of {name} skipped")
    if delimiter not in ",\t":
        notes.append(f"columns of {name} are separated by {delimiter!r}")
    if decimal == ",":
        notes.append(f"decimal commas in {name}")
    if total:
        notes.append(f"the last line of {name} was left out, because it is a line of totals: {plain(total)}")
    long = isinstance(content, Path) and content.stat().st_size > _LONG
    start = functools.partial(_beginning, name, content) if long else None
    return FileTable(name, tuple(names), read, tuple(notes), beginning=start, first_row=skipped + 2)


def _arrow_reader(
    name: str, content: Path | bytes, names: Sequence[str], skipped: int, delimiter: str, decimal: str
) -> Callable[[Sequence[str]], Columns]:

    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    threads = arrow_csv.ReadOptions(use_threads=is_large(content), skip_rows=skipped)

    def arrow(wanted: Sequence[str], **how: Any) -> Any:
        convert = arrow_csv.ConvertOptions(include_columns=list(wanted), decimal_point=decimal, **how)
        with as_arrow(content) as file:
            return arrow_csv.read_csv(file, read_options=threads, parse_options=parse, convert_options=convert)

    def read(wanted: Sequence[str]) -> Columns:
        table = arrow(wanted)
        found = from_arrow(table, wanted, name)
        text = [column for column in wanted if _may_be_text(found[column])]
        # Arrow takes them for numbers, but they are ids or codes, and two different ones must not become equal
        if text:
            as_written = arrow(text, column_types=dict.fromkeys(text, pa.string()))
            found.update({c: as_numpy(as_written.column(c)) for c in text if _is_text(as_written.column(c), found[c])})
        return found

    return read


def _plain_reader(
    name: str, content: Path | bytes, names: Sequence[str], skipped: int, delimiter: str, decimal: str
) -> Callable[[Sequence[str]], Columns]:
    """Read without Arrow: slower, and dates stay text."""

    def read(wanted: Sequence[str]) -> Columns:
        cells: list[list[str]] = []
        with io.TextIOWrapper(as_file(content), encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(islice(file, skipped, None), delimiter=delimiter)
            for row in islice(rows, 1, None):
                if row and len(row) != len(names):
                    line = skipped + rows.line_num
                    raise InputError(f"{name}: line {line:,} has {len(row)} values and the header has {len(names)}")
                if row:
                    cells.append(row)
        place = {column: names.index(column) for column in wanted}
        return {c: as_column(_values([row[j] for row in cells], decimal), c, name) for c, j in place.items()}

    return read


#: Words for a missing number, which are those of Arrow.
_NO_NUMBER = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
)


def _values(texts: list[str], decimal: str) -> list[Any]:
    """The cells of a column: numbers if all of them are, and none is a code such as 007; a missing one is None."""
    filled = set(texts) - _NO_NUMBER
    words = {text: text.strip().lower() for text in filled}
    if filled and set(words.values()) <= {"true", "false"}:
        return [words[text] == "true" if text in words else None for text in texts]
    if any("_" in text for text in filled):  # float takes 0_5 for 5
        return [text or None for text in texts]
    try:
        numbers: dict[str, Any] = {text: float(text.replace(decimal, ".")) for text in filled}
    except ValueError:
        return [text or None for text in texts]
    if all(word.lstrip("+-").isdigit() for word in words.values()):
        if any(re.match(_LEADING_ZERO, text) for text in filled) or any(abs(n) >= 1 << 63 for n in numbers.values()):
            return [text or None for text in texts]
        numbers = {text: int(text) for text in filled}
    return [numbers.get(text) for text in texts]


#: Of a file with more bytes than the first number, only the beginning is looked at: the second number of bytes.
_LONG, _BEGINNING = 20 << 20, 1 << 20
#: Lines before the header that begin so are comments, or name the separator for Excel; there are at most so many.
_COMMENT, _MOST_COMMENTS = (b"#", b"sep="), 1000
#: How the first cell of a line of totals reads, and the most bytes of such a line.
_TOTAL, _LONGEST_TOTAL = re.compile(r"(grand |sub)?totals?|sum|all rows", re.IGNORECASE), 4096


def _beginning(name: str, content: Path | bytes) -> FileTable:
    with as_file(content) as file:
        head = file.read(_BEGINNING)
    return open_csv(name, head[: head.rindex(b"\n") + 1] if b"\n" in head else head)


def _as_utf8(name: str, content: Path | bytes) -> tuple[Path | bytes, list[str]]:
    """The content, converted if it is UTF-16, as spreadsheets export it, and a note about that."""
    with as_file(content) as file:
        mark = file.read(2)
    if mark not in (b"\xff\xfe", b"\xfe\xff"):
        return content, []
    try:
        return as_bytes(content).decode("utf-16").encode(), [f"{name} is UTF-16 text"]
    except UnicodeError:
        raise InputError(f"{name} begins as UTF-16 text and is not: save it as UTF-8") from None


def _header(content: Path | bytes) -> tuple[int, bytes, bytes]:
    """The number of comment lines before the header, the header, and the line after it."""
    with as_file(content) as file:
        line, skipped = file.readline(), 0
        while line.removeprefix(b"\xef\xbb\xbf").startswith(_COMMENT) and skipped < _MOST_COMMENTS:
            line, skipped = file.readline(), skipped + 1
        return skipped, line, file.readline()


def _without_total(content: Path | bytes, delimiter: str, n_columns: int) -> tuple[Path | bytes, str]:
    """The content without a last line such as ``Total,,412``, which has empty cells, and that line."""
    with as_file(content) as file:
        start = max(0, file.seek(0, 2) - _LONGEST_TOTAL)
        file.seek(start)
        tail = file.read().rstrip(b"\r\n")
    place = tail.rfind(b"\n") + 1
    last = tail[place:].decode("utf-8", "replace")
    if not place or not _TOTAL.match(last.strip('"')):
        return content, ""
    cells = next(csv.reader([last], delimiter=delimiter))
    filled = sum(bool(cell.strip()) for cell in cells)
    if not _TOTAL.fullmatch(cells[0].strip()) or len(cells) != n_columns or not 1 < n_columns != filled:
        return content, ""
    return as_bytes(content)[: start + place], last


def _may_be_text(values: NDArray[Any]) -> bool:
    """Whether these numbers may be codes that lost leading zeros, or digits beyond the fifteenth, when parsed."""
    if values.dtype.kind in "iu":
        return bool(len(values)) and int(values.min()) >= 0
    return values.dtype.kind == "f" and bool((np.abs(values) > LARGEST_EXACT).any())


#: Texts that Python tests one by one; for more, Arrow's functions are faster, although they take time to import.
_FEW = 50_000
#: A number that begins with a zero, and a text that is more than digits. Python and Arrow understand both alike.
_LEADING_ZERO, _NOT_DIGITS = r"^[ \t\n\f\r]*[+]?0[0-9]", r"[^ \t\n\f\r0-9]|[0-9][ \t\n\f\r]+[0-9]"


def _is_text(written: Any, values: NDArray[Any]) -> bool:
    """Whether parsing these texts as numbers would lose information, as for 007 or for 19 digits."""
    if values.dtype.kind in "iu":
        return _any_has(written, _LEADING_ZERO)
    return not _any_has(written, _NOT_DIGITS)


def _any_has(written: Any, form: str) -> bool:
    """Whether one of the texts has this form somewhere."""
    if len(written) <= _FEW:
        return any(re.search(form, text) for text in written.to_pylist() if text is not None)

    return bool(pc.any(pc.match_substring_regex(written, form)).as_py())


def delimiter_of(head: str) -> str:
    """The character that separates the names in the first line."""
    return max(DELIMITERS, key=head.count)

"""Everything that is wrong with a table, found before anything is refused: one table of problems and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted
from calibrary.base.text import in_columns, plain
from calibrary.data.checks import Array, are_probabilities
from calibrary.tables import values as reading
from calibrary.tables.layout import FileLayout, UsedColumns
from calibrary.tables.sources import InputError, some

#: So many rows of each problem are named, and a column with more labels than this is no column of labels.
_SHOWN, _MOST_LABELS = 3, 20


@dataclass(frozen=True)
class Problem:
    """One kind of problem in one column: what it is, in how many rows, in which first, and what solves it."""

    column: str
    what: str
    count: int
    rows: tuple[int | str, ...]
    remedy: str

    @property
    def place(self) -> str:
        """The number of rows, and the first of them as they are numbered in the file."""
        rows = [row if isinstance(row, str) else f"{row:,}" for row in self.rows]
        listed = ", ".join(rows) + (", ..." if self.count > len(self.rows) else "")
        return f"{counted(self.count, 'row')}: {listed}"


class ProblemsError(InputError, RefusedError):
    """Several problems of one table; the message is a table with a line for each."""

    def __init__(self, name: str, problems: Sequence[Problem], rows: str = "as in the file, a header too") -> None:
        self.name, self.problems, self.rows = name, tuple(problems), rows
        cells = [("column", "problem", "rows, and the first of them", "what solves it")]
        cells += [(plain(p.column), plain(p.what), p.place, p.remedy) for p in problems]
        first = f"{plain(name, None)} has {counted(len(problems), 'problem')} (rows are counted {rows}):"
        ValueError.__init__(self, "\n".join([first, *in_columns(cells)]))


def refuse_problems(used: UsedColumns) -> None:
    """Refuse a table with several problems, all at once; one alone is refused where it is met, in one sentence.

    Where it is met rows are counted without those left out, so the table also shows one problem if any may be left out.
    """
    found, how = list(_problems(used)), used.how
    if len(found) > 1 or (found and (how.drop_missing or how.drop_invalid or not used.known.all())):
        raise ProblemsError(used.table.name, found)


def _problems(used: UsedColumns) -> Iterator[Problem]:
    values, label, columns, how, keep = used.values, used.label, used.columns, used.how, used.known
    probs = list(dict.fromkeys(c for cs in columns.values() for c in cs))

    def problem(column: str, what: str, wrong: NDArray[np.bool_], remedy: str) -> Iterator[Problem]:
        rows = np.flatnonzero(wrong & keep)
        if len(rows):
            yield Problem(column, what, len(rows), tuple(int(r) + used.table.first_row for r in rows[:_SHOWN]), remedy)

    if not (how.drop_missing or how.drop_invalid):
        for column in (name for name in values if name not in how.segments):
            gone = reading.is_missing(values[column])
            yield from problem(column, "missing values", gone, _unless_all(gone, keep, "--drop-missing"))
    if not how.drop_invalid:
        for column in probs:
            yield from _of_numbers(column, values[column], how, keep, problem)
    if how.weight and (weights := _numbers(values[how.weight]))[1].any():
        yield from problem(how.weight, "weights that are not numbers", weights[1], "write numbers")
    if not how.class_column:
        yield from _of_labels(values[label], label, len(probs) // len(columns), how, keep, problem)
    if how.id and not (how.model_column or how.class_column):
        yield from problem(
            how.id, "values that occur before", _repeated(values[how.id]), "name another column with --id"
        )


def _unless_all(wrong: NDArray[np.bool_], keep: NDArray[np.bool_], remedy: str, role: str = "") -> str:
    """The remedy, which leaves rows out, unless it would leave out every row."""
    return remedy if (keep & ~wrong).any() else f"name another column{role}"


def _numbers(cells: NDArray[Any]) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """The numbers of a column (NaN where there is none), which cells are other texts, and which have percent signs."""
    numbers = reading.plain_numbers(cells)
    if numbers is not None or cells.dtype.kind in "mM":
        none = np.zeros(len(cells), dtype=bool)
        return np.full(len(cells), np.nan) if numbers is None else numbers, none, none
    read = [reading.parsed(v, percent=True) if v is not None else np.nan for v in cells.tolist()]
    signs = reading.percent_signs(cells)
    text = np.array([v is None for v in read], dtype=bool) & ~reading.is_missing(cells)
    return np.array([np.nan if v is None else v for v in read]), text, signs & ~text


def _of_numbers(
    column: str, cells: NDArray[Any], how: FileLayout, keep: NDArray[np.bool_], problem: Any
) -> Iterator[Problem]:
    """Texts, percent signs and numbers out of range in a column of probabilities."""
    top = 100.0 if how.percent else 1.0
    numbers, text, signs = _numbers(cells)
    if text.any():
        value = cells[np.flatnonzero(text)[0]]
        remedy = reading.hint(value).removeprefix(": ") or _unless_all(text, keep, "--drop-invalid", " with --prob")
        yield from problem(column, f"text such as {plain(value, 30)!r} in place of numbers", text, remedy)
    if how.logits:
        return
    wrong = ~are_probabilities(numbers, top) & ~np.isnan(numbers)
    if signs.any() and not how.percent:
        wrong &= ~signs
        if reading.on_two_scales(numbers[keep], signs[keep]):
            yield from problem(column, "percent signs", signs, "write all values on one scale, or --drop-invalid")
        else:
            percent = signs | (wrong & are_probabilities(numbers, 100.0))
            yield from problem(column, "percentages", percent, "--percent")
            wrong &= ~percent
    most = (wrong & keep).sum() > 0.5 * keep.sum()
    remedy = "--percent or --logits, if they are that" if most and not how.percent else "--drop-invalid"
    yield from problem(column, f"values outside 0 to {top:g}", wrong, remedy)


def _of_labels(
    cells: NDArray[Any], label: str, n_columns: int, how: FileLayout, keep: NDArray[np.bool_], problem: Any
) -> Iterator[Problem]:
    """Labels beyond the two of one column of probabilities, labels that --labels does not name, one class alone."""
    if how.labels is None and n_columns > 1:
        return
    there, named = keep & ~reading.is_missing(cells), reading.words(cells)
    distinct, member = reading.factor(named[there])
    if how.labels is not None:
        expected = set(how.labels)
        if len(how.labels) != max(n_columns, 2) or not expected & set(distinct):
            return  # the names themselves are wrong, and no row is
    elif not distinct:
        return
    else:
        counts = np.bincount(member)
        frequent = {distinct[i] for i in np.argsort(-counts, kind="stable")[:2]}
        expected = next((s for s in ({"0", "1"}, {"-1", "1"}) if s <= set(distinct)), frequent)
        others = sum(n for word, n in zip(distinct, counts.tolist(), strict=True) if word not in expected)
        if len(distinct) > _MOST_LABELS or others > reading.FEW_OTHERS * there.sum():
            what = f"{len(distinct):,} labels beside one column of probabilities"
            remedy = "one column for each class with --prob, or another --label"
            yield from problem(label, what, there, remedy)
            return
    for word in (word for word in distinct if word not in expected):
        remedy = f"--drop-label {word}" if " " not in word else f"--drop-label {word!r}"
        yield from problem(
            label, f"the label {plain(word, 30)!r} beside {some(sorted(expected))}", named == word, remedy
        )
    if len(distinct) == 1 and how.labels is None and not set(distinct) <= {"0", "1"}:
        remedy = "rows of the other class, or both names with --labels"
        yield from problem(label, f"one class alone: {plain(distinct[0], 30)!r}", there, remedy)


def _repeated(cells: NDArray[Any]) -> NDArray[np.bool_]:
    seen: set[str] = set()
    wrong = np.zeros(len(cells), dtype=bool)
    for i, value in enumerate(cells.tolist()):
        word = reading.as_word(value)
        wrong[i] = word in seen
        seen.add(word)
    return wrong

"""Segments: the rows with the same value in a column or in several columns, and groups that the user defines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, whole
from calibrary.base.numbers import distinct_digits
from calibrary.data.checks import Indices, absent, as_array
from calibrary.data.identity import index_of, refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import OfRows

#: A numeric column with at most this many distinct values has one segment per value.
FEW_VALUES = 10
#: Whole numbers are names (codes of sites and products, years, postcodes) where a value has this many rows on average.
ROWS_OF_A_NAME = 10
#: Parts into which a column of quantities is cut.
N_CUTS = 3
#: The name of the segment of rows without a value.
MISSING = "(missing)"


@dataclass(frozen=True)
class Column:
    """One column: the level of every row, and the name of each level."""

    name: str
    level: Indices
    words: tuple[str, ...]


@dataclass(frozen=True)
class Partition:
    """Segments that do not overlap: the segment number of every row, and the name of every segment.

    Rows that are in no sufficiently large segment have the number ``len(words)``.
    """

    segment: Indices
    words: tuple[str, ...]


def measures(values: NDArray[Any], rows: float) -> bool:
    """Whether a column of this many rows holds quantities or dates, which are cut, rather than names of segments."""
    if values.dtype.kind not in "fiuM":
        return False
    distinct = np.unique(values)
    names = values.dtype.kind != "M" and bool((distinct == np.floor(distinct)).all())
    return len(distinct) > max(FEW_VALUES, rows / ROWS_OF_A_NAME if names else 0.0)


def cut(values: Any, parts: int = N_CUTS) -> NDArray[Any]:
    """Ranges of a quantity with about equally many rows each, by name: for ``by={"age": cal.cut(age, 4)}``.

    Equal values are in one range, and a missing value stays missing (None). ``report`` cuts columns of quantities by
    itself; whole numbers with few distinct values are names (codes, years) unless they are cut here.

    Parameters
    ----------
    values : array-like of shape (N,)
        Numbers or dates.
    parts : int
        The number of ranges.

    Examples
    --------
    >>> import calibrary as cal
    >>> list(cal.cut([21, 34, 50, 68], 2))
    ['up to 34', 'up to 34', 'above 34', 'above 34']
    """
    array = as_array(values, "values")
    known, missing = known_values(array)
    if known.dtype.kind not in "fiuM" or array.ndim != 1:
        raise RefusedError("values holds no column of numbers or dates, so that it cannot be cut into ranges")
    words, level = ranges_of(known, whole("parts", parts, least=2))
    found = np.full(len(array), None, dtype=object)
    found[~missing] = np.array(words, dtype=object)[level]
    return found


def ranges_of(values: NDArray[Any], parts: int = N_CUTS) -> tuple[tuple[str, ...], Indices]:
    """Numbers or dates cut at quantiles: the names of the ranges, and the range of every value."""
    last = -(-len(values) * np.arange(1, parts) // parts) - 1  # the last of each range in order, but for the last range
    edges = np.unique(np.sort(values)[last]) if len(values) else values
    edges = edges[edges < values.max()] if len(values) else edges
    if not len(edges):
        return ("every value",), np.zeros(len(values), dtype=np.intp)
    said = distinct_digits(edges)
    between = [f"above {a} up to {b}" for a, b in pairwise(said)]
    return (f"up to {said[0]}", *between, f"above {said[-1]}"), np.searchsorted(edges, values, side="left")


def known_values(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values that are there, numbers as numbers even if tables hold them with gaps; and which are missing."""
    missing = absent(values)
    if values.dtype.kind == "O":
        missing |= np.array([isinstance(v, str) and not v.strip() for v in values.tolist()], dtype=bool)
    elif values.dtype.kind == "U":
        missing = np.char.strip(values) == ""
    known = values[~missing]
    if known.dtype.kind == "O" and len(known) and all(type(v) in (int, float) for v in known.tolist()):
        known = known.astype(np.float64)
    return known, missing


def columns_of(by: Any, view: Predictions, n_cuts: int = N_CUTS) -> list[Column]:
    """The columns of a mapping, a table or an array, with numeric columns cut at quantiles."""
    n_cuts = whole("n_cuts", n_cuts, least=2)
    if by is None:
        raise RefusedError("by is missing: pass the columns that split the rows, such as by={'site': site, 'age': age}")
    found = [_column(name, view.align(values, f"by[{name!r}]"), view, n_cuts) for name, values in _named(by)]
    if not found:
        raise RefusedError("by contains no column: pass a mapping or a table of columns, each with one value per row")
    return found


def partitions(columns: list[Column], view: Predictions, depth: int, min_rows: float) -> Iterator[Partition]:
    """The whole data set, then every column, every pair of columns, ... up to ``depth``; only large segments."""
    yield Partition(np.zeros(view.n, dtype=np.intp), ("all rows",))
    for size in range(1, min(whole("depth", depth), len(columns)) + 1):
        for some in combinations(columns, size):
            found = _crossed(some, view, min_rows)
            if found.words:
                yield found


def _crossed(columns: tuple[Column, ...], view: Predictions, min_rows: float) -> Partition:
    code = np.zeros(view.n, dtype=np.intp)
    for column in columns:
        code = code * len(column.words) + column.level
    cells = math.prod(len(column.words) for column in columns)
    if cells > 4 * view.n:  # far more cells than rows: only those that occur are numbered
        occurring, code = np.unique(code, return_inverse=True)
        cells, code = len(occurring), code.ravel()
    else:
        occurring = np.arange(cells)
    large = np.bincount(code, weights=view.w, minlength=cells) >= max(min_rows, 1e-300)
    number = np.where(large, np.cumsum(large) - 1, int(large.sum()))
    return Partition(number[code], tuple(_words(columns, int(cell)) for cell in occurring[large]))


def _words(columns: tuple[Column, ...], cell: int) -> str:
    names = []
    for column in reversed(columns):
        cell, level = divmod(cell, len(column.words))
        names.append(column.words[level])
    return " and ".join(reversed(names))


# -- reading columns ----------------------------------------------------------------------------------


def _named(by: Any) -> list[tuple[str, Any]]:
    """Names and values of the columns in the argument."""
    if isinstance(by, Mapping):
        return [(str(name), values) for name, values in by.items()]
    for names in ("column_names", "columns"):  # Arrow; pandas and polars
        listed = getattr(by, names, None)
        if listed is not None and not callable(listed):
            return [(str(name), by[name]) for name in listed]
    name = getattr(by, "name", None)
    array = as_array(by, "by")
    if array.ndim == 2:
        return [(f"column {j}", array[:, j]) for j in range(array.shape[1])]
    return [(name if isinstance(name, str) else "group", by)]


def _column(name: str, values: NDArray[Any], view: Predictions, n_cuts: int) -> Column:
    if values.ndim != 1:
        raise RefusedError(f"by[{name!r}] has {values.ndim} dimensions: pass one value per row")
    _refuse_missing(name, values, view)
    if values.dtype.kind == "O":
        values = np.array([str(v) for v in values])
    distinct, level = np.unique(values, return_inverse=True)
    level = level.ravel()
    counts = view.w is None or bool((view.w == np.rint(view.w)).all())
    if not measures(values, view.total if counts else view.n):
        return Column(name, level, tuple(f"{name} = {shown}" for shown in _names(distinct)))
    last = _cuts(np.bincount(level, weights=view.w), n_cuts)
    edges = distinct_digits(distinct[last])
    words = [f"{name} ≤ {edges[0]}"] + [f"{a} < {name} ≤ {b}" for a, b in pairwise(edges)]
    return Column(name, np.searchsorted(last, level), (*words, f"{name} > {edges[-1]}"))


def _cuts(weight: NDArray[Any], n_cuts: int) -> Indices:
    """The last value of each part except the last: the values up to a quantile (numpy's linear rule)."""
    if (weight != np.rint(weight)).any():  # weights that are not counts are scaled to one for each value
        weight = weight * (len(weight) / weight.sum())
    reached = np.cumsum(weight)
    place = max(float(reached[-1]) - 1.0, 0.0) * np.arange(1, n_cuts) / n_cuts
    last = np.searchsorted(reached, place * (1.0 + 1e-12), side="right")
    return np.unique(np.minimum(last, len(weight) - 2))


def _refuse_missing(name: str, values: NDArray[Any], view: Predictions) -> None:
    """Raise an error unless every row has a value in every column."""
    missing = absent(values)
    if missing.any():
        i = int(missing.argmax())
        row = i if view.rows is None else int(view.rows[i])
        raise RefusedError(
            f"by[{name!r}] has no value in row {row}, so that its segments do not cover every row: fill missing "
            "values with a name such as 'missing', or leave those rows out"
        )


def _names(values: NDArray[Any]) -> list[str]:
    return [f"{v:.6g}" if isinstance(v, float | np.floating) else str(v) for v in values]


class UserGroups(OfRows):
    """One group per distinct value of ``groups``, which has one entry per row of the input.

    Examples
    --------
    >>> from calibrary.grouping import UserGroups
    >>> UserGroups(["a", "b", "a"]).fit([0.2, 0.3, 0.9]).assign([0.2, 0.3, 0.9])
    array([0, 1, 0])
    """

    _known, _needed = "groups are", "one group per row"

    def __init__(self, groups: Any) -> None:
        self.given, self.index = as_array(groups, "groups"), index_of(groups)
        if self.given.ndim != 1:
            raise RefusedError(f"groups has {self.given.ndim} dimensions: pass one group per row")
        missing = np.flatnonzero(absent(self.given))
        if len(missing):
            raise RefusedError(f"groups[{missing[0]}] is missing: pass a group for every row")

    def fit_view(self, view: Predictions) -> Self:
        refuse_misaligned(y_true=view, groups=self)
        self.names_, self.index_ = np.unique(view.align(self.given, "groups"), return_inverse=True)
        self.n_bins_ = len(self.names_)
        return self

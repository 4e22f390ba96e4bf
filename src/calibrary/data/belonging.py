"""Which rows belong together, the time of each row, and rows split by columns into parts (sites, images, prompts)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, whole
from calibrary.base.text import in_sentence
from calibrary.data.checks import Indices, as_array, missing
from calibrary.numerics.runs import run_starts


@dataclass(frozen=True, eq=False)
class Belonging:
    """Which rows belong together.

    ``unit`` is the unit of each row of the input, 0, 1, ...; -1 for rows of weight zero. With ``block`` the rows are in
    time order, and the units are blocks of that length.
    """

    unit: Indices
    block: int | None = None


def together_by(units: Any, blocks: Any, rows: Indices | None, n_input: int, aligned: Any) -> Belonging | None:
    """Which rows belong together, from an array of units or a block length in time order; None if neither is given.

    ``rows`` are the rows of the input that are here (None: all), and ``aligned`` selects them from an array.
    """
    if units is None and blocks is None:
        return None
    if units is not None and blocks is not None:
        raise RefusedCallError("units and blocks both define which rows belong together: pass one of them")
    if isinstance(units, str):
        raise RefusedError(
            f"units={units!r} is a name: pass the column itself, with one value for each row; only a saved state "
            "(calibrary.scale) accepts the name of a column, one that was counted separately with by="
        )
    n, block = n_input if rows is None else len(rows), None
    if units is not None:
        given = aligned(units, "units")
        gone = missing(given.ravel().tolist()) if given.dtype.kind in "OfM" else None
        if gone is not None:
            raise RefusedError(f"units[{gone}] is missing: give each row its unit, or leave the row out")
        unit = np.unique(given, return_inverse=True)[1].ravel()
    else:
        block = round(n ** (1 / 3)) if blocks is True else whole("blocks", blocks)
        if 2 * block > n:
            raise RefusedError(f"blocks={in_sentence(block)} is too long for {n} rows: at least two blocks must fit")
        unit = np.arange(n) // block
    if rows is None:
        return Belonging(unit, block)
    every = np.full(n_input, -1, dtype=np.intp)
    every[rows] = unit
    return Belonging(every, block)


# -- dates -----------------------------------------------------------------------------------------------


def as_times(values: NDArray[Any]) -> NDArray[Any]:
    """Times as dates to the microsecond or as numbers; an error for anything else."""
    if values.ndim != 1:
        raise RefusedError(f"time has {values.ndim} dimensions: pass one date or number per row")
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    if values.dtype.kind == "b":
        raise RefusedError("time contains True and False: pass dates, text such as 2026-11-15, or numbers")
    listed = values.tolist()
    kept = [v for v in listed if not _gap(v)]
    if kept and all(isinstance(v, int | float) for v in kept):
        return np.array([math.nan if _gap(v) else float(v) for v in listed])
    return np.array(["NaT" if _gap(v) else _date(v, i) for i, v in enumerate(listed)], "datetime64[us]")


def _gap(v: Any) -> bool:
    return missing([v]) is not None or (isinstance(v, str) and not v.strip())


def _date(value: Any, row: int) -> np.datetime64:
    """One date; a date with a time zone is converted to UTC."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise RefusedError(
                f"time[{row}] = {value!r} is not a date in ISO format: write 2026-11-15 or 2026-11-15T08:30"
            ) from None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(value, "us")
    if isinstance(value, datetime.date):
        return np.datetime64(value, "us")
    raise RefusedError(f"time[{row}] = {value!r} is not a date: pass dates, text such as 2026-11-15, or numbers")


def split_rows(by: Any, align: Callable[[Any, str], NDArray[Any]]) -> list[tuple[Hashable, Indices]]:
    """The rows of every part, by their common value, in ascending order.

    ``by`` has one value per row; or it is a mapping (or table) of named columns, and a part is a combination of their
    values. ``align`` selects the current rows from an array for all rows.
    """
    if isinstance(by, Mapping) or hasattr(by, "columns"):
        columns = {str(name): align(by[name], f"by[{name!r}]") for name in getattr(by, "columns", by)}
    else:
        columns = {"": align(by, "by")}
    if not columns:
        raise RefusedError("by has no columns: pass one value per row, or named columns of them")
    coded = [_codes(values, name) for name, values in columns.items()]
    return _cells([names for names, _ in coded], [index for _, index in coded])


def _codes(values: NDArray[Any], name: str) -> tuple[list[Hashable], Indices]:
    """The distinct values of a column and the position of each row among them."""
    place = f"by[{name!r}]" if name else "by"
    if values.ndim != 1:
        raise RefusedError(f"{place} has {values.ndim} dimensions: pass one value per row")
    if (gone := missing(values.tolist())) is not None:
        raise RefusedError(f"{place}[{gone}] is missing: give every row a value, or leave the row out")
    if values.dtype.kind == "O":
        distinct: list[Hashable] = sorted(set(values.tolist()), key=lambda v: (str(type(v)), str(v)))
        position = {v: i for i, v in enumerate(distinct)}
        return distinct, np.fromiter((position[v] for v in values.tolist()), np.intp, len(values))
    found, index = np.unique(values, return_inverse=True)
    return found.tolist(), index.ravel()


def _cells(names: list[list[Hashable]], index: list[Indices]) -> list[tuple[Hashable, Indices]]:
    """Rows of every combination that occurs; for a single column the keys are its plain values."""
    cell = index[0]
    for values, more in zip(names[1:], index[1:], strict=True):
        cell = np.unique(cell * len(values) + more, return_inverse=True)[1].ravel()
    order = np.argsort(cell, kind="stable")
    starts = run_starts(cell[order])
    parts = []
    for rows in np.split(order, starts[1:]):
        key = tuple(values[i[rows[0]]] for values, i in zip(names, index, strict=True))
        parts.append((key[0] if len(key) == 1 else key, rows))
    return parts


def part_of_each(by: Any, units: Any, name: str) -> NDArray[Any]:
    """One value for each of the named units (images): in order, by name, or ``name`` for one part per unit."""
    if isinstance(by, str):
        if by != name:
            raise RefusedError(f"by={by!r}: pass by={name!r}, or one value for each {name}")
        return _objects(list(units))
    if isinstance(by, Mapping):
        unknown = next((unit for unit in units if unit not in by), None)
        if unknown is not None:
            raise RefusedError(f"by has no value for {name} {unknown!r}: pass one for every {name}")
        return _objects([by[unit] for unit in units])
    values = as_array(by, "by")
    if values.shape != (len(units),):
        raise RefusedError(
            f"by has shape {values.shape}: pass one value for each of the {len(units)} {name}s, in order"
        )
    return values


def _objects(values: list[Any]) -> NDArray[Any]:
    """A list as an array of objects, which may be tuples."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

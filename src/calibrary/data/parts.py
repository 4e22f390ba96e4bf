"""Rows split by columns: one part for every site, image, prompt, or combination of several columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Indices, as_array
from calibrary.numerics.runs import run_starts


def split_rows(by: Any, align: Callable[[Any, str], NDArray[Any]]) -> list[tuple[Hashable, Indices]]:
    """The rows of every part, by their common value, in ascending order.

    ``by`` has one value per row; or it is a mapping (or table) of named columns, and a part is a combination of their
    values. ``align`` selects the current rows from an array for all rows.
    """
    if isinstance(by, Mapping) or hasattr(by, "columns"):
        columns = {str(name): align(by[name], f"by[{name!r}]") for name in _names(by)}
    else:
        columns = {"": align(by, "by")}
    if not columns:
        raise RefusedError("by has no columns: pass one value per row, or named columns of them")
    coded = [_codes(values, name) for name, values in columns.items()]
    return _cells([names for names, _ in coded], [index for _, index in coded])


def _names(by: Any) -> list[Any]:
    return list(by) if isinstance(by, Mapping) else list(by.columns)


def _codes(values: NDArray[Any], name: str) -> tuple[list[Hashable], Indices]:
    """The distinct values of a column and the position of each row among them."""
    place = f"by[{name!r}]" if name else "by"
    if values.ndim != 1:
        raise RefusedError(f"{place} has {values.ndim} dimensions: pass one value per row")
    missing = np.flatnonzero([v is None or v != v for v in values.tolist()])
    if len(missing):
        raise RefusedError(f"{place}[{missing[0]}] is missing: give every row a value, or leave the row out")
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

"""One file a model, and long tables: the rows of several models are brought together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.tables.layout import FileLayout, PredictionFile
from calibrary.tables.schema import facts_of
from calibrary.tables.sources import InputError, some
from calibrary.tables.table import Columns, FileTable
from calibrary.tables.values import factor, first_difference, words


def refuse_other_rows(
    found: PredictionFile, first: PredictionFile, how: FileLayout, rows: NDArray[Any], own: bool
) -> None:
    """Refuse a file whose labels, weights, groups, units or other columns are not those of the first file."""
    files, row = f"{found.source} and {first.source}", f"{how.id} " if how.id else "row "
    by_id = "" if how.id else ", name the column that identifies a row with --id"
    remedy = (
        f"files of several models must hold the same rows{by_id}, or write a separate report for each with --folder"
    )
    if len(found.y) != len(first.y):
        raise InputError(f"{files} differ in their number of rows ({len(found.y):,} and {len(first.y):,}): {remedy}")
    if how.id and (other := first_difference(found.others[how.id], first.others[how.id])):
        raise InputError(f"{files} hold different rows: their columns {how.id!r} differ, first {other[1]}")
    if found.classes != first.classes:
        raise InputError(f"{files} differ in their labels ({some(found.classes)} and {some(first.classes)}): {remedy}")

    named = np.asarray(first.classes, dtype=object)
    pairs = {} if own or np.array_equal(found.y, first.y) else {"labels": (named[found.y], named[first.y])}
    for name, values in (("weights", "weight"), ("groups", "group")):
        if getattr(first, values) is not None:
            pairs[name] = getattr(found, values), getattr(first, values)
    pairs.update({f"column {name!r}": (found.others[name], first.others[name]) for name in first.others})
    for name, (theirs, ours) in pairs.items():
        at = first_difference(theirs, ours)
        if at is not None:
            raise InputError(f"{files} differ in their {name}, first in {row}{rows[at[0]]} ({at[1]}): {remedy}")


def shared_questions(read: list[PredictionFile], id: str) -> list[PredictionFile]:
    """Keep the questions that every file has, in one order, and print how many were left out of each file."""
    ids = [found.others[id].astype(str) for found in read]
    shared = set(ids[0].tolist()).intersection(*(each.tolist() for each in ids[1:]))
    if not shared:
        raise InputError(
            f"{read[0].source} and {read[1].source} have no value of {id} in common: do they belong to the same task?"
        )
    kept = []
    for found, each in zip(read, ids, strict=True):
        rows = np.flatnonzero([name in shared for name in each.tolist()])
        alone = len(each) - len(rows)
        notes = (*found.notes, f"{counted(alone, 'row')} of {found.source} left out: not in every file")
        kept.append(replace(_rows_of(found, rows), notes=notes) if alone else found)
    return kept


#: Words in the names of columns that identify rows.
_ID_WORDS = frozenset(["id", "ids", "case", "caseid", "key", "uuid", "guid", "index", "identifier", "rowid"])


def common_id(tables: Sequence[FileTable]) -> str | None:
    """The only column that is named like an identifier, is in every file, and identifies each row in all of them."""
    shared = [name for name in tables[0].names if all(name in table.names for table in tables[1:])]
    named = [
        name
        for name in shared
        if _ID_WORDS & set(re.findall(r"[a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    ]
    found = [name for name in named if all(facts_of(table.columns([name]))[name].identifies for table in tables)]
    return found[0] if len(found) == 1 else None


def in_order_of(found: PredictionFile, id: str) -> PredictionFile:
    ids = words(found.others[id])
    order = np.argsort(ids, kind="stable")
    if len(ids) and (ids[order][1:] == ids[order][:-1]).any():
        twice = ids[order][1:][ids[order][1:] == ids[order][:-1]][0]
        raise InputError(f"{found.source}: {id} {twice!r} occurs twice: this column must identify each row")
    return _rows_of(found, order)


def _rows_of(found: PredictionFile, rows: NDArray[np.intp]) -> PredictionFile:
    return replace(
        found,
        y=found.y[rows],
        models={name: p[rows] for name, p in found.models.items()},
        weight=None if found.weight is None else found.weight[rows],
        group=None if found.group is None else found.group[rows],
        others={name: values[rows] for name, values in found.others.items()},
    )


def wide(
    values: Columns, label: str, columns: dict[str, list[str]], how: FileLayout
) -> tuple[Columns, dict[str, list[str]]]:
    """Turn a long table (one row per prediction and model, or class) into one row per prediction."""
    key = how.model_column or how.class_column
    assert key is not None
    if how.model_column and how.class_column:
        raise InputError("--model-column and --class-column cannot be combined: write one file per model")
    if how.class_column and not how.id:
        raise InputError("--class-column needs --id, the column that identifies the rows of one prediction")
    given = [c for cs in columns.values() for c in cs]
    if len(given) != 1:
        raise InputError(
            f"a long table has its probabilities in one column: name that column with --prob, in addition to {key!r}"
        )
    kinds, member = factor(values[key])
    places = [np.flatnonzero(member == k) for k in range(len(kinds))]
    if how.id:
        ids = words(values[how.id])
        places = [rows[np.argsort(ids[rows], kind="stable")] for rows in places]
    _refuse_unequal(values, kinds, places, key, how.id, [name for name in values if name not in (key, given[0])])
    wide = {name: column[places[0]] for name, column in values.items()}
    taken = {label, *values}
    new = [kind if kind not in taken else f"{kind} ({key})" for kind in kinds]
    wide.update({name: values[given[0]][rows] for name, rows in zip(new, places, strict=True)})
    if how.class_column:
        return wide, {given[0]: new}
    return wide, {name: [name] for name in new}


def kept_together(values: Columns, keep: NDArray[np.bool_], how: FileLayout) -> NDArray[np.bool_]:
    """Which rows of a long table are kept: those whose prediction is complete for every model or class."""
    if keep.all():
        return keep
    if how.id is None:
        raise InputError(
            "rows of a long table that are left out cannot be matched by position: name the column that identifies a "
            "row with --id"
        )
    ids = words(values[how.id])
    gone = set(ids[~keep].tolist())
    return np.array([id not in gone for id in ids.tolist()], dtype=bool)


def _refuse_unequal(
    values: Columns, kinds: list[str], places: list[NDArray[np.intp]], key: str, id: str | None, same: list[str]
) -> None:
    """Refuse a long table whose models, or classes, have different rows, or other values in the columns ``same``."""
    hint = "" if id else "; name the column that identifies a row with --id"
    for kind, rows in zip(kinds, places, strict=True):
        if len(rows) != len(places[0]) or (id and first_difference(values[id][rows], values[id][places[0]])):
            raise InputError(f"{key} {kind!r} and {kinds[0]!r} do not have the same rows{hint}")
        for name in same:
            at = first_difference(values[name][rows], values[name][places[0]])
            if at is not None:
                raise InputError(
                    f"{key} {kind!r} and {kinds[0]!r} have different values in {name!r} for the same row "
                    f"({at[1]}){hint}"
                )

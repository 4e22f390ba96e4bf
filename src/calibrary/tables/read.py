"""Read the predictions of a table: labels, probabilities of one or several models, weights; guesses are stated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.data.checks import Array
from calibrary.tables import values as reading
from calibrary.tables.files import open_table
from calibrary.tables.guess import ID_WORDS, columns_by_role, content_guesses, name_words, refuse_weight
from calibrary.tables.layout import FileLayout, PredictionFile, UsedColumns
from calibrary.tables.problems import refuse_problems
from calibrary.tables.schema import facts_of
from calibrary.tables.sources import InputError, some
from calibrary.tables.table import Columns, FileTable


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
    if how.id and (other := reading.first_difference(found.others[how.id], first.others[how.id])):
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
        at = reading.first_difference(theirs, ours)
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


def common_id(tables: Sequence[FileTable]) -> str | None:
    """The only column that is named like an identifier, is in every file, and identifies each row in all of them."""
    shared = [name for name in tables[0].names if all(name in table.names for table in tables[1:])]
    named = [name for name in shared if ID_WORDS & name_words(name)]
    found = [name for name in named if all(facts_of(table.columns([name]))[name].identifies for table in tables)]
    return found[0] if len(found) == 1 else None


def in_order_of(found: PredictionFile, id: str) -> PredictionFile:
    ids = reading.words(found.others[id])
    order = np.argsort(ids, kind="stable")
    if len(ids) and (ids[order][1:] == ids[order][:-1]).any():
        twice = ids[order][1:][ids[order][1:] == ids[order][:-1]][0]
        raise InputError(f"{found.source}: {id} {twice!r} occurs twice: this column must identify each row")
    return _rows_of(found, order)


def _rows_of(found: PredictionFile, rows: NDArray[np.intp]) -> PredictionFile:
    own = {name: x[rows] for name in ("y", "weight", "group") if (x := getattr(found, name)) is not None}
    models, others = ({name: x[rows] for name, x in of.items()} for of in (found.models, found.others))
    return replace(found, models=models, others=others, **own)


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
    kinds, member = reading.factor(values[key])
    places = [np.flatnonzero(member == k) for k in range(len(kinds))]
    if how.id:
        ids = reading.words(values[how.id])
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
    ids = reading.words(values[how.id])
    gone = set(ids[~keep].tolist())
    return np.array([id not in gone for id in ids.tolist()], dtype=bool)


def _refuse_unequal(
    values: Columns, kinds: list[str], places: list[NDArray[np.intp]], key: str, id: str | None, same: list[str]
) -> None:
    """Refuse a long table whose models, or classes, have different rows, or other values in the columns ``same``."""
    hint = "" if id else "; name the column that identifies a row with --id"
    for kind, rows in zip(kinds, places, strict=True):
        if len(rows) != len(places[0]) or (id and reading.first_difference(values[id][rows], values[id][places[0]])):
            raise InputError(f"{key} {kind!r} and {kinds[0]!r} do not have the same rows{hint}")
        for name in same:
            at = reading.first_difference(values[name][rows], values[name][places[0]])
            if at is not None:
                raise InputError(
                    f"{key} {kind!r} and {kinds[0]!r} have different values in {name!r} for the same row "
                    f"({at[1]}){hint}"
                )


#: A function that opens a source; of a log it also gives the roles of the columns.
Opener = Callable[[str | Path, "FileLayout"], tuple[FileTable, "FileLayout"]]


def read_predictions(
    source: str | Path | Sequence[str | Path], opened: Opener | None = None, **options: Any
) -> PredictionFile:
    """Read labels and probabilities from a file, or from one file per model.

    Parameters
    ----------
    source : path, several paths, or "-" for standard input
        CSV, TSV, JSON (lines) (each also gzip), Parquet, Arrow, NPZ, Excel or torch, recognized by name or content; the
        files of a folder are parts of one table. Several files hold one model each, on the same rows.
    label, weight, group : column names
        ``label`` is guessed when obvious ("label", "y", "target", ...) and the guess is stated in ``notes``.
    prob : column names or a prefix
        One column of P(class 1), one column per class, or a prefix such as "p" for p0, p1, ...
    models : column names or prefixes
        Several models to compare: one column or prefix each. Replaces ``prob``.
    positive : str
        The label that counts as class 1 when the labels are two names.
    labels : names of classes
        The names of all classes, in the order of the columns; of two classes, the probabilities are of the second.
    logits, percent : bool
        The columns hold logits, or percentages (also written 85%), not probabilities.
    drop_missing : bool
        Leave out rows with missing values instead of raising an error.
    drop_invalid : bool
        Leave out rows with missing values and with probabilities outside [0, 1].
    others : column names
        Further columns to return.
    segments : column names
        Those of ``others`` that split the rows: a row without a value stays, in a segment of its own.
    id : column name
        The column that identifies the same row in several files, or for several models or classes.
    model_column, class_column : column names
        A long table: one row for each model, or for each class, of a prediction.
    scorer, normalize : str
        For a log of a language model: the scorer to use, and "length" to divide log-likelihoods by the length.
    """
    how = FileLayout(**options)
    opened = opened or (lambda source, how: (open_table(source), how))
    if how.logits and how.percent:
        raise InputError("--logits and --percent exclude each other: pass one of them")
    if isinstance(source, str | Path):
        return _predictions_of(_used(*opened(source, how), str(source)))
    if len(source) == 1:
        return read_predictions(source[0], opened, **options)
    if "-" in map(str, source):
        raise InputError("standard input (-) cannot be combined with other files")
    return _one_file_per_model([opened(str(s), how) for s in source], [str(s) for s in source], how)


def _used(table: FileTable, how: FileLayout, source: str) -> UsedColumns:
    notes = list(table.notes)
    how, label, columns, beside = columns_by_role(table, how, notes)
    refuse_weight(how.weight, label, columns)
    used = list(dict.fromkeys([label, *(c for cs in columns.values() for c in cs), *beside]))
    values = table.columns(used)
    known = reading.without_labels(values[label], label, how.drop_label, notes)
    found = UsedColumns(table, how, source, label, columns, values, known.copy(), notes, known)
    refuse_problems(found)
    part = values if known.all() else {name: column[known] for name, column in values.items()}
    needed = [name for name in used if name not in how.segments]
    fine = reading.complete_rows(part, needed, table.name, how.drop_missing or how.drop_invalid)
    if how.drop_invalid and not how.logits:
        probs = [c for cs in columns.values() for c in cs]
        fine &= reading.inside(part, probs, 100.0 if how.percent else 1.0, how.percent)
    found.keep[known] = fine
    if how.model_column or how.class_column:
        found.keep = kept_together(values, found.keep, how)
    return found


def _predictions_of(used: UsedColumns) -> PredictionFile:
    how, label, columns, notes = used.how, used.label, used.columns, used.notes
    values = {name: column[used.keep] for name, column in used.values.items()}
    if how.model_column or how.class_column:
        values, columns = wide(values, label, columns, how)
    probabilities = {model: reading.probabilities_of(values, cs, how, notes) for model, cs in columns.items()}
    n_columns = {1 if p.ndim == 1 else p.shape[1] for p in probabilities.values()}
    if len(n_columns) > 1:
        raise InputError(f"the models have different numbers of probability columns: {sorted(n_columns)}")
    y, classes = reading.class_labels(values[label], label, columns, n_columns.pop(), how, notes)
    weight = None if how.weight is None else reading.numbers_of(values[how.weight], how.weight)
    group, table = None if how.group is None else values[how.group], used.table
    roles = {"label": label, "models": columns, "weight": how.weight, "group": how.group}
    others = {name: values[name] for name in (*how.others, how.id, table.unit, table.by) if name}
    about = (tuple(map(str, notes)), int((used.known & ~used.keep).sum()), roles, others, table.unit, table.by)
    found = PredictionFile(used.source, y, probabilities, classes, weight, group, *about)
    return replace(found, left_out=_left_out(used), by_content=content_guesses(notes))


def _left_out(used: UsedColumns) -> dict[str, int]:
    """How many rows were left out, by the first column in which they lack a value, or because a value is invalid."""
    gone, counts = used.known & ~used.keep, {"with a label to leave out": int((~used.known).sum())}
    for name, values in used.values.items():
        if name not in used.how.segments:
            here = gone & reading.is_missing(values)
            counts[f"without {name}"] = int(here.sum())
            gone = gone & ~here
    counts["invalid or incomplete in another file" if used.several else "invalid"] = int(gone.sum())
    return {why: n for why, n in counts.items() if n}


def _one_file_per_model(
    opened: list[tuple[FileTable, FileLayout]], sources: list[str], how: FileLayout
) -> PredictionFile:
    """Join one file per model into one table of the same rows, matched by position or by the column ``id``."""
    said: list[str] = []
    if how.id is None and all(table.id for table, _ in opened):  # a log has its own identifier of the questions
        how = replace(how, id=opened[0][0].id)
        opened = [(table, replace(layout, id=table.id)) for table, layout in opened]
    elif how.id is None and (found_id := common_id([table for table, _ in opened])):
        how = replace(how, id=found_id)
        opened = [(table, replace(layout, id=found_id)) for table, layout in opened]
        said = [f"rows of the files matched by column {found_id!r}, which identifies each row in every file"]
    used = [_used(table, layout, source) for (table, layout), source in zip(opened, sources, strict=True)]
    for each in used:
        each.several = True
    dropped = _dropped_from_every_file(used, how)
    read = [_predictions_of(each) for each in used]
    if how.id is not None:
        read = [in_order_of(found, how.id) for found in read]
    own = how.id is not None and all(table.own_outcomes for table, _ in opened)
    if own:
        read = shared_questions(read, str(how.id))
    first = read[0]
    models: dict[str, Array] = {}
    outcomes: dict[str, NDArray[np.intp]] = {}
    stems = [Path(s).name for s in sources]
    rows = first.others[how.id] if how.id else np.flatnonzero(used[0].keep)[: len(first.y)] + 1
    for stem, found in zip(stems, read, strict=True):
        refuse_other_rows(found, first, how, rows, own)
        for name, p in found.models.items():
            models[stem if len(found.models) == 1 else f"{stem} {name}"] = p
            outcomes[stem if len(found.models) == 1 else f"{stem} {name}"] = found.y
    if len(models) < sum(len(found.models) for found in read):
        raise InputError(
            f"two files have the same name ({some(stems)}): rename one of them, because the file name is "
            "the name of the model"
        )
    notes = dict.fromkeys((*said, *(note for found in read for note in found.notes), *dropped))
    return replace(
        first, source=", ".join(sources), models=models, notes=tuple(notes), outcomes=outcomes if own else {}
    )


def _dropped_from_every_file(used: list[UsedColumns], how: FileLayout) -> list[str]:
    """Drop each row that one of the files lacks from all of them; a note says how many rows each file lacks."""
    alone = [int((~each.keep).sum()) for each in used]
    if not any(alone):
        return []
    if how.id is not None:
        ids = [reading.words(each.values[how.id]) for each in used]
        gone = {id for each, own in zip(used, ids, strict=True) for id in own[~each.keep].tolist()}
        for each, own in zip(used, ids, strict=True):
            each.keep &= np.array([id not in gone for id in own.tolist()], dtype=bool)
    else:
        short = next((each for each in used if len(each.keep) != len(used[0].keep)), None)
        if short is not None:
            raise InputError(
                f"{short.source} has {len(short.keep):,} rows and {used[0].source} has {len(used[0].keep):,}: rows "
                "that are left out cannot be matched by position; name the column that identifies a row with --id"
            )
        together = np.logical_and.reduce([each.keep for each in used])
        for each in used:
            each.keep = together
    if not all(each.keep.any() for each in used):
        raise InputError("no row is complete in every file: write a separate report for each file with --folder")
    why = "lacking a value" if not how.drop_invalid else "invalid"
    why += " or have a label of --drop-label" if how.drop_label else ""
    each_file = ", ".join(f"{n:,} in {each.source}" for n, each in zip(alone, used, strict=True))
    return [f"rows that are {why} in one file are left out of every file: {each_file}"]

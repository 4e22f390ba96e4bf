"""Find the columns of a file: labels, probabilities of one or several models, weights; every guess is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import suggest
from calibrary.base.numbers import counted
from calibrary.base.text import in_sentence
from calibrary.cli.files import Columns, FileTable, open_table
from calibrary.cli.logs import log_of
from calibrary.cli.sources import InputError
from calibrary.data.checks import Array, Outside, are_probabilities, outside, sigmoid, softmax
from calibrary.data.columns import matched_names
from calibrary.data.predictions import Predictions, predictions

_LABEL_NAMES = (
    "label", "labels", "y", "y_true", "target", "targets", "truth", "true_label", "ground_truth", "outcome", "class",
    "actual", "correct", "is_correct",
)  # fmt: skip
_PROB_NAMES = (
    "prob", "p", "y_prob", "probability", "proba", "y_proba", "score", "y_score", "risk", "risk_score", "confidence",
    "prediction", "pred", "c", "y_pred", "yhat", "y_hat",
)  # fmt: skip
_PROB_PREFIX = "predicted_"  # of predicted_risk, predicted_probability, ...; not of predicted_label and predicted_class
#: A column with more labels than this probably holds no labels.
_MOST_LABELS = 20
_POSITIVE_NAMES = ("true", "yes", "positive", "pos", "case", "event", "correct", "right")

#: Names that are tried before it is known whether the table has them.
Names = Sequence[str]


@dataclass(frozen=True)
class PredictionFile:
    """The content of a file of predictions: labels, one set of probabilities per model, weights, other columns.

    ``notes`` states every guess that was made, ``classes`` the class names in column order, ``others`` further columns
    that were requested by name (units, groups, dates). ``unit`` and ``by`` name the column of units and the columns of
    segments that the file itself declares, such as the epochs and tasks of a log. ``outcomes`` holds one array of
    labels per model where each model has its own labels (is its answer right?); ``y`` is then that of the first model.
    ``left_out`` counts the rows that were left out by reason.
    """

    source: str
    y: NDArray[np.intp]
    models: dict[str, Array]
    classes: tuple[str, ...]
    weight: Array | None = None
    group: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    n_dropped: int = 0
    columns: dict[str, Any] = field(default_factory=dict)
    others: Columns = field(default_factory=dict)
    unit: str = ""
    by: str = ""
    outcomes: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def predictions(self, model: str | None = None) -> Predictions:
        """The checked predictions of one model (the first by default), with the class names of the file."""
        name = model or next(iter(self.models))
        p = predictions(self.outcomes.get(name, self.y), self.models[name])
        named = Predictions(p.y, p.probability, classes=self.classes)
        return named if self.weight is None else predictions(named, sample_weight=self.weight)


@dataclass(frozen=True)
class FileLayout:
    """How to read a file: the role of each column, and whether its numbers are probabilities, percentages or logits."""

    label: str | None = None
    prob: Names | None = None
    models: Names | None = None
    weight: str | None = None
    group: str | None = None
    positive: str | None = None
    labels: Names | None = None
    logits: bool = False
    percent: bool = False
    drop_missing: bool = False
    drop_invalid: bool = False
    others: Names = ()
    segments: Names = ()
    id: str | None = None
    model_column: str | None = None
    class_column: str | None = None
    scorer: str | None = None
    normalize: str = "none"


Reading = FileLayout  # its name in 0.2, which pickles and imports may have


def read_predictions(source: str | Path | Sequence[str | Path], **options: Any) -> PredictionFile:
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
    if how.logits and how.percent:
        raise InputError("--logits and --percent exclude each other: pass one of them")
    if isinstance(source, str | Path):
        return _read(*_opened(source, how), str(source))
    if len(source) == 1:
        return read_predictions(source[0], **options)
    if "-" in map(str, source):
        raise InputError("standard input (-) cannot be combined with other files")
    return _one_file_per_model([str(s) for s in source], how)


def _opened(source: str | Path, how: FileLayout) -> tuple[FileTable, FileLayout]:
    """The table of a file; for a log also the roles of its columns."""
    found = log_of(source, how.scorer, how.normalize, how.prob)
    if found is None:
        return open_table(source), how
    table, label, prob = found
    if (how.percent or how.logits) and prob is not how.prob:
        raise InputError(
            f"{source} is a log, whose unit is recognized: leave {'--percent' if how.percent else '--logits'} out"
        )
    return table, replace(how, label=how.label or label, prob=None if how.models else prob)


@dataclass
class _Used:
    """The columns of a file that are used, as they are written there, and which of its rows are kept."""

    table: FileTable
    how: FileLayout
    source: str
    label: str
    columns: dict[str, list[str]]
    values: Columns
    keep: NDArray[np.bool_]
    notes: list[str]


def _read(table: FileTable, how: FileLayout, source: str) -> PredictionFile:
    return _predictions_of(_used(table, how, source))


def _used(table: FileTable, how: FileLayout, source: str) -> _Used:
    notes = list(table.notes)
    names = list(table.names)
    label = label_column(names, how.label, notes)
    named = (how.weight, how.group, how.id, how.model_column, how.class_column, *how.others)
    beside = [name for name in named if name is not None]
    for name in beside:
        required_column(names, name)
    beside = [*beside, *(name for name in _own(table) if name not in beside)]
    columns = model_columns(names, label, how.prob, how.models, set(beside), notes)
    refuse_weight(how.weight, label, columns)
    used = list(dict.fromkeys([label, *(c for cs in columns.values() for c in cs), *beside]))
    values = table.columns(used)
    needed = [name for name in used if name not in how.segments]
    keep = complete_rows(values, needed, table.name, how.drop_missing or how.drop_invalid)
    if how.drop_invalid and not how.logits:
        keep &= _inside(values, [c for cs in columns.values() for c in cs], 100.0 if how.percent else 1.0)
    if how.model_column or how.class_column:
        keep = _kept_together(values, keep, how)
    return _Used(table, how, source, label, columns, values, keep, notes)


def _own(table: FileTable) -> list[str]:
    """The columns of units and of segments that the file itself declares."""
    return [name for name in (table.unit, table.by) if name]


def _predictions_of(used: _Used) -> PredictionFile:
    how, label, columns, notes = used.how, used.label, used.columns, used.notes
    values = {name: column[used.keep] for name, column in used.values.items()}
    if how.model_column or how.class_column:
        values, columns = _wide(values, label, columns, how)
    probabilities = {model: probabilities_of(values, cs, how, notes) for model, cs in columns.items()}
    n_columns = {1 if p.ndim == 1 else p.shape[1] for p in probabilities.values()}
    if len(n_columns) > 1:
        raise InputError(f"the models have different numbers of probability columns: {sorted(n_columns)}")
    if how.labels is None:
        y, classes = _class_labels(values[label], label, columns, n_columns.pop(), how.positive, notes)
    else:
        y, classes = _named_labels(values[label], label, n_columns.pop(), tuple(how.labels))
    return PredictionFile(
        used.source,
        y,
        probabilities,
        classes,
        None if how.weight is None else numbers_of(values[how.weight], how.weight),
        None if how.group is None else values[how.group],
        tuple(notes),
        int((~used.keep).sum()),
        {"label": label, "models": columns, "weight": how.weight, "group": how.group},
        {name: values[name] for name in (*how.others, *([how.id] if how.id else []), *_own(used.table))},
        used.table.unit,
        used.table.by,
        left_out=_left_out(used),
    )


def _left_out(used: _Used) -> dict[str, int]:
    """How many rows were left out, by the first column in which they lack a value, or because a value is invalid."""
    gone, counts = ~used.keep, dict[str, int]()
    for name, values in used.values.items():
        if name not in used.how.segments:
            here = gone & is_missing(values)
            counts[f"without {name}"] = int(here.sum())
            gone = gone & ~here
    counts["invalid or incomplete in another file"] = int(gone.sum())
    return {why: n for why, n in counts.items() if n}


# -- one file per model, and long tables ------------------------------------------------------------


def _one_file_per_model(sources: list[str], how: FileLayout) -> PredictionFile:
    """Join one file per model into one table of the same rows, matched by position or by the column ``id``."""
    opened = [_opened(source, how) for source in sources]
    if how.id is None and all(table.id for table, _ in opened):  # a log has its own identifier of the questions
        how = replace(how, id=opened[0][0].id)
        opened = [(table, replace(layout, id=table.id)) for table, layout in opened]
    used = [_used(table, layout, source) for (table, layout), source in zip(opened, sources, strict=True)]
    dropped = _dropped_from_every_file(used, how)
    read = [_predictions_of(each) for each in used]
    if how.id is not None:
        read = [_in_order_of(found, how.id) for found in read]
    own = how.id is not None and all(table.own_outcomes for table, _ in opened)
    if own:
        read = _shared_questions(read, str(how.id))
    first = read[0]
    models: dict[str, Array] = {}
    outcomes: dict[str, NDArray[np.intp]] = {}
    stems = [Path(s).name for s in sources]
    rows = first.others[how.id] if how.id else np.flatnonzero(used[0].keep)[: len(first.y)] + 1
    for stem, found in zip(stems, read, strict=True):
        _refuse_other_rows(found, first, how, rows, own)
        for name, p in found.models.items():
            models[stem if len(found.models) == 1 else f"{stem} {name}"] = p
            outcomes[stem if len(found.models) == 1 else f"{stem} {name}"] = found.y
    if len(models) < sum(len(found.models) for found in read):
        raise InputError(
            f"two files have the same name ({_some(stems)}): rename one of them, because the file name is "
            "the name of the model"
        )
    notes = dict.fromkeys((*(note for found in read for note in found.notes), *dropped))
    return replace(
        first, source=", ".join(sources), models=models, notes=tuple(notes), outcomes=outcomes if own else {}
    )


def _dropped_from_every_file(used: list[_Used], how: FileLayout) -> list[str]:
    """Drop each row that one of the files lacks from all of them; a note says how many rows each file lacks."""
    alone = [int((~each.keep).sum()) for each in used]
    if not any(alone):
        return []
    if how.id is not None:
        ids = [_words(each.values[how.id]) for each in used]
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
    why = "invalid" if how.drop_invalid else "lacking a value"
    each_file = ", ".join(f"{n:,} in {each.source}" for n, each in zip(alone, used, strict=True))
    return [f"rows that are {why} in one file are left out of every file: {each_file}"]


def _refuse_other_rows(
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
    if how.id and (other := _first_difference(found.others[how.id], first.others[how.id])):
        raise InputError(f"{files} hold different rows: their columns {how.id!r} differ, first {other[1]}")
    if found.classes != first.classes:
        raise InputError(
            f"{files} differ in their labels ({_some(found.classes)} and {_some(first.classes)}): {remedy}"
        )

    named = np.asarray(first.classes, dtype=object)
    pairs = {} if own or np.array_equal(found.y, first.y) else {"labels": (named[found.y], named[first.y])}
    for name, values in (("weights", "weight"), ("groups", "group")):
        if getattr(first, values) is not None:
            pairs[name] = getattr(found, values), getattr(first, values)
    pairs.update({f"column {name!r}": (found.others[name], first.others[name]) for name in first.others})
    for name, (theirs, ours) in pairs.items():
        at = _first_difference(theirs, ours)
        if at is not None:
            raise InputError(f"{files} differ in their {name}, first in {row}{rows[at[0]]} ({at[1]}): {remedy}")


def _first_difference(theirs: NDArray[Any], ours: NDArray[Any]) -> tuple[int, str] | None:
    """The first position at which two columns differ, and both values; None if the columns are equal."""
    if theirs.dtype == ours.dtype and np.array_equal(theirs, ours):
        return None
    there, here = _words(theirs), _words(ours)
    at = np.flatnonzero(there != here)
    return (int(at[0]), f"{there[at[0]]!r} and {here[at[0]]!r}") if len(at) else None


def _words(values: NDArray[Any]) -> NDArray[Any]:
    """The values as text, in which 1 and 1.0 are equal, so that columns of two files can be compared."""
    return np.array([_as_word(value) for value in values.tolist()], dtype=object)


def _shared_questions(read: list[PredictionFile], id: str) -> list[PredictionFile]:
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


def _in_order_of(found: PredictionFile, id: str) -> PredictionFile:
    ids = _words(found.others[id])
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


def _wide(
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
    kinds, member = _factor(values[key])
    places = [np.flatnonzero(member == k) for k in range(len(kinds))]
    if how.id:
        ids = _words(values[how.id])
        places = [rows[np.argsort(ids[rows], kind="stable")] for rows in places]
    _refuse_unequal(values, kinds, places, key, how.id, [name for name in values if name not in (key, given[0])])
    wide = {name: column[places[0]] for name, column in values.items()}
    taken = {label, *values}
    new = [kind if kind not in taken else f"{kind} ({key})" for kind in kinds]
    wide.update({name: values[given[0]][rows] for name, rows in zip(new, places, strict=True)})
    if how.class_column:
        return wide, {given[0]: new}
    return wide, {name: [name] for name in new}


def _kept_together(values: Columns, keep: NDArray[np.bool_], how: FileLayout) -> NDArray[np.bool_]:
    """Which rows of a long table are kept: those whose prediction is complete for every model or class."""
    if keep.all():
        return keep
    if how.id is None:
        raise InputError(
            "rows of a long table that are left out cannot be matched by position: name the column that identifies a "
            "row with --id"
        )
    ids = _words(values[how.id])
    gone = set(ids[~keep].tolist())
    return np.array([id not in gone for id in ids.tolist()], dtype=bool)


def _refuse_unequal(
    values: Columns, kinds: list[str], places: list[NDArray[np.intp]], key: str, id: str | None, same: list[str]
) -> None:
    """Refuse a long table whose models, or classes, have different rows, or other values in the columns ``same``."""
    hint = "" if id else "; name the column that identifies a row with --id"
    for kind, rows in zip(kinds, places, strict=True):
        if len(rows) != len(places[0]) or (id and _first_difference(values[id][rows], values[id][places[0]])):
            raise InputError(f"{key} {kind!r} and {kinds[0]!r} do not have the same rows{hint}")
        for name in same:
            at = _first_difference(values[name][rows], values[name][places[0]])
            if at is not None:
                raise InputError(
                    f"{key} {kind!r} and {kinds[0]!r} have different values in {name!r} for the same row "
                    f"({at[1]}){hint}"
                )


# -- which column is what ---------------------------------------------------------------------------


def guessed_columns(names: Names, taken: Names = ()) -> tuple[str, list[str], list[str]]:
    """Guess the label and probability columns from the names alone, and say why a column could not be guessed."""
    notes: list[str] = []
    label, columns = "", list[str]()
    try:
        label = label_column(names, None, notes)
    except InputError as error:
        notes.append(str(error))
    try:
        columns = next(iter(model_columns(names, label, None, None, set(taken), notes).values()))
    except InputError as error:
        notes.append(str(error))
    return label, columns, notes


def words_of(values: NDArray[Any], most: int) -> list[str]:
    """The distinct values of a column, written as class names; an empty tuple if there are more than ``most``."""
    seen: set[Any] = set()
    for value in values.tolist():
        seen.add(value)
        if len(seen) > most:
            return []
    return _factor(values[~is_missing(values)])[0]


def required_column(names: Names, name: str) -> str:
    """The name, if the table has a column of this name; else it is refused with a similar name."""
    if name in names:
        return name
    raise InputError(f"no column is called {name!r}: {suggest(name, names)}")


def label_column(names: Names, label: str | None, notes: list[str]) -> str:
    """The column of the labels: the one that was named, or a guess that is added to the notes."""
    if label is not None:
        return required_column(names, label)
    found = [name for name in names if name.lower() in _LABEL_NAMES]
    if len(found) != 1:
        what = "no column looks like the label" if not found else f"several columns may be the label ({_some(found)})"
        raise InputError(f"{what}: name it with --label; the columns are {_some(names)}")
    notes.append(f"label column guessed: {found[0]}")
    return found[0]


def model_columns(
    names: Names,
    label: str,
    prob: Names | None,
    models: Names | None,
    taken: set[str],
    notes: list[str],
) -> dict[str, list[str]]:
    """The probability columns of each model: those that were named, or a guess that is added to the notes."""
    free = [name for name in names if name != label and name not in taken]
    if models:
        found = {name.rstrip("_-. ") or name: _columns_named(names, free, name) for name in models}
        if len(found) < len(models):
            raise InputError(f"--model names the same columns twice: {_some(models)}")
        _refuse_label(found, label)
        return found
    if prob:
        requested = [part.strip() for value in prob for part in ([value] if value in names else value.split(","))]
        columns = [c for name in requested for c in _columns_named(names, free, name)]
        if len(set(columns)) < len(columns):
            raise InputError(f"--prob names the same column twice: {_some(requested)}")
        _refuse_label({"": columns}, label)
        return {requested[0] if len(requested) == 1 else "model": columns}
    guess = [name for name in free if _means_probability(name)]
    if len(guess) != 1:
        guess = _numbered(free)
    if not guess:
        raise InputError(f"no column looks like a probability: name it with --prob; the columns are {_some(names)}")
    notes.append("probability columns guessed: " + (guess[0] if len(guess) == 1 else f"{guess[0]} ... {guess[-1]}"))
    return {_prefix(guess[0]) if len(guess) > 1 else guess[0]: guess}


def _refuse_label(columns: dict[str, list[str]], label: str) -> None:
    if any(label in cs for cs in columns.values()):
        raise InputError(f"column {label!r} is named as the label and as a probability: name another with --prob")


def refuse_weight(weight: str | None, label: str, columns: dict[str, list[str]]) -> None:
    """Refuse a column of weights that is also the label or a probability."""
    for role, names in (("label", [label]), ("probability", [c for cs in columns.values() for c in cs])):
        if weight in names:
            raise InputError(f"column {weight!r} is named as the weight and as the {role}: name another with --weight")


def _means_probability(name: str) -> bool:
    word = name.lower()
    rest = word.removeprefix(_PROB_PREFIX)
    return word in _PROB_NAMES or (rest != word and rest not in _LABEL_NAMES)


def _columns_named(names: Names, free: list[str], name: str) -> list[str]:
    if name in names:
        return [name]
    matching = [c for c in free if c.startswith(name) and c != name]
    if len(matching) < 2:
        raise InputError(f"no column, and no prefix of several columns, is called {name!r}: {suggest(name, names)}")
    numbers = [re.fullmatch(r"\d+", c[len(name) :].lstrip("_-. ")) for c in matching]
    if all(numbers):
        matching.sort(key=lambda c: int(c[len(name) :].lstrip("_-. ")))
    return matching


def _numbered(names: Iterable[str]) -> list[str]:
    """Numbered columns such as p0, p1, ..., if exactly one prefix has consecutive numbers from 0 or 1."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.*?\D|)(\d+)", name):
            series.setdefault(found[1], {})[int(found[2])] = name
    full = [
        [numbers[i] for i in sorted(numbers)]
        for numbers in series.values()
        if len(numbers) > 1 and max(numbers) - min(numbers) + 1 == len(numbers) and min(numbers) in (0, 1)
    ]
    return full[0] if len(full) == 1 else []


def _prefix(name: str) -> str:
    return re.sub(r"[\d_\-. ]+$", "", name) or name


def _some(names: Iterable[str], most: int = 12) -> str:
    """Some names of a file in quotes, so that nobody takes them for words of this program."""
    listed = list(names)
    return ", ".join(in_sentence(name) for name in listed[:most]) + (
        f", ... ({len(listed)} in all)" if len(listed) > most else ""
    )


# -- values -----------------------------------------------------------------------------------------


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a column are missing: None, NaN or empty text."""
    if values.dtype.kind == "f":
        nan: NDArray[np.bool_] = np.isnan(values)
        return nan
    if values.dtype.kind == "O":
        return np.array([v is None or v == "" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def complete_rows(table: Columns, used: list[str], name: str, drop: bool) -> NDArray[np.bool_]:
    """Which rows have all their values; missing ones are refused, unless ``drop`` leaves those rows out."""
    keep = np.ones(len(table[used[0]]), dtype=bool)
    for column in dict.fromkeys(used):
        gone = is_missing(table[column])
        if gone.any() and not drop:
            first = int(np.flatnonzero(gone)[0])
            raise InputError(
                f"{name}: column {column!r} has {counted(int(gone.sum()), 'missing value')}, the first in row "
                f"{first + 1} (not counting a header): fill them in, or leave out those rows with --drop-missing"
            )
        keep &= ~gone
    if not keep.any():
        raise InputError(f"{name}: every row has a missing value in the columns used")
    return keep


def _inside(values: Columns, names: list[str], most: float) -> NDArray[np.bool_]:
    """Which rows have all their probabilities between 0 and the largest possible value."""
    fine = np.ones(len(values[names[0]]), dtype=bool)
    for name in names:
        if values[name].dtype.kind in "fiu":
            fine &= are_probabilities(values[name], most)
    if not fine.any():
        raise InputError(f"no row has all its probabilities between 0 and {most:g}: check the columns {_some(names)}")
    return fine


def numbers_of(values: NDArray[Any], column: str, percent: bool = False) -> Array:
    """The values of a column as numbers; with ``percent`` a text may end with the percent sign."""
    if values.dtype.kind in "cmM":
        raise InputError(f"column {column!r} holds {values.dtype} values, not numbers")
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        pass
    numbers = np.empty(len(values))
    for i, value in enumerate(values.tolist()):
        try:
            numbers[i] = float(value.strip().removesuffix("%") if percent and isinstance(value, str) else value)
        except (ValueError, TypeError, OverflowError):
            hint = ": add --percent" if isinstance(value, str) and value.strip().endswith("%") else ""
            raise InputError(f"column {column!r} holds {value!r} in row {i + 1}, which is not a number{hint}") from None
    return numbers


def probabilities_of(values: Columns, columns: list[str], how: FileLayout, notes: list[str]) -> Array:
    """The probabilities in one column, or in one for each class; ``how`` says if the file has percentages or logits."""
    numbers = [numbers_of(values[c], c, how.percent) for c in columns]
    p = numbers[0] if len(numbers) == 1 else np.column_stack(numbers)
    if how.logits:
        _refuse_infinite(p, columns)
        if are_probabilities(p, 1.0).all():
            notes.append(
                f"--logits was given, but every value of {_listed(columns)} lies in [0, 1]: are these probabilities?"
            )
        return sigmoid(p) if p.ndim == 1 else softmax(p)
    top = 100.0 if how.percent else 1.0
    found = outside(p, top)
    if found is not None:
        wrong = ~are_probabilities(p, top).reshape(len(p), -1)
        rows = np.flatnonzero(wrong.any(axis=1))[:3]
        shown = "; ".join(f"row {i + 1}: {p[i][wrong[i]][0] if p.ndim > 1 else p[i]:g}" for i in rows)
        remedy = _remedy(found, how, p.ndim == 1)
        raise InputError(f"column {_listed(columns)} holds values outside [0, {top:g}] ({shown}): {remedy}")
    if not how.percent:
        return p
    below = int(((p > 0) & (p < 1)).sum()) if p.ndim == 1 else 0
    if p.max() <= 1.0 and not any(isinstance(values[c][0], str) and "%" in values[c][0] for c in columns):
        notes.append(
            f"--percent was given, but no value of {_listed(columns)} is above 1: are these probabilities already?"
        )
    elif below:
        notes.append(f"{below:,} values of {_listed(columns)} between 0 and 1 were taken as less than 1 percent")
    return p / 100.0


def _refuse_infinite(z: Array, columns: list[str]) -> None:
    bad = np.argwhere(~np.isfinite(z))
    if len(bad) and z.ndim == 2:
        raise InputError(
            f"column {columns[bad[0][1]]!r} holds {z[tuple(bad[0])]:g} in row {bad[0][0] + 1}, which is not a logit"
        )


def _listed(columns: list[str]) -> str:
    return columns[0] if len(columns) == 1 else ", ".join(columns[:3]) + " ..."


def _remedy(found: Outside, how: FileLayout, one_column: bool) -> str:
    if how.percent:
        return "percentages lie between 0 and 100"
    if found.percentages and found.fraction is not None and one_column:
        return (
            "are percentages mixed with fractions? convert them to one scale; --percent takes all values as percentages"
        )
    if found.value > 1.0:
        return "use --percent if they are percentages, --logits if they are logits"
    return "use --logits if they are logits"


def _class_labels(
    values: NDArray[Any],
    label: str,
    columns: dict[str, list[str]],
    n_columns: int,
    positive: str | None,
    notes: list[str],
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as class numbers, and the class names in column order."""
    distinct, member = _factor(values)
    if n_columns > 1:
        if positive is not None:
            raise InputError("--positive needs a single probability column, but here every class has its own")
        candidate = _classes_of_columns(next(iter(columns.values())), distinct, label)
        return _positions(distinct, member, candidate), tuple(candidate)
    if len(distinct) > 2:
        more = f"{len(distinct):,} different labels ({_some(distinct, 4)})"
        remedy = "name one column per class"
        if len(distinct) > _MOST_LABELS:
            remedy += ", or another --label if this is a column of probabilities or identifiers"
        raise InputError(f"column {label!r} holds {more} but there is only one probability column: {remedy}")
    chosen = _positive_label(distinct, positive, label, notes)
    negative = next((d for d in distinct if d != chosen), f"not {chosen}")
    return _positions(distinct, member, [negative, chosen]), (negative, chosen)


def _named_labels(
    values: NDArray[Any], label: str, n_columns: int, names: tuple[str, ...]
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as class numbers, for classes that were named in column order."""
    if len(names) != max(n_columns, 2):
        there = (
            "is one probability column, of two classes" if n_columns == 1 else f"are {n_columns} probability columns"
        )
        raise InputError(f"--labels names {len(names)} classes ({_some(list(names), 4)}) and there {there}")
    distinct, member = _factor(values)
    others = [word for word in distinct if word not in names]
    if others:
        raise InputError(f"column {label!r} holds {_some(others, 4)}, which --labels does not name: {_some(names)}")
    return _positions(distinct, member, names), names


def _factor(values: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct labels as text, sorted, and the index of each row's label among them."""
    if values.dtype.kind == "O":
        place: dict[Any, int] = {}
        codes = np.fromiter((place.setdefault(v, len(place)) for v in values), dtype=np.intp, count=len(values))
        words = [_as_word(v) for v in place]
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        words = [_as_word(v) for v in distinct.tolist()]
    names = sorted(set(words))
    place_of = {name: i for i, name in enumerate(names)}
    return names, np.array([place_of[word] for word in words], dtype=np.intp)[codes]


def _as_word(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _classes_of_columns(columns: list[str], distinct: list[str], label: str) -> list[str]:
    """The class of each column, by name if the columns are named after the classes, else by number from 0."""
    k = len(columns)
    names = matched_names(columns, set(distinct))
    from_zero, from_one = [str(i) for i in range(k)], [str(i + 1) for i in range(k)]
    of_columns = matched_names(columns, set(from_zero)) or matched_names(columns, set(from_one))
    if names is not None and (of_columns is None or of_columns == names or "0" in distinct):
        return names
    if set(distinct) <= set(from_zero) and "0" in distinct:
        return from_zero
    if set(distinct) <= set(from_one) and str(k) in distinct:
        return from_one
    if set(distinct) <= set(from_one):
        raise InputError(
            f"column {label!r} holds {_some(distinct, 4)} and never 0, and the probability columns "
            f"({_some(columns, 4)}) do not show whether classes are numbered from 0 or 1: name the columns "
            "after the classes"
        )
    raise InputError(
        f"column {label!r} holds {len(distinct):,} different labels ({_some(distinct, 4)}) and there are "
        f"{k} probability columns ({_some(columns, 4)}): name the columns after the classes"
    )


def _positions(distinct: list[str], member: NDArray[np.intp], names: Sequence[str]) -> NDArray[np.intp]:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[d] for d in distinct], dtype=np.intp)[member]


def _positive_label(distinct: list[str], positive: str | None, label: str, notes: list[str]) -> str:
    if positive is not None:
        if positive not in distinct:
            raise InputError(f"--positive {positive!r} is not a label of column {label!r}: {_some(distinct)}")
        return positive
    if set(distinct) <= {"0", "1"} or set(distinct) == {"-1", "1"}:
        return "1"
    found = [d for d in distinct if d.lower() in _POSITIVE_NAMES]
    if len(found) == 1:
        notes.append(f"class of interest guessed: {found[0]}")
        return found[0]
    raise InputError(
        f"column {label!r} holds the labels {_some(distinct)}: say to which one the probabilities refer, "
        f"e.g. --positive {in_sentence(distinct[-1])}"
    )

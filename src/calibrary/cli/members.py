"""What options read that name more columns: ``--judge``, ``--target``, ``--shift``, ``--members``, ``--outside``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.cli.large import class_names, whole_classes
from calibrary.cli.shared import listed
from calibrary.data.checks import Array
from calibrary.tables.files import arrays_in, open_table
from calibrary.tables.guess import columns_by_role, content_guesses, required_column
from calibrary.tables.layout import FileLayout, PredictionFile, refuse_guesses
from calibrary.tables.sources import InputError, named_errors
from calibrary.tables.table import Columns
from calibrary.tables.values import complete_rows, is_missing, numbers_of, probabilities_of

_ARRAYS = (".npy", ".npz")


@dataclass(frozen=True)
class SecondOrder:
    """The rows that belong to a class, with label and mean probability, and sentences about members and other rows.

    ``weight`` and ``others`` have one value for each of these rows; ``classes`` names the labels. Whole weights count
    equal rows, and others are importance weights, as in :func:`calibrary.ensemble`.
    """

    y: NDArray[Any]
    mean: NDArray[np.float64]
    ensemble: Any
    outside: Any
    weight: NDArray[np.float64] | None
    weight_type: str
    others: Columns
    classes: dict[str, Any]
    notes: tuple[str, ...]
    columns: dict[str, str]


def second_order_of(source: str, options: Any, members: list[str], **settings: Any) -> SecondOrder:
    """Evaluate a file's labels, ensemble members (columns, or an array with a third axis) and rows of no class.

    ``options`` is the command ``calibrary ensemble`` or ``calibrary outside``.
    """
    from calibrary.secondorder.given import refuse_equal
    from calibrary.secondorder.outside import outside_rows
    from calibrary.secondorder.verb import ensemble

    columns, array = _columns_of(source, options, members)
    y = np.column_stack([columns.labels[name] for name in columns.labels]).astype(object)
    gone = np.column_stack([is_missing(columns.labels[name]) for name in columns.labels])
    y[gone] = None
    p = array if array is not None else columns.probability
    if members and p.shape[1] < 2:
        raise InputError(
            f"--members {members[0]} is one member, and an ensemble needs two or more: name the others, or use "
            "calibrary report for one model"
        )
    if len(p) != len(y):
        raise InputError(
            f"the members have {len(p):,} rows and {source} has {len(y):,}: the numbers of rows must agree"
        )
    if options.outside and columns.outside is not None:
        _refuse_labels_outside(columns.outside, y, gone, options.outside)
    if members and columns.names:
        refuse_equal(p, columns.names)
    named = class_names(options.labels, options.positive), options.positive
    classes: dict[str, Any] = dict(zip(("labels", "pos_label"), named, strict=True))
    if all(values.dtype.kind in "iuf" for values in columns.labels.values()):
        classes = whole_classes(*named)
    given = {**classes, "sample_weight": columns.weight, "outside": columns.outside, **settings}
    given["prevalence_outside"] = options.prevalence_outside
    inside = ~gone.all(axis=1)
    whole = columns.weight is None or bool((columns.weight == np.rint(columns.weight)).all())
    beside: dict[str, Any] = {
        "weight": None if columns.weight is None else columns.weight[inside],
        "weight_type": "frequency" if whole else "importance",
        "others": {name: values[inside] for name, values in columns.others.items()},
        "classes": classes,
        "notes": columns.notes,
        "columns": {
            "label": ", ".join(columns.labels), "probability": ", ".join(columns.names or members),
            "outside": options.outside or "", "weight": options.weight or "",
        },
    }  # fmt: skip
    if not members:
        found = outside_rows(y[:, 0], p if p.shape[1] > 1 else p[:, 0], **given)
        return SecondOrder(y[inside, 0], (p if p.shape[1] > 1 else p[:, 0])[inside], None, found, **beside)
    answer = ensemble(y, p, members=options.members_are, features=columns.features, **given)
    first = np.array([row[~missing][0] for row, missing in zip(y[inside], gone[inside], strict=True)])
    mean = p[inside].mean(axis=1)
    if mean.ndim == 2:
        mean = mean / mean.sum(axis=1, keepdims=True)
    return SecondOrder(first, mean, answer, answer.outside, **beside)


def _refuse_labels_outside(outside: NDArray[np.bool_], y: NDArray[Any], gone: NDArray[np.bool_], column: str) -> None:
    """Refuse a label of a row that is marked as outside, and a row with neither a label nor a mark."""
    unlabelled = gone.all(axis=1)
    for row in np.flatnonzero(outside & ~unlabelled):
        label = y[row][~gone[row]][0]
        shown = f"{label:g}" if isinstance(label, float) else label  # labels beside empty cells are read as 1.0
        raise InputError(
            f"row {row + 1:,} (not counting a header) is marked in column {column!r} and has the label "
            f"{shown}: a row that belongs to no class has no true label; leave its label empty, or "
            "remove the mark"
        )
    for row in np.flatnonzero(unlabelled & ~outside):
        raise InputError(
            f"row {row + 1:,} (not counting a header) has no label and is not marked in column {column!r}: drop the "
            "row, or mark it"
        )


@dataclass(frozen=True)
class _Columns:
    labels: dict[str, NDArray[Any]]
    names: list[str]
    notes: tuple[str, ...]
    probability: NDArray[np.float64]
    outside: NDArray[np.bool_] | None
    features: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    others: Columns


def _columns_of(source: str, options: Any, members: list[str]) -> tuple[_Columns, NDArray[np.float64] | None]:
    array = _array_of(source, members)
    table = open_table(source)
    names, notes = list(table.names), list(table.notes)
    labels = [required_column(names, name) for name in listed([options.label] if options.label else None) or []]
    features = listed(options.features) or []
    further = [name for name in (options.outside, options.weight, *options.beside) if name]
    others = [*labels[1:], *features, *further]
    members = [required_column(names, name) for name in members] if array is None else []
    twice = next((name for name in members if members.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--members names the column {twice!r} twice: name every member once")
    asked = FileLayout(labels[0] if labels else None, members or options.prob, percent=options.percent, others=others)
    how, label, found, beside = columns_by_role(table, asked, notes, label_only=array is not None)
    refuse_guesses(content_guesses(notes), options.gated)
    if how.logits:
        raise InputError(f"{notes[0]}: write probabilities in their place, because {source} is read without --logits")
    labels, columns = labels or [label], [column for each in found.values() for column in each]
    values = table.columns(list(dict.fromkeys([*labels, *columns, *beside])))
    scale = 100.0 if how.percent else 1.0
    p = [numbers_of(values[name], name, how.percent) / scale for name in columns]
    probability = np.column_stack(p) if p else np.empty((len(values[labels[0]]), 0))
    outside = _flags(values[options.outside], options.outside) if options.outside else None
    weight = numbers_of(values[options.weight], options.weight) if options.weight else None
    split, others_of = ({name: values[name] for name in named} for named in (labels, options.beside))
    rows = (probability, outside, _stacked(values, features) if features else None, weight)
    made = _Columns(split, columns, tuple(map(str, notes)), *rows, others_of)
    return made, None if array is None else array / scale


def _flags(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """A column of true/false values, in any of the usual spellings."""
    words = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False,
             "": False}  # fmt: skip
    said = [str(value).strip().lower() for value in values.tolist()]
    wrong = next((value for value in said if value not in words), None)
    if wrong is not None:
        raise InputError(
            f"column {name!r} holds {wrong!r}: --outside needs a column of true and false, yes and no, or 1 and 0"
        )
    return np.array([words[value] for value in said])


def _array_of(source: str, members: list[str]) -> NDArray[np.float64] | None:
    """One array of all members, from a separate file, or by its name in the NPZ file of the predictions."""
    if len(members) != 1:
        return None
    named = members[0]
    if named.lower().endswith(_ARRAYS):
        if not Path(named).is_file():
            raise InputError(f"--members {named}: there is no such file")
        if named.lower().endswith(".npy"):
            with named_errors(named, " as an array of numbers"):
                return _as_members(np.load(named, allow_pickle=False), named)
        found = arrays_in(named, Path(named))
        if len(found) != 1:
            raise InputError(f"--members {named} holds {len(found)} arrays: pass a file with a single array")
        return _as_members(next(iter(found.values())), named)
    if source.lower().endswith(".npz") and Path(source).is_file():
        found = arrays_in(source, Path(source))
        if named in found:
            return _as_members(found[named], named)
    return None


def _as_members(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} has {array.ndim} axes: --members needs an array of rows and members, or of rows, members "
            "and classes"
        )
    return array.astype(np.float64)


def judged_of(
    metric: str, source: str, how: FileLayout, judge: str, inclusion: str | None, gated: str = "", **settings: Any
) -> tuple[Any, list[str]]:
    """The metric from human labels (empty where a row has none) and a judge's column, and notes on guessed columns.

    ``gated`` says why columns must not be guessed by their content alone, if they must not.
    """
    from calibrary.language.judge import judged

    named = {role: name for role, name in (("judge", judge), ("inclusion", inclusion)) if name}
    table = open_table(source)
    notes = list(table.notes)
    how, human, models, _ = columns_by_role(table, replace(how, others=[*how.others, *named.values()]), notes)
    refuse_guesses(content_guesses(notes), gated)
    columns = [c for cs in models.values() for c in cs]
    if len(columns) > 1:
        raise InputError("--judge needs exactly one probability column: name it with --prob")
    for role, name in named.items():
        if name in (human, *columns):
            other, option = ("label", "--label") if name == human else ("probability", "--prob")
            raise InputError(
                f"column {name!r} is named as the {role} and taken as the {other}: name the {other} with {option}"
            )
    values = table.columns([human, *columns, *named.values()])
    seen = ~is_missing(values[human])
    y = np.full(len(seen), np.nan)
    y[seen] = numbers_of(values[human][seen], human)
    p = probabilities_of(values, columns, how, notes)
    chance = None if inclusion is None else numbers_of(values[inclusion], inclusion)
    found = judged(metric, y, p, judge=numbers_of(values[judge], judge), inclusion=chance, **settings)
    return found, list(map(str, notes))


#: The fewest draws for a target or a curve, even if fewer --resamples are requested; each group needs twenty.
LEAST_DRAWS, _DRAWS_A_GROUP = 99, 20


def shares_typed(text: str | None) -> float | list[float] | None:
    """Parse class shares: one number, or one for each class separated by commas."""
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--prevalence {text}: pass a share such as 0.02, or one for each class separated by commas"
        ) from None
    if not all(0.0 < share < 1.0 for share in shares):
        raise InputError(f"--prevalence {text}: shares must lie strictly between 0 and 1")
    return shares[0] if len(shares) == 1 else shares


def target_of(command: Any, found: PredictionFile, model: str, **settings: Any) -> Any:
    """Estimate the metric on a target without labels, as the options of a report say.

    Its file has the same probability columns. If the data contradict the assumption, the result has the test and no
    estimate.
    """
    from calibrary.shift import under_shift
    from calibrary.shift.target import ContradictedError

    source, features = command.target, listed(command.feature) or []
    table, named = open_table(source), found.columns.get("models", {}).get(model)
    if not named:
        raise InputError(
            "--target needs probability columns: the first file must be a table of rows, not a state or log"
        )
    for name in (*named, *features):
        if name not in table.names:
            raise InputError(
                f"{Path(source).name} has no column {name!r}, which the labelled file has: both files need the same "
                "probability columns, under the same names"
            )
        required_column(list(table.names), name)
    values = table.columns([*named, *features])
    keep = complete_rows(values, [*named, *features], table.name, drop=False)
    values = {name: column[keep] for name, column in values.items()}
    layout = FileLayout(percent=command.percent, logits=command.logits)
    target = probabilities_of(values, list(named), layout, [])
    more: dict[str, Any] = {}
    if features:
        more = {"features": _stacked(found.others, features), "target_features": _stacked(values, features)}
    try:
        of_rows = found.predictions(model)
        return under_shift(command.primary, of_rows, None, target, assume=command.assume, **more, **settings)
    except ContradictedError as contradicted:
        return contradicted.result


def _stacked(values: Any, names: list[str]) -> Array:
    return np.column_stack([numbers_of(values[name], name) for name in names])


def curve_of(metric: str, found: PredictionFile, model: str, column: str, *, unit: str | None, **settings: Any) -> Any:
    """The metric in each of the ordered groups of a column."""
    from calibrary.shift import shift_curve

    units, groups = found.others[unit] if unit else None, found.others[column]
    draws = max(settings.pop("n_resamples"), _DRAWS_A_GROUP * len(set(groups.tolist())))
    curve = shift_curve(metric, found.predictions(model), None, groups, units=units, n_resamples=draws, **settings)
    return replace(curve, by=column)

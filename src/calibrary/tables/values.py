"""The values of columns: numbers, probabilities and labels; messages name the row of a wrong value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.numbers import counted
from calibrary.base.text import in_sentence
from calibrary.data.checks import Array, Outside, are_probabilities, checked_probabilities, outside, sigmoid, softmax
from calibrary.data.columns import matched_names
from calibrary.tables.layout import FileLayout
from calibrary.tables.sources import InputError, some
from calibrary.tables.table import Columns

#: A column with more labels than this probably holds no labels.
_MOST_LABELS = 20
#: Labels beyond two in more than this share of rows are classes, not words for a missing label.
FEW_OTHERS = 0.2
_POSITIVE_NAMES = ("true", "yes", "positive", "pos", "case", "event", "correct", "right")


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a column are missing: None, NaN or empty text."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
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


def without_labels(
    values: NDArray[Any], label: str, dropped: Sequence[str] | None, notes: list[str]
) -> NDArray[np.bool_]:
    """Which rows have none of the labels that are to be left out; a note says how many rows had each."""
    keep = np.ones(len(values), dtype=bool)
    named = words(values) if dropped else values
    for word in dropped or ():
        gone = named == word
        if not gone.any():
            raise InputError(f"--drop-label {word!r} is not a label of column {label!r}: {some(sorted(set(named)))}")
        notes.append(f"{counted(int(gone.sum()), 'row')} with the label {word!r} left out")
        keep &= ~gone
    return keep


def inside(values: Columns, names: list[str], most: float, percent: bool = False) -> NDArray[np.bool_]:
    """Which rows have all their probabilities between 0 and the largest possible value."""
    fine = np.ones(len(values[names[0]]), dtype=bool)
    for name in names:
        if values[name].dtype.kind not in "cmM":
            fine &= are_probabilities(as_numbers(values[name], percent), most)
    if not fine.any():
        raise InputError(f"no row has all its probabilities between 0 and {most:g}: check the columns {some(names)}")
    return fine


def plain_numbers(values: NDArray[Any]) -> Array | None:
    """The values as numbers, or None if one of them is none."""
    if values.dtype.kind in "cmM" or (values.dtype.kind in "OU" and any(map(_as_in_code, values.tolist()))):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None


def as_numbers(values: NDArray[Any], percent: bool = False) -> Array:
    """The values as numbers, NaN for those that are none; with ``percent`` a text may end with the percent sign."""
    whole = plain_numbers(values)
    if whole is not None:
        return whole
    read = [parsed(value, percent) for value in values.tolist()]
    return np.array([np.nan if value is None else value for value in read], dtype=np.float64)


def parsed(value: Any, percent: bool = False) -> float | None:
    """One value as a number, with ``percent`` also a text with a percent sign; None if it is no number."""
    if _as_in_code(value):
        return None
    try:
        return float(value.strip().removesuffix("%") if percent and isinstance(value, str) else value)
    except (ValueError, TypeError, OverflowError):
        return None


def _as_in_code(value: Any) -> bool:
    """Whether a value is a text with an underscore, which Python would read as a number: 0_5 as 5."""
    return isinstance(value, str) and "_" in value


def numbers_of(values: NDArray[Any], column: str, percent: bool = False) -> Array:
    """The values of a column as numbers; with ``percent`` a text may end with the percent sign."""
    if values.dtype.kind in "cmM":
        raise InputError(f"column {column!r} holds {values.dtype} values, not numbers")
    whole = plain_numbers(values)
    if whole is not None:
        return whole
    numbers = [parsed(value, percent) for value in values.tolist()]
    signs = percent_signs(values)
    if signs.any() and on_two_scales(as_numbers(values, percent=True), signs):
        raise InputError(
            f"column {column!r} holds {counted(int(signs.sum()), 'value')} with a percent sign, and {(~signs).sum():,} "
            "without one that are mostly at most 1: write all values on one scale"
        )
    if None in numbers:
        i = numbers.index(None)
        raise InputError(
            f"column {column!r} holds {values[i]!r} in row {i + 1}, which is not a number{hint(values[i])}"
        )
    return np.array(numbers, dtype=np.float64)


def percent_signs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells are texts that end with a percent sign."""
    return np.array([isinstance(v, str) and v.strip().endswith("%") for v in values.tolist()], dtype=bool)


def on_two_scales(numbers: Array, signs: NDArray[np.bool_]) -> bool:
    """Whether the numbers without a percent sign, beside those with one, are probabilities rather than percentages."""
    others = numbers[~signs & ~np.isnan(numbers)]
    return len(others) > 0 and float(np.median(others)) <= 1.0


def hint(value: Any) -> str:
    """What a text that is not a number may have been meant to be."""
    text = value.strip() if isinstance(value, str) else ""
    if text.endswith("%") and parsed(text, percent=True) is not None:
        return ": add --percent"
    if re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text):
        return ": write a decimal point"
    if re.fullmatch(r"[-+]?[0-9]{1,3}([ ,'\u00a0\u202f][0-9]{3})+([.][0-9]+)?", text):
        return ": write numbers without separators of thousands"
    return ""


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
        return rescaled(p, how, notes)
    below = int(((p > 0) & (p < 1)).sum()) if p.ndim == 1 else 0
    if p.max() <= 1.0 and not any(isinstance(values[c][0], str) and "%" in values[c][0] for c in columns):
        notes.append(
            f"--percent was given, but no value of {_listed(columns)} is above 1: are these probabilities already?"
        )
    elif below:
        notes.append(f"{below:,} values of {_listed(columns)} between 0 and 1 were taken as less than 1 percent")
    return rescaled(p / 100.0, how, notes)


def rescaled(p: Array, how: FileLayout, notes: list[str]) -> Array:
    """The rows of several classes, divided by their sums where rounding or --rescale allows it, with a note."""
    if p.ndim == 1:
        return p
    try:
        with collected_warnings() as said:
            p = checked_probabilities(p, rescale=how.rescale)
    except RefusedError as error:
        remedy = "pass rescale=True to divide rows by their sums"
        sentence = str(error).replace(remedy, "add --rescale to divide rows by their sums")
        raise InputError(
            sentence.replace("or rescale=True to divide", "or --rescale to divide").replace(
                "pass probabilities (for logits use calibrary.softmax(...))", "give probabilities (--logits for logits)"
            )
        ) from None
    notes += [sentence.replace(" of y_prob", "") for sentence in said if "divided by their sums" in sentence]
    return p


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


def class_labels(
    values: NDArray[Any], label: str, columns: dict[str, list[str]], n_columns: int, how: FileLayout, notes: list[str]
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as class numbers, and the class names in column order."""
    if how.labels is not None:
        return _named_labels(values, label, n_columns, tuple(how.labels))
    distinct, member = factor(values)
    if n_columns > 1:
        if how.positive is not None:
            raise InputError("--positive needs a single probability column, but here every class has its own")
        candidate = _classes_of_columns(next(iter(columns.values())), distinct, label)
        return _positions(distinct, member, candidate), tuple(candidate)
    if len(distinct) > 2:
        refuse_spellings(distinct, label)
        more = f"{len(distinct):,} different labels ({some(distinct, 4)})"
        counts = np.bincount(member)
        others = [str(distinct[j]) for j in np.argsort(-counts, kind="stable")[2:]]
        remedy = "name one column per class, or a --label that says whether the prediction was right (1 or 0)"
        if len(distinct) > _MOST_LABELS:
            remedy += ", or another --label if this is a column of probabilities or identifiers"
        elif np.sort(counts)[:-2].sum() <= FEW_OTHERS * counts.sum():
            remedy = f"leave out the rows of the other labels with --drop-label ({some(others)})"
        raise InputError(f"column {label!r} holds {more} but there is only one probability column: {remedy}")
    chosen = _positive_label(distinct, how.positive, label, notes)
    negative = next((d for d in distinct if d != chosen), f"not {chosen}")
    return _positions(distinct, member, [negative, chosen]), (negative, chosen)


def refuse_spellings(distinct: Iterable[Any], label: str) -> None:
    """Refuse labels that differ only in capital letters or spaces: they are one class, written in two ways."""
    written: dict[str, Any] = {}
    for word in distinct:
        other = written.setdefault(str(word).strip().casefold(), word)
        if other is not word:
            raise InputError(
                f"column {label!r} holds the labels {other!r} and {word!r}, which differ only in capital letters or "
                "spaces: write every class in one way"
            )


def _named_labels(
    values: NDArray[Any], label: str, n_columns: int, names: tuple[str, ...]
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as class numbers, for classes that were named in column order."""
    if len(names) != max(n_columns, 2):
        there = (
            "is one probability column, of two classes" if n_columns == 1 else f"are {n_columns} probability columns"
        )
        raise InputError(f"--labels names {len(names)} classes ({some(list(names), 4)}) and there {there}")
    distinct, member = factor(values)
    others = [word for word in distinct if word not in names]
    if others:
        raise InputError(f"column {label!r} holds {some(others, 4)}, which --labels does not name: {some(names)}")
    return _positions(distinct, member, names), names


def factor(values: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct labels as text, sorted, and the index of each row's label among them."""
    if values.dtype.kind == "O":
        place: dict[Any, int] = {}
        codes = np.fromiter((place.setdefault(v, len(place)) for v in values), dtype=np.intp, count=len(values))
        words = [as_word(v) for v in place]
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        words = [as_word(v) for v in distinct.tolist()]
    names = sorted(set(words))
    place_of = {name: i for i, name in enumerate(names)}
    return names, np.array([place_of[word] for word in words], dtype=np.intp)[codes]


def as_word(value: Any) -> str:
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
            f"column {label!r} holds {some(distinct, 4)} and never 0, and the probability columns "
            f"({some(columns, 4)}) do not show whether classes are numbered from 0 or 1: name the columns "
            "after the classes"
        )
    raise InputError(
        f"column {label!r} holds {len(distinct):,} different labels ({some(distinct, 4)}) and there are "
        f"{k} probability columns ({some(columns, 4)}): name the columns after the classes"
    )


def _positions(distinct: list[str], member: NDArray[np.intp], names: Sequence[str]) -> NDArray[np.intp]:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[d] for d in distinct], dtype=np.intp)[member]


def _positive_label(distinct: list[str], positive: str | None, label: str, notes: list[str]) -> str:
    if positive is not None:
        if positive not in distinct:
            raise InputError(f"--positive {positive!r} is not a label of column {label!r}: {some(distinct)}")
        return positive
    if set(distinct) <= {"0", "1"} or set(distinct) == {"-1", "1"}:
        return "1"
    if len(distinct) == 1:
        raise InputError(
            f"column {label!r} holds one label alone, {in_sentence(distinct[0])}: calibration needs rows of both "
            "classes; if this class is the one the probabilities refer to, or the other, name both with --labels "
            "negative,positive"
        )
    found = [d for d in distinct if d.lower() in _POSITIVE_NAMES]
    if len(found) == 1:
        notes.append(f"class of interest guessed: {found[0]}")
        return found[0]
    raise InputError(
        f"column {label!r} holds the labels {some(distinct)}: say to which one the probabilities refer, "
        f"e.g. --positive {in_sentence(distinct[-1])}"
    )


def first_difference(theirs: NDArray[Any], ours: NDArray[Any]) -> tuple[int, str] | None:
    """The first position at which two columns differ, and both values; None if the columns are equal."""
    if theirs.dtype == ours.dtype and np.array_equal(theirs, ours):
        return None
    there, here = words(theirs), words(ours)
    at = np.flatnonzero(there != here)
    return (int(at[0]), f"{there[at[0]]!r} and {here[at[0]]!r}") if len(at) else None


def words(values: NDArray[Any]) -> NDArray[Any]:
    """The values as text, in which 1 and 1.0 are equal, so that columns of two files can be compared."""
    if values.dtype.kind == "O":
        return np.array([as_word(value) for value in values.tolist()], dtype=object)
    names, member = factor(values)
    return np.array(names, dtype=object)[member]

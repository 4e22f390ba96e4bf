"""The class that occurred in each row: labels in any container become positions 0..K-1, or raise an error.

Nothing is guessed: whole numbers are positions, or names that ``labels`` or ``pos_label`` put in order; a missing label
is not a class; text and numbers do not mix. Labels may be shares between 0 and 1, or several classes at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Sequence
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, warn
from calibrary.data.checks import (
    ROW_SUM_TOLERANCE,
    Array,
    are_probabilities,
    as_array,
    checked_probabilities,
    missing,
    refuse_outside,
    sum_to_one_rounded,
)

#: Largest whole number among labels that differs from its neighbours as a float.
_LARGEST = 2.0**53


def checked_labels(
    y_true: Any, p: Array, labels: Any = None, pos_label: Hashable | None = None
) -> tuple[NDArray[np.intp], tuple[Hashable, ...] | None]:
    """Labels as positions of classes, and the names of the classes if they have names."""
    y = as_array(y_true, "y_true")
    if y.ndim != 1:
        y = _flat_labels(y, p)
    if len(y) == 0:
        raise RefusedError("y_true is empty: a metric needs at least one label")
    y = plain_labels(y)
    k = 2 if p.ndim == 1 else p.shape[1]
    if labels is not None or pos_label is not None:
        return _named_labels(y, p, _checked_names(labels, k), pos_label)
    kind = y.dtype.kind
    if kind in "iu":
        index = y.astype(np.intp, copy=False)
    elif kind == "b":
        return y.astype(np.intp), None
    elif kind == "f":
        index = _whole_labels(y, p)
        if index.dtype.kind == "f":
            return index, None
    else:
        return _sorted_names(y, p)
    unsigned = index.view(np.uintp)  # as an unsigned number, a negative label is a huge one
    if unsigned.item(unsigned.argmax()) >= k:
        _refuse_labels(index, k, y)
    return index, None


def _flat_labels(y: NDArray[Any], p: Array) -> NDArray[Any]:
    """One label per row, from a single column or from one-hot rows."""
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim == 2 and y.shape == p.shape and np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all():
        return np.asarray(y.argmax(axis=1))
    raise RefusedError(f"y_true has {y.ndim} dimensions: pass one label per row")


# -- labels in containers of anything ---------------------------------------------------------------


def plain_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Labels of an object array in an array of their own type: whole numbers are numbers whatever contains them."""
    if y.dtype.kind in "biufUS":
        return y
    if y.dtype.kind in "cmMV":
        raise RefusedError(f"y_true contains {y.dtype} values: pass the class that occurred, as a number or a name")
    values = y.tolist()
    gone = missing(values)
    if gone is not None:
        raise RefusedError(f"y_true[{gone}] is missing: every row needs a label; drop the rows without one")
    for i, value in enumerate(values):
        odd = isinstance(value, datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64)
        if odd or not isinstance(value, Hashable) or (isinstance(value, Number) and not isinstance(value, Real)):
            raise RefusedError(
                f"y_true[{i}] = {value!r} is not a label: pass the class that occurred, as a number or a name"
            )
    numeric = [isinstance(value, Real | np.bool_) for value in values]
    if all(numeric):
        if all(isinstance(value, bool | np.bool_) for value in values):
            return np.array(values, dtype=bool)
        if all(isinstance(value, int | np.integer) and abs(int(value)) < _LARGEST for value in values):
            return np.array(values, dtype=np.int64)
        return np.array([_as_float(value) for value in values])
    if any(numeric):
        i, j = numeric.index(True), numeric.index(False)
        raise RefusedError(
            f"y_true mixes numbers and names (y_true[{i}] = {values[i]!r}, y_true[{j}] = {values[j]!r}): use either "
            "numbers or names for all classes"
        )
    return y


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return float("inf")


def _whole_labels(y: NDArray[Any], p: Array) -> NDArray[Any]:
    """Labels given as floats: classes, or otherwise shares between 0 and 1."""
    one = y == 1.0
    # two classes, the most common case: any number whose bits are not all zero is a one
    if y.dtype.itemsize <= 8 and np.count_nonzero(one) == np.count_nonzero(y.view(f"i{y.dtype.itemsize}")):
        return np.asarray(one.astype(np.intp))
    index = np.where(np.abs(y) < _LARGEST, y, -1).astype(np.intp)
    bad = np.flatnonzero(index != y)
    if not len(bad):
        return index
    gone = np.flatnonzero(~np.isfinite(y))
    if len(gone):
        i = int(gone[0])
        raise RefusedError(f"y_true[{i}] = {y[i]}: every row needs a label; drop the rows without one")
    i = int(bad[0])
    if p.ndim == 1 and len(p) == len(y) and np.isin(p, (0.0, 1.0)).all() and (y >= 0).all() and (y <= 1).all():
        raise RefusedError(
            f"y_true[{i}] = {y[i]:g} is not a label while y_prob contains only 0 and 1: the two arguments look "
            "swapped; call metric(y_true, y_prob)"
        )
    share = share_of_each(y, p)
    if share is not None:
        return share
    raise RefusedError(f"y_true[{i}] = {y[i]:g} is not a label: pass the class that occurred (0, 1, ...), not a score")


def share_of_each(y: NDArray[Any], p: Array) -> Array | None:
    """Labels between 0 and 1 as shares of class 1 (two columns: as rows of two); None if they cannot be shares."""
    if (p.ndim == 2 and p.shape[1] != 2) or len(y) != len(p):
        return None
    outside = np.flatnonzero((y < 0.0) | (y > 1.0))
    if len(outside):
        i = int(outside[0])
        raise RefusedError(
            f"y_true[{i}] = {y[i]:g} is neither a class nor a share between 0 and 1, as other labels are"
        )
    share = y.astype(np.float64)
    return share if p.ndim == 1 else np.column_stack([1.0 - share, share])


def _refuse_labels(index: NDArray[np.intp], k: int, y: NDArray[Any]) -> None:
    i = int(np.flatnonzero((index < 0) | (index >= k))[0])
    shown = y[i] if y.dtype.kind == "u" else index[i]  # huge unsigned numbers have wrapped around in the index
    raise RefusedError(
        f"y_true[{i}] = {shown} is outside the {k} classes 0..{k - 1}: pass labels=[...] in column order, "
        "or pos_label= with one column of probabilities"
    )


# -- names ------------------------------------------------------------------------------------------


def in_order(names: Iterable[Any]) -> list[Any]:
    """Names in ascending order: as numbers if every name is a number (2 before 10), otherwise as text."""
    distinct = list(names)
    if all(isinstance(name, Real) for name in distinct):
        return sorted(distinct)
    values = [_number_in(str(name)) for name in distinct]
    if all(value is not None for value in values):
        return [
            name for _, name in sorted(zip(values, distinct, strict=True), key=lambda pair: (pair[0], str(pair[1])))
        ]
    return sorted(distinct, key=str)


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _sorted_names(y: NDArray[Any], p: Array) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    # scikit-learn orders the columns of predict_proba by sorted class name; one column of probabilities does not show
    # to which of two classes it belongs, so the name is required.
    names = in_order(set(y.tolist()))
    k = 2 if p.ndim == 1 else p.shape[1]
    if p.ndim == 1:
        either = " or ".join(f"pos_label={name!r}" for name in names[:2])
        remedy = f"pass the class whose probabilities these are, {either} (or labels=[negative, positive])"
    elif len(names) != k:
        remedy = f"y_true contains {len(names)} of them and y_prob has {k} columns: pass labels=[...] in column order"
    else:
        listed = ", ".join(repr(name) for name in names[:4]) + (", ..." if k > 4 else "")
        warn(
            "y_true contains class names and the columns of y_prob have none: they are taken in sorted order, "
            f"{listed}, as scikit-learn writes them; pass labels=[...] to give their order"
        )
        return _named_labels(y, p, names, None)
    raise RefusedError(f"y_true contains class names such as {names[0]!r}: {remedy}")


def _checked_names(labels: Any, k: int) -> list[Hashable] | None:
    if labels is None:
        return None
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise RefusedError(f"labels={labels!r} is not a list: name each of the {k} classes once, in column order")
    names = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    gone = missing(names)
    if gone is not None or not all(isinstance(name, Hashable) for name in names):
        raise RefusedError(f"labels={names!r} contains a missing value or one that is not a name: name each class once")
    if len(set(names)) != len(names) or len(names) != k:
        raise RefusedError(f"labels={names!r} must name each of the {k} classes once")
    return names


def _named_labels(
    y: NDArray[Any], p: Array, names: Sequence[Hashable] | None, pos_label: Hashable | None
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    values = y.tolist()
    if y.dtype.kind == "f" and np.isnan(y).any():
        i = int(np.flatnonzero(np.isnan(y))[0])
        raise RefusedError(f"y_true[{i}] is missing: every row needs a label; drop the rows without one")
    if pos_label is not None:
        names = _with_positive(values, p, names, pos_label)
    assert names is not None
    position = {name: i for i, name in enumerate(names)}
    try:
        index = np.fromiter((position[v] for v in values), dtype=np.intp, count=len(values))
    except KeyError as error:
        i = next(i for i, v in enumerate(values) if v not in position)
        raise RefusedError(f"y_true[{i}] = {values[i]!r} is not among labels={list(names)!r}") from error
    return index, tuple(names)


def _with_positive(
    values: list[Any], p: Array, names: Sequence[Hashable] | None, pos_label: Hashable
) -> Sequence[Hashable]:
    """Names of the two classes, the positive class last."""
    if p.ndim == 2:
        names = in_order(set(values)) if names is None else names
        if p.shape[1] == 2 and len(names) == 2 and names[1] == pos_label:
            return names  # it is already the class of the second column
        raise RefusedError(
            f"pos_label={pos_label!r} needs one column of probabilities, and y_prob has {p.shape[1]}: pass "
            "labels=[...] in column order, or the column of that class alone"
        )
    if not isinstance(pos_label, Hashable) or missing([pos_label]) is not None:
        raise RefusedError(
            f"pos_label={pos_label!r} is not a label: pass the one value of y_true that counts as class 1"
        )
    if names is not None:
        if pos_label not in names:
            raise RefusedError(f"pos_label={pos_label!r} is not among labels={list(names)!r}")
        if names[1] != pos_label:
            raise RefusedCallError(
                f"labels={list(names)!r} says that y_prob is the probability of {names[1]!r}, and "
                f"pos_label={pos_label!r} that it is another one: pass one of them"
            )
        return names
    others = in_order(set(values) - {pos_label})
    if len(others) > 1:
        raise RefusedError(
            f"y_true contains {len(others)} labels besides pos_label={pos_label!r}: {others[:4]}; pass "
            "labels=[negative, positive] and only the rows with these labels"
        )
    return [others[0] if others else f"not {pos_label}", pos_label]


class LabelRows(NamedTuple):
    """Rows of labels with their probabilities, and the names of the classes."""

    y: NDArray[Any]
    probability: Array
    classes: tuple[Hashable, ...] | None


def rows_given(
    y: NDArray[Any], y_prob: Any, names: Sequence[Hashable] | None, rescale: bool = False
) -> LabelRows | None:
    """A matrix of labels, checked; None if it only encodes one class per row, or does not fit the probabilities."""
    p = as_array(y_prob, "y_prob")
    if p.shape != y.shape or p.dtype.kind not in "fiub" or len(p) == 0 or _one_class_each(y, p, rescale):
        return None
    p = np.ascontiguousarray(p, dtype=np.float64)
    refuse_outside(p)
    rows = _checked(y)
    whole = bool(np.isin(rows, (0.0, 1.0)).all())
    if not whole and sum_to_one(rows) and not sum_to_one(p):
        p = checked_probabilities(y_prob, rescale=rescale)
    if names is not None and (len(set(names)) != len(names) or len(names) != p.shape[1]):
        raise RefusedError(f"labels={list(names)!r} must name each of the {p.shape[1]} columns once")
    return LabelRows(rows.astype(np.intp) if whole else rows, p, None if names is None else tuple(names))


def sum_to_one(rows: NDArray[Any]) -> bool:
    """Whether every row sums to one."""
    return bool((np.abs(rows.sum(axis=1) - 1.0) <= ROW_SUM_TOLERANCE).all())


def _one_class_each(y: NDArray[Any], p: NDArray[Any], rescale: bool) -> bool:
    return bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()) and (
        rescale or sum_to_one(p) or sum_to_one_rounded(p)
    )


def _checked(y: NDArray[Any]) -> Array:
    try:
        rows = y.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise RefusedError(
            f"y_true has 2 dimensions and contains {y.dtype} values: pass shares, or zeros and ones"
        ) from error
    bad = np.argwhere(~are_probabilities(rows))
    if len(bad):
        i, k = (int(at) for at in bad[0])
        raise RefusedError(
            f"y_true[{i}, {k}] = {rows[i, k]:g} is not a share: rows of labels must contain numbers from 0 to 1"
        )
    return rows

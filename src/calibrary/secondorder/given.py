"""Check the input of an ensemble: members' probabilities, labels, and rows that belong to no class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.text import in_sentence
from calibrary.data.checks import Array, Indices, absent, as_array, as_floats, checked_probabilities, checked_weights
from calibrary.data.columns import by_name, column_names
from calibrary.data.identity import refuse_misaligned
from calibrary.data.labels import plain_labels
from calibrary.data.predictions import Predictions, predictions

#: The largest number of rows after frequency weights are expanded.
_MOST_ROWS = 20_000_000


@dataclass(frozen=True)
class Members:
    """The checked input.

    Attributes
    ----------
    p : (rows, members, columns); one column is P(class 1), several are one for each class
    counts, labels : (rows, columns) the number of labels of each class (one column: of class 1), and their total
    single : the row and the class of each single label
    weight : (rows,), 1 without weights; whole-number weights have become repeated rows
    outside_p, outside_weight : probabilities and weights of rows that belong to no class
    classes : names
    features : (rows, features), or None
    scores : other detectors by name, for rows with a class and for rows without
    """

    p: Array
    counts: Array
    labels: Indices
    single: tuple[Indices, Indices]
    weight: Array
    outside_p: Array
    outside_weight: Array
    classes: tuple[Hashable, ...]
    features: Array | None = None
    scores: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of rows that belong to a class."""
        return len(self.p)

    @property
    def m(self) -> int:
        """The number of members."""
        return int(self.p.shape[1])

    @property
    def k(self) -> int:
        """The number of classes."""
        return max(int(self.p.shape[2]), 2)

    @property
    def weighted(self) -> bool:
        """Whether the rows have different weights."""
        return bool((self.weight != self.weight[0]).any())

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the class that the mean predicts is the first label of the row."""
        row, label = self.single
        first = label[np.searchsorted(row, np.arange(self.n))]
        mean = self.p.mean(axis=1)
        predicted = (mean[:, 0] > 0.5).astype(np.intp) if mean.shape[1] == 1 else mean.argmax(axis=1)
        return np.asarray(predicted == first, dtype=bool)

    @property
    def repeated(self) -> bool:
        """Whether any row has several labels."""
        return bool((self.labels > 1).any())

    def row_means(self, x: Array) -> float:
        """The weighted mean over the rows."""
        return float(self.weight @ x / self.weight.sum())

    def counted(self, p: Array, counts: Array) -> Predictions:
        """Predictions from these probabilities and the counts of labels (one column: of class 1) in each row."""
        if p.shape[1] == 1:
            counts, p = np.column_stack([self.labels - counts[:, 0], counts[:, 0]]), p[:, 0]
        else:
            p = _normal(p)
        row, label = np.nonzero(counts)
        return predictions(label, p[row], sample_weight=self.weight[row] * counts[row, label])

    def as_data(self, p: Array) -> Predictions:
        """Predictions with one row for each single label; the labels of one row form a unit."""
        row, label = self.single
        probability = p[row, 0] if p.shape[1] == 1 else _normal(p[row])
        found = predictions(label, probability, sample_weight=self.weight[row] if self.weighted else None)
        return found.in_units(row) if self.repeated else found


def given(
    y: Any,
    p: Any,
    outside: Any,
    sample_weight: Any,
    features: Any = None,
    *,
    labels: Any = None,
    pos_label: Hashable | None = None,
    one_model: bool = False,
    scores: Mapping[str, Any] | None = None,
) -> Members:
    """The checked input; invalid input is refused with one sentence. ``one_model``: p has no axis of members."""
    refuse_misaligned(
        y_true=y, y_prob=p, outside=outside, sample_weight=sample_weight, features=features, scores=scores
    )
    raw, names = as_array(p, "y_prob"), column_names(p)
    rows, missing = _labels(y, len(raw) if raw.ndim else 0)
    if one_model:
        if names is not None and pos_label is None and not missing.all():
            raw, labels = by_name(names, raw, _plain(rows[~missing]), labels)
        raw = _as_member(raw)
    probability = _members(raw, 1 if one_model else 2, names)
    n, _, columns = probability.shape
    out = _outside(outside, missing, rows, n)
    weight = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n)
    x = None if features is None else _features(features, n)
    kept, gone = np.flatnonzero(~out & (weight > 0.0)), np.flatnonzero(out & (weight > 0.0))
    if not len(kept):
        raise RefusedError("no row has a label: pass rows whose class is known")
    place, column = np.nonzero(~missing[kept])
    mean = probability[kept].mean(axis=1)
    checked = predictions(
        _plain(rows[kept][place, column]), mean[place, 0] if columns == 1 else _normal(mean[place]),
        labels=labels, pos_label=pos_label,
    )  # fmt: skip
    if checked.fractional:
        raise RefusedError("y_true holds fractions: pass the labels of each row in separate columns")
    whole = bool((weight == np.rint(weight)).all()) and float(weight.sum()) <= _MOST_ROWS
    times = np.rint(weight).astype(np.intp) if whole else np.ones(n, dtype=np.intp)
    label = checked.y.astype(np.intp)
    again = np.repeat(np.arange(len(kept)), times[kept])
    counts, number = _counted(place, label, len(kept), columns)
    begins, size = np.cumsum(number) - number, number[again]  # the labels of one row stand together
    single = np.repeat(np.arange(len(again)), size)
    within = np.arange(len(single)) - np.repeat(np.cumsum(size) - size, size)
    w = np.ones(len(again)) if whole else weight[kept]
    out_again = np.repeat(gone, times[gone])
    by_score = {name: (x[kept][again], x[out_again]) for name, x in score_columns(scores, n).items()}
    return Members(
        probability[kept][again], counts[again], number[again],
        (single, label[np.repeat(begins[again], size) + within]), w,
        probability[out_again], np.ones(len(out_again)) if whole else weight[gone], checked.classes,
        None if x is None else x[kept][again], by_score,
    )  # fmt: skip


def _as_member(raw: NDArray[Any]) -> NDArray[Any]:
    """The probabilities of one model as those of one member."""
    if raw.ndim not in (1, 2):
        raise RefusedError(f"y_prob has {raw.ndim} dimensions: pass P(class 1) of each row, or one column per class")
    return raw[:, None]


def _members(raw: NDArray[Any], least: int, names: Sequence[str] | None) -> Array:
    """The members as an array (rows, members, columns), with one column for two classes."""
    if raw.ndim not in (2, 3):
        raise RefusedError(
            f"y_prob has {raw.ndim} dimensions: pass P(class 1) with one column for each member, of shape (N, M), or "
            "probabilities of shape (N, M, K)"
        )
    n, m = raw.shape[:2]
    if m < least:
        raise RefusedError(
            "y_prob has one member, and an ensemble needs two or more: for a single model use calibrary.decide"
        )
    if raw.ndim == 2:
        found: Array = checked_probabilities(raw.reshape(-1)).reshape(n, m, 1)
    else:
        whole = checked_probabilities(raw.reshape(n * m, raw.shape[2])).reshape(n, m, raw.shape[2])
        found = whole[..., 1:] if raw.shape[2] == 2 else whole
    refuse_equal(found, names)
    return np.ascontiguousarray(found)


def refuse_equal(p: Array, names: Sequence[str] | None = None) -> None:
    """Refuse two members that are equal in every row; they are called by their columns, or by their positions."""
    m = p.shape[1]
    called = list(names) if names is not None and len(names) == m else [str(j) for j in range(m)]
    for later in range(1, m):
        for former in range(later):
            if np.array_equal(p[:, later], p[:, former]):
                raise RefusedError(
                    f"members {called[former]} and {called[later]} are equal in every row: remove one of them, because "
                    "copies are not separate members"
                )


def _normal(p: Array) -> Array:
    """Rows divided by their sum, which may differ from one by rounding."""
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _labels(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels as an array (rows, labels of a row), and a mask of missing labels."""
    rows = as_array(y, "y_true")
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or len(rows) != n:
        raise RefusedError(
            f"y_true has shape {rows.shape} and y_prob has {n} rows: pass one or several labels for each row"
        )
    return rows, absent(rows)


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that are not missing, converted back to their original type."""
    found = plain_labels(np.array(labels.tolist())) if labels.dtype.kind == "O" else labels
    if found.dtype.kind == "f" and (found == np.rint(found)).all():
        return found.astype(np.intp)
    return found


def _outside(outside: Any, missing: NDArray[np.bool_], rows: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """A mask of the rows that belong to no class: those marked, and those without a label."""
    nothing = np.asarray(missing.all(axis=1), dtype=bool)
    if outside is None:
        return nothing
    said = as_array(outside, "outside")
    if said.shape != (n,):
        raise RefusedError(f"outside has shape {said.shape} and y_prob has {n} rows: pass True or False for each row")
    if said.dtype.kind not in "b" and not np.isin(said, (0, 1)).all():
        raise RefusedError("outside holds other values than True and False: pass one of the two for each row")
    out = said.astype(bool)
    wrong = np.flatnonzero(out & ~nothing)
    if len(wrong):
        shown = rows[wrong[0]][~missing[wrong[0]]].tolist()[0]
        raise RefusedError(
            f"row {wrong[0]} is outside and has the label {in_sentence(shown)}: a row that belongs to no class has no "
            "true label; set the label to None, or outside to False for this row"
        )
    unlabelled = np.flatnonzero(nothing & ~out)
    if len(unlabelled):
        raise RefusedError(
            f"row {unlabelled[0]} has no label and is not marked as outside: drop the row, or mark it with outside="
        )
    return out


def _features(features: Any, n: int) -> Array:
    x = np.asarray(as_array(features, "features"), dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != n:
        raise RefusedError(f"features has shape {x.shape} and y_prob has {n} rows: pass the features of each row")
    if not np.isfinite(x).all():
        raise RefusedError("features holds missing or infinite numbers: fill them in or drop the rows")
    return x


def _counted(place: Indices, label: Indices, n: int, columns: int) -> tuple[Array, Indices]:
    """The number of labels of each class in each row, and their total."""
    number = np.bincount(place, minlength=n)
    if columns == 1:
        return np.bincount(place, label, n).astype(np.float64)[:, None], number
    return np.bincount(place * columns + label, minlength=n * columns).reshape(n, columns).astype(np.float64), number


def score_columns(scores: Mapping[str, Any] | None, n: int) -> dict[str, Array]:
    """Scores of all rows, checked."""
    found = {}
    for name, values in (scores or {}).items():
        column = as_floats(values, f"scores[{name!r}]")
        if column.shape != (n,):
            raise RefusedError(
                f"scores[{name!r}] has shape {column.shape} and there are {n} rows: pass one number for each row"
            )
        found[str(name)] = column
    return found

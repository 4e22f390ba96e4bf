"""Human labels for some rows and a judge's label for every row: checked, and as pairs of 0/1 and c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import is_absent
from calibrary.data.checks import Array, are_probabilities, as_array, as_floats, checked_probabilities
from calibrary.data.columns import by_name, column_names
from calibrary.data.identity import refuse_misaligned
from calibrary.tables.values import parsed

#: Smallest number of human labels for an estimate.
LEAST = 20


@dataclass(frozen=True)
class JudgedRows:
    """Confidences, the judge's labels, the human labels (NaN if missing), and weights of the labelled rows.

    ``weight`` is 1 over the probability of being labelled, scaled to a mean of 1 over the labelled rows, and 0 for
    others; ``known`` is true if these probabilities were given.
    """

    c: Array
    judge: Array
    y: Array
    weight: Array
    known: bool

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return self.weight > 0

    @property
    def n(self) -> int:
        return len(self.c)

    @property
    def n_labels(self) -> int:
        return int(np.sum(self.labelled))


def judged_rows(y_true: Any, y_prob: Any, judge: Any, inclusion: Any) -> JudgedRows:
    """Check the four columns; for several classes the outcome is whether the most likely class is right."""
    refuse_misaligned(y_true=y_true, y_prob=y_prob, judge=judge, inclusion=inclusion)
    p, names = as_floats(y_prob, "y_prob"), column_names(y_prob)
    if names is not None and p.ndim == 2:
        p, _ = by_name(names, p, y_true, range(p.shape[1]))  # labels are the numbers of the classes
    y, human = _column(y_true, "y_true", len(p))
    j, seen = _column(judge, "judge", len(p))
    if not seen.all():
        first = int(np.flatnonzero(~seen)[0])
        raise RefusedError(f"judge[{first}] is missing: the judge must label every row")
    if p.ndim == 2:
        top = p.argmax(axis=1)
        y = np.where(human, (y == top).astype(np.float64), np.nan)
        whole = np.equal(np.mod(j, 1.0), 0.0).all()
        if (whole and j.max() > 1.0) or not are_probabilities(j).all():
            j = (j == top).astype(np.float64)
        else:  # 0 and 1, or probabilities: whether the most likely class is right
            j = j.astype(np.float64)
        p = p[np.arange(len(p)), top]
    c = checked_probabilities(p)
    bad = np.flatnonzero(human & ~np.isin(np.where(human, y, 0.0), (0.0, 1.0)))
    if len(bad):
        raise RefusedError(
            f"y_true[{int(bad[0])}] = {y[bad[0]]:g} is neither 0 nor 1: pass 0 and 1, and NaN without a label"
        )
    outside = np.flatnonzero(~are_probabilities(j))
    if len(outside):
        at = int(outside[0])
        raise RefusedError(
            f"judge[{at}] = {j[at]:g} is outside [0, 1]: pass 0 and 1, or the judge's probabilities of 1"
        )
    if human.sum() < LEAST:
        raise RefusedError(f"y_true has {int(human.sum())} human labels: at least {LEAST} are needed")
    return JudgedRows(c, j, y, _weights(inclusion, human), inclusion is not None)


def _column(values: Any, name: str, n: int) -> tuple[Array, NDArray[np.bool_]]:
    """The numbers, and which are present: None, NaN and empty text are missing."""
    array = as_array(values, name)
    if array.shape != (n,):
        raise RefusedError(f"{name} has shape {array.shape} and y_prob has {n:,} rows: pass one value per row")
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64)
        return numbers, ~np.isnan(numbers)
    listed = [None if is_absent(v) or v == "" else v for v in array.tolist()]
    read = [np.nan if v is None else parsed(v) for v in listed]
    if None in read:
        i = read.index(None)
        raise RefusedError(f"{name}[{i}] = {listed[i]!r} is not a number: pass numbers, and NaN for a missing value")
    return np.array(read, dtype=np.float64), np.array([v is not None for v in listed], dtype=bool)


def _weights(inclusion: Any, human: NDArray[np.bool_]) -> Array:
    weight = human.astype(np.float64)
    if inclusion is None:
        return weight
    chance = _column(inclusion, "inclusion", len(human))[0]
    bad = np.flatnonzero(human & ~((chance > 0.0) & (chance <= 1.0)))
    if len(bad):
        raise RefusedError(
            f"inclusion[{int(bad[0])}] = {chance[bad[0]]:g} of a row with a human label must be above 0 and at most "
            "1: pass the probability with which the row was selected for labelling"
        )
    weight[human] /= chance[human]
    weight[human] *= human.sum() / weight.sum()
    return weight

"""The folds of cross-fitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Indices
from calibrary.data.predictions import Predictions
from calibrary.numerics.draw import shuffled


def fold_numbers(p: Predictions, folds: Any = 10, rng: Any = 0) -> Indices:
    """The fold of every row, 0, 1, ...: random and independent of the labels, or as given.

    Folds are not stratified by class, because each map would then be fitted to the class shares of its test rows.
    """
    unit = p.units
    if np.ndim(folds) > 0:
        return _given(p, folds, unit)
    k = whole("folds", folds, 2)
    n, what = (p.n, "rows") if unit is None else (int(unit.max()) + 1, "units")
    if k > n:
        raise RefusedError(f"folds={k} needs at least {k} {what}, and there are {n}: use fewer folds")
    fold = np.empty(n, dtype=np.intp)
    fold[shuffled(n, rng, "folds")] = np.arange(n) * k // n
    return fold if unit is None else fold[unit]


def _given(p: Predictions, folds: Any, unit: Indices | None) -> Indices:
    names, fold = np.unique(p.align(folds, "folds"), return_inverse=True)
    fold = fold.ravel()
    if len(names) < 2:
        raise RefusedError(f"folds has only the value {names[0]!r}: at least two folds are needed")
    if unit is not None:
        first = np.zeros(int(unit.max()) + 1, dtype=np.intp)
        first[unit] = fold
        torn = np.flatnonzero(first[unit] != fold)
        if len(torn):
            raise RefusedError(
                f"folds puts rows of one unit in different folds (for example row {torn[0]}): assign each unit to one "
                "fold"
            )
    return fold

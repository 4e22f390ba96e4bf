"""Maps evaluated on held-out rows: each row is mapped by the fit to the other folds.

Folds are assigned at random and never by the label. Folds with the same share of events in each contain information
about the held-out labels: for calibrated predictions with one value the map of the other folds is then wrong in the
direction of the held-out rows, and the gain from recalibration looks as if the map had been fitted and evaluated on the
same rows.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.maps import as_map, fit_map
from calibrary.numerics.draw import shuffled

#: Number of rows from which an isotonic map is preferable despite its variance; below, the beta map with three
#: parameters.
ISOTONIC_FROM = 300


def usual_map(view: Predictions) -> str:
    """The default map: isotonic for many rows, beta for few, temperature for whole vectors."""
    if not view.binary:
        return "temperature"
    return "isotonic" if view.total >= ISOTONIC_FROM else "beta"


def assigned_folds(view: Predictions, folds: Any, rng: Any) -> Indices:
    """The fold of every row, numbered from 0: as given, or assigned at random to this number of folds."""
    if np.ndim(folds) == 0:
        n_folds = whole("folds", folds, least=2)
        if view.n < n_folds:
            raise RefusedError(
                f"folds={n_folds} needs at least as many rows, and there are {view.n}: use fewer folds or more rows"
            )
        return np.asarray(view.align(fixed_folds(view, folds, rng), "folds"))
    given = view.align(folds, "folds")
    names, fold = np.unique(given, return_inverse=True)
    if given.ndim != 1 or len(names) < 2:
        raise RefusedError("folds must name at least two folds, one for each row: pass an array such as arange(N) % 5")
    return fold.ravel()


def fixed_folds(view: Predictions, folds: Any, rng: Any) -> Any:
    """The fold of every row of the input, fixed for a bootstrap, so that copies of one row share a fold."""
    if np.ndim(folds):
        return folds
    fold = shuffled(view.n_input, rng, "folds") % folds
    return fold.astype(np.min_scalar_type(folds))


def cross_fitted(view: Predictions, map: Any, fold: Indices) -> Array:
    """Every row's probability (or probability vector) from the map fitted to the other folds."""
    mapped = np.empty_like(view.probability)
    order = view.order if view.binary else np.arange(view.n)  # the rows are sorted once, so every fold is sorted
    assigned_folds = fold[order]
    for held in range(int(fold.max()) + 1):
        rows = order[assigned_folds == held]
        if len(rows):
            seen = rows_of(view, order[assigned_folds != held], f"outside fold {held}")
            seen.ascending = view.binary
            mapped[rows] = mapped_by(map, seen, view, rows)
    return mapped


def rows_of(view: Predictions, rows: Indices, where: str) -> Predictions:
    """Rows of a view for fitting a map; an error if there are none or all have the same label."""
    y = view.y[rows]
    if not len(rows) or (y == y[0]).all():
        what = f"every label is {view.classes[y[0]]!r}" if len(rows) else "there is no row"
        raise RefusedError(f"{where} {what}, so that no map can be fitted: use fewer folds or more rows")
    return view.subset(rows, y, view.probability[rows], classes=view.class_names)


def mapped_by(map: Any, seen: Predictions, view: Predictions, rows: Indices) -> Array:
    """Rows of a view after the map fitted to the rows in ``seen``.

    For whole vectors a binary map is fitted to each class, and the rows are rescaled.
    """
    chosen, c = as_map(map), view.probability[rows]
    if view.binary or getattr(chosen, "takes_vectors", False):
        return _checked(fit_map(chosen, seen).predict(c), map)
    each = np.empty_like(c)
    for k in range(view.k):
        one = seen.view((seen.y == k).astype(np.intp), np.ascontiguousarray(seen.p[:, k]))
        each[:, k] = _checked(fit_map(copy.copy(chosen), one).predict(c[:, k]), map)
    total = each.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), c)


def _checked(mapped: Any, map: Any) -> Array:
    """The probabilities of a map, checked; a local curve may be undefined beyond the rows it was fitted to."""
    q = np.asarray(mapped, dtype=np.float64)
    if not np.isfinite(q).all():
        raise RefusedError(
            f"map={map!r} has no value at some held-out rows, which lie beyond the rows it was fitted to: use a map "
            "defined everywhere, such as 'isotonic', 'beta' or 'platt'"
        )
    return np.clip(q, 0.0, 1.0)

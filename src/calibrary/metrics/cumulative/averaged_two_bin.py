"""Averaged two-bin error: the error of two bins, averaged over the position of the cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import CellCounts, CellForm, InBlocks, ReplicateForm


def _area_of_the_walk() -> ReplicateForm:
    """Averaged two-bin error of many replicates: order, ties and the stretches between scores are computed once."""

    def prepare(view: Predictions, *, norm: float = 2, debias: bool = False, root: bool = False) -> InBlocks | None:
        if debias:
            return None
        order, start, wide = view.order, view.ties.start, stretches(view.ties.c)

        def found(step: Array, total: Any) -> Array:
            step = np.add.reduceat(step[:, order], start, axis=1) if len(start) < view.n else step[:, order]
            return area_of(step, wide, total, norm, root)

        def many(new_y: Any) -> Array:
            return found(new_y - view.c if view.w is None else (new_y - view.c) * view.w, view.total)

        return InBlocks(many, lambda w: found(w * view.residual, w.sum(axis=1, keepdims=True)))

    return ReplicateForm(prepare)


def _area_of_cells() -> CellForm:
    """The same error from counts of events in cells, each of which is one step of the walk."""

    def value(cells: CellCounts, options: Mapping[str, Any]) -> Callable[[Array], Array]:
        expected, total, wide = cells.n * cells.c, float(cells.n.sum()), stretches(cells.c)
        norm, root = options.get("norm", 2), bool(options.get("root"))
        return lambda counts: area_of(counts - expected, wide, total, norm, root)

    return CellForm(value, options=("norm", "root"))


@metric("atb", replicate=_area_of_the_walk(), cell_value=_area_of_cells())
def averaged_two_bin_error(
    view: Predictions, *, norm: float = 2, debias: bool = False, root: bool = False, **common: Unpack[Common]
) -> float:
    r"""Error of two bins, below and above a threshold, averaged over all thresholds.

    .. math:: \int_0^1 |A(t)|^2 + |R - A(t)|^2\, dt, \qquad
              A(t) = \frac{1}{W} \sum_{c_i < t} w_i (y_i - c_i), \quad R = A(\infty)

    A is the cumulative difference as a function of the score, so that this error relates to the Kuiper error as the
    Cramér-von Mises statistic relates to the Kolmogorov-Smirnov statistic; it is at most twice the square of the Kuiper
    error. Its expectation cannot be lowered by stating other probabilities than one believes, for any number of rows.

    Parameters
    ----------
    norm : float
        The exponent, at least 1.
    debias : bool
        Subtract sum w (y - c)^2 / W^2, so that the mean is zero for calibrated predictions and half of the samples have
        negative values (``norm=2``).
    root : bool
        Take the norm-th root (with its sign), which gives the scale of probabilities.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
    >>> round(cal.averaged_two_bin_error(y, p), 5), round(cal.averaged_two_bin_error(y, p, root=True), 4)
    (0.01325, 0.1151)
    """
    if not (norm >= 1.0 and math.isfinite(norm)):
        raise RefusedError(f"norm={norm!r} must be a finite number of at least 1")
    if debias and norm != 2:
        raise RefusedError(f"debias=True is for norm=2, and norm={norm!r}: leave out one of the two arguments")
    ties = view.ties
    value = float(area_of(ties.wy - ties.w * ties.c, stretches(ties.c), view.total, norm))
    if debias:
        view.refuse_shares("debias=True")
        value -= float(view.mean(view.residual**2)) / view.total
    return math.copysign(abs(value) ** (1.0 / norm), value) if root else value


def averaged_two_bin_null_mean(y_prob: Any, *, sample_weight: Any = None) -> float:
    """Mean of the averaged two-bin error (``norm=2``) of calibrated predictions with these confidences.

    The mean is exactly sum w c (1 - c) / W^2, for any number of rows: each row's noise counts once, on one side of each
    threshold or on the other.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.averaged_two_bin_null_mean([0.2, 0.7, 0.9, 0.6]), 5)
    0.04375
    """
    c = predictions(np.zeros(np.shape(y_prob)[:1], dtype=np.intp), y_prob, sample_weight=sample_weight)
    return float(c.mean(c.c * (1.0 - c.c))) / c.total


def stretches(c: Array) -> Array:
    """Lengths of the intervals of thresholds before, between and after the ascending confidences."""
    wide = np.empty(len(c) + 1)
    wide[0], wide[-1] = c[0], 1.0 - c[-1]
    np.subtract(c[1:], c[:-1], out=wide[1:-1])
    return wide


def area_of(steps: Array, wide: Array, total: Any, norm: float, root: bool = False) -> Array:
    """Sum over the intervals of |A|^norm + |R - A|^norm, which are constant on each interval, along the last axis."""
    below = np.zeros((*steps.shape[:-1], len(wide)))
    np.cumsum(steps, axis=-1, out=below[..., 1:])
    below /= total
    above = below[..., -1:] - below
    if norm == 2:
        found = np.einsum("...t,...t,t", below, below, wide) + np.einsum("...t,...t,t", above, above, wide)
    else:
        found = (np.abs(below) ** norm + np.abs(above) ** norm) @ wide
    return np.asarray(found ** (1.0 / norm) if root else found)

"""ECE of the most confident predictions (belongs to row 25)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.grouping import EqualWidth
from calibrary.grouping.windows import prefix_sums
from calibrary.metrics.machinery.declare import Common, metric

_LENSES = ("binary", "top-label", "class-wise")


@metric("ece_at_k", lenses=_LENSES, stacks="labels")
def top_k_calibration_error(
    view: Predictions, *, k: float = 100, n_bins: int | None = None, rank_by: Any = None, **common: Unpack[Common]
) -> float:
    r"""ECE of the k most confident predictions.

    Rows tied at the cut share the remaining places, so that the order of the rows does not matter.

    Parameters
    ----------
    k : int, or float in (0, 1)
        Number of rows, or share of the rows ("ECE@%k"); at most N.
    n_bins : int, optional
        Number of equal-width bins between the smallest selected confidence and 1; by default one less than the number
        of decimal digits of k.
    rank_by : array-like of shape (N,), optional
        Score that selects the rows, if it is not the confidence (the inventors rank by the uncalibrated confidence).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1], [0.1, 0.2, 0.7, 0.8, 0.9]
    >>> round(cal.top_k_calibration_error(y, p, k=3), 4)
    0.1333
    """
    n = _number_of_rows(k, view.n)
    if rank_by is None:
        return as_number(_highest(view).errors(np.array([n]), n_bins)[..., 0])
    return _selected(view, view.align(rank_by, "rank_by"), n, n_bins)


@metric("avg_ece_at_l", lenses=_LENSES, stacks="labels")
def average_top_k_calibration_error(
    view: Predictions,
    *,
    l: int | None = None,  # noqa: E741
    step: int = 10,
    n_bins: int | None = None,
    rank_by: Any = None,
    **common: Unpack[Common],
) -> float:
    r"""Mean of the ECE of the k most confident predictions over k = step, 2 step, ... up to l.

    Parameters
    ----------
    l : int, optional
        The largest k, inclusive (the inventors' ``range`` excludes it); by default a fifth of the rows.
    step : int
    n_bins, rank_by : as in :func:`top_k_calibration_error`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1], [0.1, 0.2, 0.7, 0.8, 0.9]
    >>> round(cal.average_top_k_calibration_error(y, p, l=3, step=1), 4)
    0.1278
    """
    step = whole("step", step)
    last = view.n // 5 if l is None else whole("l", l)
    if last < step:
        raise RefusedError(f"l={last} is below step={step}: there is no k to average over; lower step or raise l")
    ks = np.minimum(np.arange(step, last + 1, step), view.n)
    if rank_by is None:
        return as_number(_highest(view).errors(ks, n_bins).mean(axis=-1))
    score = view.align(rank_by, "rank_by")
    return float(np.mean([_selected(view, score, int(k), n_bins) for k in ks]))


def _number_of_rows(k: float, n: int) -> int:
    if isinstance(k, float | np.floating):
        if not 0.0 < k < 1.0:
            raise RefusedError(f"k={k!r} must be a whole number of rows, or a share between 0 and 1")
        k = int(k * n + 1e-9)  # 0.29 * 100 is 28.999999999999996
        if k < 1:
            raise RefusedError(f"k is less than one of the {n} rows: raise k")
    return min(whole("k", k), n)


def _bins_for(k: Any, n_bins: int | None) -> Any:
    """The number of bins for one k or for several: by default one less than the number of digits of k."""
    if n_bins is not None:
        return np.full_like(k, whole("n_bins", n_bins))
    return np.maximum(np.searchsorted(10 ** np.arange(1, 19), k, side="right"), 1)


def _selected(view: Predictions, score: Array, k: int, n_bins: int | None) -> float:
    """ECE@k of the rows with the k highest scores, where rows tied at the cut share the remaining places."""
    view.refuse_stack("an order by other scores")
    cut = np.partition(score, view.n - k)[view.n - k]
    above, tied = score > cut, score == cut
    chosen = view.reweighted(above + tied * ((k - above.sum()) / tied.sum()))
    lowest = float(chosen.c.min())
    if lowest == 1.0:
        return abs(float(chosen.mean(chosen.residual)))
    return EqualWidth(int(_bins_for(k, n_bins)), range=(lowest, 1.0)).groups(chosen).gap_norm(1)


class _Highest:
    """Prefix sums of the residuals in ascending order, from which ECE@k for any k costs a few binary searches."""

    def __init__(self, view: Predictions) -> None:
        ties = view.ties
        self.c = ties.c
        self.residual = ties.wy - ties.w * ties.c
        self.below = prefix_sums(self.residual)
        self.above = view.n - np.cumsum(ties.w)  # rows strictly above each value
        self.tied = ties.w

    def errors(self, ks: Indices, n_bins: int | None) -> Array:
        """ECE@k for every k; all k with the same number of bins are computed together."""
        bins = _bins_for(ks, n_bins)
        found = np.empty((*self.residual.shape[:-1], len(ks)))
        for b in np.unique(bins):
            found[..., bins == b] = self._with_bins(ks[bins == b], int(b))
        return found

    def _with_bins(self, ks: Indices, b: int) -> Array:
        g = np.searchsorted(-self.above, -ks, side="right")  # the first value with fewer than k rows above it
        lowest = self.c[g][:, None]
        # the inner edges of EqualWidth(b, range=(lowest, 1)), for all k at once
        inner = np.round(lowest + (1.0 - lowest) * np.arange(1, b) / b, 12)
        ends = np.where(lowest < 1.0, np.searchsorted(self.c, inner, side="right"), len(self.c))
        last = np.full((len(ks), 1), len(self.c))
        bounds = np.hstack([g[:, None] + 1, np.maximum(ends, g[:, None] + 1), last])
        sums = np.diff(self.below[..., bounds], axis=-1)
        sums[..., 0] += self.residual[..., g] * (ks - self.above[g]) / self.tied[g]
        total: Array = np.abs(sums).sum(axis=-1)
        return total / ks


def _highest(view: Predictions) -> _Highest:
    return view.remember("highest", lambda: _Highest(view))

"""Scores that join calibration with accuracy in one number (rows 48 and 49): HCS, WCR and Gebel's measure."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.lens import VECTOR_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, where
from calibrary.grouping import Edges, group
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.brier import brier_score


@metric("hcs", lenses=("binary", "top-label"), stacks="weights")
def harmonic_calibration_score(
    view: Predictions, *, beta: float = 1.0, n_bins: int = 15, **common: Unpack[Common]
) -> float:
    r"""Weighted harmonic mean of accuracy and 1 - ECE: high only when both are good.

    .. math:: \frac{(1 + \beta) A (1 - \mathrm{ECE})}{\beta A + 1 - \mathrm{ECE}}

    A is the share of rows whose predicted class is the true class (binary: class 1 is predicted where c > 0.5); the ECE
    has equal-width bins, closed right.

    Parameters
    ----------
    beta : float
        Weight of calibration, 0 or more: with 0 the score is the accuracy, with infinity it is 1 - ECE.
    n_bins : int
        Number of bins of the ECE.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.harmonic_calibration_score([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.7241
    """
    if not beta >= 0:
        raise RefusedError(f"beta={beta!r} is negative: pass the weight of calibration as a number of 0 or more")
    calibration = 1.0 - group(view, "width", n_bins=n_bins).gap_norm(1)
    right = view.y if view.seen_through == "top-label" else (view.c > 0.5) == view.y
    accuracy = view.mean(right)
    if math.isinf(beta):
        return as_number(where(accuracy > 0.0, calibration, 0.0))
    both = beta * accuracy + calibration
    return as_number((1.0 + beta) * accuracy * calibration / where(both > 0.0, both, 1.0))


_WHOLE_VECTOR = ("binary", *VECTOR_LENSES)
#: Two classes: confidences up to 1/2 predict the first, larger ones the second.
_HALVES = Edges((0.0, 0.5, 1.0))


@metric("wcr", lenses=_WHOLE_VECTOR, default_lens="full", stacks="weights")
def well_calibration_ratio(view: Predictions, **common: Unpack[Common]) -> float:
    r"""How well probabilities match class frequencies among the rows predicted as each class; 1 is a perfect match.

    .. math:: 1 - \frac{1}{K^2} \sum_{k, j} |\mathrm{CF}_{kj} - \mathrm{CR}_{kj}|

    CF and CR are the mean probability and the frequency of class j among the rows whose largest probability is
    that of class k. A class that is never predicted adds nothing.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.well_calibration_ratio([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.8667
    """
    return as_number(view.remember("well-calibration ratio", lambda: _well_calibration(view)))


def _well_calibration(view: Predictions) -> Any:
    if view.binary:
        return 1.0 - group(view, _HALVES).distance("l1").sum(axis=-1) / 4.0
    k = view.k
    predicted = np.bincount(view.top, view.w, minlength=k)
    weighted = view.p if view.w is None else view.w[:, None] * view.p
    columns = [np.bincount(view.top, column, minlength=k) for column in weighted.T]
    confidence = np.column_stack(columns)
    frequency = np.bincount(view.top * k + view.y, view.w, minlength=k * k).reshape(k, k)
    used = predicted > 0
    gaps = np.abs(confidence - frequency)[used].sum(axis=1) / predicted[used]
    return 1.0 - float(gaps.sum()) / k**2


@metric("cal", lenses=_WHOLE_VECTOR, default_lens="full", stacks="weights")
def gebel_calibration_measure(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Gebel's Cal: geometric mean of 1 - root Brier score and the well-calibration ratio.

    .. math:: \sqrt{(1 - \sqrt{\mathrm{BS}}) \, \mathrm{WCR}}

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.gebel_calibration_measure([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.7485
    """
    brier = view.mean(view.residual**2) if view.binary else brier_score(view)
    ratio = well_calibration_ratio.entry.formula(view)
    return as_number(np.sqrt(np.maximum(1.0 - np.sqrt(brier), 0.0) * np.maximum(ratio, 0.0)))

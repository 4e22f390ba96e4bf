"""Dirichlet kernel calibration error (row 53): labels of similar predictions against the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary._errors import warn
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.kernels import LOO_GRID, beta_bandwidth, copies, positive_width
from calibrary.metrics.declare import Common, Correction, metric
from calibrary.metrics.kernel.pairs import need_pairs, on_a_line
from calibrary.metrics.literature import cited
from calibrary.numerics.sums.beta import leave_one_out_beta_sums
from calibrary.numerics.sums.dirichlet import leave_one_out_shares

__all__ = ["dirichlet_kernel_calibration_error"]


def _same_width(
    view: Predictions,
    *,
    bandwidth: float | str = "cv",
    weight_type: str = "frequency",
    redrawn: bool = False,
    **others: Any,
) -> dict[str, Any]:
    if redrawn and bandwidth == "cv":
        return {}
    view = on_a_line(view)
    if view.binary or not isinstance(bandwidth, str):
        return {"bandwidth": beta_bandwidth(bandwidth, view, weight_type=weight_type)}
    return {"bandwidth": float(LOO_GRID[_best(_fits(view, LOO_GRID, 1, weight_type), bandwidth)])}


@metric(
    "dkde",
    differentiable=True,
    most_classes=10,
    renamed={"p": "norm"},
    square="option",
    costly=True,
    fixed=_same_width,
    family="kernel",
    row=53,
    aliases=(
        "DKDE",
        "ECE-DKDE",
        "ece_kde",
        "ECE-KDE",
        "Dirichlet kernel density calibration error",
        "Dirichlet kernel density estimator",
    ),
    range=(0.0, 2.0),
    range_note="[0, 2] for p = 1 and 2: two one-hot vectors are 2 apart; with root=True and norm=2 [0, sqrt 2]",
    lenses=ALL_LENSES,
    default_lens="full",
    symmetric=True,
    slow_above=20_000,
    slow_binary=True,
    cost="O(N) per width for two classes, else O(N^2 K) for all widths together",
    equation="(69), (70)",
    references=cited("popordanoska2022"),
    use="Canonical calibration of few classes, where bins of the simplex would be empty.",
    avoid="Biased upwards, badly with many classes: compare with its value on labels redrawn from the predictions.",
    corrections=(
        Correction("(69), range", "[0, 1]", "[0, 2]"),
        Correction("(69), bias", "de-biased", "(69) is a plug-in; the de-biased form exists in one dimension (bkde)"),
        Correction(
            "bandwidth",
            "not said here; leave-one-out likelihood for L1CBOD (7.5)",
            "that fits the density and under-smooths the curve: cross-validation is the default, 'loo-mle' an option",
        ),
    ),
)
def dirichlet_kernel_calibration_error(
    view: Predictions,
    *,
    norm: int = 1,
    bandwidth: float | str = "cv",
    root: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> float:
    r"""Average distance between a prediction and the labels of similar predictions, as whole vectors.

    .. math:: \frac{1}{N} \sum_j \Big\| \frac{\sum_{i \ne j} k_h(c_j; c_i)\, e_{y_i}}{\sum_{i \ne j} k_h(c_j; c_i)}
              - c_j \Big\|_p^p

    with the Dirichlet kernel :math:`k_h(c_j; c_i) = \mathrm{Dir}(c_j;\, c_i / h + 1)`.

    Parameters
    ----------
    norm : 1 or 2
        Power of the difference; no root is taken.
    bandwidth : positive number, "cv" or "loo-mle"
        The width h, or the one of 20 between 1e-5 and 1 whose leave-one-out curve predicts the labels best, or whose
        leave-one-out density is most likely (the authors' rule, which under-smooths saturated or many-class data).
    root : bool
        Take the p-th root of the average.
    weight_type : "frequency" or "importance"
        Leave out one copy of a row, or the whole row.

    Notes
    -----
    The plug-in estimate is biased: perfectly calibrated predictions (softmax of N(0, 9) logits, N = 1000) read about
    0.12 for 3 classes and 0.18 for 10 with the default width, 0.3 and 0.64 with "loo-mle". Read it beside its mean
    under labels redrawn from the predictions (``calibrary.null_distribution``). Two classes: exactly twice the
    plug-in ``bkde`` with the same p.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 0, 1, 2]
    >>> p = [[.7, .2, .1], [.2, .6, .2], [.1, .3, .6], [.5, .3, .2], [.3, .3, .4], [.2, .2, .6]]
    >>> round(cal.dirichlet_kernel_calibration_error(y, p, bandwidth=0.1), 4)
    0.364
    """
    if norm not in (1, 2):
        raise ValueError(f"norm={norm!r} must be 1 or 2")
    need_pairs(view, weight_type, "dkde")
    copies(view, weight_type, "dkde")
    view = on_a_line(view)
    error = (_error_on_a_line if view.binary else _error_on_the_simplex)(view, norm, bandwidth, weight_type)
    value = error / view.total
    return float(value ** (1.0 / norm) if root else value)


def _error_on_a_line(view: Predictions, p: int, bandwidth: float | str, weight_type: str) -> float:
    """Weighted sum of the distances for two classes, whose Dirichlet kernel is the beta kernel."""
    h = beta_bandwidth(bandwidth, view, weight_type=weight_type)
    s = view.sorted
    sums = leave_one_out_beta_sums(s.c, s.y, h, s.w, weight_type=weight_type)
    distance = 2.0 * np.abs(sums.weighted / sums.total - s.c) ** p
    return float(distance.sum() if s.w is None else np.dot(s.w, distance))


def _error_on_the_simplex(view: Predictions, p: int, bandwidth: float | str, weight_type: str) -> float:
    h = positive_width(bandwidth, ("cv", "loo-mle"))
    if h is not None:
        return float(_fits(view, np.array([h]), p, weight_type).error[0])
    fits = _fits(view, LOO_GRID, p, weight_type)
    return float(fits.error[_best(fits, str(bandwidth))])


def _best(fits: _Fits, bandwidth: str) -> int:
    """Which of the widths the rule chooses."""
    positive_width(bandwidth, ("cv", "loo-mle"))
    if bandwidth == "cv":
        return int(np.argmin(fits.loss))
    best = int(np.argmax(fits.likelihood))
    if best == 0:
        warn(
            f"bandwidth='loo-mle' chose its smallest width, {LOO_GRID[0]:g}: tied or saturated confidences make the "
            "likelihood grow without bound; use bandwidth='cv' or a number"
        )
    return best


@dataclass(frozen=True)
class _Fits:
    """For every width: log likelihood, squared error of the curve, and its p-th power distance; weighted sums."""

    likelihood: Array
    loss: Array
    error: Array


def _fits(view: Predictions, widths: Array, p: int, weight_type: str) -> _Fits:
    w = view.weight
    log_rest = np.log(view.total - (np.ones(view.n) if weight_type == "frequency" else w))
    fits = _Fits(np.zeros(len(widths)), np.zeros(len(widths)), np.zeros(len(widths)))
    for part in leave_one_out_shares(view.p, view.y, widths, view.w, weight_type=weight_type, device=view.device):
        rows, m, curve = part.rows, part.width, part.shares
        at_label = np.take_along_axis(curve, view.y[rows, None], axis=1)[:, 0]
        fits.likelihood[m] += np.dot(w[rows], part.log_total - log_rest[rows])
        fits.loss[m] += np.dot(w[rows], 1.0 - 2.0 * at_label + np.einsum("nk,nk->n", curve, curve))
        gap = curve - view.p[rows]
        distance = np.abs(gap).sum(axis=1) if p == 1 else np.einsum("nk,nk->n", gap, gap)
        fits.error[m] += np.dot(w[rows], distance)
    return fits

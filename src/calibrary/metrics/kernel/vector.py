"""Dirichlet kernel calibration error (row 53): labels of similar predictions are compared with the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, warn
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.kernels import LOO_GRID, beta_bandwidth, copies, positive_width
from calibrary.metrics.kernel.beta import checked_power, curve_terms
from calibrary.metrics.kernel.pairs import need_pairs, on_a_line
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.laws import folded_normal_mean
from calibrary.numerics.sums.beta import leave_one_out_beta_sums
from calibrary.numerics.sums.dirichlet import Rest, leave_one_out_rest, leave_one_out_shares

#: Below this share of all pairs there is one neighbour only.
_SINGLE = 1e-12


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
    need_pairs(view, weight_type, "dkde")
    view = on_a_line(view)
    if view.binary or not isinstance(bandwidth, str):
        return {"bandwidth": beta_bandwidth(bandwidth, view, weight_type=weight_type)}
    return {"bandwidth": float(LOO_GRID[_best(_fits(view, LOO_GRID, 1, weight_type), bandwidth)])}


@metric(
    "dkde",
    renamed={"p": "norm"},
    fixed=_same_width,
    range_with=lambda options, k: (-0.4 * k if options.get("debias") else 0.0, 2.0),
    lenses=ALL_LENSES,
    default_lens="full",
)
def dirichlet_kernel_calibration_error(
    view: Predictions,
    *,
    norm: float = 1,
    debias: bool = False,
    bandwidth: float | str = "cv",
    root: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> float:
    r"""Average distance between a prediction and the labels of similar predictions, as whole vectors.

    .. math:: \frac{1}{N} \sum_j \Big\| \frac{\sum_{i \ne j} k_h(c_j; c_i)\, e_{y_i}}{\sum_{i \ne j} k_h(c_j; c_i)}
              - c_j \Big\|_p^p

    The Dirichlet kernel is :math:`k_h(c_j; c_i) = \mathrm{Dir}(c_j;\, c_i / h + 1)`.

    Parameters
    ----------
    norm : float, 1 or more
        Power of the difference; no root is taken.
    debias : bool
        Subtract the average contribution of label noise. norm = 2: the mean over pairs of different neighbours, exact
        at a given width. norm = 1: as in ``ece_db``, with a normal distribution for the smoothed labels; this removes
        about half of the bias. For other powers no correction is known.
    bandwidth : positive number, "cv" or "loo-mle"
        The width h, or the rule that chooses one of 20 widths between 1e-5 and 1: "cv" takes the one whose
        leave-one-out curve predicts the labels best, "loo-mle" the one whose leave-one-out density is most likely (the
        authors' rule, which under-smooths saturated or many-class data).
    root : bool
        Take the p-th root of the average.
    weight_type : "frequency" or "importance"
        Leave out one copy of a row, or the whole row.

    Notes
    -----
    Without ``debias`` the estimate is biased: perfectly calibrated predictions (softmax of N(0, 9) logits, N = 1000)
    show about 0.12 for 3 classes and 0.18 for 10 with the default width, 0.3 and 0.64 with "loo-mle". Compare the value
    with its mean for labels redrawn from the predictions (``calibrary.expected_by_chance``). For two classes the value
    is exactly twice ``bkde`` with the same settings.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 0, 1, 2]
    >>> p = [[.7, .2, .1], [.2, .6, .2], [.1, .3, .6], [.5, .3, .2], [.3, .3, .4], [.2, .2, .6]]
    >>> round(cal.dirichlet_kernel_calibration_error(y, p, bandwidth=0.1), 4)
    0.364
    """
    power = checked_power(norm)
    if debias and norm not in (1, 2):
        raise RefusedError(
            f"debias=True needs norm=1 or norm=2, not {norm!r}: no bias correction is known for other powers"
        )
    need_pairs(view, weight_type, "dkde")
    copies(view, weight_type, "dkde")
    view = on_a_line(view)
    error = _error_on_a_line if view.binary else _error_on_the_simplex
    value = error(view, power, debias, bandwidth, weight_type) / view.total
    return float(max(value, 0.0) ** (1.0 / power) if root else value)


def _error_on_a_line(view: Predictions, p: float, debias: bool, bandwidth: float | str, weight_type: str) -> float:
    """Weighted sum of the distances for two classes, whose Dirichlet kernel is the beta kernel."""
    h = beta_bandwidth(bandwidth, view, weight_type=weight_type)
    s = view.sorted
    sums = leave_one_out_beta_sums(s.c, s.y, h, s.w, weight_type=weight_type, squares=debias)
    distance = 2.0 * curve_terms(sums, s, p, debias, weight_type)
    return float(distance.sum() if s.w is None else np.dot(s.w, distance))


def _error_on_the_simplex(view: Predictions, p: float, debias: bool, bandwidth: float | str, weight_type: str) -> float:
    h = positive_width(bandwidth, ("cv", "loo-mle"))
    widths = LOO_GRID if h is None else np.array([h])
    if debias and h is not None:
        return _without_noise(view, p, h, weight_type)
    fits = _fits(view, widths, p, weight_type)
    best = 0 if h is not None else _best(fits, str(bandwidth))
    return _without_noise(view, p, float(widths[best]), weight_type) if debias else float(fits.error[best])


def _without_noise(view: Predictions, p: float, h: float, weight_type: str) -> float:
    """Weighted sum of the distances minus the contribution of label noise."""
    total = 0.0
    for part in leave_one_out_rest(view.p, view.y, h, view.w, weight_type=weight_type):
        c = view.p[part.rows]
        terms = _pair_terms(part, view.y, c) if p == 2.0 else _folded_terms(part, view.y, c)
        total += float(terms.sum() if view.w is None else np.dot(view.w[part.rows], terms))
    return total


def _pair_terms(part: Rest, y: Indices, c: Array) -> Array:
    """Mean of <e_i - c, e_l - c> over pairs of different neighbours; the heaviest neighbour is treated separately.

    With a the weight and t the row of the heaviest neighbour, R the sum over the others and Q that of their squares,
    the pairs are 2 a <e_t - c, R> + |R|^2 - Q + (a^2 - a's own square); no term has the cancellation of S^2 - sum k^2.
    """
    rows = np.arange(len(c))
    square = np.einsum("nk,nk->n", c, c)
    off = 1.0 - 2.0 * c + square[:, None]  # |e_k - c|^2 of each class
    rest = part.rest - c * part.rest.sum(axis=1)[:, None]
    top = y[part.top]
    across = rest[rows, top] - np.einsum("nk,nk->n", c, rest)  # <e_t - c, R>
    spare = part.weight**2 - part.square  # copies of the heaviest neighbour form pairs of their own
    pairs = (
        2.0 * part.weight * across
        + np.einsum("nk,nk->n", rest, rest)
        - np.einsum("nk,nk->n", part.rest_square, off)
        + spare * off[rows, top]
    )
    size = part.rest.sum(axis=1)
    number = 2.0 * part.weight * size + size**2 - part.rest_square.sum(axis=1) + spare
    alone = number <= _SINGLE * (part.weight + size) ** 2
    plain = off[rows, top]
    result: Array = np.where(alone, plain, pairs / np.where(alone, 1.0, number))
    return result


def _folded_terms(part: Rest, y: Indices, c: Array) -> Array:
    """Twice the absolute distances, minus their mean over redrawn smoothed labels."""
    mass = part.rest.copy()
    mass[np.arange(len(c)), y[part.top]] += part.weight
    size = mass.sum(axis=1)
    curve = mass / size[:, None]
    share = (part.rest_square.sum(axis=1) + part.square) / size**2
    noise = np.sqrt(np.clip(curve * (1.0 - curve), 0.0, None) * share[:, None])
    gap = curve - c
    result: Array = (2.0 * np.abs(gap) - folded_normal_mean(gap, noise)).sum(axis=1)
    return result


def _best(fits: _Fits, bandwidth: str) -> int:
    """The index of the width that the rule chooses."""
    positive_width(bandwidth, ("cv", "loo-mle"))
    if bandwidth == "cv":
        return int(np.argmin(fits.loss))
    best = int(np.argmax(fits.likelihood))
    if best == 0:
        warn(
            f"bandwidth='loo-mle' chose its smallest width, {LOO_GRID[0]:g}: with tied or saturated confidences the "
            "likelihood grows without bound; use bandwidth='cv' or a number"
        )
    return best


@dataclass(frozen=True)
class _Fits:
    """For every width: log likelihood, squared error of the curve, and p-th power of its distance, as weighted sums."""

    likelihood: Array
    loss: Array
    error: Array


def _fits(view: Predictions, widths: Array, p: float, weight_type: str) -> _Fits:
    w = view.weight
    with np.errstate(divide="ignore", invalid="ignore"):  # a total weight of less than one row leaves no other row
        log_rest = np.log(view.total - (np.ones(view.n) if weight_type == "frequency" else w))
    fits = _Fits(np.zeros(len(widths)), np.zeros(len(widths)), np.zeros(len(widths)))
    for part in leave_one_out_shares(view.p, view.y, widths, view.w, weight_type=weight_type, device=view.device):
        rows, m, curve = part.rows, part.width, part.shares
        at_label = np.take_along_axis(curve, view.y[rows, None], axis=1)[:, 0]
        fits.likelihood[m] += np.dot(w[rows], part.log_total - log_rest[rows])
        fits.loss[m] += np.dot(w[rows], 1.0 - 2.0 * at_label + np.einsum("nk,nk->n", curve, curve))
        gap = curve - view.p[rows]
        distance = np.einsum("nk,nk->n", gap, gap) if p == 2.0 else (np.abs(gap) ** p).sum(axis=1)
        fits.error[m] += np.dot(w[rows], distance)
    return fits

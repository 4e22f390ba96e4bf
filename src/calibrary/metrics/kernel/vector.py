"""Errors with kernels that stay inside the simplex: Dirichlet (row 53), and beta on [0, 1] for two classes (row 54).

Labels of similar predictions are compared with the prediction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined, warn
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions, Sorted
from calibrary.kernels import LOO_GRID, beta_bandwidth, copies, positive_width
from calibrary.metrics.kernel.pairs import need_pairs, on_a_line
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.laws import folded_normal_mean
from calibrary.numerics.sums.beta import BetaSums, leave_one_out_beta_pairs, leave_one_out_beta_sums
from calibrary.numerics.sums.dirichlet import Rest, leave_one_out_rest, leave_one_out_shares

#: Below this share of all pairs there is one neighbour only.
_ALONE = 1e-12


def _same_width(
    view: Predictions, *, bandwidth: Any = "cv", weight_type: str = "frequency", redrawn: bool = False, **others: Any
) -> dict[str, Any]:
    if redrawn and bandwidth == "cv":
        return {}
    view = on_a_line(view)
    if view.binary or not isinstance(bandwidth, str):
        return {"bandwidth": beta_bandwidth(bandwidth, view, weight_type=weight_type)}
    need_pairs(view, weight_type, "dkde")
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
    alone = number <= _ALONE * (part.weight + size) ** 2
    plain = off[rows, top]
    return np.where(alone, plain, pairs / np.where(alone, 1.0, number))


def _folded_terms(part: Rest, y: Indices, c: Array) -> Array:
    """Twice the absolute distances, minus their mean over redrawn smoothed labels."""
    mass = part.rest.copy()
    mass[np.arange(len(c)), y[part.top]] += part.weight
    size = mass.sum(axis=1)
    curve = mass / size[:, None]
    share = (part.rest_square.sum(axis=1) + part.square) / size**2
    noise = np.sqrt(np.clip(curve * (1.0 - curve), 0.0, None) * share[:, None])
    gap = curve - c
    return (2.0 * np.abs(gap) - folded_normal_mean(gap, noise)).sum(axis=1)


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


#: Below this share of all pairs one neighbour dominates, and pairs are summed directly.
_DOMINATED = 1e-5


def _range(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """Range with the bias correction: redrawn labels differ by at most sqrt(2 / pi) / 2 = 0.4 on average."""
    if options.get("cross_term") == "label":
        return -1.0, 2.0
    return (-0.4, 1.0) if options.get("debias") and options.get("norm") == 1 else (-0.25, 1.0)


@metric("bkde", renamed={"p": "norm"}, fixed=functools.partial(_same_width, bandwidth="loo-mle"), range_with=_range)
def beta_kernel_calibration_error(
    view: Predictions,
    *,
    norm: float = 2,
    debias: bool | None = None,
    bandwidth: float | str = "loo-mle",
    cross_term: str = "pair",
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> float:
    r"""Squared distance of a beta-kernel calibration curve from the diagonal, with its bias removed.

    .. math:: \frac{1}{W} \sum_j w_j
        \frac{(\sum_i k_{ji} (y_i - c_j))^2 - \sum_i (k_{ji} (y_i - c_j))^2}{(\sum_i k_{ji})^2 - \sum_i k_{ji}^2},
        \qquad k_{ji} = w_i \, \mathrm{Beta}(c_j; c_i / h + 1, (1 - c_i) / h + 1), \; i \ne j

    The mean is over pairs of different neighbours, so that the noise of single labels adds no bias. With
    ``debias=False`` the value is the mean of |curve - c|^norm, the inventors' "ECE-KDE" for norm = 1.

    Parameters
    ----------
    norm : float, 1 or more
        Power of the difference; no root is taken.
    debias : bool, optional
        True by default for norm = 2, where the correction is exact at a given width. For norm = 1 the average
        contribution of label noise is subtracted, as in ``ece_db`` (twice the plain value minus its mean over redrawn
        labels, whose mean is normal with variance :math:`\hat y (1 - \hat y) \sum k^2 / (\sum k)^2`); for other powers
        no correction is known.
    bandwidth : positive number, "loo-mle" or "cv"
        The width h; by default the one of 20 widths that maximises the leave-one-out likelihood of the confidences.
    cross_term : "pair" or "label"
        "label" estimates the mean of c E[y | c] by c y (the authors' later code), which is more variable and not
        symmetric.
    weight_type : "frequency" or "importance"
        Weights count copies of rows, one of which is left out, or rescale distinct rows.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.beta_kernel_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3], norm=1, bandwidth=0.1), 4)
    0.1895
    """
    power = checked_power(norm)
    unbiased = norm == 2 if debias is None else bool(debias)
    if unbiased and norm not in (1, 2):
        raise RefusedError(
            f"debias=True needs norm=1 or norm=2, not {norm!r}: no bias correction is known for other powers"
        )
    if cross_term == "label" and not (unbiased and norm == 2):
        raise RefusedError("cross_term='label' needs the bias correction: leave debias and norm at their defaults")
    copies(view, weight_type, "leave-one-out")
    size = view.total if weight_type == "frequency" else view.n
    if size < (3 if unbiased else 2):
        return undefined(f"too few rows ({size:g}): every row needs {'two others' if unbiased else 'another'}")
    h = beta_bandwidth(bandwidth, view, weight_type=weight_type)
    s = view.sorted
    sums = leave_one_out_beta_sums(s.c, s.y, h, s.w, weight_type=weight_type, squares=unbiased)
    if cross_term == "pair":
        terms = curve_terms(sums, s, power, unbiased, weight_type)
    else:
        terms = _beta_pair_terms(sums, s, np.zeros(view.n), weight_type) - 2.0 * s.c * s.y + s.c**2
    return float(terms.mean() if s.w is None else np.dot(s.w, terms) / view.total)


def checked_power(norm: Any) -> float:
    """The power of a difference, which must be a number of 1 or more."""
    power = float(norm) if isinstance(norm, int | float) and not isinstance(norm, bool) else math.nan
    if not 1.0 <= power < math.inf:
        raise RefusedError(f"norm={norm!r} must be a finite number, 1 or more")
    return power


def curve_terms(sums: BetaSums, s: Sorted, power: float, debias: bool, weight_type: str) -> Array:
    """Powers of the distance of the leave-one-out curve from each confidence, with or without bias correction."""
    if debias and power == 2.0:
        return _beta_pair_terms(sums, s, s.c, weight_type)
    curve = sums.weighted / sums.total
    terms: Array = np.abs(curve - s.c) ** power
    if not debias:
        return terms
    noise = np.sqrt(np.clip(curve * (1.0 - curve), 0.0, None) * sums.square_total) / sums.total
    return 2.0 * terms - folded_normal_mean(curve - s.c, noise)


def _beta_pair_terms(sums: BetaSums, s: Sorted, center: Array, weight_type: str) -> Array:
    """Mean of (y_i - centre)(y_l - centre) over pairs of different neighbours i, l of each row."""
    total, square = sums.total, sums.square_total
    shifted = sums.weighted - center * total
    # y is 0 or 1, so (y - c)^2 = y (1 - 2c) + c^2
    diagonal = sums.square_weighted * (1.0 - 2.0 * center) + center**2 * square
    above, below, scale = shifted**2 - diagonal, total**2 - square, total**2
    rows = np.flatnonzero(below <= _DOMINATED * scale)
    if len(rows):
        above[rows], below[rows], scale[rows] = leave_one_out_beta_pairs(
            sums, s.y, rows, center[rows], s.w, weight_type=weight_type
        )
    single = below <= _ALONE * scale
    alone = (shifted / total) ** 2
    return np.where(single, alone, above / np.where(single, 1.0, below))

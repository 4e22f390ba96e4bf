"""The beta kernel calibration error (row 54): a calibration curve smoothed by kernels that stay within [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, Sorted
from calibrary.kernels import beta_bandwidth, copies
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.laws import folded_normal_mean
from calibrary.numerics.sums.beta import BetaSums, leave_one_out_beta_pairs, leave_one_out_beta_sums

#: Shares of all pairs. Below the first, one neighbour dominates and pairs are summed directly; below the second, no
#: pairs remain.
_DOMINATED, _SINGLE = 1e-5, 1e-12


def _same_width(
    view: Predictions,
    *,
    bandwidth: float | str = "loo-mle",
    weight_type: str = "frequency",
    redrawn: bool = False,
    **others: Any,
) -> dict[str, Any]:
    if redrawn and bandwidth == "cv":
        return {}
    return {"bandwidth": beta_bandwidth(bandwidth, view, weight_type=weight_type)}


def _range(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """Range with the bias correction: redrawn labels differ by at most sqrt(2 / pi) / 2 = 0.4 on average."""
    if options.get("cross_term") == "label":
        return -1.0, 2.0
    return (-0.4, 1.0) if options.get("debias") and options.get("norm") == 1 else (-0.25, 1.0)


@metric("bkde", renamed={"p": "norm"}, fixed=_same_width, range_with=_range)
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
    one_of("cross_term", cross_term, ("pair", "label"))
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
        terms = _pair_terms(sums, s, np.zeros(view.n), weight_type) - 2.0 * s.c * s.y + s.c**2
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
        return _pair_terms(sums, s, s.c, weight_type)
    curve = sums.weighted / sums.total
    terms: Array = np.abs(curve - s.c) ** power
    if not debias:
        return terms
    noise = np.sqrt(np.clip(curve * (1.0 - curve), 0.0, None) * sums.square_total) / sums.total
    return 2.0 * terms - folded_normal_mean(curve - s.c, noise)


def _pair_terms(sums: BetaSums, s: Sorted, center: Array, weight_type: str) -> Array:
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
    single = below <= _SINGLE * scale
    alone = (shifted / total) ** 2
    result: Array = np.where(single, alone, above / np.where(single, 1.0, below))
    return result

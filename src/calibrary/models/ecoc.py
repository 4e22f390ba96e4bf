"""Class probabilities from binary sub-problems: least squares, plain or weighted by reliability (Kull and Flach)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_array
from calibrary.data.lens import code_matrix
from calibrary.maps.reliability import ReliabilityMap

__all__ = ["code_matrix", "ls_ecoc", "ls_ecoc_r"]


def ls_ecoc(p: Any, matrix: Any, weights: Any = None) -> Array:
    """Class probabilities that agree best, in least squares, with the probabilities of binary sub-problems.

    For each row, q on the simplex minimising :math:`\\sum_j w_j (p_j \\sum_{M_{kj} \\ne 0} q_k - \\sum_{M_{kj} = 1}
    q_k)^2`. Consistent probabilities are recovered exactly.

    Parameters
    ----------
    p : array-like of shape (N, L)
        Probability of the + side of each sub-problem.
    matrix : array-like of shape (K, L)
        Code matrix of +1, -1 and 0; see :func:`calibrary.code_matrix`.
    weights : array-like of shape (L,) or (N, L), optional

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.ls_ecoc([[0.2, 0.3, 0.5]], cal.code_matrix(3, "ovr")).round(6).tolist()
    [[0.2, 0.3, 0.5]]
    """
    from scipy.optimize import nnls

    given = np.atleast_2d(as_array(p, "p").astype(np.float64))
    m = as_array(matrix, "matrix")
    if m.ndim != 2 or m.shape[1] != given.shape[1]:
        raise RefusedError(
            f"matrix has shape {m.shape} and p has {given.shape[1]} columns: pass one column per sub-problem"
        )
    w = np.ones(given.shape) if weights is None else np.broadcast_to(as_array(weights, "weights"), given.shape)
    part, plus = (m != 0).T.astype(np.float64), (m == 1).T.astype(np.float64)
    result = np.empty((len(given), len(m)))
    right = np.zeros(given.shape[1] + 1)
    right[-1] = 1.0
    for i, row in enumerate(given):
        system = np.sqrt(w[i])[:, None] * (row[:, None] * part - plus)
        # A penalty on sum q = 1 only scales the solution of a homogeneous system, so rescaling it is exact.
        scale = np.sqrt(np.mean(system**2)) or 1.0
        q, _ = nnls(np.vstack([system / scale, np.ones(len(m))]), right)
        result[i] = q / q.sum()
    return result


def ls_ecoc_r(p: Any, matrix: Any, maps: Sequence[ReliabilityMap]) -> Array:
    """Class probabilities from binary ones, each calibrated and weighted by its reliability (LS-ECOC-R).

    The weight is the inverse of the estimated variance of the true probability,
    :math:`1 / ((1 - \\hat r) \\hat y (1 - \\hat y))`.

    Parameters
    ----------
    p : array-like of shape (N, L)
        Probability of the + side of each sub-problem.
    matrix : array-like of shape (K, L)
    maps : sequence of L fitted ReliabilityMap

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1] * 30, [0.3, 0.6] * 30
    >>> one = cal.ReliabilityMap(bandwidth=0.5).fit(y, c)
    >>> cal.ls_ecoc_r([[0.6, 0.4]], cal.code_matrix(2, "ovr"), [one, one]).shape
    (1, 2)
    """
    given = np.atleast_2d(as_array(p, "p").astype(np.float64))
    if len(maps) != given.shape[1]:
        raise RefusedError(
            f"there are {len(maps)} maps and p has {given.shape[1]} columns: pass one map per sub-problem"
        )
    columns = range(given.shape[1])
    calibrated = np.column_stack([maps[j].calibration_map_(given[:, j]) for j in columns])
    reliable = np.column_stack([maps[j](given[:, j]) for j in columns])
    return ls_ecoc(calibrated, matrix, 1.0 / ((1.0 - reliable) * calibrated * (1.0 - calibrated)))

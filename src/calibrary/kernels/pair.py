"""Kernels that compare predictions: one at distance zero, or a density whose shape follows its centre."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrary.data.checks import Array


def _exponential(d: Array, h: float) -> Array:
    return np.exp(-d / h)


def _squared_exponential(d: Array, h: float) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * (d / h) ** 2)


#: Kernels of a distance, one at zero: what pair metrics compare predictions with.
PAIR_KERNELS: dict[str, Callable[[Array, float], Array]] = {
    "laplace": _exponential,
    "gaussian": _squared_exponential,
}


def safe_log(p: Array) -> Array:
    """log p with the zero probabilities of beta and Dirichlet kernels moved to 1e-300.

    That floor is part of the kernels' definition: 0 log 0 is 0, and a point on the boundary takes its limit.
    """
    return np.log(np.maximum(p, 1e-300))


def dirichlet_log_kernel(points: Array, centres: Array, h: float) -> Array:
    """log Dir(point; centre / h + 1), one row per point, one column per centre; both (n, K)."""
    from scipy.special import gammaln

    alpha = centres / h + 1.0
    log_norm = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    result: Array = safe_log(points) @ (centres / h).T + log_norm
    return result


def beta_log_kernel(points: Array, centres: Array, h: float) -> Array:
    """log Beta(point; c/h + 1, (1-c)/h + 1), one row per point, one column per centre c."""
    return dirichlet_log_kernel(np.column_stack([1.0 - points, points]), np.column_stack([1.0 - centres, centres]), h)

"""Kernels that compare predictions: one at distance zero, or a density whose shape depends on its centre."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.moved import takes_old_keywords
from calibrary.data.checks import Array


def _exponential(d: Array, h: float) -> Array:
    return np.exp(-d / h)


def _squared_exponential(d: Array, h: float) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * (d / h) ** 2)


#: Kernels of a distance, one at zero, with which pair metrics compare predictions.
PAIR_KERNELS: dict[str, Callable[[Array, float], Array]] = {
    "laplace": _exponential,
    "gaussian": _squared_exponential,
}


#: A kernel by name, or any function ``k(d, h)`` of the distances between predictions and the width.
PairShape: TypeAlias = str | Callable[[Array, float], Array]


def pair_values(kernel: PairShape, d: Array, h: float) -> Array:
    """The kernel at these distances; a user's kernel must return the same number of finite values."""
    if isinstance(kernel, str):
        return PAIR_KERNELS[kernel](d, h)
    values = np.asarray(kernel(d, h), dtype=np.float64)
    if values.shape != d.shape:
        raise RefusedError(
            f"kernel returned shape {values.shape} for distances of shape {d.shape}: return one number for each"
        )
    if not np.isfinite(values).all():
        where = float(d[~np.isfinite(values)][0])
        raise RefusedError(f"kernel is not finite at distance {where:g} with width {h:g}: return finite numbers")
    return values


def checked_pair_kernel(kernel: PairShape) -> PairShape:
    """Raise an error for anything but the name of a kernel or a function."""
    if not callable(kernel):
        one_of("kernel", kernel, PAIR_KERNELS)
    return kernel


def safe_log(p: Array) -> Array:
    """log p with the zero probabilities of beta and Dirichlet kernels replaced by 1e-300.

    That floor is part of the kernels' definition: 0 log 0 is 0, and a point on the boundary has its limit.
    """
    return np.log(np.maximum(p, 1e-300))


@takes_old_keywords
def dirichlet_log_kernel(points: Array, centers: Array, h: float) -> Array:
    """log Dir(point; centre / h + 1), one row per point, one column per centre; both (n, K)."""
    from scipy.special import gammaln

    alpha = centers / h + 1.0
    log_norm = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    result: Array = safe_log(points) @ (centers / h).T + log_norm
    return result


@takes_old_keywords
def beta_log_kernel(points: Array, centers: Array, h: float) -> Array:
    """log Beta(point; c/h + 1, (1-c)/h + 1), one row per point, one column per centre c."""
    return dirichlet_log_kernel(np.column_stack([1.0 - points, points]), np.column_stack([1.0 - centers, centers]), h)

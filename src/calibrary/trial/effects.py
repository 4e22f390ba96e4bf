"""Random effects: estimates of several centres with their variances, pooled to one with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.data.checks import Array
from calibrary.inference.result import Estimate

_NAN = float("nan")


@dataclass(frozen=True)
class Effects(Estimate):
    """The pooled value of k estimates on their scale, by Hartung and Knapp with k - 1 degrees of freedom.

    Attributes
    ----------
    prediction_low, prediction_high : the interval of the true value of a new centre, with k - 2 degrees of freedom
    tau2, i2, q, q_pvalue : variance between centres, its share, and the test that it is 0
    factor : Hartung and Knapp's q, by which the squared standard error is multiplied
    share : the weight of each estimate
    """

    k: int = 0
    prediction_low: float = _NAN
    prediction_high: float = _NAN
    tau2: float = _NAN
    i2: float = _NAN
    q: float = _NAN
    q_pvalue: float = _NAN
    factor: float = _NAN
    share: Any = ()


def pooled_effects(theta: Array, v: Array, level: float = 0.95, *, truncated: bool = False) -> Effects:
    """Estimates theta with variances v, pooled by restricted maximum likelihood with the Hartung-Knapp interval."""
    k = len(theta)
    if k < 2:
        alone = float(theta[0]) if k else _NAN
        return Effects(alone, level=level, k=k, share=np.ones(k))
    tau2 = reml(theta, v)
    w = 1.0 / (v + tau2)
    mu = float(w @ theta / w.sum())
    factor = float(w @ (theta - mu) ** 2) / (k - 1)
    used = max(1.0, factor) if truncated else factor
    se = math.sqrt(used / float(w.sum()))
    tail = 0.5 + level / 2.0
    half = float(scipy.special.stdtrit(k - 1, tail)) * se
    away = float(scipy.special.stdtrit(k - 2, tail)) * math.sqrt(tau2 + se**2) if k > 2 else _NAN
    u = 1.0 / v
    q = float(u @ (theta - u @ theta / u.sum()) ** 2)
    s2 = (k - 1) * u.sum() / (u.sum() ** 2 - (u**2).sum())
    return Effects(
        mu, mu - half, mu + half, level, se, k=k, prediction_low=mu - away, prediction_high=mu + away, tau2=tau2,
        i2=float(tau2 / (tau2 + s2)), q=q, q_pvalue=float(scipy.special.chdtrc(k - 1, q)), factor=used,
        share=w / w.sum(),
    )  # fmt: skip


def reml(theta: Array, v: Array) -> float:
    """The variance between centres that maximizes the restricted likelihood, not below 0.

    The likelihood may have several maxima: the best of a fine grid is refined.
    """
    spread = float(np.var(theta)) + float(v.max())
    grid = np.concatenate(([0.0], spread * np.logspace(-8.0, 3.0, 111)))
    best = int(np.argmax([_restricted(theta, v, t) for t in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if _slope(theta, v, low) <= 0.0:
        return float(low) if best <= 1 else float(grid[best])
    if _slope(theta, v, high) >= 0.0:
        return float(high)
    return float(scipy.optimize.brentq(lambda t: _slope(theta, v, t), low, high, xtol=1e-14 * spread, rtol=1e-13))


def _restricted(theta: Array, v: Array, t: float) -> float:
    w = 1.0 / (v + t)
    mu = w @ theta / w.sum()
    return float(0.5 * np.log(w).sum() - 0.5 * math.log(w.sum()) - 0.5 * (w @ (theta - mu) ** 2))


def _slope(theta: Array, v: Array, t: float) -> float:
    """The derivative of the restricted log likelihood in the variance between centres."""
    w = 1.0 / (v + t)
    mu = w @ theta / w.sum()
    return float(0.5 * (-w.sum() + (w**2).sum() / w.sum() + (w**2) @ (theta - mu) ** 2))

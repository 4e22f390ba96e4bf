"""Random effects: estimates of several centres with their variances, pooled to one with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, Indices
from calibrary.inference.result import Estimate
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.solve.newton import losses_of_groups, minimize_each

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


# -- one-stage models --------------------------------------------------------------------------------

# One-stage models: all rows at once, with normal random effects of the centres, by adaptive quadrature.

#: Nodes of the quadrature in each dimension, and the most numbers in one evaluation (fewer nodes are used above it).
_NODES = 5
_MOST = 4_000_000
#: A standard deviation below this, or a correlation this near to 1 or -1, is a fit at the boundary.
_BOUNDARY = 1e-3


@dataclass(frozen=True)
class OneStage(Result):
    """Logistic fit of the outcome on the predicted log odds, with random intercept and slope of each centre.

    Attributes
    ----------
    intercept, slope : of a centre with random effects 0, with ``se_intercept`` and ``se_slope``
    var_intercept, var_slope, covariance : of the random effects
    log_likelihood : of the fit
    note : says if the fit is at the boundary
    """

    intercept: float
    slope: float
    se_intercept: float
    se_slope: float
    var_intercept: float
    var_slope: float
    covariance: float
    log_likelihood: float
    note: str


def one_stage_logistic(y: Array, lp: Array, centre: Indices) -> OneStage:
    """Maximum likelihood over all centres; the random effects have a free covariance.

    The likelihood of a centre is integrated by Gauss-Hermite quadrature around its exact mode.
    """
    order = np.argsort(centre, kind="stable")
    y, lp, centre = y[order], lp[order], centre[order]
    starts = np.flatnonzero(np.concatenate(([True], centre[1:] != centre[:-1])))
    nodes = max(1, min(_NODES, math.isqrt(_MOST // max(len(y), 1))))
    rows = _RowsOfCentres(
        y, np.stack([np.ones(len(y)), lp]), starts, np.searchsorted(starts, np.arange(len(y)), "right") - 1
    )
    start = _maximum(lambda x: -rows.log_likelihood(x, 1), np.array([0.0, 1.0, 0.3, 0.0, 0.1]))
    found = _maximum(lambda x: -rows.log_likelihood(x, nodes), start)
    hessian = _hessian(lambda x: -rows.log_likelihood(x, nodes), found)
    factor = np.array([[found[2], 0.0], [found[3], found[4]]])
    covariance = factor @ factor.T
    sds = np.sqrt(np.diag(covariance))
    correlation = covariance[0, 1] / max(sds[0] * sds[1], 1e-300)
    # at the boundary the likelihood is even in the last entry of the factor, which then carries no information
    kept = [0, 1] + [k for k in (2, 3, 4) if hessian[k, k] > 1e-6]
    variance = np.diag(np.linalg.pinv(hessian[np.ix_(kept, kept)]))
    note = ""
    if min(sds) < _BOUNDARY:
        note = "the fit is at the boundary: a variance between centres is 0"
    elif abs(correlation) > 1.0 - _BOUNDARY:
        note = f"the fit is at the boundary: the correlation of random intercept and slope is {correlation:.0f}"
    return OneStage(
        float(found[0]), float(found[1]), math.sqrt(variance[0]), math.sqrt(variance[1]), float(covariance[0, 0]),
        float(covariance[1, 1]), float(covariance[0, 1]), float(rows.log_likelihood(found, nodes)), note,
    )  # fmt: skip


@dataclass(frozen=True)
class _RowsOfCentres:
    """Rows in the order of their centres: outcomes, the two columns of the design, and where each centre starts."""

    y: Array
    x: Array
    starts: Indices
    of: Indices

    def _summed(self, each: Array) -> Array:
        return np.asarray(np.add.reduceat(each, self.starts, axis=-1))

    def log_likelihood(self, theta: Array, nodes: int) -> float:
        """The marginal log likelihood; theta holds both fixed effects and the factor of the covariance."""
        factor = np.array([[theta[2], 0.0], [theta[3], theta[4]]])
        fixed, z = theta[:2] @ self.x, factor.T @ self.x  # z: the design of standard normal effects
        mode, hessian = self._modes(fixed, z)
        root = np.linalg.inv(np.linalg.cholesky(hessian)).transpose(0, 2, 1)  # steps of one standard deviation
        node, weight = np.polynomial.hermite_e.hermegauss(nodes)
        total = np.full(len(self.starts), -np.inf)
        scale = np.log(np.abs(np.linalg.det(root)))
        for i in range(nodes):
            for j in range(nodes):
                u = np.array([node[i], node[j]])
                b = mode + root @ u
                eta = fixed + z[0] * b[self.of, 0] + z[1] * b[self.of, 1]
                inside = self._summed(self.y * eta - np.logaddexp(0.0, eta)) - 0.5 * (b**2).sum(axis=1)
                total = np.logaddexp(total, inside + math.log(weight[i] * weight[j]) + 0.5 * float(u @ u))
        return float((total + scale - math.log(2.0 * math.pi)).sum())

    def _modes(self, fixed: Array, z: Array) -> tuple[Array, Array]:
        """The mode of each centre's effects by Newton's method, to rounding, and the curvature there."""
        losses = losses_of_groups(
            (z[0], z[1]), self.y, np.ones_like(self.y), fixed, self.of, len(self.starts), ridge=1.0
        )
        mode = minimize_each(losses, np.zeros((len(self.starts), 2)), longest=2.0, max_iter=100)
        if not np.isnan(mode).any():
            _, a, _, corner, d = losses(mode, np.arange(len(mode)))
            return mode, np.moveaxis(np.array([[a, corner], [corner, d]]), -1, 0)
        raise RefusedError("one_stage=True: the mode of a centre's random effects was not found; use one_stage=False")


@dataclass(frozen=True)
class RandomRatio:
    """log O/E with normal random effects of centres: estimate, Wald standard error, variance between centres."""

    mu: float
    se: float
    tau2: float


def random_ratio(observed: Array, expected: Array) -> RandomRatio:
    """O_i ~ Poisson(E_i exp(mu + u_i)) with normal u_i, by maximum likelihood; centres without events take part."""
    node, weight = np.polynomial.hermite_e.hermegauss(21)
    offset = np.log(expected)

    def loss(theta: Array) -> float:
        mu, tau = float(theta[0]), float(theta[1])
        b = np.zeros(len(observed))
        for _ in range(100):
            rate = np.exp(offset + mu + tau * b)
            step = (tau * (observed - rate) - b) / (1.0 + tau**2 * rate)
            b = b + np.clip(step, -2.0, 2.0)
            if np.abs(step).max() < 1e-11:
                break
        sd = 1.0 / np.sqrt(1.0 + tau**2 * np.exp(offset + mu + tau * b))
        at = b[:, None] + sd[:, None] * node
        eta = offset[:, None] + mu + tau * at
        inside = observed[:, None] * eta - np.exp(eta) - 0.5 * at**2 + 0.5 * node**2
        return -float((scipy.special.logsumexp(inside, b=weight, axis=1) + np.log(sd)).sum())

    start = math.log(float(observed.sum()) / float(expected.sum()))
    found = _maximum(loss, np.array([start, 0.3]))
    hessian = _hessian(loss, found)
    boundary = abs(found[1]) < _BOUNDARY
    variance = 1.0 / hessian[0, 0] if boundary else float(np.linalg.inv(hessian)[0, 0])
    return RandomRatio(float(found[0]), math.sqrt(variance), 0.0 if boundary else float(found[1] ** 2))


def _maximum(loss: Callable[[Array], float], start: Array) -> Array:
    """The minimum of a smooth loss: a search, then Newton's steps, which end at its exact place."""
    x = np.asarray(scipy.optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-3}).x)
    for _ in range(4):
        slope = np.array([(loss(x + unit) - loss(x - unit)) / (2.0 * _STEP) for unit in np.eye(len(x)) * _STEP])
        value, vectors = np.linalg.eigh(_hessian(loss, x))
        safe = np.maximum(value, 1e-3 * value.max())
        step = -vectors @ ((vectors.T @ slope) / safe)
        if loss(x + step) > loss(x):
            break
        x = x + step
        if np.abs(step).max() < 1e-5:
            break
    return x


#: Step of the differences that stand for derivatives.
_STEP = 1e-3


def _hessian(loss: Callable[[Array], float], at: Array) -> Array:
    """Second derivatives by central differences."""
    m = len(at)
    unit = np.eye(m) * _STEP
    result = np.empty((m, m))
    for i in range(m):
        for j in range(i + 1):
            four = (loss(at + s * unit[i] + t * unit[j]) * s * t for s in (1, -1) for t in (1, -1))
            result[i, j] = result[j, i] = sum(four) / (4.0 * _STEP**2)
    return result

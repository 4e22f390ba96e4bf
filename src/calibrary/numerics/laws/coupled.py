"""Binomial counts from fixed uniform numbers, so that the counts change as little as possible with the probability."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Counts with this variance or more come from the normal quantile, corrected for skewness; smaller ones are exact.
_NORMAL_FROM = 12.0


def coupled_counts(u: Array, z: Array, n: Array, q: Array) -> Array:
    """Counts of successes in n trials of probability q at uniform numbers u, one column for each (n, q).

    ``z`` is the normal quantile of ``u``. The count grows with u, and with q at the same u: draws for neighbouring
    probabilities are then as similar as possible. Where the variance is 12 or more, the quantile is that of the
    Cornish-Fisher expansion, rounded.
    """
    few = n * q * (1.0 - q) < _NORMAL_FROM
    if not few.any():
        return _rounded(z, n, q)
    counts: Array = np.empty_like(u)
    counts[:, few] = _exact(u[:, few], n[few], q[few])
    if not few.all():
        counts[:, ~few] = _rounded(z[:, ~few], n[~few], q[~few])
    return counts


def _rounded(z: Array, n: Array, q: Array) -> Array:
    """Counts by the normal quantile, corrected for skewness."""
    skew = (1.0 - 2.0 * q) / 6.0
    counts: Array = np.rint(n * q + np.sqrt(n * q * (1.0 - q)) * z + skew * (z * z - 1.0))
    return np.clip(counts, 0.0, n, out=counts)


def _exact(u: Array, n: Array, q: Array) -> Array:
    """Counts by the distribution function, from the side on which successes (or failures) are rare.

    Columns are ordered by their largest uniform number, so that each is evaluated no further than necessary.
    """
    turned = q > 0.5
    rare = np.where(turned, 1.0 - q, q)
    v = np.where(turned[:, None], 1.0 - u.T, u.T)  # one row for each (n, q)
    reached = _distribution(n, rare)
    steps = (reached < v.max(axis=1)).sum(axis=0)
    order = np.argsort(-steps, kind="stable")
    v, reached = v[order], reached[:, order]
    left = np.searchsorted(-steps[order], -np.arange(len(reached)), side="left")  # columns with more than k steps
    count = np.zeros(v.shape)
    for k in range(int(steps.max(initial=0))):
        m = int(left[k])
        count[:m] += v[:m] > reached[k, :m, None]
    back = np.empty_like(count)
    back[order] = np.minimum(count, n[order][:, None])
    return np.where(turned, n - back.T, back.T)


def _distribution(n: Array, rare: Array) -> Array:
    """P(count <= k), one row for each relevant k."""
    pmf = np.exp(n * np.log1p(-rare))
    below, rows = pmf, []
    odds = rare / (1.0 - rare)
    # at mean m the count exceeds m + 10 sqrt(m) + 20 with probability below 1e-12
    most = int(np.ceil(np.max(n * rare + 10.0 * np.sqrt(n * rare) + 20.0, initial=0.0)))
    for k in range(most):
        rows.append(below)
        pmf = pmf * odds * np.maximum(n - k, 0.0) / (k + 1.0)
        below = below + pmf
    return np.array(rows).reshape(most, len(n))


def normal_quantile(u: Array) -> Array:
    """The normal quantile of uniform numbers, limited to finite values."""
    z: Array = scipy.special.ndtri(np.clip(u, 1e-16, 1.0 - 1e-16))
    return z

"""Exact two-sided binomial tests, vectorised: the minimum-likelihood rule of ``scipy.stats.binomtest``."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Outcomes whose probability exceeds the observed one by less than this count as equally likely.
LIKELIHOOD_SLACK = 1e-7


def two_sided_pvalue(k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """P(an outcome no likelier than k) for k successes in n trials of probability p, element by element.

    One tail ends at k; the start of the other is found by bisection on the likelihood ratio, for all elements at once.
    The p-value jumps with p, so it cannot be inverted into one interval.
    """
    k, n, p = np.broadcast_arrays(k, n, p)
    pvalue = np.ones(p.shape)
    certain = (p == 0.0) | (p == 1.0)
    pvalue[certain] = np.where(k == n * p, 1.0, 0.0)[certain]
    for below in (True, False):
        side = ~certain & ((k < n * p) if below else (k > n * p))
        if side.any():
            pvalue[side] = _pvalue_on_one_side(k[side], n[side], p[side], below)
    return pvalue


def rejected(
    index: NDArray[np.intp], k: NDArray[np.int64], n: NDArray[np.int64], p: Array, alpha: float
) -> NDArray[np.bool_]:
    """Which p are rejected by k[index] successes in n[index] trials: two_sided_pvalue <= alpha.

    Most decisions need no p-value: a tail above alpha accepts, and an upper bound below alpha rejects. Only the
    remaining p-values are computed.
    """
    lowest = np.where(k > 0, scipy.special.betaincinv(np.maximum(k, 1), n - k + 1, alpha), 0.0) * (1 + 1e-9)
    highest = np.where(k < n, scipy.special.betainccinv(k + 1, np.maximum(n - k, 1), alpha), 1.0) * (1 - 1e-9)
    doubtful = np.flatnonzero((p < lowest[index]) | (p > highest[index]))
    group, q = index[doubtful], p[doubtful]
    decided = _upper_bound(group, k, n, q) < alpha * (1 - 1e-6)
    rest = np.flatnonzero(~decided)
    decided[rest] = two_sided_pvalue(k[group[rest]], n[group[rest]], q[rest]) <= alpha
    decision = np.zeros(p.shape, dtype=bool)
    decision[doubtful] = decided
    return decision


def _upper_bound(group: NDArray[np.intp], k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """An upper bound of the p-value, for k[group] away from the mean n[group] p.

    Beyond any outcome the likelihoods fall at least as fast as a geometric series, so a tail is at most its first
    term / (1 - ratio). The other tail begins past j, four fifths of the way to the mirror image of k, if j is likelier
    than k. If it is not, all n + 1 outcomes might be as likely as k.
    """
    size = n[group].astype(np.float64)
    above = k[group] > size * p
    successes = np.where(above, size - k[group], k[group])  # successes and failures are exchanged above the mean
    odds_side, other_side = np.where(above, 1.0 - p, p), np.where(above, p, 1.0 - p)
    mean = size * odds_side
    j = np.minimum(np.ceil(mean + 0.8 * (mean - successes)), size)
    chosen = (
        scipy.special.gammaln(n + 1.0)[group] - scipy.special.gammaln(j + 1.0) - scipy.special.gammaln(size - j + 1.0)
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        pmf = np.exp(
            _log_choose(n, k)[group]
            + scipy.special.xlogy(successes, odds_side)
            + scipy.special.xlogy(size - successes, other_side)
        )
        likelier = np.exp(
            chosen + scipy.special.xlogy(j, odds_side) + scipy.special.xlogy(size - j, other_side)
        ) > pmf * (1 + 1e-6)
        own = 1.0 - successes * other_side / ((size - successes + 1.0) * odds_side)
        other = 1.0 - (size - j) * odds_side / ((j + 1.0) * other_side)
        bound = pmf * (1.0 / own + (1.0 + 1e-6) / other)
        return np.asarray(np.where(likelier, bound, pmf * (size + 1.0) * (1.0 + 1e-6)))


def _pvalue_on_one_side(k: NDArray[np.int64], n: NDArray[np.int64], p: Array, below: bool) -> Array:
    cut = _opposite_cut(k, n, p, below)
    if below:
        return np.minimum(_at_most(k, n, p) + _at_least(cut, n, p), 1.0)
    return np.minimum(_at_least(k, n, p) + _at_most(n - cut, n, p), 1.0)


def _opposite_cut(k: NDArray[np.int64], n: NDArray[np.int64], p: Array, below: bool) -> NDArray[np.int64]:
    """First outcome beyond the mean, counted away from k, that is no likelier than k; n + 1 if there is none.

    For k above the mean, successes and failures are exchanged.
    """
    logit = np.log(p) - np.log1p(-p)
    if below:
        low = np.ceil(n * p).astype(np.int64)
    else:
        k, logit, low = n - k, -logit, n - np.floor(n * p).astype(np.int64)
    reference = _log_choose(n, k) + np.log1p(LIKELIHOOD_SLACK)
    high = n + 1
    while (searching := low < high).any():
        middle = (low + high) // 2
        unlikely = _log_choose(n, np.minimum(middle, n)) + (middle - k) * logit <= reference
        high = np.where(searching & unlikely, middle, high)
        low = np.where(searching & ~unlikely, middle + 1, low)
    return low


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> Array:
    value: Array = scipy.special.gammaln(n + 1.0) - scipy.special.gammaln(k + 1.0) - scipy.special.gammaln(n - k + 1.0)
    return value


def _at_most(k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """P(X <= k)."""
    # betainc(b, a, 1 - p) is betaincc(a, b, p) in a quarter of its time
    inside = scipy.special.betainc(np.maximum(n - k, 1), np.maximum(k, 0) + 1.0, 1.0 - p)
    return np.where(k >= n, 1.0, np.where(k < 0, 0.0, inside))


def _at_least(k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """P(X >= k)."""
    inside = scipy.special.betainc(np.maximum(k, 1), np.maximum(n - k + 1.0, 1.0), p)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, inside))

"""Distributions: their tails, quantiles and moments.

Exact binomial tests follow the minimum-likelihood rule of ``scipy.stats.binomtest``. The tails of the maximum modulus
and of the range of Brownian motion on [0, 1] have two series each: the reflection series converges fast for large x and
keeps full relative accuracy in the far tail; the theta series converges fast for small x, where the tail probability is
near one. Binomial counts are drawn from fixed uniform numbers, so that they change as little as possible with the
probability. A band contains a rising curve of probabilities with guaranteed coverage.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.numerics.runs import first_where

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


def clopper_pearson(share: Any, n: Any, level: float) -> tuple[Array, Array]:
    """Clopper and Pearson's interval of a frequency; whole rows or weights."""
    hits, tail = share * n, (1 - level) / 2
    tiny = np.finfo(float).tiny
    low = np.where(hits > 0, scipy.special.betaincinv(np.maximum(hits, tiny), n - hits + 1, tail), 0.0)
    high = np.where(hits < n, scipy.special.betaincinv(hits + 1, np.maximum(n - hits, tiny), 1 - tail), 1.0)
    return low, high


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
    return first_where(lambda at: _log_choose(n, at) + (at - k) * logit <= reference, low, n + 1)


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> Array:
    return scipy.special.gammaln(n + 1.0) - scipy.special.gammaln(k + 1.0) - scipy.special.gammaln(n - k + 1.0)


def _at_most(k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """P(X <= k)."""
    # betainc(b, a, 1 - p) is betaincc(a, b, p) in a quarter of its time
    inside = scipy.special.betainc(np.maximum(n - k, 1), np.maximum(k, 0) + 1.0, 1.0 - p)
    return np.where(k >= n, 1.0, np.where(k < 0, 0.0, inside))


def _at_least(k: NDArray[np.int64], n: NDArray[np.int64], p: Array) -> Array:
    """P(X >= k)."""
    inside = scipy.special.betainc(np.maximum(k, 1), np.maximum(n - k + 1.0, 1.0), p)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, inside))


_TERMS = 6  # enough for 2^-60 of the sum on either side of the switch points
_TINY = 0.02  # below this the theta series is zero in double precision


def brownian_abs_max_sf(x: Any) -> Any:
    """P(max |B| > x) for standard Brownian motion B on [0, 1]."""
    x = np.asarray(x, dtype=np.float64)
    return _as_given(np.where(x < 1.0, 1.0 - _abs_max_below(x), _abs_max_above(x)))


def brownian_abs_max_log_sf(x: Any) -> Any:
    """Natural logarithm of P(max |B| > x), finite however large x is."""
    return _log_sf(x, 1.0, 5.0, 4.0, _abs_max_below, _abs_max_above)


def brownian_range_sf(x: Any) -> Any:
    """P(max B - min B > x) for standard Brownian motion B on [0, 1]."""
    x = np.asarray(x, dtype=np.float64)
    return _as_given(np.where(x < 2.0, 1.0 - _range_below(x), _range_above(x)))


def brownian_range_log_sf(x: Any) -> Any:
    """Natural logarithm of P(max B - min B > x), finite however large x is."""
    return _log_sf(x, 2.0, 9.0, 8.0, _range_below, _range_above)


def _log_sf(x: Any, switch: float, tail: float, factor: float, below: Any, above: Any) -> Any:
    x = np.asarray(x, dtype=np.float64)
    # log1p keeps the distance from one where the tail probability is almost one; beyond `tail` only the
    # first term of the reflection series is left
    small = np.log1p(-below(x))
    middle = np.log(above(np.clip(x, switch, tail)))
    return _as_given(
        np.where(x < switch, small, np.where(x <= tail, middle, np.log(factor) + scipy.special.log_ndtr(-x)))
    )


def _upper_normal(z: Any) -> Any:
    return 0.5 * scipy.special.erfc(z / np.sqrt(2.0))


def _abs_max_above(x: Any) -> Any:
    k = np.arange(_TERMS)
    return 4.0 * np.sum((-1.0) ** k * _upper_normal((2 * k + 1) * np.maximum(x, 1.0)[..., None]), axis=-1)


def _abs_max_below(x: Any) -> Any:
    odd = 2 * np.arange(_TERMS) + 1
    sign = (-1.0) ** np.arange(_TERMS)
    x = np.clip(x, _TINY, 1.0)[..., None]
    return 4.0 / np.pi * np.sum(sign / odd * np.exp(-((odd * np.pi) ** 2) / (8.0 * x**2)), axis=-1)


def _range_above(x: Any) -> Any:
    k = np.arange(1, _TERMS + 1)
    return 8.0 * np.sum((-1.0) ** (k - 1) * k * _upper_normal(k * np.maximum(x, 2.0)[..., None]), axis=-1)


def _range_below(x: Any) -> Any:
    half = (np.arange(_TERMS) + 0.5) * np.pi
    x = np.clip(x, _TINY, 2.0)[..., None]
    return np.sum((8.0 / x**2 + 2.0 / half**2) * np.exp(-2.0 * (half / x) ** 2), axis=-1)


def _as_given(values: Any) -> Any:
    return float(values) if values.ndim == 0 else values


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
    count = np.zeros(v.shape, dtype=np.int8)  # fewer than 100 steps: the mean of the rare counts is below 25
    for k in range(int(steps.max(initial=0))):
        m = int(left[k])
        count[:m] += (v[:m] > reached[k, :m, None]).view(np.int8)
    back = np.empty(v.shape)
    back[order] = np.minimum(count, n[order][:, None])
    return np.where(turned, n - back.T, back.T)


def _distribution(n: Array, rare: Array) -> Array:
    """P(count <= k), one row for each relevant k."""
    # at mean m the count exceeds m + 10 sqrt(m) + 20 with probability below 1e-12
    most = int(np.ceil(np.max(n * rare + 10.0 * np.sqrt(n * rare) + 20.0, initial=0.0)))
    k = np.arange(1.0, most)[:, None]
    ratios = rare / (1.0 - rare) * np.maximum(n - k + 1.0, 0.0) / k
    return np.cumsum(np.cumprod(np.vstack([np.exp(n * np.log1p(-rare)), ratios]), axis=0), axis=0)


def normal_quantile(u: Array) -> Array:
    """The normal quantile of uniform numbers, limited to finite values."""
    return scipy.special.ndtri(np.clip(u, 1e-16, 1.0 - 1e-16))


def rising_lower_bound(n: Array, ones: Array, alpha: float) -> Array:
    """Simultaneous lower bounds of a rising curve at ordered points with ``ones`` events among ``n`` rows each.

    The share of events in a run of points is, on average, at most the curve at the run's end; so the exact (Clopper and
    Pearson) lower bound of every run bounds the curve from there on. All m(m+1)/2 runs together have the level alpha /
    2.
    """
    m = len(n)
    level = alpha / (m * (m + 1.0))
    rows, events = np.append(0.0, np.cumsum(n)), np.append(0.0, np.cumsum(ones))
    best, highest = np.zeros(m), 0.0
    # a run that begins or ends at a point without events has a weaker bound than the run without that point
    ends = np.flatnonzero(ones > 0.0)
    for i, end in enumerate(ends):
        start = ends[: i + 1]
        hits = events[end + 1] - events[start]
        misses = rows[end + 1] - rows[start] - hits + 1.0
        # a bound exceeds the largest so far if the probability there is below the level, which is cheaper to compute
        better = scipy.special.betainc(hits, misses, highest) < level
        if better.any():
            highest = max(highest, float(scipy.special.betaincinv(hits[better], misses[better], level).max()))
        best[end] = highest
    return np.maximum.accumulate(best)


def rising_upper_bound(n: Array, ones: Array, alpha: float) -> Array:
    """Upper bounds: the lower bounds of the curve turned by 180 degrees."""
    return 1.0 - rising_lower_bound(n[::-1], (n - ones)[::-1], alpha)[::-1]


def noncentral_sf(x: float, df: float, noncentrality: float) -> float:
    """P(X > x): central upper tails with df + 2j degrees of freedom, j drawn from Poisson(noncentrality / 2).

    All terms are positive, so that nothing cancels however large x is. Relevant terms lie between the middle of the
    Poisson distribution and the point where its decrease and the increase of the tails balance.
    """
    if x == math.inf:
        return 0.0
    rate = noncentrality / 2.0
    if rate <= 0.0:
        return float(scipy.special.chdtrc(df, x))
    balance = math.sqrt(rate * max(x, 0.0) / 2.0)
    least, most = min(rate, balance), max(rate, balance)
    j = np.arange(max(0, int(least - 12.0 * math.sqrt(least) - 40)), int(most + 12.0 * math.sqrt(most) + 40))
    weight = np.exp(j * math.log(rate) - rate - scipy.special.gammaln(j + 1.0))
    return min(1.0, float(weight @ scipy.special.chdtrc(df + 2.0 * j, x)))


def noncentrality_of(x: float, df: float, tail: float) -> float:
    """The noncentrality at which P(X > x) = tail; 0 if the tail is already larger without one."""
    if x == math.inf:
        return math.inf
    if float(scipy.special.chdtrc(df, x)) >= tail:
        return 0.0
    return float(scipy.special.chndtrinc(x, df, 1.0 - tail))


def folded_normal_mean(mean: Array, spread: Array) -> Array:
    """E|X| of a normal X with that mean and standard deviation, which may be zero."""
    z = mean / np.where(spread > 0, spread * math.sqrt(2.0), 1.0)
    with np.errstate(over="ignore"):  # many standard deviations from zero the density is zero
        density = np.exp(-(z**2))
    folded = spread * math.sqrt(2.0 / math.pi) * density + mean * scipy.special.erf(z)
    return np.where(spread > 0, folded, np.abs(mean))


#: Variance from which three cumulants and a lattice correction are accurate to about 1e-5 of the value.
LARGE = 25.0
#: Neighbouring probabilities are combined into at most this many groups.
_GROUPS = 2048


def mean_absolute_deviation(p: Array, w: Array | None = None) -> float:
    """E|S - E S| of a sum S of independent Bernoulli(p_i) variables, each repeated ``w_i`` times.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.laws import mean_absolute_deviation
    >>> round(mean_absolute_deviation(np.array([0.5, 0.5])), 12)
    0.5
    """
    copies = np.ones(len(p)) if w is None else w
    spread = p * (1.0 - p)
    variance = float(copies @ spread)
    if variance <= 0.0:
        return 0.0
    if variance < LARGE:
        value, law = _law(p, copies, variance)
        return float(law @ np.abs(value - float(copies @ p)))
    third = float(copies @ (spread * (1.0 - 2.0 * p)))
    fourth = float(copies @ (spread * (1.0 - 6.0 * spread)))
    return _from_cumulants(float(copies @ p), variance, third, fourth)


def upper_tail(p: Array, w: Array | None, at: float) -> float:
    """P(S > at) + P(S = at) / 2 for a sum S of independent Bernoulli(p_i) variables, each repeated ``w_i`` times.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.laws import upper_tail
    >>> round(upper_tail(np.array([0.5, 0.5]), None, 2.0), 12)
    0.125
    """
    copies = np.ones(len(p)) if w is None else w
    spread = p * (1.0 - p)
    mean, variance = float(copies @ p), float(copies @ spread)
    if variance <= 1e-12:
        return float(0.5 * (mean > at - 0.5) + 0.5 * (mean > at + 0.5))
    if variance < LARGE:
        value, law = _law(p, copies, variance)
        return float(law[value > at + 0.25].sum() + 0.5 * law[np.abs(value - at) < 0.25].sum())
    # half of the probability of the value itself corrects for the lattice; Edgeworth's first term for the skewness
    x = (at - mean) / np.sqrt(variance)
    skew = float(copies @ (spread * (1.0 - 2.0 * p))) / variance**1.5
    density = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi)
    return float(np.clip(scipy.special.ndtr(-x) + density * skew * (x * x - 1.0) / 6.0, 0.0, 1.0))


def _from_cumulants(mean: float, variance: float, third: float, fourth: float) -> float:
    # Edgeworth's density to second order, integrated against |x|; the kink of |s - mean| between two whole numbers
    # then adds the density there times minus the second Bernoulli polynomial (Euler and Maclaurin).
    skew2, excess = third**2 / variance**3, fourth / variance**2
    smooth = np.sqrt(2.0 * variance / np.pi) * (1.0 + (skew2 - excess) / 24.0)
    density = (1.0 + excess / 8.0 - 5.0 * skew2 / 24.0) / np.sqrt(2.0 * np.pi * variance)
    part = mean - np.floor(mean)
    return float(smooth - density * (part * part - part + 1.0 / 6.0))


def _law(p: Array, w: Array, variance: float) -> tuple[Array, Array]:
    """Values and their probabilities, from the characteristic function at as many points as there are likely values."""
    p, w = _grouped(p, w)
    mean = float(w @ p)
    half = int(np.ceil(12.0 * np.sqrt(variance) + 24.0))
    size = 2 * half
    t = 2.0 * np.pi * np.arange(half + 1) / size
    # the sum minus the integer part of its mean: values -half .. half - 1, so that nothing wraps around
    whole = np.floor(mean)
    characteristic = _product(p[:, None] * (np.exp(1j * t) - 1.0), w) * np.exp(-1j * t * whole)
    law = np.fft.irfft(np.conj(characteristic), size)
    return whole + np.fft.fftfreq(size, 1.0 / size), np.maximum(law, 0.0)


def _product(x: NDArray[np.complex128], w: Array) -> NDArray[np.complex128]:
    """The product of (1 + x)^w over the rows."""
    if (w == 1.0).all():  # without logarithms, which take most of the time
        return np.asarray((1.0 + x).prod(axis=0))
    with np.errstate(divide="ignore"):  # at p = 1/2 the last point is 0
        return np.asarray(np.exp((np.log1p(x) * w[:, None]).sum(axis=0)))


def _grouped(p: Array, w: Array) -> tuple[Array, Array]:
    if len(p) <= _GROUPS:
        return p, w
    order = np.argsort(p)
    start = np.arange(_GROUPS) * len(p) // _GROUPS
    copies = np.add.reduceat(w[order], start)
    return np.add.reduceat((w * p)[order], start) / copies, copies


def unit_of(x: NDArray[np.float64]) -> NDArray[Any]:
    """The largest power of two that is no larger than the largest magnitude of each column of x; 1/2 if all are 0.

    Powers of ``x / unit_of(x)`` neither overflow nor all vanish. A power of two changes no digit of x.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.laws import unit_of
    >>> float(unit_of(np.array([0.3, -5.0])))
    4.0
    """
    return np.ldexp(1.0, np.frexp(np.abs(x).max(axis=0, initial=0.0))[1] - 1)

"""Sums of independent 0/1 variables with different probabilities: tail probabilities, and mean absolute deviation."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Variance from which three cumulants and a lattice correction are accurate to about 1e-5 of the value.
LARGE = 25.0
#: Neighbouring probabilities are combined into at most this many groups.
_GROUPS = 2048


def mean_absolute_deviation(p: Array, w: Array | None = None) -> float:
    """E|S - E S| of a sum S of independent Bernoulli(p_i) variables, each repeated ``w_i`` times.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.laws.poisson_binomial import mean_absolute_deviation
    >>> round(mean_absolute_deviation(np.array([0.5, 0.5])), 12)
    0.5
    """
    copies = np.ones(len(p)) if w is None else w
    spread = p * (1.0 - p)
    variance = float(copies @ spread)
    if variance <= 0.0:
        return 0.0
    if variance < LARGE:
        return _from_the_law(p, copies, variance)
    third = float(copies @ (spread * (1.0 - 2.0 * p)))
    fourth = float(copies @ (spread * (1.0 - 6.0 * spread)))
    return _from_cumulants(float(copies @ p), variance, third, fourth)


def upper_tail(p: Array, w: Array | None, at: float) -> float:
    """P(S > at) + P(S = at) / 2 for a sum S of independent Bernoulli(p_i) variables, each repeated ``w_i`` times.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.laws.poisson_binomial import upper_tail
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


def _from_the_law(p: Array, w: Array, variance: float) -> float:
    value, law = _law(p, w, variance)
    return float(law @ np.abs(value - float(w @ p)))


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

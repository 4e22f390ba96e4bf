"""Tail probabilities of the maximum modulus and of the range of Brownian motion on [0, 1].

Each distribution has two series. The reflection series converges fast for large x and keeps full relative accuracy in
the far tail; the theta series converges fast for small x, where the tail probability is near one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

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

"""Guaranteed bounds for the calibration curve and the calibration error, if frequency rises with confidence."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.laws import rising_lower_bound, rising_upper_bound
from calibrary.numerics.runs import run_starts

#: If there are more distinct confidences than this, they are rounded outward to two digits: the number of runs grows
#: with their square.
MOST_PLACES = 2000


class HonestError(NamedTuple):
    """Bounds of the calibration error that hold jointly at the confidence level.

    ``low`` and ``high`` bound the mean distance between confidence and frequency; no stated confidence is off by more
    than ``certified``.
    """

    low: float
    high: float
    certified: float


def honest_bounds(view: Predictions, confidence_level: float, digits: int | str | None) -> tuple[Array, Array]:
    """The band at the distinct confidences of a binary view."""
    if not 0.0 < confidence_level < 1.0:
        raise RefusedError(f"confidence_level={confidence_level!r} is outside (0, 1): 0.95 is usual")
    view.counts("an honest band")
    alpha, ties = 1.0 - confidence_level, view.ties
    if isinstance(digits, str):
        if digits != "auto":
            raise RefusedError(f"digits={digits!r} is not valid: pass a whole number, None or 'auto'")
        digits = None if len(ties.c) <= MOST_PLACES else 2
    if digits is None:
        return rising_lower_bound(ties.w, ties.wy, alpha), rising_upper_bound(ties.w, ties.wy, alpha)
    scaled = np.round(ties.c * 10.0 ** whole("digits", digits), 9)  # 0.07 * 100 is 7.000000000000001
    below, above = np.floor(scaled), np.ceil(scaled)
    # a lower bound of the curve at c also holds at the next grid point, and an upper bound at the previous one
    place, n, ones = _combined_rows(above, ties.w, ties.wy)
    lower = np.append(0.0, rising_lower_bound(n, ones, alpha))[np.searchsorted(place, below, side="right")]
    place, n, ones = _combined_rows(below, ties.w, ties.wy)
    upper = np.append(rising_upper_bound(n, ones, alpha), 1.0)[np.searchsorted(place, above)]
    return lower, upper


def _combined_rows(place: Array, w: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Rows at the same (ascending) grid point, combined."""
    first = run_starts(place)
    return place[first], np.add.reduceat(w, first), np.add.reduceat(wy, first)


def _over_views(values: list[HonestError], views: Views, average: Any, options: dict[str, Any]) -> HonestError:
    """Bounds for all views together: each view has its share of the error probability, so the mean is covered too."""
    level = options.get("confidence_level", 0.95)
    shared = {**options, "confidence_level": 1.0 - (1.0 - level) / len(values)}
    each = [_honest_error(view, **shared) for view in views.views]
    low, high = (views.average(np.array(column), average) for column in list(zip(*each, strict=True))[:2])
    return HonestError(low, high, max(e.certified for e in each))


@metric("honest_error", combine=_over_views)
def honest_error(
    view: Predictions, *, confidence_level: float = 0.95, digits: Any = "auto", **common: Unpack[Common]
) -> HonestError:
    r"""Guaranteed bounds of the mean calibration error, and of the largest error of any confidence.

    .. math:: \overline{\max(0, L - c, c - U)} \;\le\; \overline{|T(c) - c|} \;\le\; \overline{\max(|L - c|, |U - c|)}

    Here [L, U] is the band of :func:`calibrary.honest_band`, which contains the whole curve T of frequencies at the
    confidence level, if T is rising. With a lens of several views the bounds hold for all views together.

    Parameters
    ----------
    confidence_level : float
        Probability, at least, that all three statements are true.
    digits : int, None or "auto"
        Round confidences outward to this number of digits, which preserves the guarantee and widens the band a little;
        None does not round, "auto" rounds (to 2 digits) where there are more than 2000 distinct confidences.

    Returns
    -------
    HonestError
        ``low``, ``high`` and ``certified``.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(20_000).round(2)
    >>> found = cal.honest_error(rng.random(20_000) < c**2, c)
    >>> round(found.low, 3), round(found.high, 3), round(found.certified, 3)
    (0.104, 0.225, 0.336)
    """
    return _honest_error(view, confidence_level=confidence_level, digits=digits)


def _honest_error(view: Predictions, *, confidence_level: float = 0.95, digits: Any = "auto") -> HonestError:
    lower, upper = honest_bounds(view, confidence_level, digits)
    c, share = view.ties.c, view.ties.w / view.total
    least = np.maximum(np.maximum(lower - c, c - upper), 0.0)
    most = np.maximum(np.abs(lower - c), np.abs(upper - c))
    return HonestError(math.fsum(share * least), math.fsum(share * most), float(most.max()))

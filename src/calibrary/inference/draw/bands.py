"""Curves on redrawn data: what a curve is by chance, and the band in which it lies.

Cases of equal confidence are drawn together, as counts. A *reading* makes a curve of how many cases, or how many
events, there are at every place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import heard
from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import quantiles
from calibrary.numerics.draw import generator, redrawn_labels


def on_labels(
    reading: Callable[[NDArray[Any]], Array],
    copies: NDArray[np.int64] | None,
    chance: Array,
    n_resamples: int,
    rng: Any,
) -> Array:
    """Readings of the events at every place, with labels drawn from their chances: a row for each draw.

    Without ``copies`` there is one case at each place.
    """
    return np.array([reading(events[0]) for events in redrawn_labels(chance, copies, n_resamples, rng)])


def on_rows_and_labels(
    reading: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Array],
    weight: Array,
    chance: Array,
    n_resamples: int,
    rng: Any,
) -> Array:
    """Readings of samples drawn anew, rows with replacement and then their labels: a row for each draw.

    A reading is given the places that have cases, and the numbers of cases and of events there.
    """
    source = generator(rng, "rows and labels")
    n, share = max(round(weight.sum()), 1), weight / weight.sum()
    curves = []
    for _ in range(n_resamples):
        count = source.multinomial(n, share)
        used = np.flatnonzero(count)
        curves.append(reading(used, count[used], source.binomial(count[used], chance[used])))
    return np.array(curves)


def on_rows(reading: Callable[[Array], Array], weight: Array, n_resamples: int, rng: Any) -> Array:
    """Readings of all resamples at once: of numbers of cases at every place, a row for each resample."""
    counts = generator(rng, "rows").multinomial(max(round(weight.sum()), 1), weight / weight.sum(), size=n_resamples)
    with heard(), np.errstate(all="ignore"):  # what a map says of a resample is no news
        return reading(counts.astype(np.float64))


def pointwise(curves: Array, level: float) -> tuple[Array, Array]:
    """The ends between which so many of the curves lie at each place; a curve that is NaN there does not count."""
    ends = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    if np.isnan(curves).any():
        low, high = np.array([quantiles(column, ends) for column in curves.T]).T
    else:
        low, high = np.quantile(curves, ends, axis=0)
    return low, high

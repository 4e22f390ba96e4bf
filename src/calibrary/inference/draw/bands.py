"""Curves on redrawn data: what a curve is by chance, and the band in which it lies.

Cases of equal confidence are drawn together, as counts. A *reading* makes a curve of how many cases, or how many
events, there are at every place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import bounded, heard
from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import quantiles
from calibrary.numerics.draw import generator, redrawn_labels

#: A band is made of at most so many curves, and of so many counts at once.
MOST_CURVES, _AT_ONCE = 100_000, 1 << 24


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
    draws = bounded("n_resamples", n_resamples, MOST_CURVES)
    return np.array([reading(events[0]) for events in redrawn_labels(chance, copies, draws, rng)])


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
    for _ in range(bounded("n_resamples", n_resamples, MOST_CURVES)):
        count = source.multinomial(n, share)
        used = np.flatnonzero(count)
        curves.append(reading(used, count[used], source.binomial(count[used], chance[used])))
    return np.array(curves)


def on_rows(reading: Callable[[Array], Array], weight: Array, n_resamples: int, rng: Any) -> Array:
    """Readings of many resamples at once: of numbers of cases at every place, a row for each resample."""
    source = generator(rng, "rows")
    n, share = max(round(weight.sum()), 1), weight / weight.sum()
    block = max(_AT_ONCE // max(len(weight), 1), 1)
    curves = []
    for start in range(0, bounded("n_resamples", n_resamples, MOST_CURVES), block):
        counts = source.multinomial(n, share, size=min(block, n_resamples - start))
        with heard(), np.errstate(all="ignore"):  # what a map says of a resample is no news
            curves.append(reading(counts.astype(np.float64)))
    return np.concatenate(curves)


def pointwise(curves: Array, level: float) -> tuple[Array, Array]:
    """The ends between which so many of the curves lie at each place; a curve that is NaN there does not count."""
    ends = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    if np.isnan(curves).any():
        low, high = np.array([quantiles(column, ends) for column in curves.T]).T
    else:
        low, high = np.quantile(curves, ends, axis=0)
    return low, high

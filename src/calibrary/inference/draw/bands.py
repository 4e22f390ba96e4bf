"""Curves computed on redrawn data, and the pointwise band that contains most of them.

Rows of equal confidence are drawn together, as counts. A *curve function* computes a curve from the number of rows,
or of events, at every distinct confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import bounded, collected_warnings
from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import quantiles
from calibrary.numerics.draw import generator, redrawn_labels

#: The largest number of curves for a band, and the largest number of counts in memory at a time.
MOST_CURVES, _AT_ONCE = 100_000, 1 << 24


def on_labels(
    reading: Callable[[NDArray[Any]], Array],
    copies: NDArray[np.int64] | None,
    chance: Array,
    n_resamples: int,
    rng: Any,
) -> Array:
    """Curves computed from labels that are drawn from their probabilities: one row for each draw.

    Without ``copies`` there is one row at each confidence.
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
    """Curves computed from resampled rows (with replacement) and newly drawn labels: one row for each draw.

    The curve function gets the confidences that have rows, and the numbers of rows and of events there.
    """
    source = generator(rng, "rows and labels")
    n, share, m = max(round(weight.sum()), 1), weight / weight.sum(), len(weight)
    few = n <= 10 * m and bool((weight == np.rint(weight)).all())  # drawing each row is faster than counts
    row = np.repeat(np.arange(m), weight.astype(np.intp)) if few else np.empty(0, dtype=np.intp)
    # the fraction of a row's random number is that of its label
    below = np.arange(len(row)) + chance[row]
    curves = []
    for _ in range(bounded("n_resamples", n_resamples, MOST_CURVES)):
        if few:
            u = n * source.random(n)
            drawn = np.minimum(u.astype(np.intp), n - 1)
            other, events = np.bincount(row[drawn] + m * (u < below[drawn]), minlength=2 * m).reshape(2, m)
            count = other + events
        else:
            count = source.multinomial(n, share)
            events = source.binomial(count, chance)
        used = np.flatnonzero(count)
        curves.append(reading(used, count[used], events[used]))
    return np.array(curves)


def on_rows(reading: Callable[[Array], Array], weight: Array, n_resamples: int, rng: Any) -> Array:
    """Curves computed from the numbers of resampled rows at every confidence: one row for each resample."""
    source = generator(rng, "rows")
    n, share = max(round(weight.sum()), 1), weight / weight.sum()
    block = max(_AT_ONCE // max(len(weight), 1), 1)
    curves = []
    for start in range(0, bounded("n_resamples", n_resamples, MOST_CURVES), block):
        counts = source.multinomial(n, share, size=min(block, n_resamples - start))
        with (
            collected_warnings(),
            np.errstate(all="ignore"),
        ):  # warnings of a calibration map about a resample are not shown
            curves.append(reading(counts.astype(np.float64)))
    return np.concatenate(curves)


def pointwise(curves: Array, level: float) -> tuple[Array, Array]:
    """The pointwise limits that contain this share of the curves; a curve that is NaN at a point is ignored there."""
    ends = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    if np.isnan(curves).any():
        low, high = np.array([quantiles(column, ends) for column in curves.T]).T
    else:
        low, high = np.quantile(curves, ends, axis=0)
    return low, high

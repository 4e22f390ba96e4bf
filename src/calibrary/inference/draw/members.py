"""Members of an ensemble as truths: which member is the truth of a row is drawn, and labels from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.numerics.draw import batches

#: Numbers that are drawn at once.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class RedrawnTruths:
    """Which member is the truth of each row is drawn, and as many labels from it as the row has.

    Attributes
    ----------
    p : (rows, members, columns) probabilities; one column is that of class 1
    labels : (rows,) number of labels
    weight : (rows,)
    by_others : the row is judged by the other members; else all members judge it together
    """

    p: Array
    labels: Indices
    weight: Array
    by_others: bool

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[tuple[Indices, Array]]:
        """Batches of places, (draws, rows), and counts of labels, (draws, rows, columns)."""
        n, m, columns = self.p.shape
        flat = self.p.reshape(n * m, columns)
        row = np.arange(n)
        for size in batches(n_resamples, max(1, _AT_ONCE // (n * columns))):
            place = rng.integers(0, m, (size, n)) + m * row
            if columns == 1:
                chance = flat[:, 0].take(place)
                counts = _ones(chance, self.labels, rng)[..., None]
            else:
                counts = rng.multinomial(self.labels, flat[place]).astype(np.float64)
            yield (place if self.by_others else np.broadcast_to(row, place.shape)), counts


def _ones(chance: Array, labels: Indices, rng: np.random.Generator) -> Array:
    """How many of the labels are 1."""
    most = int(labels.max())
    if most > 4:
        return rng.binomial(labels, chance).astype(np.float64)
    found = np.zeros(chance.shape)
    for each in range(most):
        found += (rng.random(chance.shape) < chance) & (labels > each)
    return found

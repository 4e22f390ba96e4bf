"""Draw, for each row, one member of an ensemble as the true distribution, and labels from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.numerics.draw import batches

#: The number of random numbers drawn at a time.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class RedrawnTruths:
    """For each row a randomly drawn member, and as many labels drawn from it as the row has.

    Attributes
    ----------
    p : (rows, members, columns) probabilities; one column is that of class 1
    labels : (rows,) number of labels
    weight : (rows,)
    by_others : whether a row is compared with the other members only, rather than with all members
    """

    p: Array
    labels: Indices
    weight: Array
    by_others: bool

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[tuple[Indices, Array]]:
        """Batches of member indices, (draws, rows), and counts of labels, (draws, rows, columns)."""
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
    """The number of labels that are 1."""
    most = int(labels.max())
    if most > 4:
        return rng.binomial(labels, chance).astype(np.float64)
    found = np.zeros(chance.shape)
    for each in range(most):
        found += (rng.random(chance.shape) < chance) & (labels > each)
    return found

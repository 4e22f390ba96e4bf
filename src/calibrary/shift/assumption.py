"""Is the assumption true that carries a value from the source to the target? A test without labels of the target.

If it is, the weighted rows of the source look like those of the target. The largest distance between the distribution
functions of what is known of both (confidences, features) is held against draws of both sets in which it is true, with
the weights estimated again in each: redrawing the target alone rejects a third of all true assumptions.
"""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.two_sets import TwoSets

#: Of more classes than this, the commonest are compared.
_MOST_CLASSES = 20


class _Distances:
    """The Kolmogorov-Smirnov distances of two weightings of the same rows, one for each column."""

    def __init__(self, columns: Array) -> None:
        self._order = np.argsort(columns, axis=0, kind="stable").T
        ascending = np.take_along_axis(columns, self._order.T, axis=0).T
        self._inside = np.zeros(ascending.shape, dtype=bool)  # within a tie, where no function has a value
        self._inside[:, :-1] = ascending[:, 1:] == ascending[:, :-1]

    def largest(self, a: Array, b: Array) -> float:
        """The largest distance of all columns."""
        gap = np.cumsum((a / a.sum() - b / b.sum())[self._order], axis=1)
        gap[self._inside] = 0.0
        return float(np.abs(gap).max())


def looked_at(p: Array, features: Array | None, classes: Indices) -> Array:
    """What is compared: the probability of each class (of two classes one), the largest of a row, and features."""
    columns = [p[:, 1:]] if p.shape[1] == 2 else [p[:, classes], p.max(axis=1)[:, None]]
    return np.column_stack(columns if features is None else [*columns, features])


def compared_classes(share: Array) -> Indices:
    """The classes whose probabilities are compared: all, or the commonest of very many."""
    commonest: Indices = np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES])
    return commonest


def assumption_test(
    sets: TwoSets, observed: Array, columns: Array, target: Array, n_resamples: int, rng: object
) -> tuple[float, float]:
    """The largest distance between the target and the weighted source, and its p-value.

    ``observed`` are the weights of the source's rows; ``columns`` and ``target`` are what is compared.
    """
    n, m = len(columns), len(target)
    both = _Distances(np.concatenate([columns, target]))
    distance = both.largest(np.concatenate([observed, np.zeros(m)]), np.concatenate([np.zeros(n), np.ones(m)]))
    own = _Distances(columns)
    drawn = np.array([own.largest(*pair) for pair in sets.both_from_source(observed, n_resamples, rng)])
    return distance, float((1 + np.sum(drawn >= distance - 1e-12)) / (n_resamples + 1))

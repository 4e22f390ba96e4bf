"""A test of the shift assumption that does not need labels of the target.

If the assumption is true, the weighted rows of the source have the same distribution as those of the target. The test
statistic is the largest distance between the distribution functions of the variables that both sets have (confidences,
features). Its null distribution comes from draws of both sets under the assumption, with the weights estimated again in
each draw; redrawing the target alone would reject a third of all true assumptions.
"""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.two_sets import TwoSets

#: With more classes than this, only the most frequent classes are compared.
_MOST_CLASSES = 20


class _Distances:
    """The Kolmogorov-Smirnov distances of two weightings of the same rows, one for each column."""

    def __init__(self, columns: Array) -> None:
        self._order = np.argsort(columns, axis=0, kind="stable").T
        ascending = np.take_along_axis(columns, self._order.T, axis=0).T
        self._inside = np.zeros(
            ascending.shape, dtype=bool
        )  # positions within a tie, where the distribution functions are not evaluated
        self._inside[:, :-1] = ascending[:, 1:] == ascending[:, :-1]

    def largest(self, a: Array, b: Array) -> float:
        """The largest distance over all columns."""
        gap = np.cumsum((a / a.sum() - b / b.sum())[self._order], axis=1)
        gap[self._inside] = 0.0
        return float(np.abs(gap).max())


def compared_variables(p: Array, features: Array | None, classes: Indices) -> Array:
    """The compared variables: each class's probability (one for two classes), the largest of each row, and features."""
    columns = [p[:, 1:]] if p.shape[1] == 2 else [p[:, classes], p.max(axis=1)[:, None]]
    return np.column_stack(columns if features is None else [*columns, features])


def compared_classes(share: Array) -> Indices:
    """The classes whose probabilities are compared: all, or the most frequent of very many."""
    commonest: Indices = np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES])
    return commonest


def assumption_test(
    sets: TwoSets, observed: Array, columns: Array, target: Array, n_resamples: int, rng: object
) -> tuple[float, float]:
    """The largest distance between the target and the weighted source, and its p-value.

    ``observed`` are the weights of the source's rows; ``columns`` and ``target`` are the compared variables.
    """
    n, m = len(columns), len(target)
    both = _Distances(np.concatenate([columns, target]))
    distance = both.largest(np.concatenate([observed, np.zeros(m)]), np.concatenate([np.zeros(n), np.ones(m)]))
    own = _Distances(columns)
    drawn = np.array([own.largest(*pair) for pair in sets.both_from_source(observed, n_resamples, rng)])
    return distance, float((1 + np.sum(drawn >= distance - 1e-12)) / (n_resamples + 1))

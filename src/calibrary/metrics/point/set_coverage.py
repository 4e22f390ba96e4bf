"""Prediction sets: how often the smallest set of top classes that reaches a level contains the true class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values
from calibrary.metrics.point.row_scores import row_blocks

#: Largest number of probabilities for which the classes in every row's set are stored.
_MOST_KEPT = 10_000_000
#: A set whose probabilities add up to the level up to rounding has reached the level.
SLACK = 1e-9


class SetCoverage(NamedTuple):
    """How often the sets contain the true class, how large the sets are, and the probability they claim.

    ``claimed`` is the mean probability of the sets, which equals the coverage of a calibrated model; ``gap`` is
    coverage - claimed.
    """

    coverage: float
    size: float
    claimed: float
    gap: float


@ReplicateForm
def _sets_found_once(view: Predictions, *, level: float = 0.9) -> Values | None:
    """The sets do not depend on labels or weights: a replicate only counts the rows whose set contains the label."""
    if view.y.ndim != 1 or view.p.size > _MOST_KEPT:
        return None
    holds = _sets(view.p, checked_level(level))
    size, claimed = holds.sum(axis=1), (view.p * holds).sum(axis=1)
    every = np.arange(view.n)

    def values(y: Any, w: Any) -> Array:
        """Coverage, size and gap: one row for each row of labels, or of weights."""
        covered = holds[every, view.y if y is None else np.asarray(y, dtype=np.intp)]
        w = view.weight if w is None else w
        total = w.sum(axis=-1)
        coverage = np.einsum("...n,...n", w, covered.astype(np.float64)) / total
        return np.stack(np.broadcast_arrays(coverage, w @ size / total, coverage - w @ claimed / total), axis=-1)

    return values


def _sets(p: Array, level: float) -> NDArray[np.bool_]:
    """The classes in the set of each row."""
    order, _, before = _ranked(p)
    holds = np.empty(p.shape, dtype=np.bool_)
    np.put_along_axis(holds, order, before < level - SLACK, axis=1)
    return holds


def _ranked(p: Array) -> tuple[NDArray[np.intp], Array, Array]:
    """The classes of each row in descending order of probability, their probabilities, and the sum before each."""
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    return order, ranked, np.cumsum(ranked, axis=1) - ranked


@metric(
    "set_coverage",
    lenses=("full", "ranked", "partition"),
    default_lens="full",
    binary_lens="full",
    replicate=_sets_found_once,
)
def set_coverage(view: Predictions, *, level: float = 0.9, **common: Unpack[Common]) -> SetCoverage:
    r"""Coverage and mean size of the smallest sets of top classes that reach a level.

    .. math:: \frac{1}{N} \sum_i [y_i \in S_i], \qquad S_i = \text{the fewest top classes with }
              \sum_{k \in S_i} c_{ik} \ge \text{level}

    Classes of equal probability are ranked by column.

    Parameters
    ----------
    level : float
        Probability that the sets must reach, above 0 and at most 1.

    Returns
    -------
    SetCoverage
        ``coverage``, ``size``, ``claimed`` (mean probability of the sets) and ``gap`` (coverage - claimed).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.digits()
    >>> found = cal.set_coverage(y, p, level=0.9)
    >>> round(found.coverage, 3), round(found.size, 2), round(found.claimed, 3)
    (1.0, 3.01, 0.931)
    """
    return at_levels(view, np.array([checked_level(level)]))[0]


def checked_level(level: Any) -> float:
    if not 0.0 < level <= 1.0:
        raise RefusedError(
            f"level={level!r} must be above 0 and at most 1: it is the probability that a set must reach"
        )
    return float(level)


def at_levels(view: Predictions, levels: Array) -> list[SetCoverage]:
    """Weighted means of (covered, size, claimed) over the rows, a block of rows at a time."""
    total = np.zeros((len(levels), 3))
    for w, label, p, before in _ranked_blocks(view):
        for j, level in enumerate(levels):
            member = before < level - SLACK
            columns = np.column_stack([(label * member).sum(axis=1), member.sum(axis=1), (p * member).sum(axis=1)])
            total[j] += columns.sum(axis=0) if w is None else w @ columns
    means = total / view.total
    return [SetCoverage(c, s, m, c - m) for c, s, m in means.tolist()]


def _ranked_blocks(view: Predictions) -> Iterator[tuple[Array | None, NDArray[Any], Array, Array]]:
    """Blocks of rows with classes in descending order of probability: weights, label, probability, and sum before."""
    for rows in row_blocks(view):
        y = view.y[rows]
        order, ranked, before = _ranked(view.p[rows])
        label = order == y[:, None] if y.ndim == 1 else np.take_along_axis(y, order, axis=1)
        yield None if view.w is None else view.w[rows], label, ranked, before

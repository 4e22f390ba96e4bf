"""Venn-Abers maps: two isotonic regressions, one as if the new row had the event and one as if it had not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.numerics.runs import run_starts


class VennAbersBounds(NamedTuple):
    """The two probabilities for each score: for a new row without the event, and with it."""

    p0: Array
    p1: Array


class VennAbersSteps(NamedTuple):
    """Both step functions: ``p0`` rises at ``starts``, and ``p1`` rises beyond ``stops``.

    ``p0`` is 0 below the first start; ``p1`` is 1 above the last stop.
    """

    starts: Array
    p0: Array
    stops: Array
    p1: Array

    def at(self, c: Array) -> VennAbersBounds:
        """The bounds for these scores."""
        without, event = np.append(0.0, self.p0), np.append(self.p1, 1.0)
        return VennAbersBounds(
            without[np.searchsorted(self.starts, c, side="right")], event[np.searchsorted(self.stops, c, side="left")]
        )


class VennAbers(CalibrationMap):
    """The inductive Venn-Abers map: two isotonic fits for every new score, and one probability from both.

    A new row is added to the fitted ones with its score and the outcome 0, and then with the outcome 1; isotonic
    regression gives it ``p0`` and ``p1``. One of the two is perfectly calibrated, whatever the scores are, and the
    distance between them shows how little information the rows near a score contain. The map's own value is ``p1 / (1 -
    p0 + p1)``, which has the smallest log loss in the worse of the two cases. It is never 0 or 1.

    References
    ----------
    Vovk, Petej, Fedorova (2015), Large-scale probabilistic predictors with and without guarantees of validity.

    Examples
    --------
    >>> from calibrary.maps.venn_abers import VennAbers
    >>> curve = VennAbers().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> [x.round(3).tolist() for x in curve.bounds([0.3, 0.7])]
    [[0.0, 0.333], [0.667, 1.0]]
    >>> curve([0.3, 0.7]).round(3).tolist()
    [0.4, 0.6]
    """

    steps_: VennAbersSteps

    def _learn(self, view: Predictions) -> None:
        ties = view.ties
        self.steps_ = steps_of(ties.c, ties.w, ties.wy)

    def bounds(self, c: Any) -> VennAbersBounds:
        """``p0`` and ``p1`` for these scores."""
        return self.steps_.at(checked_scores(self, c))

    def _evaluate(self, c: Array) -> Array:
        return merged([self.steps_.at(c)])


class CrossVennAbers(CalibrationMap):
    """The cross Venn-Abers map: one inductive map for each fold of the rows, and one probability from all of them.

    It is meant for scores of a cross-validation: the rows of a fold have the scores of the model that was fitted to the
    other folds, and a new row has one score from each of these models (``combined``). If one model gave all scores, the
    folds share them (``predict``).

    Parameters
    ----------
    folds : int or array-like of shape (N,)
        Number of folds, to which the rows of each class are assigned in turn by their scores; or the fold of every row.

    Examples
    --------
    >>> from calibrary.maps.venn_abers import CrossVennAbers
    >>> curve = CrossVennAbers(folds=2).fit([0, 0, 1, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    >>> curve([0.3, 0.7]).round(3).tolist()
    [0.414, 0.667]
    """

    steps_: list[VennAbersSteps]

    def __init__(self, folds: Any = 5) -> None:
        self.folds = folds

    def _learn(self, view: Predictions) -> None:
        if np.ndim(self.folds) > 0:
            self.steps_ = _given_folds(view, self.folds)
            return
        k = whole("folds", self.folds, 2)
        ties = view.ties
        view.counts("folds of rows")  # raises an error for weights that are not counts
        ones = np.rint(ties.wy)
        least = int(min(ones.sum(), (ties.w - ones).sum()))
        if least < k:
            raise RefusedError(
                f"folds={k} needs at least as many rows of each class, and one class has {least}: use fewer folds"
            )
        taken = [_in_turn(x, k) for x in (ones, ties.w - ones)]
        self.steps_ = [_steps_of_part(ties.c, one + none, one) for one, none in zip(*taken, strict=True)]

    def bounds(self, c: Any) -> VennAbersBounds:
        """``p0`` and ``p1`` of every fold: shape (N, K), for scores of shape (N,) or one column for each fold."""
        scores = checked_scores(self, c)
        k = len(self.steps_)
        if scores.ndim == 2 and scores.shape[1] != k:
            raise RefusedError(f"c has {scores.shape[1]} columns and there are {k} folds: pass one score for each fold")
        each = [steps.at(scores[:, j] if scores.ndim == 2 else scores) for j, steps in enumerate(self.steps_)]
        return VennAbersBounds(*(np.stack(x, axis=-1) for x in zip(*each, strict=True)))

    def combined(self, c: Any) -> Array:
        """The probability from one score for each fold, shape (N, K), or from one score for all of them."""
        low, high = self.bounds(c)
        return merged([VennAbersBounds(p0, p1) for p0, p1 in zip(low.T, high.T, strict=True)])

    def _evaluate(self, c: Array) -> Array:
        return merged([steps.at(c) for steps in self.steps_])


def merged(each: list[VennAbersBounds]) -> Array:
    """One probability from the bounds of one map or several: geometric means, which minimize the worst log loss."""
    event = np.exp(np.mean([np.log(b.p1) for b in each], axis=0))
    none = np.exp(np.mean([np.log1p(-b.p0) for b in each], axis=0))
    return event / (none + event)


def checked_scores(map: CalibrationMap, c: Any) -> Array:
    """Scores from 0 to 1 for a fitted map."""
    if not map.fitted_:
        raise RefusedError(f"this {type(map).__name__} is not fitted: call fit(y, c) first")
    scores = as_floats(c, "c")
    if scores.size and not (scores.min() >= 0.0 and scores.max() <= 1.0):
        raise RefusedError("c contains numbers that are not probabilities: pass numbers from 0 to 1")
    return scores


def _given_folds(view: Predictions, folds: Any) -> list[VennAbersSteps]:
    names, fold = np.unique(view.align(folds, "folds"), return_inverse=True)
    if len(names) < 2:
        raise RefusedError(f"folds has only the value {names[0]!r}: pass rows of at least two folds")
    steps = []
    for f, name in enumerate(names.tolist()):
        part = view.part(np.flatnonzero(fold.ravel() == f)).ties
        if not 0.0 < part.wy.sum() < part.w.sum():
            raise RefusedError(f"the rows of fold {name!r} are all of one class: each fold needs both classes")
        steps.append(steps_of(part.c, part.w, part.wy))
    return steps


def _in_turn(count: Array, k: int) -> list[Array]:
    """Number of rows at each score that each of k folds receives, if rows are assigned in turn."""
    stop = np.cumsum(count)
    return [(stop - f + k - 1) // k - (stop - count - f + k - 1) // k for f in range(k)]


def _steps_of_part(c: Array, w: Array, wy: Array) -> VennAbersSteps:
    kept = w > 0.0
    return steps_of(c[kept], w[kept], wy[kept])


def steps_of(c: Array, w: Array, wy: Array) -> VennAbersSteps:
    """Both step functions of rows with the distinct scores c, their weights and their weighted events.

    Reversing outcomes and order turns one function into the other.
    """
    event = with_event(w, wy)
    without = 1.0 - with_event(w[::-1], (w - wy)[::-1])[::-1]
    last = np.flatnonzero(np.diff(event, append=2.0))  # of scores with one value only the last is kept,
    first = run_starts(without)  # or the first
    return VennAbersSteps(c[first], without[first], c[last], event[last])


def with_event(w: Array, wy: Array) -> Array:
    """The isotonic fit at each score, if one more row with the event had that score.

    The fit is the slope of the largest convex function below the sums of events over the sums of weights. A row with
    the event at score i moves all earlier points down and left by one; the line that crosses score i then begins at one
    of those points, the corner, and ends at a point of the hull of the later ones. Both only move to the right. Steps
    of events alone rise by 1, which no line exceeds, so that the corner moves only at scores with other rows.
    """
    x, y = np.append(0.0, np.cumsum(w)).tolist(), np.append(0.0, np.cumsum(wy)).tolist()
    hull = _hull(w, wy)
    left, down = -1.0, -1.0  # the corner
    moves, slopes = [0], []
    dx, dy = x[hull[-1]] - left, y[hull[-1]] - down
    for i in (np.flatnonzero(wy < w) + 1).tolist():
        to_x, to_y = x[i] - 1.0, y[i] - 1.0
        if (to_y - down) * dx >= dy * (to_x - left):
            continue
        moves.append(i)
        slopes.append(dy / dx)
        left, down = to_x, to_y
        end = hull[-1]
        while len(hull) > 1:  # until the way from the corner over a point to the next turns left
            beyond = hull[-2]
            if (x[end] - left) * (y[beyond] - down) > (y[end] - down) * (x[beyond] - left):
                break
            hull.pop()
            end = beyond
        dx, dy = x[end] - left, y[end] - down
    slopes.append(dy / dx)
    each: Array = np.repeat(np.array(slopes), np.diff(moves, append=len(w)))
    return np.minimum(each, 1.0)


def _hull(w: Array, wy: Array) -> list[int]:
    """The points of the convex hull with the new row at the first score, last first: where isotonic blocks end."""
    from scipy.optimize import isotonic_regression

    total, events = w.copy(), wy.copy()
    total[0] += 1.0
    events[0] += 1.0
    blocks = isotonic_regression(events / total, weights=total).blocks
    return blocks[:0:-1].tolist()

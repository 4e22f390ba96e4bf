"""Lines of truths from "calibrated" to "as the data show", on which an interval is found by inverting a test.

A truth is what the labels would have been drawn from: one probability for each prediction, or one row of them. At t = 0
it is the prediction itself, at t = 1 what the data show, as seen along one of two directions: the gaps of equal-mass
bins, which follow any shape coarsely, and a logistic map, which follows the usual shapes finely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import heard
from calibrary.data.checks import Array, softmax
from calibrary.data.predictions import Predictions
from calibrary.grouping import EqualMass
from calibrary.inference.draw.statistic import Statistic
from calibrary.maps.base import EPS
from calibrary.maps.likelihood import Platt, Temperature
from calibrary.metrics.machinery.measure import views_of
from calibrary.numerics.solve.newton import Evaluated, minimize

#: Equal-mass bins whose gaps make a direction.
_BINS = 15
#: Above this many classes the logistic direction has a temperature and no class biases.
_FEW_CLASSES = 30
#: Lenses that show one pair (confidence, outcome) for each row, whatever the labels.
_ONE_VIEW = ("binary", "top-label", "rth", "within-top-r")


@dataclass(frozen=True)
class Line:
    """Truths along one direction: ``line(t)`` has the shape of the predictions."""

    name: str
    truth: Callable[[float], Array]

    def __call__(self, t: float) -> Array:
        return self.truth(t)


def lines_of(statistic: Statistic) -> list[Line]:
    """The two lines for a metric, made in the view it looks at; one where the logistic fit fails."""
    p = statistic.sample.p
    view, lift = _looked_at(statistic, p)
    total = p.n if statistic.sample.weight_type == "importance" else p.total
    return [Line(name, _line(view, direction, lift)) for name, direction in directions(view, total)]


def directions(view: Predictions, total: float) -> list[tuple[str, Array]]:
    """From "calibrated" to "as the data show", in a view of ``total`` rows: one for each way of looking."""
    n_bins = max(1, min(_BINS, int(np.sqrt(total))))
    both = (("gaps", _gaps(view, n_bins)), ("logistic", _logistic(view)))
    return [(name, e) for name, e in both if e is not None and np.isfinite(e).all() and np.abs(e).max(initial=0.0) > 0]


def _line(view: Predictions, direction: Array, lift: Callable[[Array], Array]) -> Callable[[float], Array]:
    start = view.probability

    def truth(t: float) -> Array:
        q = np.clip(start + t * direction, 0.0, 1.0)
        if q.ndim == 2:
            total = q.sum(axis=1, keepdims=True)
            # a row that clips to nothing keeps its predictions
            q = np.where(total > 0.0, q / np.where(total > 0.0, total, 1.0), start)
        return lift(q)

    return truth


def _looked_at(statistic: Statistic, p: Predictions) -> tuple[Predictions, Callable[[Array], Array]]:
    """The view in which directions are made, and how a truth of that view becomes one of the predictions."""
    if statistic.entry is None or not statistic.entry.of_labels:
        return p, lambda q: q
    lens = statistic.entry.lens_for(p, statistic.question)
    if lens.name not in _ONE_VIEW or (p.binary and lens.name == "binary"):
        return p, lambda q: q
    view = views_of(statistic.entry, p, statistic.question).views[0]
    if view.n != p.n or not view.binary:
        return p, lambda q: q
    counts = _counting(statistic, p)
    return view, lambda q: _lifted(q, view.c, p, counts)


def _counting(statistic: Statistic, p: Predictions) -> NDArray[np.bool_]:
    """Which classes of each row make the outcome of the view true."""
    assert statistic.entry is not None
    if statistic.entry.lens_for(p, statistic.question).name == "top-label":
        mask: NDArray[np.bool_] = np.arange(p.k) == p.top[:, None]
        return mask
    columns = [
        views_of(statistic.entry, p.relabeled(np.full(p.n, k, dtype=np.intp)), statistic.question).views[0].y
        for k in range(p.k)
    ]
    return np.column_stack(columns).astype(bool)


def _lifted(q: Array, c: Array, p: Predictions, counts: NDArray[np.bool_]) -> Array:
    """Class probabilities that give the outcome probability q and keep their proportions on either side."""
    truth = np.empty(counts.shape)
    for side, now, before in ((counts, q, c), (~counts, 1.0 - q, 1.0 - c)):
        known = before > 0.0
        scale = np.where(known, now / np.where(known, before, 1.0), 0.0)
        alike = now / np.maximum(side.sum(axis=1), 1)  # nothing to be in proportion to: all alike
        np.copyto(truth, np.where(known[:, None], p.p * scale[:, None], alike[:, None]), where=side)
    truth = np.clip(truth, 0.0, 1.0)
    return truth[:, 1] if p.binary else truth


# -- directions -------------------------------------------------------------------------------------


def _gaps(view: Predictions, n_bins: int) -> Array:
    """What happened minus what was predicted, on average over the row's equal-mass bin; for each column."""
    if view.binary:
        return _binned_gap(view.y.astype(np.float64), view.c, view, n_bins)
    columns = [_binned_gap((view.y == k).astype(np.float64), view.p[:, k], view, n_bins) for k in range(view.k)]
    return np.column_stack(columns)


def _binned_gap(outcome: Array, c: Array, view: Predictions, n_bins: int) -> Array:
    column = Predictions(outcome.astype(np.intp), np.ascontiguousarray(c), view.w)
    index = EqualMass(n_bins).groups(column).index
    weight = column.weight
    size = np.bincount(index, weights=weight)
    gap = np.bincount(index, weights=weight * (outcome - c)) / np.where(size > 0.0, size, 1.0)
    return gap[index]


def _logistic(view: Predictions) -> Array | None:
    """A logistic map minus the predictions: intercept and slope; or temperature and class biases."""
    try:
        with heard(), np.errstate(all="ignore"):
            if view.binary:
                y = view.y.astype(bool)
                if y.all() or not y.any():
                    return None  # one class only: the map would be a constant at an end
                fitted = Predictions(view.y, view.c, view.w)
                return Platt().fit(fitted)(view.c) - view.c
            return _softmax_map(view) - view.p
    except (ValueError, np.linalg.LinAlgError, FloatingPointError):
        return None


def _softmax_map(view: Predictions) -> Array:
    z = np.log(np.clip(view.p, EPS, 1.0 - EPS))
    if view.k > _FEW_CLASSES:
        slope = Temperature().fit(Predictions(view.y, view.p, view.w)).inverse_
        return softmax(slope * z)
    best = minimize(_softmax_loss(z, view), np.append(1.0, np.zeros(view.k)), tolerance=1e-6, max_iter=50).x
    return softmax(best[0] * z + best[1:])


def _softmax_loss(z: Array, view: Predictions) -> Callable[[Array], Evaluated]:
    """Mean log loss of softmax(a z + b), with a ridge that settles the one direction b leaves free."""
    share, ridge, hot = view.weight / view.total, 1e-6, view.one_hot
    pull = np.append(1.0, np.zeros(view.k))

    def evaluate(theta: Array) -> Evaluated:
        q = softmax(theta[0] * z + theta[1:])
        loss = -float(np.sum(share * np.log(np.maximum(q[np.arange(view.n), view.y], 1e-300))))
        gap = (q - hot) * share[:, None]
        gradient = np.append(np.sum(gap * z), gap.sum(axis=0)) + ridge * (theta - pull)
        mean = np.sum(q * z, axis=1)
        weighted = q * share[:, None]
        hessian = np.empty((view.k + 1, view.k + 1))
        hessian[0, 0] = np.sum(share * (np.sum(q * z * z, axis=1) - mean**2))
        hessian[0, 1:] = hessian[1:, 0] = np.sum(weighted * (z - mean[:, None]), axis=0)
        hessian[1:, 1:] = np.diag(weighted.sum(axis=0)) - weighted.T @ q
        hessian[np.diag_indices(view.k + 1)] += ridge
        return loss + 0.5 * ridge * float((theta - pull) @ (theta - pull)), gradient, hessian

    return evaluate

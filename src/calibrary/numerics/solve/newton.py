"""Newton's method with backtracking for smooth convex functions, and the logistic losses for which it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Evaluated = tuple[float, Array, Array]

#: Number of rows handled at once: small enough for temporaries to fit the cache and for BLAS not to start threads.
_BLOCK = 8192
#: Predicted decreases below the first number are rounding errors once they no longer shrink; below the second they are
#: negligible. Both are for losses of order one.
_ROUNDING, _NOTHING = 1e-13, 1e-20


@dataclass(frozen=True)
class Minimum:
    """The result of Newton's method: the point, the value and Hessian there, and whether it converged."""

    x: Array
    value: float
    hessian: Array
    converged: bool


#: Steps are cut to this length, so that their square does not overflow.
_LONGEST = 1e100


def minimize(
    evaluate: Callable[[Array], Evaluated],
    start: Array,
    *,
    tolerance: float = 1e-9,
    max_iter: int = 200,
    scale: float = 1.0,
) -> Minimum:
    """Minimise a convex function given its value, gradient and Hessian; its values are of the order of ``scale``.

    It stops after a step below ``tolerance`` (relative to the point), or when steps no longer shrink at rounding level:
    convergence is quadratic, so the remaining error is of the order of the step's square. ``converged`` is False if
    steps are still large after ``max_iter``.
    """
    x = np.asarray(start, dtype=np.float64)
    value, gradient, hessian = evaluate(x)
    last_drop = np.inf
    for _ in range(max_iter):
        step = -_solve(hessian, gradient)
        drop = float(-gradient @ step)
        noise = 1e-13 * (scale + abs(value))
        settled = drop <= noise and drop > 0.5 * last_drop
        length = _length(step, x)
        if settled or drop <= 1e-7 * noise or length <= tolerance:
            if length > 1.0 and evaluate(x + step)[0] > value + 100.0 * noise:
                return Minimum(
                    x, value, hessian, True
                )  # almost no curvature: the predicted decrease is small and the step is long
            # to second order the value falls by drop / 2, and the Hessian does not change
            return Minimum(x + step, value - drop / 2.0, hessian, True)
        trial = x + step
        new = evaluate(trial)
        # decreases below rounding error do not show in the value: so close to the minimum full steps are safe, unless
        # the value rises
        while new[0] > (value - 1e-4 * float(-gradient @ (trial - x)) if drop > noise else value + 100.0 * noise):
            step = step / 2.0
            trial = x + step
            if _length(step, x) <= 1e-3 * tolerance or (trial == x).all():
                return Minimum(
                    x, value, hessian, True
                )  # no step of any length decreases the value: only rounding errors are left
            new = evaluate(trial)
        last_drop = drop
        x, (value, gradient, hessian) = trial, new
    return Minimum(x, value, hessian, False)


def _length(step: Array, x: Array) -> float:
    """The longest coordinate of a step, relative to the point: in lists, which are faster for the few unknowns here."""
    return max(abs(s) / (1.0 + abs(t)) for s, t in zip(step.tolist(), x.tolist(), strict=True))


class ConvexFunction(Protocol):
    """A convex function with values of order one, whose derivatives are cheaper to compute than its value."""

    def value(self, x: Array) -> float: ...

    def derivatives(self, x: Array) -> tuple[Array, Array]: ...


Loss = ConvexFunction  # the name of this class in version 0.2, which old pickles and imports may still use


def minimize_nearby(loss: ConvexFunction, start: Array, lower: float = -np.inf, upper: float = np.inf) -> Array:
    """Minimise a convex function with every coordinate between two bounds, from a point near the minimum.

    Full Newton steps, without evaluating the value, while the predicted decrease at least halves: a convex function is
    smallest where the predicted decrease is zero. If a predicted decrease grows, :func:`minimise_in_box` continues from
    the start.
    """
    x = np.clip(start, lower, upper)
    last_drop = np.inf
    for _ in range(50):
        gradient, hessian = loss.derivatives(x)
        step = _inward_step(x, gradient, hessian, lower, upper)
        drop = float(-gradient @ step)
        x = np.clip(x + step, lower, upper)
        shrinks = drop <= 0.5 * last_drop
        # at a bound near which the loss is singular, steps are very small and predicted decreases large: only a small
        # predicted decrease is an end
        if drop <= _NOTHING or (drop <= _ROUNDING and (not shrinks or np.abs(step).max() <= 1e-9)):
            return x
        if not shrinks:
            break
        last_drop = drop
    return minimize_in_box(lambda x: (loss.value(x), *loss.derivatives(x)), start, lower, upper)


def minimize_in_box(
    evaluate: Callable[[Array], Evaluated], start: Array, lower: float, upper: float, *, max_iter: int = 500
) -> Array:
    """Minimise a convex function with every coordinate between two bounds (projected Newton).

    A step that leaves the box is projected onto it or, if that does not decrease the value, cut at the first bound. It
    stops as :func:`minimise` does.
    """
    x = np.clip(start, lower, upper)
    value, gradient, hessian = evaluate(x)
    last_drop = np.inf
    for _ in range(max_iter):
        step = _inward_step(x, gradient, hessian, lower, upper)
        drop = float(-gradient @ step)
        noise = 1e-13 * (1.0 + abs(value))
        trial = np.clip(x + step, lower, upper)
        if drop <= 1e-7 * noise or (drop <= noise and drop > 0.5 * last_drop):
            return trial
        last_drop = drop
        new = evaluate(trial)
        # decreases below rounding error do not show in the value: so close to the minimum full steps are safe
        if drop > noise and new[0] > value + 1e-4 * float(gradient @ (trial - x)):
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(step > 0.0, (upper - x) / step, np.where(step < 0.0, (lower - x) / step, np.inf))
            size = min(1.0, float(room.min()))
            trial = np.clip(x + size * step, lower, upper)
            new = evaluate(trial)
            while new[0] > value - 1e-4 * size * drop and size > 1e-12:
                size /= 2.0
                trial = np.clip(x + size * step, lower, upper)
                new = evaluate(trial)
        if (drop > noise and new[0] > value) or (trial == x).all():
            break
        x, (value, gradient, hessian) = trial, new
    return x


def _inward_step(x: Array, gradient: Array, hessian: Array, lower: float, upper: float) -> Array:
    """Newton's step in the coordinates that are free to move."""
    if x.min() > lower and x.max() < upper:  # no coordinate is at a bound
        return -_solve(hessian, gradient)
    free = ~((x <= lower) & (gradient > 0.0)) & ~((x >= upper) & (gradient < 0.0))
    step = np.zeros_like(x)
    while free.any():
        step[:] = 0.0
        step[free] = -_solve(hessian[np.ix_(free, free)], gradient[free])
        outward = free & (((x <= lower) & (step < 0.0)) | ((x >= upper) & (step > 0.0)))
        if not outward.any():
            break
        free &= ~outward
        step[outward] = 0.0
    return step


def _solve(hessian: Array, gradient: Array) -> Array:
    if len(gradient) <= 2:
        few = _solve_few(hessian, gradient)
        if few is not None:
            return np.array([min(max(x, -_LONGEST), _LONGEST) for x in few])
    # scaled by its diagonal: columns may differ by many orders of magnitude
    scale = 1.0 / np.sqrt(np.maximum(hessian.diagonal(), 1e-300))
    scaled, right = hessian * scale[:, None] * scale, gradient * scale
    with np.errstate(over="ignore", invalid="ignore"):  # where the curvature underflows, the step may overflow
        try:
            found = np.linalg.solve(scaled, right)
        except np.linalg.LinAlgError:
            found = np.full(len(right), np.nan)
        if not float(right @ found) > 0.0 and right.any():
            # singular up to rounding, and the step increases the value: add a little curvature in every direction
            found = np.linalg.solve(scaled + 1e-10 * np.eye(len(right)), right)
        found = scale * found
    return np.clip(found, -_LONGEST, _LONGEST)


def _solve_few(hessian: Array, gradient: Array) -> list[float] | None:
    """One or two unknowns, by elimination from the larger entry of the scaled matrix; None if it is singular."""
    if len(gradient) == 1:
        return [float(gradient[0] / hessian[0, 0])] if hessian[0, 0] > 1e-300 else None
    (a, b), (_, d) = hessian.tolist()
    g, h = gradient.tolist()
    if not (a > 1e-300 and d > 1e-300):
        return None
    ratio = b / a
    left = d - ratio * b
    if not left > 1e-10 * d:  # so few digits are left that the general solver is used
        return None
    second = (h - ratio * g) / left
    return [(g - b * second) / a, second]


#: For many losses of one unknown their gradients and curvatures; with a second unknown also its gradients, the mixed
#: curvatures and its own.
Derivatives = tuple[Array, ...]


def minimize_each(
    derivatives: Callable[[Array, Indices], Derivatives],
    start: Array,
    *,
    tolerance: float = 1e-9,
    longest: float = np.inf,
    max_iter: int = 25,
) -> Array:
    """Minimise many convex losses of one or two unknowns at once, each from its row of ``start``, by Newton's method.

    ``derivatives(x, which)`` are those of the losses ``which`` at the rows of x. Steps longer than ``longest`` are
    shortened. The result is NaN where the data do not determine a minimum, or none is found.
    """
    found = np.full(start.shape, np.nan)
    which, x = np.arange(len(start)), start
    for _ in range(max_iter):
        with np.errstate(divide="ignore", invalid="ignore"):
            step, determined = _steps(*derivatives(x, which))
            step /= np.maximum(np.abs(step).max(axis=1, keepdims=True) / longest, 1.0)
        x = x + step
        done = determined & (np.abs(step) <= tolerance * (1.0 + np.abs(x))).all(axis=1)
        found[which[done]] = x[done]
        left = ~done & determined
        if not left.any():
            break
        which, x = which[left], x[left]
    return found


def _steps(g0: Array, h0: Array, g1: Any = None, h1: Any = 0.0, h2: Any = 0.0) -> tuple[Array, NDArray[np.bool_]]:
    """Newton's step for each loss, and whether it is determined."""
    if g1 is None:
        return (-g0 / h0)[:, None], h0 > 0.0
    det = h0 * h2 - h1 * h1
    # otherwise one value of the second column has all the weight, and its coefficient would be rounding error
    return np.stack([h1 * g1 - h2 * g0, h1 * g0 - h0 * g1], axis=1) / det[:, None], det > 1e-10 * h0 * h2


def losses_of_groups(
    design: tuple[Array, Array],
    positive: Array,
    weight: Array,
    offset: Array,
    group: Indices,
    n_groups: int,
    ridge: float = 0.0,
) -> Callable[[Array, Indices], Derivatives]:
    """Log losses of ``logit q = offset + b @ design``, one for each group of rows, for :func:`minimize_each`.

    ``ridge / 2 * |b|^2`` is added to each.
    """
    first, second = design

    def derivatives(b: Array, which: Indices) -> Derivatives:
        every = np.zeros((n_groups, 2))
        every[which] = b
        q = scipy.special.expit(offset + every[group, 0] * first + every[group, 1] * second)
        residual, curve = weight * q - positive, weight * q * (1.0 - q)
        parts = (residual * first, curve * first**2, residual * second, curve * first * second, curve * second**2)
        sums: list[Array] = [np.bincount(group, part, minlength=n_groups).astype(np.float64)[which] for part in parts]
        g0, h0, g1, h1, h2 = sums
        return g0 + ridge * b[:, 0], h0 + ridge, g1 + ridge * b[:, 1], h1, h2 + ridge

    return derivatives


def logistic_loss(
    columns: Array,
    positive: Array,
    weight: Array | None = None,
    *,
    offset: Array | None = None,
    ridge: float = 0.0,
    center: Array | float = 0.0,
) -> Callable[[Array], Evaluated]:
    """Log loss of ``logit q = offset + theta @ columns``, summed over rows, as a function for :func:`minimise`.

    ``weight`` is the weight of every row and ``positive`` its weighted number of ones (so that groups of equal rows can
    be passed as one). ``ridge / 2 * |theta - centre|^2`` is added.
    """
    n = columns.shape[1]
    negative = (1.0 if weight is None else weight) - positive

    def evaluate(theta: Array) -> Evaluated:
        value, gradient = 0.0, np.zeros(len(theta))
        hessian = np.zeros((len(theta), len(theta)))
        for i in range(0, n, _BLOCK):
            rows = slice(i, i + _BLOCK)
            x = columns[:, rows]
            eta = theta @ x
            if offset is not None:
                eta += offset[rows]
            e = np.exp(-np.abs(eta))
            soft = np.log1p(e)
            soft += np.maximum(eta, 0.0)
            inverse = 1.0 / (1.0 + e)
            unlikely = e * inverse  # the smaller of q and 1 - q, to its last digit
            curve = unlikely * inverse
            if weight is None:
                value += float(soft.sum())
            else:
                w = weight[rows]
                value += float(w @ soft)
                unlikely *= w
                curve *= w
            value -= float(positive[rows] @ eta)
            gradient += x @ np.where(eta > 0.0, negative[rows] - unlikely, unlikely - positive[rows])
            hessian += (x * curve) @ x.T
        if ridge:
            away = theta - center
            value += 0.5 * ridge * float(away @ away)
            gradient += ridge * away
            hessian[np.diag_indices(len(theta))] += ridge
        return value, gradient, hessian

    return evaluate


def loss_difference(eta: Array, other: Array, positive: Array, weight: Array) -> float:
    """Log loss of the logits ``eta`` minus that of ``other``, row by row: two large sums would cancel."""
    change = np.logaddexp(0.0, eta) - np.logaddexp(0.0, other)
    return float(np.sum(weight * change - positive * (eta - other)))


def multinomial_loss(
    design: Array, positive: Array, weight: Array, offset: Array, *, ridge: float = 0.0
) -> Callable[[Array], Evaluated]:
    """Log loss of ``log(q_k / q_0) = offset_k + design_k @ theta_k``, k = 1..m, summed over rows.

    ``design`` is (m, N, p), one matrix per class (or one broadcast to all), ``positive`` and ``offset`` (N, m).
    ``theta`` is the m vectors one after the other; ``ridge / 2 * |theta|^2`` is added.
    """
    m, n, p = design.shape
    block = max(min(_BLOCK, 2**18 // p**2), 64)  # beyond this size BLAS starts threads

    def evaluate(theta: Array) -> Evaluated:
        parts = theta.reshape(m, p)
        value = 0.5 * ridge * float(theta @ theta)
        gradient = ridge * parts
        hessian = np.zeros((m, p, m, p))
        for i in range(0, n, block):
            rows = slice(i, i + block)
            x, w, hits = design[:, rows], weight[rows], positive[rows]
            eta = offset[rows] + np.stack([x[k] @ parts[k] for k in range(m)], axis=1)
            top = np.maximum(eta.max(axis=1), 0.0)
            e = np.exp(eta - top[:, None])
            total = e.sum(axis=1) + np.exp(-top)
            value += float(np.sum(w * (top + np.log(total))) - np.sum(hits * eta))
            q = e / total[:, None]
            weighted = q * w[:, None]
            residual = weighted - hits
            for k in range(m):
                gradient[k] += residual[:, k] @ x[k]
                for j in range(k, m):
                    curve = weighted[:, k] * ((k == j) - q[:, j])
                    hessian[k, :, j] += (x[k] * curve[:, None]).T @ x[j]
        for k in range(m):
            for j in range(k):
                hessian[k, :, j] = hessian[j, :, k].T
        full = hessian.reshape(m * p, m * p)
        full[np.diag_indices(m * p)] += ridge
        return value, gradient.ravel(), full

    return evaluate

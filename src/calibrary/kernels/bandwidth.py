"""The rules that choose the width of a kernel, and the curve that a kernel smooths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of, suggest, warn
from calibrary.data.checks import SMALLEST_SPREAD, Array
from calibrary.data.predictions import Predictions, Sorted
from calibrary.kernels.density import Kernel
from calibrary.numerics.draw import shuffled
from calibrary.numerics.runs import run_lengths
from calibrary.numerics.sums.beta import leave_one_out_beta_sums
from calibrary.numerics.sums.pair_median import median_distance, median_vector_distance

#: Widths among which the leave-one-out rules of beta and Dirichlet kernels choose.
LOO_GRID: Array = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1.0, 5)])
#: Widths among which cross-validation of a smooth curve chooses.
CV_GRID: Array = np.geomspace(0.005, 0.5, 41)
#: Rules for the width of a smooth curve.
CURVE_RULES = ("normal", "normal-sd", "median", "cv", "adaptive")
#: Narrower kernels would overflow; no two confidences are that close.
_SMALLEST = 1e-300
WEIGHT_TYPES = ("frequency", "importance")


def positive_width(bandwidth: Any, rules: Sequence[str], name: str = "bandwidth") -> float | None:
    """A width given as a number, checked; None if it is the name of a rule."""
    if isinstance(bandwidth, str):
        if bandwidth not in rules:
            allowed = suggest(bandwidth, rules) if rules else "pass a positive number"
            raise RefusedError(f"{name}={bandwidth!r} is not a rule for this metric: {allowed}")
        return None
    try:
        h = float(bandwidth)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"{name}={bandwidth!r} is not a width: pass a positive number") from error
    if not (h >= _SMALLEST and math.isfinite(h)):
        raise RefusedError(f"{name}={bandwidth!r} must be a positive number")
    return h


def copies(view: Predictions, weight_type: str, purpose: str) -> None:
    """Raise an error for weights below one if a copy of a row must be left out."""
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    if weight_type == "frequency" and view.w is not None and view.w.min() < 1.0:
        row = int(view.w.argmin())
        raise RefusedError(
            f"sample_weight contains {view.w[row]:g}: {purpose} leaves out one copy of a row, so frequency weights "
            "must be at least 1; pass weight_type='importance'"
        )


def effective_size(view: Predictions, weight_type: str) -> float:
    """Number of rows for a bandwidth rule: W for copies of rows, Kish's W^2 / sum w^2 for importance weights."""
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    if view.w is None or weight_type == "frequency":
        return view.total
    return view.total**2 / float(np.dot(view.w, view.w))


def spread(view: Predictions) -> float:
    """Weighted standard deviation of the confidences, divisor W."""
    return _spread(view.ties.c, view.ties.w)


def _spread(c: Array, w: Array) -> float:
    """Weighted standard deviation of ascending numbers; zero if there is no weight."""
    there = w > 0.0
    if not there.any() or c[there.argmax()] == c[len(c) - 1 - there[::-1].argmax()]:
        return 0.0  # the rounded mean of equal numbers need not equal them
    total = w.sum()
    return math.sqrt(np.sum(w * (c - np.sum(w * c) / total) ** 2) / total)


def normal_bandwidth(view: Predictions, *, weight_type: str = "frequency") -> float:
    """1.06 sd N^(-1/5): optimal for a normal density. Zero if all confidences are equal."""
    return float(1.06 * spread(view) * effective_size(view, weight_type) ** -0.2)


def median_bandwidth(
    view: Predictions, *, metric: str = "tv", include_self: bool = False, weight_type: str = "frequency"
) -> float:
    """Exact median distance between predictions.

    Binary views (and two columns) take O(N log N); more columns O(N^2 K) in blocks. If the median is zero, the median
    of the positive distances is used; one if there are none.

    Parameters
    ----------
    metric : "tv" or "euclidean"
        Half the sum of absolute differences, or the Euclidean distance, of the probability vectors.
    include_self : bool
        Use the median of the whole N x N matrix, with its zero diagonal.
    """
    one_of("metric", metric, ("tv", "euclidean"))
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    if weight_type == "frequency":
        copies(view, weight_type, "the median over pairs")
    # the Euclidean distance of two columns is sqrt 2 |c - c'|: one median serves both
    scale, metric = (math.sqrt(2.0), "tv") if view.k == 2 and metric == "euclidean" else (1.0, metric)
    key = ("median distance", metric, include_self, weight_type)
    h = float(view.remember(key, lambda: _median_distance(view, metric, include_self, weight_type)))
    return scale * h if h >= SMALLEST_SPREAD else 1.0


def _median_distance(view: Predictions, metric: str, include_self: bool, weight_type: str) -> float:
    """The median, or that of the positive distances if it is zero; NaN if there are none."""
    if view.k == 2:
        ties = (view if view.binary else view.view(view.y, view.probability[:, 1])).ties
        rows = weight_type == "importance" and view.w is not None
        mass, scale = run_lengths(ties.start, view.n).astype(np.float64) if rows else ties.w, 1.0

        def median(zero_mass: float) -> float:
            return median_distance(ties.c, mass, zero_mass)
    else:
        distinct, which, counts = np.unique(view.probability, axis=0, return_inverse=True, return_counts=True)
        weighted = weight_type == "frequency" and view.w is not None
        mass = (np.bincount(which.ravel(), view.w) if weighted else counts).astype(np.float64)
        scale, distance = (0.5, "cityblock") if metric == "tv" else (1.0, "euclidean")

        def median(zero_mass: float) -> float:
            return median_vector_distance(distinct, distance, mass, zero_mass, view.device)

    total, square = float(mass.sum()), float(np.dot(mass, mass))
    # number of pairs of copies, or half of the entries of the N x N matrix, at distance zero
    h = median((square if include_self else square - total) / 2.0)
    if h == 0.0 or math.isnan(h):
        h = median(0.0)
    return scale * h


def beta_bandwidth(bandwidth: float | str, view: Predictions, *, weight_type: str = "frequency") -> float:
    """The width of a beta kernel: a number, or "loo-mle" or "cv" over 20 widths from 1e-5 to 1.

    "loo-mle" maximises the leave-one-out likelihood of the confidences, "cv" minimises the leave-one-out squared error
    of the labels. The first of equal optima is used.
    """
    h = positive_width(bandwidth, ("loo-mle", "cv"))
    if h is not None:
        return h
    copies(view, weight_type, f"bandwidth={bandwidth!r}")
    if view.n == 1:  # leave-one-out leaves no row: any width is equally good
        return float(LOO_GRID[-1])
    both = view.remember(
        ("beta widths", weight_type), lambda: [_beta_badness(view, float(h), weight_type) for h in LOO_GRID]
    )
    best = int(np.argmin([each[bandwidth != "loo-mle"] for each in both]))
    if best == 0 and bandwidth == "loo-mle":
        warn(
            f"bandwidth='loo-mle' chose its smallest width, {LOO_GRID[0]:g}: with tied confidences the likelihood "
            "grows without bound; use bandwidth='cv' or a number"
        )
    return float(LOO_GRID[best])


def _beta_badness(view: Predictions, h: float, weight_type: str) -> tuple[float, float]:
    """Leave-one-out negative log likelihood of the confidences, and squared error of the labels."""
    s = view.sorted
    sums = leave_one_out_beta_sums(s.c, s.y, h, s.w, weight_type=weight_type)
    rest = view.total - (1.0 if s.w is None or weight_type == "frequency" else s.w)
    logs = np.log(sums.total / rest) + sums.log_scale
    error = (s.y - sums.weighted / sums.total) ** 2
    return (
        -float(logs.sum() if s.w is None else np.dot(s.w, logs)),
        float(error.sum() if s.w is None else np.dot(s.w, error)),
    )


def curve_bandwidth(
    bandwidth: float | str,
    view: Predictions,
    kernel: Kernel,
    rules: Sequence[str],
    *,
    weight_type: str = "frequency",
    grid: Any = None,
    folds: int | None = None,
    rng: Any = None,
) -> float | Array:
    """The width of a smooth curve or density: a number, or a rule among ``rules``.

    ``"adaptive"`` gives one width per row, in ascending order of confidence. Zero means that all confidences
    are equal.
    """
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    h = positive_width(bandwidth, rules)
    if h is not None:
        return h
    if bandwidth == "cv":
        return cv_bandwidth(view, kernel, weight_type=weight_type, grid=grid, folds=folds, rng=rng)
    if bandwidth == "median":
        return median_bandwidth(view, weight_type=weight_type)
    if bandwidth == "mix-n-match":
        return mix_n_match_bandwidth(view, kernel, weight_type=weight_type)
    normal = normal_bandwidth(view, weight_type=weight_type)
    if bandwidth == "normal-sd":
        return normal / kernel.sd
    return adaptive_bandwidth(view, kernel, normal) if bandwidth == "adaptive" and normal > 0.0 else normal


def mix_n_match_bandwidth(view: Predictions, kernel: Kernel, *, weight_type: str = "frequency") -> float:
    """Width of the Mix-n-Match authors' code: a kernel with standard deviation sd(c | y = 1) (2N)^(-1/5).

    The standard deviation of all confidences is used if that of the positives is zero.
    """
    sd = _spread(view.ties.c, view.ties.wy) or spread(view)
    return float(sd * (2.0 * effective_size(view, weight_type)) ** -0.2 / kernel.sd)


def adaptive_bandwidth(view: Predictions, kernel: Kernel, h: float) -> Array:
    """A width per row, h (f / g)^(-1/2): wide where the pilot density f is small; g is its geometric mean."""
    s = view.sorted
    w = _weights(s)
    f = kernel.sums(s.c, w, w, h)[0]
    log_f = np.log(f)
    return h * np.exp(-0.5 * (log_f - np.dot(w, log_f) / w.sum()))


def smoothed_labels(
    s: Sorted, kernel: Kernel, h: float | Array, *, leave_one_out: bool = False, weight_type: str = "frequency"
) -> Array:
    """Nadaraya-Watson curve at the sorted confidences; NaN if a left-out row has no neighbour.

    A width of zero gives the mean label of each group of equal confidences.
    """
    w = _weights(s)
    wy = w * s.y
    own = None
    if leave_one_out:
        own = np.ones(len(w)) if weight_type == "frequency" else w
    if np.ndim(h) == 0 and h == 0.0:
        s0, s1 = _tie_sums(s.c, w, wy, own, s.y)
    else:
        s0, s1 = kernel.sums(s.c, w, wy, h, own)
    if not leave_one_out:
        return (s1 / s0).clip(0.0, 1.0)
    curve: Array = np.full(len(w), np.nan)
    np.divide(s1, s0, out=curve, where=s0 > 0.0)
    return curve.clip(0.0, 1.0)


def _weights(s: Sorted) -> Array:
    return np.ones(len(s.c)) if s.w is None else s.w


def _tie_sums(c: Array, w: Array, wy: Array, own: Array | None, y: Array) -> tuple[Array, Array]:
    group = np.cumsum(np.diff(c, prepend=c[0]) > 0)
    left = np.zeros(len(c)) if own is None else own
    return np.bincount(group, w)[group] - left, np.bincount(group, wy)[group] - left * y


def cv_bandwidth(
    view: Predictions,
    kernel: Kernel,
    *,
    weight_type: str = "frequency",
    grid: Any = None,
    folds: int | None = None,
    rng: Any = None,
) -> float:
    """The width whose leave-one-out curve predicts the labels best (mean squared error); the smallest of equal ones.

    Parameters
    ----------
    grid : widths to compare, 41 between 0.005 and 0.5 by default
    folds, rng : optional
        Leave out random folds instead of single rows.
    """
    copies(view, weight_type, "cross-validation")
    widths = np.sort(CV_GRID if grid is None else np.asarray(grid, dtype=np.float64))
    if not (len(widths) and widths[0] > 0.0):
        raise RefusedError(f"grid={grid!r} must contain positive widths")
    if folds is None:
        errors = [_leave_one_out_error(view, kernel, float(h), weight_type) for h in widths]
    else:
        errors = _fold_errors(view, kernel, widths, folds, rng)
    return float(widths[first_smallest(errors)])


def first_smallest(errors: Any) -> int:
    """Position of the first of the smallest errors, where errors that differ by rounding only are equal."""
    found = np.asarray(errors, dtype=np.float64)
    return int(np.argmax(found <= found.min() * (1.0 + 1e-12)))


def _leave_one_out_error(view: Predictions, kernel: Kernel, h: float, weight_type: str) -> float:
    s = view.sorted
    w = _weights(s)
    curve = smoothed_labels(s, kernel, h, leave_one_out=True, weight_type=weight_type)
    alone = np.isnan(curve)
    if alone.any():
        own = np.ones(view.n) if weight_type == "frequency" else w
        rest = (w.sum() - own)[alone]
        others = np.dot(w, s.y) - (own * s.y)[alone]
        curve[alone] = np.divide(others, rest, out=np.full(len(rest), 0.5), where=rest > 0.0)
    return float(np.dot(w, (s.y - curve) ** 2) / w.sum())


def _fold_errors(view: Predictions, kernel: Kernel, widths: Array, folds: int, rng: Any) -> list[float]:
    if not 2 <= folds <= view.n:
        raise RefusedError(f"cv={folds!r} must be between 2 and the number of rows, {view.n}")
    fold = shuffled(view.n, rng, "folds") % folds
    s = view.sorted
    w = _weights(s)
    errors = np.zeros(len(widths))
    for f in range(folds):
        test, train = fold == f, fold != f
        values = np.column_stack([w[train], (w * s.y)[train]])
        fallback = values[:, 1].sum() / values[:, 0].sum()
        for i, h in enumerate(widths):
            s0, s1 = kernel.sums_at(s.c[test], s.c[train], values, float(h)).T
            curve = np.divide(s1, s0, out=np.full(len(s0), fallback), where=s0 > 0.0)
            errors[i] += np.dot(w[test], (s.y[test] - curve) ** 2)
    return list(errors)

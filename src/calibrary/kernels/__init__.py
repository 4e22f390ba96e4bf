"""Kernels and the rules that choose their width.

There are three types, which must not be confused. *Density* kernels integrate to one and smooth curves (``KERNELS``).
*Pair* kernels are one at distance zero and compare predictions (``PAIR_KERNELS``). *Beta* and *Dirichlet* kernels are
densities on the interval and the simplex whose shape depends on their centre.

``h`` is always the number in k((t - c) / h) / h: the standard deviation of the Gaussian, the half-width of compact
kernels, the decay length of the Laplace kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import polynomial

from calibrary.base.errors import RefusedError, one_of, suggest, warn
from calibrary.base.moved import takes_old_keywords
from calibrary.data.checks import SMALLEST_SPREAD as _SMALLEST_SPREAD
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, Sorted
from calibrary.numerics.draw import shuffled
from calibrary.numerics.runs import run_lengths
from calibrary.numerics.sums.beta import leave_one_out_beta_sums
from calibrary.numerics.sums.gaussian import Cells, gaussian_on_nodes, gaussian_sums
from calibrary.numerics.sums.pair_median import median_distance, median_vector_distance
from calibrary.numerics.sums.windows import block_sums, decayed_sums, laplace_sums, polynomial_sums

#: Number of widths beyond which the kernel is exactly zero in double precision.
_UNDERFLOW = {"gaussian": 39.0, "laplace": 746.0}
#: Largest range, in widths, that an array of cells resolves.
_LONG = 1e8
#: Largest number of pairs of target and point for which Gaussians are summed directly.
_DIRECT = 1 << 20
#: A leave-one-out sum below this share of the left-out term is summed again without the term.
_CANCELED = 1e-2


@dataclass(frozen=True)
class Kernel:
    """A density kernel k(u) and its sums over points on a line.

    Attributes
    ----------
    name : str
    sd : standard deviation of k
    coefficients : of k as a polynomial in |u| on |u| <= 1, for compact kernels; otherwise empty
    """

    name: str
    sd: float
    coefficients: tuple[float, ...] = ()

    def __call__(self, u: Array) -> Array:
        """k(u)."""
        with np.errstate(over="ignore", invalid="ignore"):  # far outside, where the kernel is zero
            if self.name == "gaussian":
                return np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
            size = np.abs(u)
            if self.name == "laplace":
                return 0.5 * np.exp(-size)
            value: Array = np.where(size <= 1.0, polynomial.polyval(size, self.coefficients), 0.0)
        return value

    @property
    def peak(self) -> float:
        """k(0)."""
        return float(self(np.zeros(1))[0])

    @property
    def reach(self) -> float:
        """Number of widths beyond which the kernel is zero."""
        return _UNDERFLOW.get(self.name, 1.0)

    def sums_at(self, t: Array, x: Array, values: Array, h: float | Array) -> Array:
        """Sums of v_i k((t - x_i) / h) at ascending targets over ascending points.

        ``values`` is (N, 2), weights first. If there is one width per point (an array), the sum is direct.
        """
        if isinstance(h, np.ndarray):
            return block_sums(self, t, x, values, h, self.reach)
        if self.coefficients:
            return polynomial_sums(np.array(self.coefficients), t, x, values, h)
        if self.name == "laplace":
            return self._laplace_at(t, x, values, h)
        if len(t) * len(x) <= _DIRECT or x[-1] - x[0] > _LONG * h:
            return block_sums(self, t, x, values, h, self.reach)
        return self._gaussian_at(t, x, values, h)

    def _laplace_at(self, t: Array, x: Array, values: Array, h: float) -> Array:
        both = np.concatenate((x, t))
        order = np.argsort(both, kind="stable")
        masses = np.concatenate((values, np.zeros((len(t), 2))))
        sums = np.empty_like(masses)
        sums[order] = laplace_sums(both[order], masses[order], h)
        return self.peak * sums[len(x) :]

    def _gaussian_at(self, t: Array, x: Array, values: Array, h: float) -> Array:
        cells = Cells(np.concatenate((x, t)), h)
        nothing = np.zeros(len(t))
        nodes = (gaussian_on_nodes(cells.node_weights(np.concatenate((v, nothing)))) for v in values.T)
        sums = np.column_stack([s[len(x) :] for s in cells.interpolate(*nodes)])
        # far from all points only a direct sum has the digits needed for a ratio
        far = np.flatnonzero(sums[:, 0] < 1e-3 * values[:, 0].min())
        sums *= self.peak
        sums[far] = block_sums(self, t[far], x, values, h, self.reach)
        return sums

    def sums(self, x: Array, w: Array, wy: Array, h: float | Array, own: Array | None = None) -> tuple[Array, Array]:
        """Sums of w_i k and wy_i k, k = k((x_j - x_i) / h), at the ascending points x_j themselves.

        Parameters
        ----------
        x : ascending points
        w, wy : weights, and weights times a value between 0 and 1
        h : width, or one per point (then w is divided by it first)
        own : optional
            How much of each point's own weight is left out of its sums (leave-one-out).
        """
        if isinstance(h, np.ndarray):
            w, wy, own = w / h, wy / h, None if own is None else own / h
        share = None if own is None else own / w
        if self.name == "laplace" and not isinstance(h, np.ndarray):
            return self._laplace(x, w, wy, h, share)
        # cells of so small a width would round the positions of the points
        if self.name == "gaussian" and not isinstance(h, np.ndarray) and len(x) > 64 and x[-1] - x[0] < _LONG * h:
            s0, s1 = gaussian_sums(x, (w, wy), h)
            s0 *= self.peak
            s1 *= self.peak
        else:
            s0, s1 = self.sums_at(x, x, np.column_stack([w, wy]), h).T
        if share is None:
            return s0, s1
        left_out = share * w * self.peak
        s0, s1 = s0 - left_out, s1 - share * wy * self.peak
        doubtful = np.flatnonzero(s0 < _CANCELED * left_out)
        if len(doubtful):
            s0[doubtful], s1[doubtful] = self._without_own(doubtful, x, w, wy, h, share)
        return s0, s1

    def _laplace(self, x: Array, w: Array, wy: Array, h: float, share: Array | None) -> tuple[Array, Array]:
        def both_sides(a: Array) -> Array:
            around = decayed_sums(x, a, h) + decayed_sums(-x[::-1], a[::-1], h)[::-1]
            return 0.5 * (around + (a if share is None else a * (1.0 - share)))

        return both_sides(w), both_sides(wy)

    def _without_own(
        self, rows: Any, x: Array, w: Array, wy: Array, h: float | Array, share: Array
    ) -> tuple[Array, Array]:
        """Leave-one-out sums of nearly isolated points, where subtracting the own term leaves only rounding errors."""
        radius = self.reach * float(np.max(h)) * (1.0 + 1e-12)
        low = np.searchsorted(x, x[rows] - radius, "left")
        high = np.searchsorted(x, x[rows] + radius, "right")
        s0, s1 = np.empty(len(rows)), np.empty(len(rows))
        for n, j in enumerate(rows):
            near = slice(low[n], high[n])
            k = self((x[j] - x[near]) / (h[near] if isinstance(h, np.ndarray) else h))
            k[j - low[n]] *= 1.0 - share[j]
            s0[n], s1[n] = np.dot(k, w[near]), np.dot(k, wy[near])
        return s0, s1


def _compact(name: str, sd: float, scale: float, *powers: float) -> Kernel:
    return Kernel(name, sd, tuple(scale * p for p in powers))


#: Density kernels by name.
KERNELS: dict[str, Kernel] = {
    k.name: k
    for k in (
        Kernel("gaussian", 1.0),
        Kernel("laplace", math.sqrt(2.0)),
        _compact("uniform", 1.0 / math.sqrt(3.0), 1 / 2, 1),
        _compact("triangular", 1.0 / math.sqrt(6.0), 1.0, 1, -1),
        _compact("epanechnikov", 1.0 / math.sqrt(5.0), 3 / 4, 1, 0, -1),
        _compact("biweight", 1.0 / math.sqrt(7.0), 15 / 16, 1, 0, -2, 0, 1),
        _compact("triweight", 1.0 / 3.0, 35 / 32, 1, 0, -3, 0, 3, 0, -1),
        _compact("tricube", math.sqrt(35.0 / 243.0), 70 / 81, 1, 0, 0, -3, 0, 0, 3, 0, 0, -1),
    )
}


def density_kernel(name: str) -> Kernel:
    """A density kernel by name."""
    one_of("kernel", name, KERNELS)
    return KERNELS[name]


def reflected_gaussian(t: Array, c: Array, s: float) -> Array:
    """Density at t of a Gaussian around c that is reflected at 0 and 1: the heat kernel of the interval."""
    terms = math.ceil(20.0 * s) + 1
    image = 2.0 * np.arange(-terms, terms + 1)
    near = np.asarray(t - c)[..., None] - image
    far = np.asarray(t + c)[..., None] - image
    phi = KERNELS["gaussian"]
    return (phi(near / s) + phi(far / s)).sum(axis=-1) / s


def _exponential(d: Array, h: float) -> Array:
    return np.exp(-d / h)


def _squared_exponential(d: Array, h: float) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * (d / h) ** 2)


#: Kernels of a distance, one at zero, with which pair metrics compare predictions.
PAIR_KERNELS: dict[str, Callable[[Array, float], Array]] = {"laplace": _exponential, "gaussian": _squared_exponential}


#: A kernel by name, or any function ``k(d, h)`` of the distances between predictions and the width.
PairShape: TypeAlias = str | Callable[[Array, float], Array]


def pair_values(kernel: PairShape, d: Array, h: float) -> Array:
    """The kernel at these distances; a user's kernel must return the same number of finite values."""
    if isinstance(kernel, str):
        return PAIR_KERNELS[kernel](d, h)
    values = np.asarray(kernel(d, h), dtype=np.float64)
    if values.shape != d.shape:
        raise RefusedError(
            f"kernel returned shape {values.shape} for distances of shape {d.shape}: return one number for each"
        )
    if not np.isfinite(values).all():
        where = float(d[~np.isfinite(values)][0])
        raise RefusedError(f"kernel is not finite at distance {where:g} with width {h:g}: return finite numbers")
    return values


def checked_pair_kernel(kernel: PairShape) -> PairShape:
    """Raise an error for anything but the name of a kernel or a function."""
    if not callable(kernel):
        one_of("kernel", kernel, PAIR_KERNELS)
    return kernel


def safe_log(p: Array) -> Array:
    """log p with the zero probabilities of beta and Dirichlet kernels replaced by 1e-300.

    That floor is part of the kernels' definition: 0 log 0 is 0, and a point on the boundary has its limit.
    """
    return np.log(np.maximum(p, 1e-300))


@takes_old_keywords
def dirichlet_log_kernel(points: Array, centers: Array, h: float) -> Array:
    """log Dir(point; centre / h + 1), one row per point, one column per centre; both (n, K)."""
    from scipy.special import gammaln

    alpha = centers / h + 1.0
    log_norm = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return safe_log(points) @ (centers / h).T + log_norm


@takes_old_keywords
def beta_log_kernel(points: Array, centers: Array, h: float) -> Array:
    """log Beta(point; c/h + 1, (1-c)/h + 1), one row per point, one column per centre c."""
    return dirichlet_log_kernel(np.column_stack([1.0 - points, points]), np.column_stack([1.0 - centers, centers]), h)


# -- the rules of the width, and the curve that a kernel smooths ---------------------------------------

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
    return scale * h if h >= _SMALLEST_SPREAD else 1.0


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


def __dir__() -> list[str]:
    own = {name for name, value in globals().items() if getattr(value, "__module__", __name__) == __name__}
    own.add("PairShape")  # a type has the module of typing
    return sorted(name for name in own if not (name.startswith("_") or isinstance(globals()[name], ModuleType)))

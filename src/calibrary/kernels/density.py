"""Density kernels, which integrate to one and smooth curves, sums of kernels, and kernels that compare predictions.

``h`` is always the number in k((t - c) / h) / h: the standard deviation of the Gaussian, the half-width of compact
kernels, the decay length of the Laplace kernel. A kernel of pairs is one at distance zero, or a density whose shape
depends on its centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import polynomial

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.moved import takes_old_keywords
from calibrary.data.checks import Array
from calibrary.numerics.sums.gaussian import Cells, gaussian_on_nodes, gaussian_sums
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

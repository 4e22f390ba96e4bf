"""Local polynomial regression in one dimension as R's ``loess`` does it (tricube weights, nearest neighbours).

All inputs are sorted by ``x``. ``q`` counts rows: the window at a target holds its q nearest rows. ``stretch``
widens the window beyond the q-th distance (R does so for spans above one).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Rows handled at once: temporaries stay in the cache, and BLAS does not start threads.
_BLOCK = 8192
#: A Gram matrix (of centred, scaled columns) worse than this is left to the pseudo-inverse.
_MAX_CONDITION = 1e7


def nearest_window(x: Array, targets: Array, q: int) -> Indices:
    """First row of the window of the q nearest rows, for every target."""
    low = np.zeros(len(targets), dtype=np.intp)
    high = np.full(len(targets), len(x) - q, dtype=np.intp)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        right = np.where(open_, x[np.minimum(middle + q, len(x) - 1)], np.inf)
        move = right - targets < targets - x[middle]
        low = np.where(move & open_, middle + 1, low)
        high = np.where(~move & open_, middle, high)
    return low


def local_polynomial(
    x: Array, y: Array, w: Array | None, targets: Array, q: int, degree: int, stretch: float = 1.0
) -> tuple[Array, Array]:
    """Value and slope of the local polynomial at each target, one O(q) fit each."""
    starts = nearest_window(x, targets, q)
    fits = [_fit_at(x, y, w, t, int(s), q, degree, stretch) for t, s in zip(targets, starts, strict=True)]
    return np.array([f for f, _ in fits]), np.array([g for _, g in fits])


def _fit_at(
    x: Array, y: Array, w: Array | None, target: float, start: int, q: int, degree: int, stretch: float
) -> tuple[float, float]:
    left, right = x[start], x[start + q - 1]
    reach = max(target - left, right - target)
    radius = reach * stretch
    inside = slice(int(np.searchsorted(x, target - radius, "right")), int(np.searchsorted(x, target + radius, "left")))
    if inside.stop <= inside.start:
        # every weight would be zero: all q nearest rows share one distance, which may be 0
        at = [v for v in {float(left), float(right)} if abs(v - target) == reach]
        rows = np.concatenate([np.arange(np.searchsorted(x, v, "left"), np.searchsorted(x, v, "right")) for v in at])
        return float(np.average(y[rows], weights=None if w is None else w[rows])), 0.0
    return _weighted_polynomial(x[inside], y[inside], None if w is None else w[inside], target, radius, degree)


def _weighted_polynomial(
    x: Array, y: Array, w: Array | None, target: float, radius: float, degree: int
) -> tuple[float, float]:
    """Weighted least squares about ``target``; moments about the weighted mean keep the system well conditioned."""
    kernel = np.empty(len(x))
    total = first = second = 0.0
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(x), _BLOCK)]
    for rows in blocks:
        u = (x[rows] - target) / radius
        k = _tricube(u, None if w is None else w[rows])
        kernel[rows] = k
        total += float(k.sum())
        first += float(k @ u)
        second += float(k @ (u * u))
    if total <= 0.0:
        return float(np.average(y, weights=w)), 0.0
    if degree == 0:
        return float(sum(kernel[rows] @ y[rows] for rows in blocks)) / total, 0.0
    mean = target + radius * first / total
    variance = second / total - (first / total) ** 2
    if variance <= 1e-12:
        return _pseudo_inverse(x, y, kernel, target, degree)
    sd = radius * np.sqrt(variance)
    s, t = np.zeros(2 * degree + 1), np.zeros(degree + 1)
    for rows in blocks:
        z = (x[rows] - mean) / sd
        power = kernel[rows]
        for n in range(2 * degree + 1):
            s[n] += power.sum()
            if n <= degree:
                t[n] += power @ y[rows]
            if n < 2 * degree:
                power = power * z if n == 0 else np.multiply(power, z, out=power)
    gram = s[np.add.outer(np.arange(degree + 1), np.arange(degree + 1))]
    scale = 1.0 / np.sqrt(np.diag(gram))
    scaled = gram * np.outer(scale, scale)
    if np.linalg.cond(scaled) > _MAX_CONDITION:
        return _pseudo_inverse(x, y, kernel, target, degree)
    b = scale * np.linalg.solve(scaled, scale * t)
    z0 = (target - mean) / sd
    value = sum(b[j] * z0**j for j in range(degree + 1))
    slope = sum(j * b[j] * z0 ** (j - 1) for j in range(1, degree + 1)) / sd
    return float(value), float(slope)


def _tricube(u: Array, w: Array | None) -> Array:
    a = np.abs(u)
    t = 1.0 - a * a * a
    k = t * t * t
    if w is not None:
        k *= w
    return k


def _pseudo_inverse(x: Array, y: Array, kernel: Array, target: float, degree: int) -> tuple[float, float]:
    """The same fit by singular values, dropping those below 100 eps of the largest, as R does."""
    start = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
    k = np.add.reduceat(kernel, start)
    mean = np.add.reduceat(kernel * y, start) / np.where(k > 0.0, k, 1.0)
    root = np.sqrt(np.maximum(k, 0.0))
    d = x[start] - target
    design = np.stack([d**j for j in range(degree + 1)], axis=1) * root[:, None]
    norms = np.linalg.norm(design, axis=0)
    norms[norms == 0.0] = 1.0
    u, s, vt = np.linalg.svd(design / norms, full_matrices=False)
    keep = s > s[0] * 100.0 * np.finfo(np.float64).eps
    b = (vt[keep].T @ ((u[:, keep].T @ (root * mean)) / s[keep])) / norms
    return float(b[0]), float(b[1]) if degree else 0.0


def cell_vertices(x: Array, leaf: int) -> Array:
    """Vertices of the k-d tree R's ``loess`` builds on sorted x: cells of more than ``leaf`` rows are cut."""
    margin = 0.005 * max(x[-1] - x[0], 1e-10 * float(np.abs(x).max()) + 1e-30)
    box = (float(x[0] - margin), float(x[-1] + margin))
    vertices = set(box)
    cells = [(1, len(x), *box)]
    while cells:
        low, high, left, right = cells.pop()
        if high - low + 1 <= leaf:
            continue
        m = _cut(x, low, high)
        value = float(x[m - 1])
        if value in (left, right):
            continue
        vertices.add(value)
        cells += [(low, m, left, value), (m + 1, high, value, right)]
    return np.array(sorted(vertices))


def _cut(x: Array, low: int, high: int) -> int:
    """Position (from one) of the row to cut at: the middle, or the nearest one that does not split equal values."""
    middle = (low + high) // 2
    offset = 0
    while low <= middle + offset < high:
        m = middle + offset
        if x[m - 1] != x[m]:
            return m
        offset = -offset if offset > 0 else 1 - offset
    return middle


def hermite(vertices: Array, value: Array, slope: Array, z: Array) -> Array:
    """Cubic Hermite interpolation between vertices, at ascending z."""
    ends = np.searchsorted(z, vertices[1:-1], "right")
    result = np.empty(len(z))
    for j, (start, stop) in enumerate(zip([0, *ends], [*ends, len(z)], strict=True)):
        width = vertices[j + 1] - vertices[j]
        rise, g0, g1 = value[j + 1] - value[j], slope[j] * width, slope[j + 1] * width
        t = (z[start:stop] - vertices[j]) / width
        # Hermite's form as a polynomial of t
        part = t * (g0 + g1 - 2.0 * rise)
        part += 3.0 * rise - 2.0 * g0 - g1
        part *= t
        part += g0
        part *= t
        part += value[j]
        result[start:stop] = part
    return result

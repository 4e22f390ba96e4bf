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
    total = first = 0.0
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(x), _BLOCK)]
    for rows in blocks:
        k = _tricube((x[rows] - target) / radius, None if w is None else w[rows])
        kernel[rows] = k
        total += float(k.sum())
        first += float(k @ x[rows])
    if total <= 0.0:
        return float(np.average(y, weights=w)), 0.0
    mean = first / total
    if degree == 0:
        return float(kernel @ y) / total, 0.0
    spread = 0.0
    for rows in blocks:
        z = x[rows] - mean
        spread += float(kernel[rows] @ (z * z))
    sd = np.sqrt(spread / total)
    if sd <= 1e-12 * radius:
        return _pseudo_inverse(x, y, kernel, target, degree)
    s, t = np.zeros(2 * degree + 1), np.zeros(degree + 1)
    for rows in blocks:
        z = (x[rows] - mean) / sd
        power = kernel[rows].copy()
        for n in range(2 * degree + 1):
            s[n] += power.sum()
            if n <= degree:
                t[n] += power @ y[rows]
            power *= z
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
    """Cubic Hermite interpolation between vertices."""
    cell = np.clip(np.searchsorted(vertices, z, "left") - 1, 0, len(vertices) - 2)
    width = np.diff(vertices)
    f0, f1 = value[:-1], value[1:]
    g0, g1 = slope[:-1] * width, slope[1:] * width
    # Hermite's form as a polynomial of t in every cell
    c2, c3 = 3.0 * (f1 - f0) - 2.0 * g0 - g1, 2.0 * (f0 - f1) + g0 + g1
    t = (z - vertices[cell]) / width[cell]
    result: Array = f0[cell] + t * (g0[cell] + t * (c2[cell] + t * c3[cell]))
    return result

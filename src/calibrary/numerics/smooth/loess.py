"""Local regression in one dimension: R's ``loess`` (tricube weights, nearest neighbours), lowess, Epanechnikov lines.

All inputs are sorted by ``x``. ``q`` counts rows: the window at a target contains its q nearest rows. ``stretch``
widens the window beyond the q-th distance (R does so for spans above one). If each row represents many copies, ``upto``
is the cumulative number of copies, and q counts copies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.runs import first_where
from calibrary.numerics.sums.windows import WindowCells, blocks_within

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Number of rows, or entries of a table of targets and rows, handled at once: temporaries fit the cache, and BLAS does
#: not start threads.
_BLOCK = 8192
#: Number of targets times rows below which arrays are not worth their overhead, for a compiled loop and for a plain
#: one.
_FEW, _VERY_FEW = 20_000, 300
#: The weight is a polynomial of degree 9 on either side of the target, times powers up to 4.
_NODES = 14
#: A Gram matrix (of centred, scaled columns) with a larger condition number is left to the pseudo-inverse.
_MAX_CONDITION = 1e7
#: A matrix with a smaller determinant is examined separately.
_SMALL_DETERMINANT = 1e-4
#: Confidences with a smaller relative difference, such as 2/3 and 1 - 1/3, are the same.
_ROUNDING = 16.0 * np.finfo(np.float64).eps


def row_of(copy: Any, upto: Indices | None) -> Any:
    """The row of a copy; without copies every row is its own copy."""
    return copy if upto is None else upto.searchsorted(copy, "right")


def nearest_window(x: Array, targets: Array, q: int, upto: Indices | None = None) -> Indices:
    """First row (or copy) of the window of the q nearest ones, for every target."""
    n = len(x) if upto is None else int(upto[-1])
    if upto is None and len(targets) * (n - q) <= _BLOCK:
        nearer_right = x[q:] - targets[:, None] < targets[:, None] - x[: n - q]
        return np.asarray(nearer_right.sum(axis=1))

    def nearest(start: Indices) -> Any:
        after = x[row_of(np.minimum(start + q, n - 1), upto)]
        return after - targets >= targets - x[row_of(start, upto)]

    return first_where(nearest, np.zeros(len(targets), dtype=np.intp), np.full(len(targets), n - q))


def local_polynomial(
    x: Array,
    y: Array,
    w: Array | None,
    targets: Array,
    q: int,
    degree: int,
    stretch: float = 1.0,
    upto: Indices | None = None,
) -> tuple[Array, Array]:
    """Value and slope of the local polynomial at each target."""
    entries = len(targets) * len(x)
    fast = upto is None and entries <= _FEW and worth_compiling("loess._loop", 300.0 + 0.03 * entries)
    if fast or (upto is None and entries <= _VERY_FEW):
        value, slope = _few(x, y, w, targets, q, degree, stretch, fast)
        doubtful = np.flatnonzero(np.isnan(value))
        if not len(doubtful):
            return value, slope
        starts = nearest_window(x, targets[doubtful], q)
        for i, start in zip(doubtful.tolist(), starts.tolist(), strict=True):
            value[i], slope[i] = _fit_at(x, y, w, targets[i], x[start], x[start + q - 1], degree, stretch)
        return value, slope
    starts = nearest_window(x, targets, q, upto)
    left, right = x[row_of(starts, upto)], x[row_of(starts + q - 1, upto)]
    radius = np.maximum(targets - left, right - targets) * stretch
    weights = np.stack((np.ones(len(x)), y) if w is None else (w, w * y), axis=1)
    points = x
    if len(x) > max(_BLOCK, 100 * len(targets)):
        breaks = np.concatenate((targets - radius, targets, targets + radius))
        points, weights = replacement_points(x, weights, x.searchsorted(breaks))
    value, slope = np.empty(len(targets)), np.empty(len(targets))
    step = max(1, _BLOCK // len(points))
    for i in range(0, len(targets), step):
        some = slice(i, i + step)
        value[some], slope[some] = _fits(points, weights, targets[some], radius[some], degree)
    for i in np.flatnonzero(np.isnan(value)).tolist():
        value[i], slope[i] = _fit_at(x, y, w, targets[i], left[i], right[i], degree, stretch)
    return value, slope


def _few(
    x: Array, y: Array, w: Array | None, targets: Array, q: int, degree: int, stretch: float, fast: bool
) -> tuple[Array, Array]:
    """All fits for few rows: one loop, plain or compiled, because a numpy call takes longer than the computation."""
    value, slope = np.empty(len(targets)), np.empty(len(targets))
    weights = np.ones(len(x)) if w is None else w
    if fast:
        columns = np.empty((2, len(x)))
        compiled(_loop)(x, y, weights, targets, q, degree, stretch, columns[0], columns[1], value, slope)
        return value, slope
    k, u = [0.0] * len(x), [0.0] * len(x)
    _loop(x.tolist(), y.tolist(), weights.tolist(), targets.tolist(), q, degree, stretch, k, u, value, slope)
    return value, slope


def _loop(
    x: Any, y: Any, w: Any, targets: Any, q: int, degree: int, stretch: float, k: Any, u: Any, value: Any, slope: Any
) -> None:
    """The fit at every target; NaN if one needs special treatment. ``k`` and ``u`` have one entry per row."""
    n = len(x)
    start = 0
    for i in range(len(targets)):
        at = targets[i]
        if i > 0 and at < targets[i - 1]:
            start = 0
        while start + q < n and x[start + q] - at < at - x[start]:
            start += 1
        radius = max(at - x[start], x[start + q - 1] - at) * stretch
        value[i] = slope[i] = np.nan
        if radius <= 0.0:
            continue
        total = first = second = level = near = 0.0
        for j in range(n):
            u[j] = (x[j] - at) / radius
            a = abs(u[j])
            k[j] = 0.0
            if a < 1.0:
                t = 1.0 - a * a * a
                k[j] = t * t * t * w[j]
                near += w[j]
                total += k[j]
                first += k[j] * u[j]
                second += k[j] * u[j] * u[j]
                level += k[j] * y[j]
        if total <= 1e-3 * near:
            continue
        if degree == 0:
            value[i], slope[i] = level / total, 0.0
            continue
        mean = first / total
        variance = second / total - mean * mean
        if variance <= 1e-12:
            continue
        sd = sqrt(variance)
        e1 = e2 = e3 = e4 = m1 = m2 = 0.0
        for j in range(n):
            if k[j] > 0.0:
                z = (u[j] - mean) / sd
                a = k[j] * z
                e1 += a
                m1 += a * y[j]
                a *= z
                e2 += a
                m2 += a * y[j]
                a *= z
                e3 += a
                e4 += a * z
        e1, e2, e3, e4 = e1 / total, e2 / total, e3 / total, e4 / total
        m0, m1, m2 = level / total, m1 / total, m2 / total
        z = -mean / sd
        if degree == 1:
            determinant = e2 - e1 * e1
            if determinant <= _SMALL_DETERMINANT * e2:
                continue
            b1 = (m1 - e1 * m0) / determinant
            value[i] = (e2 * m0 - e1 * m1) / determinant + z * b1
            slope[i] = b1 / (sd * radius)
            continue
        c00, c01, c02 = e2 * e4 - e3 * e3, e2 * e3 - e1 * e4, e1 * e3 - e2 * e2
        c11, c12, c22 = e4 - e2 * e2, e1 * e2 - e3, e2 - e1 * e1
        determinant = c00 + e1 * c01 + e2 * c02
        if determinant <= _SMALL_DETERMINANT * e2 * e4:
            continue
        b0 = (c00 * m0 + c01 * m1 + c02 * m2) / determinant
        b1 = (c01 * m0 + c11 * m1 + c12 * m2) / determinant
        b2 = (c02 * m0 + c12 * m1 + c22 * m2) / determinant
        value[i] = b0 + z * (b1 + z * b2)
        slope[i] = (b1 + 2.0 * z * b2) / (sd * radius)


def replacement_points(x: Array, weights: Array, cuts: Indices) -> tuple[Array, Array]:
    """Few ascending points, and columns of weights for them, with the same weighted sums of f as all rows.

    Between the cuts every f must be a polynomial of degree 13 or less. A run of rows is replaced by the Chebyshev nodes
    of its range: their values determine such a polynomial.
    """
    cuts = np.union1d(cuts, np.arange(0, len(x), _BLOCK))
    bounds = np.append(cuts[cuts < len(x)], len(x))
    angle = np.pi * (np.arange(_NODES)[::-1] + 0.5) / _NODES
    powers = np.arange(_NODES)
    spread = np.cos(np.outer(angle, powers)) * np.where(powers == 0, 1.0, 2.0) / _NODES
    low, high = x[bounds[:-1]], x[bounds[1:] - 1]
    center, half = 0.5 * (low + high), 0.5 * (high - low)
    nodes = center[:, None] + half[:, None] * np.cos(angle)
    size, within, shares = np.diff(bounds), np.where(half > 0.0, half, 1.0), np.empty((*nodes.shape, weights.shape[1]))
    for runs in _spans(bounds):
        rows = slice(bounds[runs.start], bounds[runs.stop])
        z = (x[rows] - center[runs].repeat(size[runs])) / within[runs].repeat(size[runs])
        table = chebvander(z, _NODES - 1).T
        for j, (start, stop) in enumerate(pairwise(bounds[runs.start : runs.stop + 1].tolist()), runs.start):
            shares[j] = spread @ (table[:, start - rows.start : stop - rows.start] @ weights[start:stop])
    return nodes.ravel(), shares.reshape(nodes.size, -1)


def _spans(bounds: Indices) -> Iterator[slice]:
    """Neighbouring runs whose rows together fit the cache."""
    first = 0
    while first < len(bounds) - 1:
        last = max(int(bounds.searchsorted(bounds[first] + _BLOCK, "right")) - 1, first + 1)
        yield slice(first, last)
        first = last


def fit_weights(
    x: Array, w: Array | None, targets: Array, q: int, degree: int, stretch: float, upto: Indices | None
) -> Array | None:
    """The coefficient of each row's y in the values and then the slopes at the targets: (2 targets, rows).

    None if a target needs more care than the normal equations allow.
    """
    starts = nearest_window(x, targets, q, upto)
    left, right = x[row_of(starts, upto)], x[row_of(starts + q - 1, upto)]
    radius = np.maximum(targets - left, right - targets) * stretch
    result = np.empty((2, len(targets), len(x)))
    for j, (at, reach) in enumerate(zip(targets, radius, strict=True)):
        if not reach > 0.0:
            return None
        u = (x - at) / reach
        a = np.minimum(np.abs(u), 1.0)
        kernel = _tricube(a, w)
        total, near = kernel.sum(), np.sum(a < 1.0) if w is None else w @ (a < 1.0)
        mean = (kernel @ u) / total if total > 1e-3 * near else np.nan
        variance = (kernel @ (u - mean) ** 2) / total
        if not variance > 1e-12:
            return None
        sd = float(np.sqrt(variance))
        powers = ((u - mean) / sd) ** np.arange(degree + 1)[:, None]
        gram = (powers * kernel) @ powers.T / total
        scale = 1.0 / np.sqrt(np.diag(gram))
        scaled = gram * np.outer(scale, scale)
        if not np.linalg.det(scaled) > _SMALL_DETERMINANT:
            return None
        z, order = -mean / sd, np.arange(degree + 1)
        ends = np.stack([z**order, order * z ** np.maximum(order - 1, 0) / (sd * reach)])
        result[:, j] = (np.linalg.solve(scaled, (ends * scale).T).T * scale) @ powers * (kernel / total)
    return result.reshape(-1, len(x))


def _fits(x: Array, weights: Array, targets: Array, radius: Array, degree: int) -> tuple[Array, Array]:
    """All fits at once; NaN if one needs special treatment. ``weights`` has columns w and w times y."""
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (x - targets[:, None]) / radius[:, None]
        a = np.minimum(np.abs(u), 1.0)
        kernel = _tricube(a, None)
        (total, first, second), (level, *_) = _moments(kernel, u, 3, weights)
        # a window with nearly all its rows at the edge is lost in the rounding of the replacement points
        trusted = total > 1e-3 * ((a < 1.0) @ weights[:, 0])
        if degree == 0:
            return np.where(trusted, level / total, np.nan), np.zeros(len(targets))
        mean = first / total
        variance = second / total - mean * mean
        trusted &= variance > 1e-12
        sd = np.sqrt(variance)
        u -= mean[:, None]
        u /= sd[:, None]
        s, t = _moments(kernel, u, 2 * degree + 1, weights)
        coefficients, determinant = _normal_equations(s[1:] / s[0], t / s[0])
        trusted &= determinant > _SMALL_DETERMINANT
        z0 = -mean / sd
        value, slope = coefficients[-1], np.zeros(len(targets))
        for b in coefficients[-2::-1]:
            value, slope = b + z0 * value, value + z0 * slope
        return np.where(trusted, value, np.nan), slope / (sd * radius)


def _moments(kernel: Array, z: Array, n: int, weights: Array) -> Array:
    """Sums over the rows of kernel z^k weight, k < n; first index the column of the weights, then k, then target."""
    powers = np.empty((n, *z.shape))
    powers[0] = kernel
    for k in range(1, n):
        np.multiply(powers[k - 1], z, out=powers[k])
    return (powers @ weights).transpose(2, 0, 1)


def _normal_equations(e: Array, m: Array) -> tuple[list[Array], Array]:
    """Coefficients of the line or parabola with mean powers e = (z, z^2, ...) and means m = (y, y z, ...).

    Also the determinant, of the equations scaled to ones on the diagonal.
    """
    if len(e) == 2:
        determinant = e[1] - e[0] * e[0]
        b = [e[1] * m[0] - e[0] * m[1], m[1] - e[0] * m[0]]
        return [x / determinant for x in b], determinant / e[1]
    e1, e2, e3, e4 = e
    c00, c01, c02 = e2 * e4 - e3 * e3, e2 * e3 - e1 * e4, e1 * e3 - e2 * e2
    c11, c12, c22 = e4 - e2 * e2, e1 * e2 - e3, e2 - e1 * e1
    determinant = c00 + e1 * c01 + e2 * c02
    b = [
        c00 * m[0] + c01 * m[1] + c02 * m[2],
        c01 * m[0] + c11 * m[1] + c12 * m[2],
        c02 * m[0] + c12 * m[1] + c22 * m[2],
    ]
    return [x / determinant for x in b], determinant / (e2 * e4)


def _fit_at(
    x: Array, y: Array, w: Array | None, target: float, left: float, right: float, degree: int, stretch: float
) -> tuple[float, float]:
    reach = max(target - left, right - target)
    radius = reach * stretch
    inside = slice(int(np.searchsorted(x, target - radius, "right")), int(np.searchsorted(x, target + radius, "left")))
    if inside.stop <= inside.start:
        # every weight would be zero: all q nearest rows have the same distance, which may be 0
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
    """The same fit by singular values, without those below 100 eps of the largest, as in R."""
    # values that differ by rounding are one: a slope between them would be noise, and depend on the order of the rows
    start = np.flatnonzero(np.concatenate(([True], x[1:] - x[:-1] > _ROUNDING * max(abs(x[0]), abs(x[-1])))))
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


def cell_vertices(x: Array, leaf: int, upto: Indices | None = None) -> Array:
    """Vertices of the k-d tree R's ``loess`` builds on sorted x: cells of more than ``leaf`` rows are cut."""
    margin = 0.005 * max(x[-1] - x[0], 1e-10 * float(max(abs(x[0]), abs(x[-1]))) + 1e-30)
    box = (float(x[0] - margin), float(x[-1] + margin))
    vertices = set(box)
    cells = [(1, len(x) if upto is None else int(upto[-1]), *box)]
    ends = (np.arange(1, len(x) + 1) if upto is None else upto)[np.append(x[1:] != x[:-1], True)]
    while cells:
        low, high, left, right = cells.pop()
        if high - low + 1 <= leaf:
            continue
        m = _cut(ends, low, high)
        value = float(x[row_of(m - 1, upto)])
        if value in (left, right):
            continue
        vertices.add(value)
        cells += [(low, m, left, value), (m + 1, high, value, right)]
    return np.array(sorted(vertices))


def _cut(ends: Indices, low: int, high: int) -> int:
    """Position (from one) of the row or copy to cut at: the middle, or the nearest that does not split equal values.

    ``ends`` is the number of rows or copies up to each value. If every cut would split a value, it is the middle.
    """
    middle = (low + high) // 2
    after = int(ends.searchsorted(middle))
    above = int(ends[after]) - middle if after < len(ends) else high
    below = middle - int(ends[after - 1]) if after > 0 else high
    if above <= below:
        return middle + above if middle + above < high else middle
    # the same distance above is checked first, and the search ends when it leaves the cell
    return middle - below if middle + below < high and middle - below >= low else middle


def hermite(vertices: Array, value: Array, slope: Array, z: Array) -> Array:
    """Cubic Hermite interpolation between vertices, at ascending z."""
    left, width, rise = vertices[:-1], vertices[1:] - vertices[:-1], value[1:] - value[:-1]
    g0, g1 = slope[:-1] * width, slope[1:] * width
    # Hermite's form as a polynomial of the position in the cell
    pieces = np.array((left, width, value[:-1], g0, 3.0 * rise - 2.0 * g0 - g1, g0 + g1 - 2.0 * rise))
    if len(z) < 100 * len(left):
        return _cubic(z, *pieces[:, vertices[1:-1].searchsorted(z)])
    ends = np.searchsorted(z, vertices[1:-1], "right")
    result = np.empty(len(z))
    for start, stop, piece in zip([0, *ends], [*ends, len(z)], pieces.T, strict=True):
        result[start:stop] = _cubic(z[start:stop], *piece)
    return result


def _cubic(z: Array, left: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> Array:
    """a + t (b + t (c + t d)) at t = (z - left) / width."""
    t = (z - left) / width
    part: Array = t * d
    for coefficient in (c, b):
        part += coefficient
        part *= t
    part += a
    return part


#: Number of rows from which the windows' sums use fewer points, or a compiled loop.
_LONG = 5000


def lowess(x: Array, y: Array, w: Array | None, span: float, delta: float) -> tuple[Array, Array]:
    """Fitted points of the curve, and their values; x is sorted, rows within delta of a fit are skipped."""
    n = len(x)
    size = max(2, min(n, int(span * n + 1e-7)))
    points = _points(x.tolist(), delta)
    first = nearest_window(x, points, min(size, n))
    h = np.maximum(points - x[first], x[np.minimum(first + size, n) - 1] - points)
    flat = 0.001 * (x[-1] - x[0])
    weights = np.stack((np.ones(n), y) if w is None else (w, w * y), axis=1)
    if n > max(_LONG, 200 * len(points)):  # the tricube weight is a polynomial between these points
        cuts = [x.searchsorted(points - r * h, "left") for r in (0.999, 0.001, 0.0)]
        cuts += [x.searchsorted(points + r * h, "right") for r in (0.001, 0.999)]
        x, weights = replacement_points(x, weights, np.concatenate(cuts))
    w, wy = np.ascontiguousarray(weights.T)
    start, stop = x.searchsorted(points - 0.999 * h, "left"), x.searchsorted(points + 0.999 * h, "right")
    if n > _LONG and worth_compiling("loess.window_sums", 0.015 * float((stop - start).sum())):
        from calibrary.numerics.compiled.loess import window_sums
    else:
        window_sums = _window_sums
    s0, s1, s2, t0, t1 = window_sums(x, w, wy, points, h, start, stop)
    mean, level = s1 / s0, t0 / s0
    spread = s2 / s0 - mean * mean
    # a constant if x hardly varies
    sloped = (spread > 0.0) & (h * np.sqrt(np.maximum(spread, 0.0)) > flat)
    slope = np.divide(t1 / s0 - mean * level, spread, out=np.zeros(len(points)), where=sloped)
    return points, level - mean * slope


def _points(x: list[float], delta: float) -> Array:
    """The points where lines are fitted: the last row within delta of the point before, or the next distinct value."""
    at = 0
    points = []
    while at < len(x):
        points.append(x[at])
        at = max(bisect_right(x, x[at], at), bisect_right(x, x[at] + delta, at) - 1)
    return np.array(points)


def _window_sums(x: Array, w: Array, wy: Array, t: Array, h: Array, start: Indices, stop: Indices) -> Array:
    """Sums over the window of every t of the tricube weight times w, w u, w u^2, wy and wy u, with u = (x - t) / h.

    The weight is one within 0.001 h, and the windows end at 0.999 h.
    """
    sums = np.empty((5, len(t)))
    scale = 1.0 / np.where(h > 0.0, h, 1.0)
    row = np.arange(len(x))
    step = max(1, _BLOCK // len(x))
    for i in range(0, len(t), step):
        some = slice(i, i + step)
        near = slice(start[some].min(), stop[some].max())  # what lies in none of these windows is left out
        u = (x[near] - t[some, None]) * scale[some, None]
        a = np.abs(u)
        k = 1.0 - a * a * a
        k *= k * k
        np.copyto(k, 1.0, where=a <= 0.001)
        if step > 1:
            k *= (row[near] >= start[some, None]) & (row[near] < stop[some, None])
        ku = k * u
        sums[:, some] = k @ w[near], ku @ w[near], (ku * u) @ w[near], k @ wy[near], ku @ wy[near]
    return sums


#: Largest number of pairs of row and target handled at once; more are left to the compiled walk.
_FEW_PAIRS = 10**6


def epanechnikov_lines(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """Value of the local line at each target; NaN if no row lies within h (exclusive).

    x and targets are ascending. The mean is returned if rows within h are almost all at one point.
    """
    if len(x) * len(targets) <= _FEW_PAIRS:
        return _all_pairs(x, y, w, targets, h)
    if x[-1] - x[0] <= 1e15 * h:
        if worth_compiling("loess.walk", 2.0 * len(targets) + 0.2 * len(x)):
            from calibrary.numerics.compiled.loess import walk

            value = np.empty(len(targets))
            walk(x, y, w, targets, h, value)
            return value
        return _by_moments(x, y, w, targets, h)
    return _in_blocks(x, y, w, targets, h)


def _by_moments(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """Lines from the power moments of every window; from the rows if the moments have lost too many digits."""
    cells = WindowCells(x, h)
    begin, end = cells.place(targets, 1.0, True), cells.place(targets, -1.0, False)
    m = cells.moments(np.stack((w, w * y), axis=1), 5)(targets, begin, end)
    s0, s1, s2 = (m[k, :, 0] - m[k + 2, :, 0] for k in range(3))
    t0, t1 = (m[k, :, 1] - m[k + 2, :, 1] for k in range(2))
    determinant = s0 * s2 - s1 * s1
    good = (end > begin) & (s0 > 1e-4 * m[0, :, 0]) & (determinant > 1e-6 * s0 * s0)
    value = np.divide(s2 * t0 - s1 * t1, determinant, out=np.empty(len(targets)), where=good)
    value[~good] = _in_blocks(x, y, w, targets[~good], h)
    return value


def _in_blocks(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """All pairs of some targets and the rows near them at a time."""
    value = np.empty(len(targets))
    for at, rows in blocks_within(1.001 * h, targets, x, 256, _FEW_PAIRS):
        value[at] = _all_pairs(x[rows], y[rows], w[rows], targets[at], h)
    return value


def _all_pairs(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    u = (x - targets[:, None]) / h
    k = np.maximum((1.0 - u) * (1.0 + u), 0.0)
    near = (k > 0.0) @ w
    k *= w
    total = k.sum(axis=1)
    inside = total > 1e-11 * near  # rounding decides what is inside at the very edge
    total[~inside] = 1.0
    level = (k @ y) / total
    mean = np.einsum("tn,tn->t", k, u) / total
    u -= mean[:, None]
    spread = np.einsum("tn,tn,tn->t", k, u, u)
    slope = np.einsum("tn,tn->t", k, u * (y - level[:, None])) / np.where(spread > 1e-12 * total, spread, np.inf)
    return np.where(inside, level - mean * slope, np.nan)

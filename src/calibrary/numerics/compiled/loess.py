"""Local regression at many sorted targets in one walk: tricube polynomials, Epanechnikov lines, and lowess.

The tricube weight is 1 - 3|v|^3 + 3|v|^6 - |v|^9 of the scaled distance v, so a fit needs only power sums of v over the
window and the same with the sign of v. The window slides, so the sums are updated: about a centre m, in units of s,
shifted to each target. They are recomputed (never translated, which multiplies rounding errors) if the target has moved
away from m or the window's radius from s. Values agree with one fit per target to about 1e-12, and to 1e-9 if most rows
lie in a range far narrower than the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

_REBUILD_AFTER = 1_000_000
#: Degree 2 needs v^4 times |v|^9, so powers 0 to 13; a constant lets the compiler unroll.
_POWERS = 14


@jit(fastmath={"contract"})
def _add(moments: Any, z: float, weight: float, signed: float, y: float) -> None:
    a, b = weight, signed
    for n in range(_POWERS):
        moments[n, 0] += a
        moments[n, 1] += b
        moments[n, 2] += a * y
        moments[n, 3] += b * y
        a *= z
        b *= z


@jit(fastmath={"contract"})
def local_polynomials(
    x: Any,
    y: Any,
    w: Any,
    targets: Any,
    q: int,
    first: Any,
    stop: Any,
    degree: int,
    stretch: float,
    limit: float,
    value: Any,
    trusted: Any,
) -> None:
    """Write ``value`` and ``trusted`` (False where rounding may exceed ``limit`` times machine precision).

    A window contains the q nearest rows, or, if given, the rows from ``first`` to ``stop``. Four sums are updated:
    plain, signed (+ right of the target, - left), and both times y.
    """
    n = len(x)
    moments = np.zeros((_POWERS, 4))
    v = np.zeros((_POWERS, 4))
    start = 0
    end = 0
    left_of = 0
    center = 0.0
    unit = -1.0
    changes = 0
    for i in range(len(targets)):
        t = targets[i]
        new_start = start
        if len(first) > 0:
            new_start, new_end = first[i], stop[i]
        else:
            while new_start + q < n and x[new_start + q] - t < t - x[new_start]:
                new_start += 1
            new_end = new_start + q
        new_left = left_of
        while new_left < n and x[new_left] < t:
            new_left += 1
        radius = max(t - x[new_start], x[new_end - 1] - t) * stretch
        if radius <= 0.0:
            trusted[i] = False
            unit = -1.0
            start, end, left_of = new_start, new_end, new_left
            continue
        changes += 2 * (new_start - start) + new_left - left_of
        stale = unit < 0.75 * radius or unit > 1.3 * radius or abs(t - center) > 0.3 * radius
        far = 2 * (new_start - start) > new_end - new_start or new_start > end
        if stale or far or changes > _REBUILD_AFTER:
            center, unit, changes = t + 0.2 * radius, radius, 0
            moments[:] = 0.0
            for j in range(new_start, new_end):
                sign = -1.0 if j < new_left else 1.0
                _add(moments, (x[j] - center) / unit, w[j], sign * w[j], y[j])
        else:
            for j in range(start, new_start):
                sign = -1.0 if j < left_of else 1.0
                _add(moments, (x[j] - center) / unit, -w[j], -sign * w[j], y[j])
            for j in range(end, new_end):
                sign = -1.0 if j < left_of else 1.0
                _add(moments, (x[j] - center) / unit, w[j], sign * w[j], y[j])
            for j in range(max(left_of, new_start), min(new_left, new_end)):
                _add(moments, (x[j] - center) / unit, 0.0, -2.0 * w[j], y[j])
        start, end, left_of = new_start, new_end, new_left
        scale = 1.0
        ratio = unit / radius
        for p in range(_POWERS):
            for lane in range(4):
                v[p, lane] = scale * moments[p, lane]
            scale *= ratio
        shift = (center - t) / radius
        for r in range(1, _POWERS):
            for p in range(_POWERS - 1, r - 1, -1):
                for lane in range(4):
                    v[p, lane] += shift * v[p - 1, lane]
        value[i], trusted[i] = _intercept(v, degree, limit)


@jit(fastmath={"contract"})
def _intercept(v: Any, degree: int, limit: float) -> Any:
    s0 = v[0, 0] - 3.0 * v[3, 1] + 3.0 * v[6, 0] - v[9, 1]
    t0 = v[0, 2] - 3.0 * v[3, 3] + 3.0 * v[6, 2] - v[9, 3]
    if s0 <= 0.0:
        return 0.0, False
    lost = v[0, 0] / s0
    m0 = t0 / s0
    if degree == 0:
        return m0, lost < limit
    mean = (v[1, 0] - 3.0 * v[4, 1] + 3.0 * v[7, 0] - v[10, 1]) / s0
    e2 = (v[2, 0] - 3.0 * v[5, 1] + 3.0 * v[8, 0] - v[11, 1]) / s0
    m1 = (v[1, 2] - 3.0 * v[4, 3] + 3.0 * v[7, 2] - v[10, 3]) / s0
    variance = e2 - mean * mean
    if variance <= 0.0:
        return 0.0, False
    lost /= variance
    sd = np.sqrt(variance)
    z0 = -mean / sd
    r1 = (m1 - mean * m0) / sd
    if degree == 1:
        return m0 + r1 * z0, lost < limit
    e3 = (v[3, 0] - 3.0 * v[6, 1] + 3.0 * v[9, 0] - v[12, 1]) / s0
    e4 = (v[4, 0] - 3.0 * v[7, 1] + 3.0 * v[10, 0] - v[13, 1]) / s0
    m2 = (v[2, 2] - 3.0 * v[5, 3] + 3.0 * v[8, 2] - v[11, 3]) / s0
    skew = (e3 - 3.0 * mean * e2 + 2.0 * mean**3) / (variance * sd)
    kurtosis = (e4 - 4.0 * mean * e3 + 6.0 * mean * mean * e2 - 3.0 * mean**4) / variance**2
    determinant = kurtosis - skew * skew - 1.0
    if determinant <= 0.0:
        return 0.0, False
    r2 = (m2 - 2.0 * mean * m1 + mean * mean * m0) / variance
    b2 = (r2 - m0 - skew * r1) / determinant
    b1 = r1 - skew * b2
    lost *= (1.0 + z0 * z0) / (variance * determinant)
    return m0 - b2 + z0 * (b1 + z0 * b2), lost < limit


Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@jit
def window_sums(x: Array, w: Array, wy: Array, t: Array, h: Array, start: Indices, stop: Indices) -> Array:
    """Sums over the window of every t of the tricube weight times w, w u, w u^2, wy and wy u, with u = (x - t) / h."""
    sums = np.empty((5, len(t)))
    for j in range(len(t)):
        scale = 1.0 / h[j] if h[j] > 0.0 else 1.0
        s0 = s1 = s2 = t0 = t1 = 0.0
        for i in range(start[j], stop[j]):
            u = (x[i] - t[j]) * scale
            a = abs(u)
            k = 1.0 - a * a * a
            k = 1.0 if a <= 0.001 else k * k * k
            kw, ky = k * w[i], k * wy[i]
            s0 += kw
            s1 += kw * u
            s2 += kw * u * u
            t0 += ky
            t1 += ky * u
        sums[0, j], sums[1, j], sums[2, j], sums[3, j], sums[4, j] = s0, s1, s2, t0, t1
    return sums


@jit(fastmath={"contract"})
def _suffix_sums(x: Any, y: Any, w: Any, start: int, stop: int, center: float, h: float, sums: Any) -> None:
    """sums[j] = power sums 0..4 of the weights and 0..3 of weights times y over rows start + j to stop."""
    for n in range(9):
        sums[stop - start, n] = 0.0
    for j in range(stop - start - 1, -1, -1):
        z = x[start + j] / h - center
        a, b = w[start + j], w[start + j] * y[start + j]
        for n in range(4):
            sums[j, n] = sums[j + 1, n] + a
            sums[j, 5 + n] = sums[j + 1, 5 + n] + b
            a *= z
            b *= z
        sums[j, 4] = sums[j + 1, 4] + a


@jit(fastmath={"contract"})
def _shifted(m: Any, delta: float) -> Any:
    """The moments, shifted by delta: 0..4 of the weights and 0..3 of the labels."""
    return (
        m[0],
        m[1] + delta * m[0],
        m[2] + delta * (2.0 * m[1] + delta * m[0]),
        m[3] + delta * (3.0 * m[2] + delta * (3.0 * m[1] + delta * m[0])),
        m[4] + delta * (4.0 * m[3] + delta * (6.0 * m[2] + delta * (4.0 * m[1] + delta * m[0]))),
        m[5],
        m[6] + delta * m[5],
        m[7] + delta * (2.0 * m[6] + delta * m[5]),
        m[8] + delta * (3.0 * m[7] + delta * (3.0 * m[6] + delta * m[5])),
    )


@jit(fastmath={"contract"})
def _powers(z: float, w: float, wy: float) -> Any:
    """The moments of one row."""
    z2 = z * z
    z3 = z2 * z
    return (w, w * z, w * z2, w * z3, w * z2 * z2, wy, wy * z, wy * z2, wy * z3)


@jit(fastmath={"contract"})
def _plus(a: Any, b: Any) -> Any:
    return (
        a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5], a[6] + b[6], a[7] + b[7],
        a[8] + b[8],
    )  # fmt: skip


@jit(fastmath={"contract"})
def _row(sums: Any, j: int) -> Any:
    return (
        sums[j, 0], sums[j, 1], sums[j, 2], sums[j, 3], sums[j, 4], sums[j, 5], sums[j, 6], sums[j, 7], sums[j, 8],
    )  # fmt: skip


@jit
def walk(x: Any, y: Any, w: Any, targets: Any, h: float, value: Any) -> None:
    """Write the local line at each target to ``value``; NaN if no row lies within h (exclusive)."""
    left = np.zeros((64, 9))
    own = np.zeros((64, 9))
    cell = np.int64(-3)
    i = 0
    while i < len(targets):
        here = np.int64(np.floor(targets[i] / h))
        # rows of the left cell: [before, first), of the own cell: [first, last)
        before, first = np.searchsorted(x, (here - 1) * h), np.searchsorted(x, here * h)
        last = np.searchsorted(x, (here + 1) * h)
        if here == cell + 1:
            left, own = own, left
        else:
            if first - before + 1 > len(left):
                left = np.zeros((2 * (first - before) + 1, 9))
            _suffix_sums(x, y, w, before, first, here - 0.5, h, left)
        if last - first + 1 > len(own):
            own = np.zeros((2 * (last - first) + 1, 9))
        _suffix_sums(x, y, w, first, last, here + 0.5, h, own)
        i = _walk_cell(x, y, w, targets, h, value, i, here, before, first, last, left, own)
        cell = here


@jit(fastmath={"contract"})
def _walk_cell(
    x: Any, y: Any, w: Any, targets: Any, h: float, value: Any, i: int, cell: int, before: int, first: int, last: int,
    left: Any, own: Any,
) -> Any:  # fmt: skip
    """The targets of one cell from number i on; returns the first target beyond it (moments in registers)."""
    gone, taken = before, last
    middle, prefix = _row(own, 0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    around = _plus(middle, _shifted(_row(left, 0), -1.0))  # everything in the window, about the cell's centre
    while i < len(targets):
        t = targets[i]
        u = t / h - cell
        if not 0.0 <= u < 1.0:
            break
        moved = gone + taken
        while gone < first and x[gone] <= t - h:
            gone += 1
        while taken < len(x) and x[taken] < t + h:
            prefix = _plus(prefix, _powers(x[taken] / h - (cell + 1.5), w[taken], w[taken] * y[taken]))
            taken += 1
        if gone + taken > moved:
            around = _plus(_plus(middle, _shifted(_row(left, gone - before), -1.0)), _shifted(prefix, 1.0))
        m = _shifted(around, 0.5 - u)
        s0, s1, s2 = m[0] - m[2], m[1] - m[3], m[2] - m[4]
        determinant = s0 * s2 - s1 * s1
        if taken > gone and s0 > 1e-4 * m[0] and determinant > 1e-6 * s0 * s0:
            value[i] = (s2 * (m[5] - m[7]) - s1 * (m[6] - m[8])) / determinant
        else:  # rows only at the window's edge, or almost all at one point: the sums have lost too many digits
            value[i] = _line_by_rows(x, y, w, t, h, gone, taken)
        i += 1
    return i


@jit
def _line_by_rows(x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> Any:
    rows = total = mean = level = 0.0
    for j in range(start, stop):
        u = (x[j] - t) / h
        rows += w[j]
        k = w[j] * max((1.0 - u) * (1.0 + u), 0.0)
        total += k
        mean += k * u
        level += k * y[j]
    if total <= 1e-11 * rows:  # at the very edge, where rounding decides whether a row is inside
        return np.nan
    mean /= total
    level /= total
    spread = product = 0.0
    for j in range(start, stop):
        u = (x[j] - t) / h
        k = w[j] * max((1.0 - u) * (1.0 + u), 0.0)
        spread += k * (u - mean) ** 2
        product += k * (u - mean) * (y[j] - level)
    if spread <= 1e-12 * total:
        return level
    return level - mean * product / spread

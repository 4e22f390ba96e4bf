"""Local polynomials of degree 0, 1 or 2 with tricube weights at many sorted targets, in one sorted walk.

The tricube weight is 1 - 3|v|^3 + 3|v|^6 - |v|^9 of the scaled distance v, so a fit needs only power sums of v over the
window and the same with the sign of v. The window slides, so the sums are updated: about a centre m, in units of s,
shifted to each target. They are recomputed (never translated, which multiplies rounding errors) if the target has moved
away from m or the window's radius from s. Values agree with one fit per target to about 1e-12, and to 1e-9 if most rows
lie in a range far narrower than the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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

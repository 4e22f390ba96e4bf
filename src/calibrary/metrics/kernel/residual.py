"""Errors of smoothed residuals (rows 52, 62): over- and under-confidence cancel only among similar confidences.

The Lipschitz error (row 61) is the largest mean residual against a function with bounded slope.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.kernels import KERNELS, positive_width
from calibrary.maps.likelihood import BLUR, Logits, logits
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values, of_residuals
from calibrary.numerics.draw import generator
from calibrary.numerics.solve.lipschitz import lipschitz_maximum
from calibrary.numerics.sums.diffusion import Diffusion, Diffusions
from calibrary.numerics.sums.gaussian import ORDER, PER_WIDTH, REACH, Cells, absolute_integral, gaussian_on_nodes

#: Smaller widths than this change the value by rounding only.
_SMALLEST = 1e-9
_NOTHING = 1e-8
#: Width at which the search starts: the error is cheap to compute at large widths.
_FIRST = 0.05
#: Accuracy of the search for the width in a replicate.
_ENOUGH = 1e-10
#: From this many rows on (counted in cells), replicates have an error of about 1e-4 of their value, and their width one
#: of 1e-6: a hundredth of the spread of the draws. The value of the data is exact.
_ROUGH_FROM, _ROUGH = 10_000, 1e-6
#: Largest number of rows for which the widths of many replicates are searched together.
_MOST_TOGETHER = 5000


@ReplicateForm
def _smoothed_residuals(
    view: Predictions, *, sigma: float | None = None, bandwidth: float | None = None, grid: int | None = None
) -> Values | None:
    """smECE of many replicates: sorted rows are assigned to the grid once."""
    if not view.ascending:
        return None
    start, flow = view.ties.start, Diffusion(view.c, view.residual, ascending=True)
    width = bandwidth if sigma is None else sigma

    def sizes(r: Array, total: Any) -> Array:
        r = r / np.reshape(total, (-1, 1))
        limits = np.abs(np.add.reduceat(r, start, axis=1)).sum(axis=1).tolist()
        unsmoothed = [functools.partial(limits.__getitem__, k) for k in range(len(r))]
        if grid is not None or width is not None or view.n > _MOST_TOGETHER:
            enough = _ENOUGH if grid is None else 1e-14
            return np.array(
                [smoothed_size(flow.carrying(r[k]), width, grid, unsmoothed[k], enough) for k in range(len(r))]
            )
        size = float(np.ravel(total)[0])
        rough = size >= _ROUGH_FROM
        flows = flow.carrying_many(r, size if rough else 0.0)
        enough = _ROUGH if rough else _ENOUGH
        searches = [_own_width(each, limit, True, enough) for each, limit in zip(flows.each, unsmoothed, strict=True)]
        return np.array(_found_together(flows, searches))

    return of_residuals(view, sizes)


@metric("smece", replicate=_smoothed_residuals)
def smooth_calibration_error_residual(
    view: Predictions,
    *,
    sigma: float | None = None,
    bandwidth: float | None = None,
    grid: int | None = None,
    **common: Unpack[Common],
) -> float:
    r"""Mean absolute size of the smoothed residuals, at the width that equals the value itself (smECE).

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big| \frac{1}{W} \sum_i w_i (y_i - c_i) K_\sigma(t, c_i) \Big| dt,
        \qquad \mathrm{smECE} = \mathrm{smECE}_{\sigma^*}, \; \sigma^* = \mathrm{smECE}_{\sigma^*}

    K is the Gaussian kernel reflected at 0 and 1. The value falls as the width grows, so that the fixed point is
    unique. The error is consistent: polynomially related to the distance from the nearest calibrated predictor. The
    value is exact to about 1e-12; the ``relplot`` package chooses its width in steps of 2^-10 and loses half the mass
    of predictions at exactly 0 or 1, so its value differs in the fourth digit, and more for saturated or calibrated
    models.

    Parameters
    ----------
    sigma : positive number, optional
        Use this width instead of the fixed point; ``bandwidth`` is a synonym.
    bandwidth : positive number, optional
    grid : int, optional
        Replace the integral by the mean over t = 1/grid, 2/grid, ..., 1.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.smooth_calibration_error_residual([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1978
    """
    if grid is not None and not (isinstance(grid, int) and grid > 0):
        raise RefusedError(f"grid={grid!r} must be a positive whole number of points")
    r = view.residual / view.total if view.w is None else view.w * view.residual / view.total

    def unsmoothed() -> float:
        ties = view.ties
        return float(np.abs(ties.wy - ties.w * ties.c).sum()) / view.total

    flow = Diffusion(view.c, r, ascending=view.ascending)
    return smoothed_size(flow, bandwidth if sigma is None else sigma, grid, unsmoothed)


def smoothed_size(
    flow: Diffusion, sigma: float | None, grid: int | None, unsmoothed: Callable[[], float], tolerance: float = 1e-14
) -> float:
    """Size of the residuals at width sigma, or at the width that equals the size; ``unsmoothed()`` is for width 0."""

    def size(s: float) -> Size:
        if grid is None:
            return flow.mass_and_slope(s)
        # widths much smaller than the grid spacing would need more cosines than fit in memory
        return float(np.abs(flow.density(max(s, flow.scales[-1]), grid)[1:]).mean()), None

    if sigma is not None:
        return min(size(max(positive_width(sigma, (), "sigma") or 0.0, _SMALLEST))[0], 1.0)
    search = _own_width(flow, unsmoothed, grid is None, tolerance)
    try:
        s = next(search)
        while True:
            s = search.send(size(s))
    except StopIteration as end:
        return float(end.value)


def _found_together(flows: Diffusions, searches: list[Search]) -> list[float]:
    """The results of several searches, where every pass over the grid evaluates one width of each search."""
    found = [0.0] * len(searches)
    requested: dict[int, float] = {}

    def go_on(k: int, size: float | None) -> None:
        try:
            requested[k] = next(searches[k]) if size is None else searches[k].send((size, None))
        except StopIteration as end:
            found[k] = float(end.value)

    for k in range(len(searches)):
        go_on(k, None)
    while requested:
        open_, widths = list(requested), list(requested.values())
        requested.clear()
        for k, size in zip(open_, flows.absolute_masses(open_, widths), strict=True):
            go_on(k, size)
    return found


#: The size at a width, and its derivative by the width where that is known.
Size = tuple[float, float | None]
#: A search for a width is a generator: it yields a width, receives the size at that width, and returns the final size.
Search = Generator[float, Size, float]
#: A width that was tried: its logarithm, the logarithm of size / width, and the derivative of the second by the first.
Tried = tuple[float, float, float | None]


def _own_width(flow: Diffusion, unsmoothed: Callable[[], float], exact: bool, tolerance: float) -> Search:
    """The size of the smoothed residuals at the width that equals this size; ``exact``: sizes are integrals."""
    least, most = (abs(float(flow.a.sum())), float(np.abs(flow.a).sum())) if exact else (0.0, 1.0)
    if exact and least < flow.gap / 16.0 and 0.0 < (limit := unsmoothed()) < flow.gap / 16.0:
        return limit  # at that width no two points influence each other, so that nothing cancels
    if most - least <= 1e-14:
        return min(least, 1.0)  # all residuals have one sign: nothing cancels at any width
    found = yield from _fixed_point(flow.scales, least, min(_FIRST, most), exact, tolerance)
    if found is not None:
        return found
    limit = unsmoothed()
    if limit <= _NOTHING:
        return limit
    return (yield from _fixed_point([_SMALLEST], 0.0, flow.scales[-1], exact, tolerance)) or _SMALLEST


def _fixed_point(
    scales: list[float], least: float, first: float, falls: bool, tolerance: float
) -> Generator[float, Size, float | None]:
    """The s with size(s) = s, if it is above the last of the scales; the search starts at ``first``.

    It yields widths and receives sizes, as a :data:`Search` does. An integral never grows with s and never falls below
    ``least``, so the solution lies between s and size(s) for every s (``falls``). A mean over a grid may do both: the
    solution then lies only on the side of s where size(s) lies. Scales are the widths below which computing a size
    costs more.
    """
    low, high = max(least, 0.0), 1.0
    s: float = min(max(first, scales[0], low), high)
    before: Tried | None = None
    for _ in range(200):
        found, slope = yield s
        if abs(found - s) <= tolerance * max(s, 1.0) or (s == high == 1.0 and found >= 1.0):
            return min(found, 1.0)
        if falls:
            low, high = max(low, min(s, found)), min(high, max(s, found))
        else:
            low, high = (s, high) if found > s else (low, s)
        if high <= scales[-1]:
            return None
        known = None if slope is None or found < _SMALLEST else s * slope / found - 1.0
        here: Tried = math.log(s), math.log(max(found, _SMALLEST**2) / s), known
        close = falls and before is not None and _error(here, before) <= tolerance
        s, before = _next_width(here, before, low, high), here
        if close and abs(math.log(s) - here[0]) <= abs(here[1]):
            return min(s, 1.0)
        # a cheaper width first, if the solution may be above it
        s = max([s, *(scale for scale in scales if s < scale < high and low < scale)])
    return s


def _error(here: Tried, before: Tried) -> float:
    """A generous estimate of the error of the next width, from the distances of the last two from the solution."""
    far = abs(here[1] * before[1])  # eight times the error of the line through two points
    # the error of the cubic through two points with slopes contains both distances squared
    return far if here[2] is None or before[2] is None else far * abs(here[1])


def _next_width(here: Tried, before: Tried | None, low: float, high: float) -> float:
    """Where the curve through the last two points (log s, log size/s) is zero; the midpoint if that is no new point.

    The curve is a cubic if both slopes are known (log s as a function of log size/s), and a line otherwise.
    """
    x, gap, slope = here
    if before is None or before[0] == x:
        slope = -1.5 if slope is None else slope  # the size of pure noise falls as s^(-1/2)
    elif slope is None or before[2] is None or gap == before[1]:
        slope = (gap - before[1]) / (x - before[0])
    else:
        rise, run = before[1] - gap, before[0] - x
        start, end, u = rise / slope, rise / before[2], -gap / rise
        slope = -gap / (u * (start + u * (3.0 * run - 2.0 * start - end + u * (start + end - 2.0 * run))))
    s = min(max(math.exp(x - gap / min(slope, -1.0)), low), high)
    known = (x,) if before is None else (x, before[0])
    return math.sqrt(max(low, _SMALLEST**2) * high) if s <= 0.0 or math.log(s) in known else s


@metric("lsece")
@options_of(smooth_calibration_error_residual, "grid")
def logit_smoothed_calibration_error(
    view: Predictions, *, sigma: Any, bandwidth: Any, method: str = "exact", n_samples: int = 10000, rng: Any = None
) -> float:
    r"""Distance between smoothed labels and confidence if Gaussian noise is added to every logit.

    .. math:: \frac{1}{W} \int \Big| \sum_i w_i (y_i - \rho(t)) \varphi_\sigma(t - z_i) \Big| dt

    Here z are the logits and rho is the sigmoid. Rows at exactly 0 or 1 have infinite logits; they contribute the
    weight of their wrong labels. The value is exact to about 1e-12.

    Parameters
    ----------
    sigma : positive number, default 0.1
        Standard deviation of the noise; the authors use 1 / (number of bins), 1 to 0.01. ``bandwidth`` is a synonym.
    bandwidth : positive number, optional
    method : "exact" or "monte-carlo"
        Compute the integral, or the inventors' average over random logits.
    n_samples, rng : for "monte-carlo".

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.logit_smoothed_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.3004
    """
    method = str(method).replace("_", "-")
    given = bandwidth if sigma is None else sigma
    s = max(positive_width(0.1 if given is None else given, (), "sigma") or 0.1, _SMALLEST)
    t = view.ties
    wrong_ends = float((t.wy * (t.c == 0.0) + (t.w - t.wy) * (t.c == 1.0)).sum())
    odds = logits(view, clip=False)
    if len(odds.z) == 0:
        return wrong_ends / view.total
    if method == "exact":
        blurred = _absolute_residual(odds, s)
    else:
        blurred = float(odds.w.sum()) * _sampled_gap(odds, s, n_samples, rng)
    return min((wrong_ends + blurred) / view.total, 1.0)


def _absolute_residual(odds: Logits, s: float) -> float:
    """Integral over t of |sum_i w_i (y_i - rho(t)) phi_s(t - z_i)|."""
    from scipy.special import expit

    # the sigmoid itself must be resolved as well
    width = min(s, 1.0) / PER_WIDTH
    per_width = s / width
    margin = int(REACH * per_width) + ORDER
    if s == BLUR and odds.cells is not None:
        t, w, wy, _ = odds.points()
        lead = width * np.arange(1, margin + 1)
        t = np.concatenate((t[0] - lead[::-1], t, t[-1] + lead))
        w, wy = np.pad(w, margin), np.pad(wy, margin)
    else:
        cells = Cells(odds.z, width * PER_WIDTH, margin=margin)
        t, w, wy = cells.nodes, cells.node_weights(odds.w), cells.node_weights(odds.wy)
    # labels 0 and 1 separately: 1 - rho(t) would lose digits at large logits
    positive, negative = gaussian_on_nodes(wy, per_width), gaussian_on_nodes(w - wy, per_width)
    residual = positive * expit(-t) - negative * expit(t)
    return float(absolute_integral(residual, width).sum()) / (s * math.sqrt(2.0 * math.pi))


def _sampled_gap(odds: Logits, s: float, n_samples: int, rng: Any) -> float:
    from scipy.special import expit

    source = generator(rng, "points")
    drawn = source.choice(odds.z, n_samples, p=odds.w / odds.w.sum())
    t = np.sort(drawn + s * source.standard_normal(n_samples))
    s0, s1 = KERNELS["gaussian"].sums_at(t, odds.z, np.column_stack([odds.w, odds.wy]), s).T
    return float(np.abs(s1 / s0 - expit(t)).mean())


@metric("sce")
def lipschitz_calibration_error(view: Predictions, *, lipschitz: float = 1.0, **common: Unpack[Common]) -> float:
    r"""Largest mean residual against any function of the confidence within [-1, 1] with bounded slope.

    .. math:: \max_z \frac{1}{W} \sum_i w_i (y_i - c_i) z_i, \qquad
        |z_i| \le 1, \; |z_i - z_j| \le L |c_i - c_j|

    The value is at least |mean residual| and at most the mean |residual|. It is computed exactly, without a linear
    programme.

    Parameters
    ----------
    lipschitz : positive number
        The largest slope L of the function.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.lipschitz_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.095
    """
    if not (isinstance(lipschitz, int | float) and lipschitz > 0.0 and math.isfinite(lipschitz)):
        raise RefusedError(f"lipschitz={lipschitz!r} must be a positive number")
    ties = view.ties
    return lipschitz_maximum(ties.c, ties.wy - ties.w * ties.c, float(lipschitz)) / view.total

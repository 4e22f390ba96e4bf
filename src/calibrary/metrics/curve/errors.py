"""Errors of a fitted calibration map: its distance from the diagonal (rows 64, 65, 67-69 and the general case)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions
from calibrary.maps import fit_map, map_at
from calibrary.maps.loess import Loess
from calibrary.metrics.curve.map_options import MAP_OPTIONS, MapOptions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values

#: Largest number of rows for which the LOESS coefficients of all labels are stored.
_MOST_KEPT = 50_000

_LOESS: dict[str, Any] = {"lenses": BINARY_LENSES, "extra_options": MAP_OPTIONS}


# -- replicates -------------------------------------------------------------------------------------


class CurveGaps:
    """|curve - confidence| at every distinct confidence, one row for each replicate, and how often each counts."""

    def __init__(self, size: Array, copies: Array) -> None:
        self.size, self.copies = size, copies

    @once
    def all_single(self) -> bool:
        """Whether each gap counts once."""
        return bool((self.copies == 1.0).all())

    @once
    def ranked(self) -> tuple[Array, Array]:
        """The gaps in ascending order, and the number of gaps up to each."""
        if self.copies.sum() <= 2 * len(self.copies) and (self.copies == np.rint(self.copies)).all():
            listed = np.repeat(self.size, self.copies.astype(np.intp), axis=-1)  # numbers are sorted faster than places
            return np.sort(listed, axis=-1), np.broadcast_to(np.arange(1.0, listed.shape[-1] + 1.0), listed.shape)
        order = np.argsort(self.size, axis=-1)
        reached = np.cumsum(self.copies[order], axis=-1)
        # a sum of scaled weights that differs from a whole number by rounding counts as that number
        whole = np.rint(reached)
        size = self.size[order] if self.size.ndim == 1 else np.take_along_axis(self.size, order, axis=-1)
        return size, np.where(np.abs(reached - whole) <= 1e-9 * whole, whole, reached)

    def percentile(self, percentile: float) -> Array:
        """The percentile of each row by linear interpolation."""
        if self.all_single:
            return np.asarray(np.percentile(self.size, percentile, axis=-1))
        ranked, reached = self.ranked
        if ranked.ndim == 1:
            return np.array(_percentile_of_ranked(ranked, reached, percentile))
        return np.array([_percentile_of_ranked(x, upto, percentile) for x, upto in zip(ranked, reached, strict=True)])


def _of_redrawn_labels(read: Callable[[Predictions, CurveGaps, Any], Array]) -> ReplicateForm:
    """LOESS is linear in the labels: coefficients are computed once, and ``read(view, gaps, setting)`` uses them."""

    def prepare(
        view: Predictions, *, map: Any = "loess", measure: str = "sample", norm: float = 1, percentile: float = 90.0,
        **options: Any,
    ) -> Values | None:  # fmt: skip
        if map != "loess" or measure != "sample" or not view.binary or view.n > _MOST_KEPT:
            return None

        def found() -> tuple[Array, Array] | None:
            try:
                curve: Loess = fit_map(map, view, **options)
            except RefusedError:  # too few rows for a curve: the metric itself raises the error
                return None
            return curve.of_labels(view)

        asked = repr(sorted(options.items()))
        product = view.remember(("loess of labels", asked), found)
        if product is None:
            return None
        of_rows, of_vertices = product

        def gaps_of(y: Any) -> CurveGaps:
            """The gaps for these labels; metrics that are computed one after the other share them."""
            last: tuple[Any, CurveGaps] | None = view._memory.get(("gaps of labels", asked))
            if last is None or last[0] is not y:
                gap = np.asarray(y, dtype=np.float64) @ of_rows @ of_vertices
                gap -= view.ties.c
                last = view._memory["gaps of labels", asked] = y, CurveGaps(np.abs(gap, out=gap), _copies(view))
            return last[1]

        return lambda y, w: read(view, gaps_of(y), {"norm": norm, "percentile": percentile})

    return ReplicateForm(prepare, labels_only=True)


def _mean_gaps(view: Predictions, gaps: CurveGaps, setting: Any) -> Array:
    """The mean power of the gap in every replicate."""
    norm = setting["norm"]
    return (gaps.size if norm == 1 else gaps.size**norm) @ (view.ties.w / view.total)


def _percentiles_of_gaps(percentile: float | None = None) -> Callable[[Predictions, CurveGaps, Any], Array]:
    """The percentile of the gaps in every replicate: the percentile of the options, or a fixed one."""
    return lambda view, gaps, setting: gaps.percentile(setting["percentile"] if percentile is None else percentile)


# -- general ----------------------------------------------------------------------------------------


@metric("map_error", renamed={"order": "norm"}, replicate=_of_redrawn_labels(_mean_gaps), **_LOESS)
def calibration_map_error(
    view: Predictions, *, map: Any = "loess", norm: float = 1, measure: str = "sample", **options: Unpack[MapOptions]
) -> float:
    r"""Average distance of a fitted calibration map from the diagonal, for any map.

    .. math:: \frac{1}{W} \sum_i w_i |\hat y(c_i) - c_i|^\alpha

    Parameters
    ----------
    map : str or object
        "loess", "lowess", "local_linear", "nadaraya_watson", "rcs", "pl", "pl3", "beta", "platt", "temperature",
        "isotonic", "parabola", "bins", "cumulative_spline", "order_preserving", or an object with
        ``fit(y, c, sample_weight)`` and ``predict(c)``.
    norm : float
        The power alpha; no root is taken.
    measure : "sample" or "uniform"
        Average over the confidences of the rows, or over all confidences from 0 to 1 (LOESS and lowess: over the range
        of the data).

    Notes
    -----
    Every family of section 5.10 is available: "bins" with ``base="mass"`` (ECE-EM), "platt", "beta", "isotonic", "pl",
    "pl3", splines ("cumulative_spline": a natural cubic spline of the cumulative difference) and intra-order-preserving
    functions ("order_preserving": a non-decreasing curve of the log odds that is 0 at 0).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.calibration_map_error(y, p, map="isotonic"), 4)
    0.125
    """
    return _map_error(view, map, norm, measure, options)


def _map_error(view: Predictions, map: Any, norm: float, measure: str, options: Any) -> float:
    if not norm > 0:
        raise RefusedError(f"norm={norm!r} must be positive")
    if measure == "uniform":
        curve = fit_map(map, view, **options)
        c, weight = _panels(*getattr(curve, "support_", (0.0, 1.0)))
        return float(weight @ np.abs(curve.predict(c) - c) ** norm)
    gap = _sample_gap(view, map, options)
    return float(np.sum(view.ties.w * (gap if norm == 1 else gap**norm)) / view.total)


def _sample_gap(view: Predictions, map: Any, options: Any) -> Array:
    """|map(c) - c| at every distinct confidence; fitted once for all the metrics that summarise the same named map."""

    def fitted() -> Array:
        return np.abs(map_at(map, view, **options) - view.ties.c)

    if not isinstance(map, str):
        return fitted()
    return view.remember(("map gap", map, repr(sorted(options.items()))), fitted)


def _panels(low: float, high: float) -> tuple[Array, Array]:
    """Nodes and weights (summing to one) of Gauss rules on 2000 panels, finer towards the ends where maps are steep."""
    if low == high:
        return np.array([low]), np.ones(1)
    edges = low + (high - low) * (1.0 - np.cos(np.linspace(0.0, np.pi, 2001))) / 2.0
    node, weight = np.polynomial.legendre.leggauss(5)
    middle, half = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges) / 2.0
    c = (middle[:, None] + half[:, None] * node).ravel()
    return np.clip(c, low, high), (half[:, None] * weight).ravel() / (high - low)


# -- rows 64 and 65 ---------------------------------------------------------------------------------


@metric("ici", replicate=_of_redrawn_labels(_mean_gaps), **_LOESS)
def integrated_calibration_index(
    view: Predictions, *, map: Any = "loess", measure: str = "sample", **options: Unpack[MapOptions]
) -> float:
    r"""Average distance between confidence and a smooth curve of the observed event frequency.

    .. math:: \frac{1}{W} \sum_i w_i |\hat y(c_i) - c_i|

    Here :math:`\hat y` is the curve of R's ``loess(y ~ c)``, whose interpolating surface is the default because
    published values use it; ``surface="direct"`` fits at every confidence.

    Parameters
    ----------
    map : str or object
        Another map: "lowess" gives Eavg of rms, ``transform="logit"`` the value of pmcalibration, "platt" the Cox ICI
        of calzone; see :func:`calibrary.calibration_map_error`.
    measure : "sample" or "uniform"
        Average over the rows, or over all confidences within the data's range.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.integrated_calibration_index(y, p), 4)
    0.1802
    """
    return _map_error(view, map, 1, measure, options)


@metric("ep", replicate=_of_redrawn_labels(_percentiles_of_gaps()), **_LOESS)
def calibration_error_percentile(
    view: Predictions,
    *,
    percentile: float = 90.0,
    map: Any = "loess",
    measure: str = "sample",
    **options: Unpack[MapOptions],
) -> float:
    r"""The calibration error that ``percentile`` percent of the predictions do not exceed.

    The percentile (linear interpolation) of :math:`|\hat y(c_i) - c_i|`, where :math:`\hat y` is the LOESS curve.

    Parameters
    ----------
    percentile : float
        50 gives the median error (E50), 90 gives E90, 100 the largest error (Emax).
    map : str or object
        Another map; see :func:`calibrary.calibration_map_error`.
    measure : "sample" or "uniform"
        Percentile over the rows, or over the grid 0, 1/2000, ..., 1 (with ``map="platt"``: Harrell's older Emax).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.calibration_error_percentile(y, p, percentile=90), 4)
    0.2896
    """
    if not 0.0 <= percentile <= 100.0:
        raise RefusedError(f"percentile={percentile!r} must be from 0 to 100")
    if measure == "sample":
        gap = _sample_gap(view, map, options)
        if not isinstance(map, str):
            return weighted_percentile(gap, _copies(view), percentile)
        asked = ("ranked gaps", map, repr(sorted(options.items())))
        return float(view.remember(asked, lambda: CurveGaps(gap, _copies(view))).percentile(percentile))
    curve = fit_map(map, view, **options)
    low, high = getattr(curve, "support_", (0.0, 1.0))
    grid = np.arange(2001) / 2000.0
    c = grid[(grid >= low) & (grid <= high)]
    c, w = (c, np.ones(len(c))) if len(c) else (view.ties.c, _copies(view))
    gap = np.abs(np.asarray(curve.predict(c), dtype=np.float64) - c)
    return weighted_percentile(gap, w, percentile)


@metric("e50", replicate=_of_redrawn_labels(_percentiles_of_gaps(50.0)), **_LOESS)
def e50(view: Predictions, *, map: Any = "loess", measure: str = "sample", **options: Unpack[MapOptions]) -> float:
    """The median calibration error: half of the predictions are off by no more than this.

    Parameters
    ----------
    map, measure : see :func:`calibrary.calibration_error_percentile`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.e50(y, p), 4)
    0.1835
    """
    return _percentile(view, percentile=50.0, map=map, measure=measure, **options)


@metric("e90", replicate=_of_redrawn_labels(_percentiles_of_gaps(90.0)), **_LOESS)
def e90(view: Predictions, *, map: Any = "loess", measure: str = "sample", **options: Unpack[MapOptions]) -> float:
    """The calibration error that nine predictions in ten do not exceed.

    Parameters
    ----------
    map, measure : see :func:`calibrary.calibration_error_percentile`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.e90(y, p), 4)
    0.2896
    """
    return _percentile(view, percentile=90.0, map=map, measure=measure, **options)


@metric("emax", replicate=_of_redrawn_labels(_percentiles_of_gaps(100.0)), **_LOESS)
def emax(view: Predictions, *, map: Any = "loess", measure: str = "sample", **options: Unpack[MapOptions]) -> float:
    """The largest distance between confidence and the fitted curve among the predictions.

    Parameters
    ----------
    map, measure : see :func:`calibrary.calibration_error_percentile`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.emax(y, p), 4)
    0.4593
    """
    return _percentile(view, percentile=100.0, map=map, measure=measure, **options)


def _percentile(view: Predictions, **options: Any) -> float:
    """The formula that E50, E90 and Emax share; each metric fixes the percentile."""
    return float(calibration_error_percentile.entry.formula(view, **options))


def _copies(view: Predictions) -> Array:
    """How often each distinct confidence counts; weights that are not counts are scaled to the number of rows."""
    return view.ties.w * view.copies_per_weight


def weighted_percentile(x: Array, w: Array, percentile: float) -> float:
    """The percentile of x by linear interpolation, with x_i repeated w_i times."""
    return float(CurveGaps(x, w).percentile(percentile))


def _percentile_of_ranked(x: Array, reached: Array, percentile: float) -> float:
    """The percentile of ascending x by linear interpolation; ``reached`` counts the numbers up to each."""
    place = max(float(reached[-1]) - 1.0, 0.0) * percentile / 100.0
    below = math.floor(place)
    low, high = x[np.minimum(reached.searchsorted((below, below + 1.0), "right"), len(x) - 1)]
    return float(low + (place - below) * (high - low))


# -- rows 67 to 69 ----------------------------------------------------------------------------------


@metric("ece_pl", renamed={"order": "norm"})
def piecewise_linear_calibration_error(
    view: Predictions,
    *,
    norm: float = 1,
    loss: str = "log",
    segments: int | None = None,
    max_segments: int = 16,
    cv: int = 10,
    tolerance: float = 0.0,
    ensemble: bool = True,
    rng: Any = 0,
    **common: Unpack[Common],
) -> float:
    r"""Average distance of a continuous curve of straight pieces from the diagonal.

    :math:`\frac{1}{W} \sum_i w_i |\hat y(c_i) - c_i|^\alpha` with knots found by exchange, values at the knots that
    minimise ``loss``, and the number of pieces chosen by cross-validated squared error. The optimum is computed
    exactly, whereas the authors train from random starts and stop early.

    Parameters
    ----------
    norm : float
        The power alpha.
    loss : "log" or "brier"
    segments : int, optional
        Number of pieces; by default chosen from 1 to ``max_segments`` (and at most 1 + N // 200).
    cv : int
        Number of folds.
    tolerance : float
        Use the fewest pieces whose score is within this share of the best; the authors use 0.001.
    ensemble : bool
        Average the curves of the folds (as the authors do), or refit on all rows.
    rng : int or Generator
        Generator or seed for the assignment of rows to folds.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1] * 5, [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9] * 5
    >>> round(cal.piecewise_linear_calibration_error(y, p, segments=2), 3)
    0.112
    """
    options = {"loss": loss, "segments": segments, "max_segments": max_segments, "cv": cv, "tolerance": tolerance}
    return _map_error(view, "pl", norm, "sample", {**options, "ensemble": ensemble, "rng": rng})


@metric("ece_pl3", renamed={"order": "norm"})
@options_of(piecewise_linear_calibration_error, "loss")
def piecewise_linear_logit_calibration_error(view: Predictions, *, norm: float, **options: Any) -> float:
    r"""Average distance from the diagonal of a curve that is piecewise linear in log odds.

    ``logit yhat = b0 + b1 x + sum_j b_j (x - t_j)+`` with x the log odds of c, fitted by log loss; otherwise as
    :func:`piecewise_linear_calibration_error`.

    Parameters
    ----------
    norm, segments, max_segments, cv, tolerance, ensemble, rng
        See :func:`piecewise_linear_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1] * 5, [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9] * 5
    >>> round(cal.piecewise_linear_logit_calibration_error(y, p, segments=1), 3)
    0.1
    """
    return _map_error(view, "pl3", norm, "sample", options)


@metric("fott_beta", renamed={"order": "norm"})
def fott_beta_calibration_error(
    view: Predictions, *, norm: float = 1, parameters: str = "abm", **common: Unpack[Common]
) -> float:
    r"""Average distance of the beta calibration curve, fitted to the test data, from the diagonal.

    :math:`\frac{1}{W} \sum_i w_i |\hat y(c_i) - c_i|^\alpha` with
    ``logit yhat = a log c - b log(1-c) + d``, a, b >= 0, the exact maximum likelihood fit.

    Parameters
    ----------
    norm : float
        The power alpha.
    parameters : "abm", "am", "ab" or "a"
        Which parameters are free: all three, a = b, a curve through (1/2, 1/2), or one.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.fott_beta_calibration_error(y, p), 3)
    0.1
    """
    return _map_error(view, "beta", norm, "sample", {"parameters": parameters})

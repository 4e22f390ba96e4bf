"""Groups that overlap: sliding windows and nearest neighbours (rows 46, 47), and soft bins (rows 37, 38).

In soft bins every prediction belongs partly to every bin, so that the error is differentiable.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, inner
from calibrary.grouping import norm_order, power_mean
from calibrary.grouping.edges import whole
from calibrary.grouping.soft import SoftBins, SoftGroups
from calibrary.grouping.windows import nearest_windows, sliding_windows
from calibrary.metrics.bins.bin_options import class_norm
from calibrary.metrics.machinery.declare import Common, metric


@metric(
    "calbin",
    renamed={"literal": ("definition", {True: "review", False: "authors"})},
    lenses=("binary", "class-wise", "top-label"),
    default_lens="class-wise",
    stacks="labels",
)
def calbin(
    view: Predictions,
    *,
    window: int | None = None,
    inner: str = "point",
    definition: str = "authors",
    **common: Unpack[Common],
) -> float:
    r"""Mean distance of confidences from the mean label, over all runs of consecutive rows in order of confidence.

    .. math:: \frac{1}{N - s + 1} \sum_b \frac{1}{s} \sum_{i \in b} |\bar y_b - c_i|

    The mean is over the windows of s consecutive rows in order of confidence. Tied rows share their mean label, so the
    order of the rows does not matter.

    Parameters
    ----------
    window : int, optional
        Number s of rows in a window; by default a tenth of all rows. With 1 the value is the mean absolute error.
    inner : "point" or "bin"
        Compare the mean label with every confidence, or with the mean confidence (CAL of Caruana and Niculescu-Mizil,
        never larger).
    definition : "authors" or "review"
        "review" is equation (57) as printed: sums instead of means, and without the last window.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.calbin([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], window=3), 4)
    0.1778
    """
    windows = sliding_windows(view, None if window is None else whole("window", window))
    if definition == "authors":
        return windows.mean_error(inner)
    if windows.number == 1:
        return undefined("(57) of the review has no window if one window contains every row: use a smaller window")
    return windows.size * windows.mean_error(inner, last=False)


@metric("ece_knn", renamed={"k": "n_neighbors"}, lenses=("binary", "top-label", "class-wise"), stacks="labels")
def nearest_neighbor_calibration_error(
    view: Predictions, *, n_neighbors: int | None = None, **common: Unpack[Common]
) -> float:
    r"""Mean gap between label and confidence in the neighbourhood of every prediction.

    .. math:: \frac{1}{N} \sum_i |\bar y_i - \bar c_i|

    The means are over row i and its k nearest other rows in confidence. All rows as near as the k-th neighbour are
    included, so tied rows need no order.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours k, counted by weight; by default the integer part of sqrt(N). From N - 1 on, the value is
        the gap of the whole data set.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.nearest_neighbor_calibration_error([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], n_neighbors=2), 4)
    0.1267
    """
    windows = nearest_windows(view, None if n_neighbors is None else whole("n_neighbors", n_neighbors))
    return as_number(inner(view.ties.w, np.abs(windows.gap)) / view.total)


_LENSES = ("binary", "top-label", "class-wise")


@metric("sbece", lenses=_LENSES, combine=class_norm(2), stacks="weights")
def soft_binned_calibration_error(
    view: Predictions,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float | str = 2,
    decay_factor: float | None = None,
    label_binned: bool = False,
    aggregate: str = "power",
    **common: Unpack[Common],
) -> float:
    r"""Gap between confidence and accuracy over bins with blurred edges, differentiable in every prediction.

    .. math:: \Big(\sum_b \frac{s_b}{N} |\bar a_b - \bar c_b|^p\Big)^{1/p}, \qquad
        u_b(c) = \mathrm{softmax}_b\big(-(c - m_b)^2 / \tau\big)

    Bin centres are :math:`m_b = (b - 1/2)/B`, total memberships :math:`s_b = \sum_i u_b(c_i)`, and means are weighted
    by membership. As tau falls to 0 the value becomes ECE with equal-width bins, where a confidence on an edge is
    shared between two bins.

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature: how far bins overlap.
    norm : float or "l1", "l2", "max"
        2 is the norm of the released loss, 1 gives the soft version of ordinary ECE.
    decay_factor : float, optional
        The parameter of the released code, above 1; it sets tau = 1 / (ln(decay_factor) n_bins^2).
    label_binned : bool
        Compare the mean label of each bin with every confidence instead of the mean confidence (never smaller).
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.soft_binned_calibration_error([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.2416
    """
    if decay_factor is not None:
        if not decay_factor > 1:
            raise RefusedError(f"decay_factor={decay_factor!r} must be above 1")
        tau = 1.0 / (math.log(decay_factor) * whole("n_bins", n_bins) ** 2)
    bins, p = SoftBins(n_bins, tau), norm_order(norm)
    return _label_binned_error(bins, view, p) if label_binned else _soft_error(bins, view, p)


@metric("dece", lenses=_LENSES, combine=class_norm(1), stacks="weights")
def differentiable_calibration_error(
    view: Predictions,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float | str = 1,
    accuracy: str = "hard",
    tau_a: float = 100.0,
    eps: float = 0.0,
    confidence: str = "max",
    sharpness: float = 100.0,
    aggregate: str = "power",
    **common: Unpack[Common],
) -> float:
    r"""Gap between confidence and accuracy over soft bins with ordered cut points (DECE).

    As :func:`soft_binned_calibration_error` with :math:`u(c) = \mathrm{softmax}_b((b c + w_b)/\tau)`,
    :math:`w_b = -\sum_{j<b} j/B`.

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature of the bins.
    norm : float or "l1", "l2", "max"
    accuracy : "hard" or "soft"
        "hard" uses labels 0 and 1; "soft" uses relu(2 - soft rank of the true class), which has a gradient. "soft"
        needs ``lens="top-label"``.
    tau_a : float
        Steepness of the soft rank.
    eps : float
        Smoothing of memberships, (u + eps) / (1 + (B + 1) eps); the released code has 1e-6.
    confidence : "max" or "logsumexp"
        The largest probability, or min(1, ln(sum_k exp(s c_k)) / s) with s = ``sharpness``. "logsumexp" is
        experimental, because the source was not available. It needs ``lens="top-label"``.
    sharpness : float
        Of "logsumexp".
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.differentiable_calibration_error([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.2948
    """
    if not eps >= 0:
        raise RefusedError(f"eps={eps!r} must be 0 or more")
    bins, p = SoftBins.ordered(n_bins, tau, eps), norm_order(norm)
    if accuracy == "hard" and confidence == "max":
        return _soft_error(bins, view, p)
    c, label = view.c, view.y.astype(np.float64)
    if accuracy == "soft":
        label = _soft_label(_rows(view, "accuracy='soft'"), tau_a)
    if confidence == "logsumexp":
        c = _log_sum_exp(_rows(view, "confidence='logsumexp'").p, sharpness)
    return _gap_norm(bins.groups(c, label, view.w), p)


def _soft_error(bins: SoftBins, view: Predictions, p: float) -> float:
    # with a high norm, a bin with almost no membership can determine the value; the fast path leaves out such bins
    groups = bins.quick_groups(view) if p <= 2.0 else bins.groups(view.c, view.y.astype(np.float64), view.w)
    return _gap_norm(groups, p)


def _gap_norm(groups: SoftGroups, p: float) -> float:
    return power_mean(np.abs(groups.label - groups.confidence), groups.share, p)


def _label_binned_error(bins: SoftBins, view: Predictions, p: float) -> float:
    view.refuse_stack("the error of each row")
    c = view.c
    groups = bins.groups(c, view.y.astype(np.float64), view.w)
    total = 0.0
    for rows, u in bins.blocks(c, view.w):
        u = u[:, groups.used]
        off = np.abs(groups.label - c[rows, None])
        total = max(total, off[u > 0].max()) if p == np.inf else total + float((u * off**p).sum())
    return float(total) if p == np.inf else float((total / groups.weight.sum()) ** (1.0 / p))


def _rows(view: Predictions, what: str) -> Predictions:
    """The whole probability vectors of a top-label view."""
    if view.seen_through != "top-label" or view.origin is None:
        raise RefusedError(f"{what} needs the probability of every class: use lens='top-label'")
    return view.origin


def _soft_label(whole_rows: Predictions, steepness: float) -> Array:
    """1 where the true class clearly has the largest probability, 0 where another has: relu(2 - soft rank)."""
    from scipy.special import expit

    rank = 0.5 + expit(steepness * (whole_rows.p - whole_rows.p_true[:, None])).sum(axis=1)
    return np.asarray(np.maximum(2.0 - rank, 0.0))


def _log_sum_exp(p: Array, sharpness: float) -> Array:
    from scipy.special import logsumexp

    if not sharpness > 0:
        raise RefusedError(f"sharpness={sharpness!r} must be above 0")
    return np.asarray(np.minimum(1.0, logsumexp(sharpness * p, axis=1) / sharpness))

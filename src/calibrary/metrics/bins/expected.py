"""ECE, and the metrics that differ from ECE only in how they weight the bins (rows 23-28, 30, 31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calibrary.base.errors import RefusedError, one_of, undefined, warn, whole
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, column, inner
from calibrary.data.views import Views
from calibrary.grouping import EqualWidth, Grouping, group
from calibrary.metrics.bins.bin_options import BINNING, BinnedKeywords, Bins, class_norm, range_of_distance
from calibrary.metrics.bins.gap_forms import direct_error, gaps_of_cells, gaps_of_replicates
from calibrary.metrics.bins.interval import cumulative_residual, of_sums_below
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import InBlocks, ReplicateForm


@metric(
    "ece",
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    extra_options=BINNING,
    combine=class_norm(1),
    direct=direct_error,
    replicate=gaps_of_replicates(1.0),
    cell_value=gaps_of_cells(1.0),
)
def expected_calibration_error(
    view: Predictions,
    *,
    norm: float | str = 1,
    aggregate: str = "power",
    distance: str = "tv",
    **options: Unpack[BinnedKeywords],
) -> float:
    r"""Average gap between confidence and accuracy over confidence bins.

    .. math:: \Big(\sum_b p_b\, |\bar y_b - \bar c_b|^p\Big)^{1/p}

    :math:`p_b` is the bin's share of the weight, :math:`\bar y_b` its mean label and :math:`\bar c_b` its mean
    confidence (never its midpoint). Equal-width edges are k/B exactly and bins are right-closed; confidences are
    converted to float64 first, so that a float32 0.3 is 0.30000001 and lies above the edge 0.3.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
        Order p of the norm: 2 gives RMSCE, infinity the maximum calibration error.
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean. The two agree for
        ``norm=1``.
    distance : "tv", "l1" or "l2"
        Distance between whole probability vectors (``lens="full"``, where groups are tuples of bins): half the sum of
        absolute differences, the sum, or the Euclidean distance.

    Notes
    -----
    For an (N, 2) array the value is that of the second column. With ``lens="top-label"`` two classes are judged by
    max(c, 1-c) instead, which gives another value. With ``lens="class-wise"`` this is the class-wise (static) ECE;
    ``average="prevalence"`` weighs classes by size, ``average=None`` gives one value per class.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1, 1, 0], [0.1, 0.15, 0.8, 0.9, 0.95, 0.9]
    >>> round(cal.expected_calibration_error(y, p, n_bins=10), 4)
    0.2167
    >>> round(cal.expected_calibration_error(y, p, n_bins=2, norm=2), 4)
    0.1335
    """
    return group(view, **options).gap_norm(norm, distance)


@metric(
    "mce",
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    extra_options=BINNING,
    combine=class_norm(np.inf),
    replicate=gaps_of_replicates(np.inf),
    cell_value=gaps_of_cells(np.inf),
)
def maximum_calibration_error(view: Predictions, *, distance: str = "tv", **options: Unpack[BinnedKeywords]) -> float:
    r"""Largest gap between confidence and accuracy in any confidence bin.

    .. math:: \max_b |\bar y_b - \bar c_b|

    The maximum is over non-empty bins, and with several classes also over classes.

    Parameters
    ----------
    distance : "tv", "l1" or "l2"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.maximum_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=5), 4)
    0.4
    """
    return group(view, **options).gap_norm(np.inf, distance)


@metric(
    "ace",
    default_lens="class-wise",
    extra_options=BINNING,
    combine=class_norm(1),
    cell_value=gaps_of_cells(1.0, "mass"),
    stacks="weights",
)
def adaptive_calibration_error(
    view: Predictions,
    *,
    binning: str | Grouping | ArrayLike = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[Bins],
) -> float:
    r"""Average gap between confidence and accuracy over bins of equal mass.

    .. math:: \frac1K \sum_k \sum_r p_{kr}\, |\bar y_{kr} - \bar c_{kr}|

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Notes
    -----
    A bin's weight is its share of the rows; the inventors' weight 1/R is the same if the R bins have exactly equal
    size. The inventors' code corresponds to ``mass_rule="round", n_bins=30`` and drops probabilities that are exactly 0
    (the value then equals :func:`thresholded_adaptive_calibration_error` with ``threshold=0``).

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.adaptive_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 4)
    0.225
    """
    return group(view, binning, **options).gap_norm(norm)


@metric("tace", default_lens="class-wise", extra_options=BINNING, combine=class_norm(1), stacks="weights")
def thresholded_adaptive_calibration_error(
    view: Predictions,
    *,
    threshold: float = 0.01,
    binning: str | Grouping | ArrayLike = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[Bins],
) -> float:
    r"""Average gap between confidence and accuracy over equal-mass bins of the confidences above a threshold.

    Rows with :math:`c \le` ``threshold`` are left out, shares are relative to the remaining rows, and a class without
    remaining rows counts as 0 in the average over classes.

    Parameters
    ----------
    threshold : float
        Only confidences strictly above this number are used.
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.005, 0.3, 0.6, 0.9]
    >>> round(cal.thresholded_adaptive_calibration_error(y, p, n_bins=3), 4)
    0.2667
    """
    if not 0.0 <= threshold < 1.0:
        raise RefusedError(f"threshold={threshold!r} must be at least 0 and below 1")
    kept = view.c > threshold
    if not kept.any():
        warn(
            f"no confidence is above threshold={threshold:g}, so the value 0 means that no row was judged, not that "
            "the model is calibrated: lower the threshold"
        )
        return 0.0
    above = view if kept.all() else view.where(kept)
    return group(above, binning, **options).gap_norm(norm)


@metric("ice", extra_options=BINNING, stacks="weights")
def imbalanced_calibration_error(
    view: Predictions, *, alpha: float | None = None, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Average gap over bins, with bin weights that are the more equal the more imbalanced the classes are.

    .. math:: \frac{\sum_b p_b^\alpha\, |\bar y_b - \bar c_b|}{\sum_b p_b^\alpha},\qquad
        \alpha = -\frac{\sum_k g_k \log g_k}{\log K}

    Here :math:`g_k` are the class shares: :math:`\alpha = 1` (balanced classes) gives ECE, :math:`\alpha = 0` (one
    class) the plain mean over non-empty bins.

    Parameters
    ----------
    alpha : float, optional
        Exponent in place of the normalised entropy; the inventors also use 2 g_1 and 0.5 + g_1.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.imbalanced_calibration_error([0, 0, 0, 1], [0.1, 0.2, 0.1, 0.6], n_bins=2), 4)
    0.2109
    """
    groups = group(view, **options)
    if alpha is None:
        if view.seen_through == "top-label":
            view.refuse_stack("the share of each class")
        labeled = view.origin if view.seen_through == "top-label" and view.origin is not None else view
        alpha = column(_normalized_entropy(labeled.class_share))
    weight = np.where(groups.weight > 0.0, groups.share**alpha, 0.0)
    return as_number(inner(weight, np.abs(groups.gap)) / weight.sum(axis=-1))


def _normalized_entropy(share: Array) -> Any:
    return -inner(share, np.log(np.where(share > 0.0, share, 1.0))) / np.log(share.shape[-1])


@metric("rbece", extra_options=BINNING, stacks="labels")
def region_balanced_calibration_error(
    view: Predictions, *, min_count: int = 10, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Plain mean of the gaps of the bins that have enough rows.

    .. math:: \frac{1}{|\mathcal B|} \sum_{b \in \mathcal B} |\bar y_b - \bar c_b|,\qquad
        \mathcal B = \{b : n_b \ge n_{\min}\}

    Parameters
    ----------
    min_count : int
        Number of rows that a bin must have to be included. The value is undefined (NaN) if there is no such bin.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.region_balanced_calibration_error(y, p, n_bins=2, min_count=2), 4)
    0.225
    """
    groups = group(view, **options)
    held = groups.weight if view.counted else groups.count
    eligible = held >= whole("min_count", min_count)
    if not eligible.any():
        return undefined(
            f"no bin has min_count={min_count} rows (the fullest has {held.max():g}): lower min_count or use wider bins"
        )
    return as_number(np.abs(groups.gap[..., eligible]).mean(axis=-1))


@metric("ece_lb", extra_options=BINNING, combine=class_norm(1), stacks="weights")
def label_binned_calibration_error(
    view: Predictions,
    *,
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[BinnedKeywords],
) -> float:
    r"""Average distance of each confidence from the accuracy of its bin.

    .. math:: \Big(\frac1N \sum_i |\bar y_{b(i)} - c_i|^p\Big)^{1/p}

    The value is never below the ECE with the same bins and norm.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.label_binned_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 4)
    0.225
    """
    return group(view, **options).label_norm(norm)


def _contraharmonic(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    errors, weights = np.array(values), views.weights(average)
    total = float(np.dot(weights, errors))
    return 0.0 if total == 0.0 else float(np.dot(weights, errors**2)) / total


@metric("cece", default_lens="class-wise", extra_options=BINNING, combine=_contraharmonic, stacks="weights")
def contraharmonic_calibration_error(
    view: Predictions, *, norm: float | str = 1, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Class-wise ECE averaged over classes, where each class's weight is its own error.

    .. math:: \frac{\sum_k \mathrm{ECE}_k^2}{\sum_k \mathrm{ECE}_k}

    The value lies between the mean and the maximum of the classes' errors, and is 0 if all of them are 0. For two
    classes the value is the ECE.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
        Norm of each class's ECE.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 2]
    >>> p = [[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]]
    >>> round(cal.contraharmonic_calibration_error(y, p, n_bins=5), 4)
    0.2703
    """
    return group(view, **options).gap_norm(norm)


#: Bin widths of Verhaeghe et al. [78]: 0.005 to 0.05; the step between them is our choice.
WIDTHS = tuple(i / 200 for i in range(1, 11))


def _edges_of_widths(options: Mapping[str, Any]) -> Array:
    """All edges of the bins of all widths, merged and sorted."""
    widths = options.get("widths", WIDTHS)
    return np.concatenate([np.round(np.arange(1, int(1.0 / h + 1e-9) + 1) * h, 12) for h in widths])


def _of_all_widths() -> ReplicateForm:
    """The error for every width: bins of every width are consecutive rows in the same ascending order."""

    def prepare(view: Predictions, *, widths: Sequence[float] = WIDTHS, closed: str = "right") -> InBlocks | None:
        if not view.ascending or not len(widths):
            return None
        side: Any = "right" if closed == "right" else "left"
        cuts = [view.c.searchsorted(_cuts_of_width(float(h)), side=side) for h in widths]
        first = np.concatenate([np.concatenate(([0], each)) for each in cuts])
        last = np.concatenate([np.concatenate((each, [view.n])) for each in cuts])
        used = last > first
        first, last = first[used], last[used]

        def error(below: Array, total: Any) -> Array:
            inside = below.take(last, axis=0) - below.take(first, axis=0)
            mean: Array = np.abs(inside).sum(axis=0) / (len(widths) * total)
            return mean

        return of_sums_below(error, view)

    return ReplicateForm(prepare)


@metric("ece_averaged", cell_edges=_edges_of_widths, replicate=_of_all_widths())
def averaged_calibration_error(
    view: Predictions, *, widths: Sequence[float] = WIDTHS, closed: str = "right", **common: Unpack[Common]
) -> float:
    r"""ECE averaged over equal-width bins of several widths.

    Parameters
    ----------
    widths : sequence of float
        Bin widths; a last bin that would reach beyond 1 ends at 1.
    closed : "right" or "left"

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.averaged_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], widths=[0.1, 0.5]), 4)
    0.225
    """
    if not len(widths):
        raise RefusedError("widths is empty: pass at least one bin width")
    one_of("closed", closed, ("right", "left"))
    c, below = view.sorted.c, cumulative_residual(view)
    errors = []
    for h in widths:
        starts = c.searchsorted(_cuts_of_width(float(h)), side="right" if closed == "right" else "left")
        errors.append(np.abs(np.diff(below[starts], prepend=0.0, append=below[-1])).sum() / view.total)
    return float(np.mean(errors))


def _cuts_of_width(h: float) -> Array:
    if not 0.0 < h <= 1.0:
        raise RefusedError(f"widths contains {h!r}: a bin width must be above 0 and at most 1")
    n = round(1.0 / h)
    if abs(1.0 / h - n) <= 1e-9:
        return EqualWidth(n).inner_edges()
    # rounded, because 11 * 0.03 is 0.32999999999999996, and an edge there would cut off the confidences at 0.33
    cuts = np.round(np.arange(1, int(1.0 / h) + 1) * h, 12)
    return cuts[cuts < 1.0]

"""ECE, the metrics that differ only in the weights of the bins (rows 23-28, 30, 31), and signed errors (35, 36).

Norms of bin gaps have fast forms: from plain arrays, for many resamples, and from counts per cell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calibrary.base.errors import RefusedError, one_of, undefined, warn, whole
from calibrary.base.signatures import options_of
from calibrary.data.checks import CHUNK, Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, column, inner, ratio
from calibrary.data.views import Views
from calibrary.grouping import (
    Edges,
    EqualWidth,
    Grouping,
    absolute_sum,
    as_grouping,
    group,
    norm_order,
    power_mean,
    power_means,
)
from calibrary.metrics.bins.bin_options import BINNING, BinnedKeywords, class_norm, in_mass, range_of_distance
from calibrary.metrics.bins.interval import cumulative_residual, of_sums_below
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import CellCounts, CellForm, ReplicateForm, Values, plain_arrays

_FIFTEEN = EqualWidth(15)


# -- plain arrays -----------------------------------------------------------------------------------


def direct_error(y: Any, c: Any, **others: Any) -> float | None:
    """The expected calibration error with its default options, computed from plain arrays; None for any other input."""
    if others or not plain_arrays(y, c):
        return None
    from calibrary.numerics.compiled.width_bins import add_residuals

    total = np.zeros(15)
    for first in range(0, len(c), CHUNK):
        part = total if len(c) <= CHUNK else np.zeros(15)
        if not add_residuals(c, y, _FIFTEEN.edges_, True, first, min(first + CHUNK, len(c)), part):
            return None
        if part is not total:
            total += part
    return absolute_sum(total) / len(c)


# -- replicates -------------------------------------------------------------------------------------


def gaps_of_replicates(usual: float) -> ReplicateForm:
    """Norms of the gaps of many resamples, for bins that do not depend on the data: rows are assigned to bins once."""

    def prepare(
        view: Predictions,
        *,
        norm: float | str = usual,
        aggregate: str = "power",
        distance: str = "tv",
        binning: str | Grouping | ArrayLike = "width",
        **options: Any,
    ) -> Values | None:
        grouping = as_grouping(binning, **options)
        if not view.binary or distance != "tv" or not isinstance(grouping, EqualWidth | Edges):
            return None
        p, index = norm_order(norm), grouping.groups(view).index
        total_in = functools.partial(np.bincount, index)
        size_as_given = total_in(view.weight)
        used = size_as_given > 0.0
        size, share = size_as_given[used], size_as_given[used] / size_as_given.sum()

        def with_weights(new_w: Array) -> float:
            gap = np.abs(total_in(new_w * view.residual))
            if p == 1.0:
                return float(gap.sum() / new_w.sum())
            size = total_in(new_w)
            used = size > 0.0
            return power_mean(gap[used] / size[used], size[used] / size.sum(), p)

        @functools.cache
        def member() -> Array:
            """The weight of every row in its bin: only new labels need it."""
            each = np.zeros((view.n, len(size_as_given)))
            each[np.arange(view.n), index] = view.weight
            return each

        def values(new_y: Any, new_w: Any) -> Array:
            if new_w is not None:
                return np.array([with_weights(row) for row in new_w])
            gap = np.abs(np.asarray(new_y, dtype=np.float64) @ member() - view.c @ member())
            if p == 1.0:
                return np.array(gap.sum(axis=1) / view.total)
            return power_means(gap[:, used] / size, share, p)

        return values

    return ReplicateForm(prepare)


# -- cells ------------------------------------------------------------------------------------------

_BIN_OPTIONS = ("n_bins", "closed", "edges", "strategy", "mass_rule")


def bins_of_cells(
    combine: Callable[[Array, Array, Array, Mapping[str, Any]], Array],
    names: tuple[str, ...] = (),
    binning: str = "width",
    mass_rule: str = "floor",
) -> CellForm:
    """A value of bins from counts of events per cell: every bin is a set of whole cells and is formed once.

    ``combine(gap, label, size, options)`` gets the bins with rows: gap and mean label of every draw, and the sizes.
    """

    def value(cells: CellCounts, options: Mapping[str, Any]) -> Callable[[Array], Array]:
        assert cells.bin is not None
        expected = cells.n * cells.c
        member = np.zeros((len(cells.n), int(cells.bin.max()) + 1))
        member[np.arange(len(cells.n)), cells.bin] = 1.0
        member = member[:, member.any(axis=0)]
        size = cells.n @ member
        confidence = expected @ member / size

        def values(counts: Array) -> Array:
            gap = (counts - expected) @ member / size
            return combine(gap, gap + confidence, size, options)

        return values

    def grouping(options: Mapping[str, Any]) -> Any:
        given = {"mass_rule": mass_rule, **{name: options[name] for name in _BIN_OPTIONS if name in options}}
        return as_grouping(options.get("binning", binning), **given)

    return CellForm(value, (*names, "binning", *_BIN_OPTIONS), grouping)


def gaps_of_cells(usual: float, binning: str = "width") -> CellForm:
    """Norms of the gaps from counts of events per cell."""

    def norms(gap: Array, label: Array, size: Array, options: Mapping[str, Any]) -> Array:
        return power_means(np.abs(gap), size / size.sum(), norm_order(options.get("norm", usual)))

    return bins_of_cells(norms, ("norm",), binning)


def _with_norm(norm: float) -> dict[str, Any]:
    """What the metrics declare that combine the gaps of bins, and of classes, by this norm."""
    forms = {"replicate": gaps_of_replicates(norm), "cell_value": gaps_of_cells(norm)}
    shared = {"range_with": range_of_distance, "lenses": ALL_LENSES, "extra_options": BINNING}
    return {"combine": class_norm(norm), **forms, **shared}


@metric("ece", direct=direct_error, **_with_norm(1.0))
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


@metric("mce", **_with_norm(np.inf))
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
@options_of(in_mass, "n_bins", "mass_rule")
def adaptive_calibration_error(
    view: Predictions, *, norm: float | str = 1, aggregate: str = "power", **bins: Any
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
    return group(view, **bins).gap_norm(norm)


@metric("tace", default_lens="class-wise", extra_options=BINNING, combine=class_norm(1), stacks="weights")
@options_of(adaptive_calibration_error)
def thresholded_adaptive_calibration_error(
    view: Predictions, *, threshold: float = 0.01, norm: float | str, aggregate: str, **bins: Any
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
    return group(above, **bins).gap_norm(norm)


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
@options_of(expected_calibration_error, "distance")
def label_binned_calibration_error(view: Predictions, *, norm: float | str, aggregate: str, **options: Any) -> float:
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


@ReplicateForm
def _of_all_widths(view: Predictions, *, widths: Sequence[float] = WIDTHS, closed: str = "right") -> Values | None:
    """The error for every width: bins of every width are consecutive rows in the same ascending order."""
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
        return np.abs(inside).sum(axis=0) / (len(widths) * total)

    return of_sums_below(error, view)


@metric("ece_averaged", cell_edges=_edges_of_widths, replicate=_of_all_widths)
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


#: +1: label - confidence (the review), -1: confidence - label (the authors of the miscalibration score)
_SIGNS = {"review": 1.0, "mcs": -1.0}


def _mean_gap(view: Predictions, convention: str) -> float:
    one_of("convention", convention, _SIGNS)
    return _SIGNS[convention] * as_number(view.mean(view.y) - view.mean(view.c))


@metric("esce", stacks="weights")
def expected_signed_calibration_error(
    view: Predictions, *, convention: str = "review", **common: Unpack[Common]
) -> float:
    r"""Mean label minus mean confidence: below 0 over-confident, above 0 under-confident.

    .. math:: \sum_b p_b (\bar y_b - \bar c_b) = \bar y - \bar c

    The value does not depend on bins; its absolute value is a lower bound of every ECE. Class-wise values sum to 0 over
    the classes, so that only ``average=None`` is informative there.

    Parameters
    ----------
    convention : "review" or "mcs"
        "mcs" reverses the sign: confidence minus accuracy.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_signed_calibration_error([0, 1, 1, 1], [0.1, 0.6, 0.7, 0.9]), 4)
    0.175
    """
    return _mean_gap(view, convention)


def _weigh_groups(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    sign = _SIGNS[options.get("convention", "review")]
    return as_number(sign * _of_classes(sign * np.array(values), views.prevalence, options.get("group", "mean")))


def _of_classes(score: Array, size: Array, group: str) -> Any:
    """The score of each replicate from the scores and the sizes of its classes; a class without rows has no part."""
    one_of("group", group, ("mean", "sum", "total"))
    there = size > 0.0
    if group == "total":
        return inner(size, score) / size.sum(axis=-1)
    over = score <= 1e-12  # zero up to rounding counts as over-confident
    result = 0.0
    for members in (there & over, there & ~over):
        inside = np.where(members, size if group == "mean" else 1.0, 0.0)
        value = inner(inside, score)
        if group == "mean":
            value = value / np.maximum(inside.sum(axis=-1), np.finfo(np.float64).tiny)
        result = result + members.sum(axis=-1) / there.sum(axis=-1) * value
    return result


@functools.partial(ReplicateForm, whole=True)
def _of_true_classes(p: Predictions, *, group: str = "mean", convention: str = "review") -> Values | None:
    """The rows of every class of many replicates, without a view for each class."""
    if p.y.ndim == 2 or p.fractional:
        return None
    confidence = p.p.max(axis=1)
    gaps = [(p.top == k) - confidence for k in range(p.k)]

    def values(y: Any, w: Any) -> Array:
        inside = [((p.y if y is None else y) == k).astype(np.float64) for k in range(p.k)]
        sums = [x @ (p.weight * gap) if w is None else w @ (x * gap) for x, gap in zip(inside, gaps, strict=True)]
        size = np.stack([x @ p.weight if w is None else w @ x for x in inside], axis=-1)
        return _SIGNS[convention] * _of_classes(ratio(np.stack(sums, axis=-1), size), size, group)

    return values


@metric(
    "wsmcs",
    range_with=lambda options, k: (-float(k), float(k)) if options.get("group") == "sum" else (-1.0, 1.0),
    lenses=("true-class",),
    default_lens="true-class",
    binary_lens="true-class",
    combine=_weigh_groups,
    replicate=_of_true_classes,
)
def weighted_subset_miscalibration_score(
    view: Predictions, *, group: str = "mean", convention: str = "review", **common: Unpack[Common]
) -> float:
    r"""Signed error of the classes, with over-confident and under-confident classes weighted separately.

    For each class k, MCS_k is the accuracy minus the mean confidence over the rows whose true label is k. Classes are
    divided into over-confident (MCS_k <= 0) and under-confident ones; each group is weighted by its share of the
    classes.

    Parameters
    ----------
    group : "mean", "sum" or "total"
        Value of each group: mean of MCS_k weighted by class size (the review), plain sum (the authors' code), or no
        groups at all: every class is weighted by its share of the rows.
    convention : "review" or "mcs"
        "mcs" reverses the sign.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 2, 2], [[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]]
    >>> round(cal.weighted_subset_miscalibration_score(y, p), 4)
    0.4
    """
    return _mean_gap(view, convention)

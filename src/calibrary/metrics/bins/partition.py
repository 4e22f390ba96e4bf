"""Errors over other groups (rows 41, 42): by proximity, by groups of your own, and the general binned error.

The test-based error (row 45) is the share of predictions that a test against their bin's labels rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from calibrary.base.errors import RefusedError, one_of, undefined, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, Indices, as_array, as_floats, missing
from calibrary.data.identity import refuse_misaligned
from calibrary.data.lens import Lens
from calibrary.data.predictions import Predictions
from calibrary.grouping import (
    Edges,
    EqualWidth,
    Grouping,
    Groups,
    UserGroups,
    VectorGroups,
    as_grouping,
    group,
    norm_order,
    power_mean,
)
from calibrary.grouping.adaptive import BlockPAVA
from calibrary.grouping.edges import whole
from calibrary.grouping.proximity import ProximityCells, log_proximity
from calibrary.metrics.bins.bin_options import BINNING, BinnedKeywords, class_norm
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.entry import Looked

# -- proximity ----------------------------------------------------------------------------------------


@metric("piece", lenses=("binary", "top-label"))
def proximity_informed_calibration_error(
    view: Predictions,
    *,
    features: Any = None,
    proximity: Any = None,
    reference: Any = None,
    n_neighbors: int = 10,
    n_bins: int = 15,
    n_proximity_bins: int = 10,
    binning: str = "nested",
    **common: Unpack[Common],
) -> float:
    r"""Average gap between confidence and accuracy over cells of confidence and proximity.

    .. math:: \sum_{\text{cells}} p_\text{cell} |\bar y - \bar c|

    Proximity is exp(-mean distance to the nearest other inputs): high for typical inputs, low for unusual ones.

    Parameters
    ----------
    features : array-like of shape (N, d)
        The position of each row's input; distances are Euclidean.
    proximity : array-like of shape (N,), optional
        A score, already computed, that rises with proximity, in place of ``features``.
    reference : array-like of shape (M, d), optional
        Inputs among which neighbours are searched (the inventors use a validation set); by default the other rows.
    n_neighbors : int
    n_bins, n_proximity_bins : int
    binning : "nested" or "grid"
        "nested": equal-mass bins of confidence, each divided into equal-mass bins of proximity (the paper). "grid":
        equal-width bins of confidence crossed with quantile bins of proximity (the released code).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c, x = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], [[0.0], [0.1], [0.3], [2.0]]
    >>> round(cal.proximity_informed_calibration_error(y, c, features=x, n_bins=1, n_proximity_bins=2), 4)
    0.3
    """
    near = _proximity(view, features, proximity, reference, n_neighbors)
    cells = ProximityCells(near, n_bins, n_proximity_bins, binning)
    per_cell = view.n / (cells.n_bins * cells.n_proximity_bins)
    if per_cell < 30:
        warn(
            f"there are {per_cell:.3g} rows per cell, and with fewer than 30 rows chance alone gives large values: "
            "lower n_bins or n_proximity_bins"
        )
    return cells.groups(view).gap_norm(1)


@metric("proximity_bias", lenses=("binary", "top-label"))
@options_of(proximity_informed_calibration_error, "n_bins", "n_proximity_bins", "binning")
def proximity_bias_index(view: Predictions, *, share: float = 0.2, **near_by: Any) -> float:
    r"""Difference in accuracy between typical and unusual inputs that have the same confidence.

    The ``share`` of rows with the lowest proximity is matched, one by one, with the rows nearest in confidence among
    the ``share`` with the highest proximity (all equally near rows are used); the value is the mean label of the
    matches minus that of the rows matched.

    Parameters
    ----------
    features, proximity, reference, n_neighbors
        As in :func:`proximity_informed_calibration_error`.
    share : float
        Size of each of the two groups as a share of the rows, at most 0.5.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c, near = [0, 1, 1, 0, 1, 0], [0.7, 0.7, 0.9, 0.6, 0.7, 0.6], [0, 5, 6, 1, 9, 2]
    >>> cal.proximity_bias_index(y, c, proximity=near, share=0.5)
    1.0
    """
    if not 0.0 < share <= 0.5:
        raise RefusedError(f"share={share!r} must be above 0 and at most 0.5")
    near = view.align(_proximity(view, **near_by), "proximity")
    ordered = np.sort(near)
    size = int(share * view.n)
    if size == 0 or ordered[size - 1] == ordered[-size]:
        return undefined("no two groups of different proximity can be formed: pass more rows or a larger share")
    low, high = np.flatnonzero(near <= ordered[size - 1]), np.flatnonzero(near >= ordered[-size])
    matched = _matched_labels(view.c[low], view.c[high], view.y[high], view.weight[high])
    return float(np.average(matched - view.y[low], weights=view.weight[low]))


def _proximity(view: Predictions, features: Any, proximity: Any, reference: Any, n_neighbors: int) -> Array:
    """One number per row of the input that rises with proximity; rows that are left out get zero."""
    if proximity is not None:
        return as_floats(proximity, "proximity")
    if features is None:
        raise RefusedError("features is missing: pass one row of numbers per prediction, or a computed proximity=")
    near = log_proximity(view.align(features, "features"), n_neighbors=n_neighbors, reference=reference)
    if view.rows is None:
        return near
    everywhere = np.zeros(view.n_input)
    everywhere[view.rows] = near
    return everywhere


def _matched_labels(c: Array, others: Array, y: NDArray[Any], w: Array) -> Array:
    """Mean label of the rows of ``others`` that are nearest in confidence to each c."""
    values, index = np.unique(others, return_inverse=True)
    weight, positive = np.bincount(index, w), np.bincount(index, w * y)
    after = np.clip(np.searchsorted(values, c), 1, max(len(values) - 1, 1))
    below, above = after - 1, np.minimum(after, len(values) - 1)
    to_below, to_above = np.abs(c - values[below]), np.abs(values[above] - c)
    use_below, use_above = to_below <= to_above + 1e-12, to_above <= to_below + 1e-12
    return np.asarray(
        (use_below * positive[below] + use_above * positive[above])
        / (use_below * weight[below] + use_above * weight[above])
    )


# -- groups of your own -------------------------------------------------------------------------------

#: A loss or a statistic that the user defines may return any value, so the range is unknown.
_OWN = (-np.inf, np.inf)
_LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "absolute": lambda y, c: np.abs(y - c),
    "squared": lambda y, c: (y - c) ** 2,
}


def _kind_by_groups(options: Mapping[str, Any]) -> str | None:
    """How the metric uses ``groups=``: a given column stays as it is; without one, the metric forms groups itself."""
    return "exact" if "groups" in options else None


@metric(
    "pce",
    range_with=lambda options, k: _OWN if any(map(callable, options.values())) else (0.0, 1.0),
    lenses=("binary", "top-label", "full", "class-wise"),
    cell_kind=_kind_by_groups,
)
def partitioned_calibration_error(
    view: Predictions,
    *,
    groups: Any = None,
    partition_weights: Any = None,
    loss: str | Callable[[Any, Any], Any] = "absolute",
    statistic: str | Callable[[Any, Any], Any] = "mean",
    features: Any = None,
    **common: Unpack[Common],
) -> float:
    r"""Average gap between confidence and accuracy over groups that you define, by one or several partitions.

    .. math:: \sum_q p(q) \sum_{b \in q} p_b L(\bar y_b, \bar c_b)

    One group per row with the squared loss gives the Brier score; one group of all rows with the squared loss gives the
    squared overall bias; groups of equal width give ECE.

    Parameters
    ----------
    groups : array-like of shape (N,) or (N, Q), list of Q such columns, or callables
        The group of every row: any hashable value. A callable receives (confidences, features) and returns the groups.
        With ``lens="class-wise"``, pass one partition per class; the k-th is used for class k.
    partition_weights : array-like of shape (Q,), optional
        Weight of each partition; equal by default.
    loss : "absolute", "squared" or callable
        A callable receives the mean label and mean confidence of a group.
    statistic : "mean" or callable
        A callable receives the values and weights of a group, and replaces the weighted mean.
    features : array-like of shape (N, ...), optional
        Passed to ``groups`` where they are callables.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
    >>> round(cal.partitioned_calibration_error(y, c, groups=["a", "a", "b", "b"]), 4)
    0.15
    """
    if not callable(loss):
        one_of("loss", loss, _LOSSES)
    if not callable(statistic):
        one_of("statistic", statistic, ("mean",))
    if groups is None:
        raise RefusedError("groups is missing: pass the group of every row")
    partitions = _partitions(view, groups, features)
    if view.seen_through == "class-wise":
        return _partition_error(view, _own_partition(view, partitions, partition_weights), loss, statistic)
    weights = _partition_weights(partition_weights, len(partitions))
    errors = [_partition_error(view, partition, loss, statistic) for partition in partitions]
    return float(np.dot(weights, errors))


def _own_partition(view: Predictions, partitions: list[Indices], weights: Any) -> Indices:
    """The partition for the class of this view."""
    assert view.origin is not None
    classes = view.origin.through(Lens("class-wise")).views
    if weights is not None:
        raise RefusedError(
            "partition_weights cannot be used with lens='class-wise', where partitions have the weights of their "
            "classes: use average="
        )
    if len(partitions) != len(classes):
        raise RefusedError(
            f"groups has {len(partitions)} partitions: lens='class-wise' needs one for each of the {len(classes)} "
            "classes"
        )
    return next(partition for partition, seen in zip(partitions, classes, strict=True) if seen is view)


def _partitions(view: Predictions, groups: Any, features: Any) -> list[Indices]:
    """Group number of every row of the view, once per partition."""
    refuse_misaligned(y_true=view, groups=groups)
    given = groups if callable(groups) or isinstance(groups, list | tuple) else as_array(groups, "groups")
    if isinstance(given, np.ndarray):
        columns: list[Any] = list(given.T) if given.ndim == 2 else [given]
    elif callable(given):
        columns = [given]
    else:
        several = len(given) > 0 and all(callable(g) or _is_column(g, view.n_input) for g in given)
        columns = list(given) if several else [given]
    return [_numbered(view, column, features) for column in columns]


def _is_column(values: Any, n: int) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes) and len(values) == n


def _numbered(view: Predictions, column: Any, features: Any) -> Indices:
    if callable(column):
        aligned = None if features is None else view.align(features, "features")
        column = column(view.probability, aligned)
        if len(column) != view.n:
            raise RefusedError(
                f"groups: the callable returned {len(column)} groups for {view.n} rows: return one group per row"
            )
        return _by_value(column)
    return _by_value(view.align(_as_labels(column), "groups"))


def _as_labels(column: Any) -> NDArray[Any]:
    """One label per row, unchanged if labels are tuples or of several types."""
    if isinstance(column, np.ndarray) or hasattr(column, "dtype"):
        return as_array(column, "groups")
    labels = np.empty(len(column), dtype=object)
    labels[:] = list(column)
    return labels


def _by_value(labels: Any) -> Indices:
    labels = _as_labels(labels)
    if labels.dtype.kind != "O":
        return UserGroups(labels).fit(np.zeros(len(labels))).index_
    number: dict[Hashable, int] = {}
    gone = missing(labels.tolist())
    if gone is not None:
        raise RefusedError(f"groups[{gone}] is missing: pass a group for every row")
    return np.array([number.setdefault(g, len(number)) for g in labels.tolist()], dtype=np.intp)


def _partition_weights(given: Any, n: int) -> Array:
    if given is None:
        return np.full(n, 1.0 / n)
    weights = as_floats(given, "partition_weights")
    if weights.shape != (n,) or not (weights >= 0).all() or not weights.sum() > 0:
        raise RefusedError(
            f"partition_weights={given!r} must be {n} weights, none of them negative and not all of them zero"
        )
    return weights / weights.sum()


def _partition_error(view: Predictions, partition: Indices, loss: Any, statistic: Any) -> float:
    kind = Groups if view.binary else VectorGroups
    groups = kind(view, int(partition.max()) + 1, index=partition)
    label, confidence = groups.label, groups.confidence
    if callable(statistic):
        label, confidence = _described(groups, statistic)
    if callable(loss):
        pairs = zip(label.ravel().tolist(), confidence.ravel().tolist(), strict=True)
        losses = np.array([float(loss(y, c)) for y, c in pairs]).reshape(label.shape)
    else:
        losses = _LOSSES[loss](label, confidence)
    per_group = losses if view.binary else losses.mean(axis=1)
    return float(np.dot(groups.share, per_group))


def _described(groups: Groups, statistic: Callable[[Any, Any], Any]) -> tuple[Array, Array]:
    """The statistic of the labels and of the confidences of every group, for each column of whole vectors."""
    view = groups.view
    labels = view.y[:, None].astype(np.float64) if view.binary else view.one_hot
    confidences = view.probability.reshape(view.n, -1)
    members = [np.flatnonzero(groups.index == g) for g in range(len(groups))]

    def describe(matrix: Array) -> Array:
        rows = [[float(statistic(x[m], view.weight[m])) for x in matrix.T] for m in members]
        return np.array(rows) if not view.binary else np.array(rows)[:, 0]

    return describe(labels), describe(confidences)


# -- the general binned error -------------------------------------------------------------------------


@metric(
    "gce",
    range_with=lambda options, k: _OWN if callable(options.get("loss")) else (0.0, 1.0),
    lenses=("binary", "top-label", "class-wise"),
    extra_options=BINNING,
    combine=class_norm(1),
    stacks="weights",
)
def general_calibration_error(
    view: Predictions,
    *,
    loss: str | Callable[[Array, Array, Array], Any] = "mean-gap",
    norm: float | str = 1,
    alpha: float = 0.05,
    aggregate: str = "power",
    **options: Unpack[BinnedKeywords],
) -> float:
    r"""Norm over bins of any loss between the labels and the confidences of a bin.

    .. math:: \Big(\sum_b p_b\, \ell_b^p\Big)^{1/p}

    Parameters
    ----------
    loss : "mean-gap", "point-gap", "rejection" or callable
        "mean-gap": mean label minus mean confidence, in absolute value (ECE, ACE, MCE). "point-gap": mean distance of
        the confidences from the mean label (ECE-LB). "rejection": share of the confidences that an exact binomial test
        of the bin rejects (TCE). Or a function of the bin's labels, confidences and weights.
    norm : float or "l1", "l2", "max"
        Order p of the norm; infinity gives the largest loss of any bin.
    alpha : float
        Level of the tests of ``loss="rejection"``.
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
    >>> round(cal.general_calibration_error(y, c, norm="max", n_bins=2), 4)
    0.2
    >>> round(cal.general_calibration_error(y, c, loss=lambda y, c, w: abs(y - c).max(), n_bins=2), 4)
    0.5
    """
    p = norm_order(norm)
    groups = group(view, **options)
    if loss != "mean-gap":
        view.refuse_stack("this loss")
    if callable(loss):
        members = [groups.index == g for g in range(len(groups))]
        values = np.array([float(loss(view.y[m], view.c[m], view.weight[m])) for m in members])
    else:
        one_of("loss", loss, ("mean-gap", "point-gap", "rejection"))
        values = _bin_losses(groups, loss, alpha)
    return power_mean(values, groups.share, p)


def _bin_losses(groups: Groups, loss: str, alpha: float) -> Array:
    if loss == "mean-gap":
        return np.abs(groups.gap)
    if loss == "point-gap":
        return groups.mean(np.abs(groups.label[groups.index] - groups.view.c))
    return rejected_share(groups, alpha)


_STRATEGIES = {"width": "uniform", "mass": "quantile"}


@metric(
    "tce",
    renamed={"n_min": "min_count"},
    range_with=lambda options, k: (0.0, 100.0 if options.get("percent") else 1.0),
    lenses=("binary", "top-label", "class-wise"),
)
def test_based_calibration_error(
    view: Predictions,
    *,
    alpha: float = 0.05,
    strategy: str | None = None,
    binning: str | Grouping | ArrayLike | None = None,
    min_count: int = 10,
    n_max: float = 1000,
    last_bin: str = "atom",
    n_bins: int = 10,
    percent: bool = False,
    **common: Unpack[Looked],
) -> float:
    r"""Share of predictions that an exact binomial test of their bin's labels rejects.

    A bin with k positives among n rows rejects a confidence c in it when :math:`p(k, n, c) \le \alpha`, where p is the
    two-sided p-value of ``scipy.stats.binomtest`` (the probability of all outcomes no likelier than k).

    Parameters
    ----------
    alpha : float
        Significance level of each test.
    strategy : "pava-bc", "pava", "quantile" or "uniform"
        Bins by isotonic pooling with limits on their size (the default), by isotonic pooling without limits, of equal
        count, or of equal width (closed left).
    binning : str or grouping object, optional
        Another name for ``strategy``: "width" is "uniform", "mass" is "quantile"; or any grouping object.
    min_count, n_max : int
        Smallest and largest number of rows in a bin of "pava-bc".
    last_bin : "atom", "released" or "strict"
        How the last bin of "pava-bc" is closed; see :class:`calibrary.grouping.adaptive.BlockPAVA`.
    n_bins : int
        Number of bins of "quantile" and "uniform".
    percent : bool
        Multiply the value by 100, as the inventors do.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0] * 30 + [1] * 10, [0.7] * 20 + [0.3] * 20
    >>> cal.test_based_calibration_error(y, c)
    0.5
    """
    groups = _bins(view, strategy, binning, min_count, n_max, last_bin, n_bins)
    share = float(np.dot(groups.share, rejected_share(groups, alpha)))
    return 100.0 * share if percent else share


test_based_calibration_error.__test__ = False  # type: ignore[attr-defined]  # a metric, not a test of pytest's


def rejected_share(groups: Groups, alpha: float) -> Array:
    """Share of each group's confidences that an exact two-sided binomial test on its labels rejects."""
    from calibrary.numerics.laws import rejected

    if not 0.0 < alpha < 1.0:
        raise RefusedError(f"alpha={alpha!r} must be between 0 and 1")
    view = groups.view
    if view.w is not None:
        view.counts("a binomial test")
    n = np.rint(groups.weight).astype(np.int64)
    k = np.rint(groups.label * groups.weight).astype(np.int64)
    if groups.lower is None:
        index, p, w = groups.index, view.c, view.w
    else:  # intervals are runs of the sorted rows
        index, p, w = np.repeat(np.arange(len(groups)), groups.count), view.sorted.c, view.sorted.w
    low, high = _rejected_outside(k, n, alpha)
    decision = (p < low[index]) | (p > high[index])
    rest = np.flatnonzero(~decision)
    decision[rest] = rejected(index[rest], k, n, p[rest], alpha)
    return np.bincount(index, decision if w is None else w * decision, minlength=len(groups)) / groups.weight


def _rejected_outside(k: NDArray[np.int64], n: NDArray[np.int64], alpha: float) -> tuple[Array, Array]:
    """For every group, an interval outside of which a confidence is certainly rejected, whatever its exact p-value.

    With D = KL(k/n || p), a tail that ends at k has probability at most exp(-nD), and the likelihood of k is at most
    exp(-nD) / sqrt(2 pi k (1 - k/n)). The other tail begins at an outcome no likelier than k, and by Stirling's bounds
    its probability is at most sqrt(2n) times as large. This bound grows towards k/n, so the end points can be bisected;
    every step errs on the safe side, and a few steps are enough.
    """
    rate = k / n
    spread = np.maximum(2.0 * np.pi * k * (1.0 - rate), 1.0)
    enough = np.log((1.0 + np.sqrt(2.0 * n / spread)) / (alpha * (1.0 - 1e-6))) / n
    ends = []
    for end in (0.0, 1.0):
        outside, inside = np.full(len(k), end), rate
        for _ in range(12):
            middle = 0.5 * (outside + inside)
            with np.errstate(divide="ignore", invalid="ignore"):
                divergence = scipy.special.rel_entr(rate, middle) + scipy.special.rel_entr(1.0 - rate, 1.0 - middle)
            far = divergence > enough
            outside, inside = np.where(far, middle, outside), np.where(far, inside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def _bins(
    view: Predictions, strategy: str | None, binning: Any, n_min: int, n_max: float, last_bin: str, n_bins: int
) -> Groups:
    if strategy is not None and binning is not None:
        raise RefusedError(f"strategy={strategy!r} and binning={binning!r} mean the same: pass one of them")
    if not isinstance(binning, str | None):
        return as_grouping(binning).groups(view)
    if strategy is None:
        strategy = "pava-bc" if binning is None else _STRATEGIES.get(binning, binning)
    one_of("strategy", strategy, ("pava-bc", "pava", "quantile", "uniform"))
    if strategy == "uniform":
        return EqualWidth(n_bins, "left").groups(view)
    if strategy == "quantile":
        return _equal_counts(view, whole("n_bins", n_bins))
    if strategy == "pava":
        n_min, n_max = 0, np.inf
    return BlockPAVA(n_min, n_max, last_bin).groups(view)


def _equal_counts(view: Predictions, n_bins: int) -> Groups:
    """Ranks cut at floor(bN/B), as the inventors do; tied rows go to the bin of the first of them."""
    below = np.cumsum(view.ties.w) - view.ties.w
    cuts = np.arange(1, n_bins) * int(view.total) // n_bins
    first = np.searchsorted(below, cuts)  # first group of tied rows in each bin
    first = np.unique(first[(first > 0) & (first < len(below))])
    inner: Array = view.ties.c[first]
    return Edges(np.concatenate(([-1.0], inner, [2.0])), "left").groups(view)

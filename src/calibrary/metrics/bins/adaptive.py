"""Bins that the data choose: mean splits (row 32), the monotonic sweep (row 29), a fitted binned map (row 33)."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked, as_number
from calibrary.grouping import CrossValidated, Grouping, MeanSplit, MonotonicSweep, bins_of_map, group, roof_of
from calibrary.grouping.groups import pair_scale
from calibrary.metrics.bins.bin_options import class_norm, range_of_distance
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values
from calibrary.numerics.runs import run_starts


@partial(ReplicateForm, labels_only=True)
def _in_the_same_bins(
    view: Predictions, *, min_count: int = 100, min_leaf: int = 1, split: str = "mean", distance: str = "tv"
) -> Values | None:
    """Bins that depend on the confidences and not on the labels, so that redrawn labels use the same bins."""
    if not view.binary:
        return None
    index = MeanSplit(min_count, min_leaf, split).groups(view).index
    order = np.argsort(index, kind="stable")
    start = run_starts(index[order])
    c, w, scale = view.c[order], view.weight[order], pair_scale(distance) / view.total
    return lambda y, _: np.abs(np.add.reduceat(w * (y[:, order] - c), start, axis=1)).sum(axis=1) * scale


@metric(
    "mvms",
    renamed={"min_size": "min_count"},
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    default_lens="full",
    replicate=_in_the_same_bins,
)
def mean_split_calibration_error(
    view: Predictions,
    *,
    min_count: int = 100,
    min_leaf: int = 1,
    split: str = "mean",
    distance: str = "tv",
    **common: Unpack[Common],
) -> float:
    r"""Average distance between mean probabilities and class frequencies over bins that adapt to the data.

    Rows are split at the mean of the coordinate with the largest variance until fewer than ``min_count`` remain:

    .. math:: \sum_b p_b\, d(\bar c_b, \bar y_b)

    Parameters
    ----------
    min_count : int
        Nodes with fewer rows are not split.
    min_leaf : int
        A split that would leave fewer rows on one side is not carried out.
    split : "mean" or "median"
    distance : "tv", "l1" or "l2"
        Half the sum of absolute differences, the sum, or the Euclidean distance.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.mean_split_calibration_error(y, p, min_count=3), 4)
    0.225
    """
    return MeanSplit(min_count, min_leaf, split).groups(view).gap_norm(1, distance)


@metric("ece_sweep", combine=class_norm(1), stacks="labels")
def sweep_calibration_error(
    view: Predictions,
    *,
    base: str = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    binning: str | None = None,
    **common: Unpack[Common],
) -> float:
    r"""ECE with the largest number of bins for which accuracy still rises with confidence.

    The number of bins b increases from 1 until the mean labels of the bins decrease somewhere; the last b before that
    is used (``MonotonicSweep(base).fit(c, y).n_bins_``).

    Parameters
    ----------
    base : "mass" or "width"
        Equal-mass bins (the authors' recommendation) or equal-width ones.
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.
    binning : "mass" or "width", optional
        Another name for ``base``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9]
    >>> round(cal.sweep_calibration_error(y, p), 4)
    0.1833
    """
    sweep = MonotonicSweep(base if binning is None else binning)
    if isinstance(view, Stacked):
        found = np.empty(len(view.y))
        for which, bins in sweep.of_each(view):
            found[which] = group(view.some(which), bins).gap_norm(norm)
        return as_number(found)
    return group(view, sweep).gap_norm(norm)


@metric("ece_fott", renamed={"alpha": "norm"})
def fit_on_the_test_calibration_error(
    view: Predictions,
    *,
    n_bins: int | str = "cv",
    base: str = "mass",
    roof: str = "tilted",
    norm: float = 1,
    empty: str = "zero",
    max_bins: int = 40,
    cv: int = 10,
    tolerance: float = 0.0,
    folds: str = "shuffle",
    rng: Any = 1,
    binning: str | None = None,
    **common: Unpack[Common],
) -> float:
    r"""Mean distance from the diagonal of a binned calibration map whose number of bins is cross-validated.

    .. math:: \frac1N \sum_i |\hat y(c_i) - c_i|^\alpha

    With ``roof="tilted"`` and :math:`\alpha = 1` this is the ECE of the chosen bins; with ``roof="flat"`` it is the
    label-binned error to the power alpha.

    Parameters
    ----------
    n_bins : int or "cv"
        Number of bins, or the one in 1..``max_bins`` that minimises the squared error on held-out folds.
    base : "mass" or "width"
        Bins of equal mass or of equal width; ``binning`` means the same.
    roof : "tilted", "flat" or "free"
        The map within a bin: c + mean label - mean confidence, or the mean label, or the least-squares line clipped to
        [0, 1] (the inventors' whole family of piecewise linear maps with jumps).
    norm : float
        Power of the distance; no root is taken.
    empty : "zero" or "identity"
        The prediction on the held-out fold for a bin without training rows: 0 (the authors' code), or the confidence c.
    max_bins, cv : int
    tolerance : float
        With 0.001, the smallest number of bins whose score is within 0.1 % of the best (the authors' second variant).
    folds : "shuffle" or "rank"
        Folds are shuffled as scikit-learn does with seed ``rng``, or assigned by rank, which does not depend on row
        order.
    rng : int or Generator
    binning : "mass" or "width", optional

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.fit_on_the_test_calibration_error(y, p, n_bins=2, base="width"), 4)
    0.225
    """
    if not norm > 0:
        raise RefusedError(f"norm={norm!r} must be above 0")
    base = base if binning is None else binning
    if isinstance(n_bins, str):
        one_of("n_bins", n_bins, ("cv",))
        bins: Grouping = CrossValidated(
            base, roof=roof, empty=empty, max_bins=max_bins, cv=cv, tolerance=tolerance, folds=folds, rng=rng
        )
    else:
        bins = bins_of_map(base, n_bins)
    groups = bins.groups(view)
    if roof == "tilted":
        return float(np.dot(groups.share, np.abs(groups.gap) ** norm))
    c = view.sorted.c
    if roof == "free":
        offset, slope = (np.repeat(x, groups.count) for x in roof_of(groups, roof))
        return float(np.mean(np.abs(np.clip(offset + slope * c, 0.0, 1.0) - c) ** norm))
    return float(np.mean(np.abs(np.repeat(groups.label, groups.count) - c) ** norm))

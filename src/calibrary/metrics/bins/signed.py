"""Signed errors: is the model over- or under-confident? (rows 35, 36)"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, inner, ratio
from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import InBlocks, ReplicateForm

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


def _of_true_classes() -> ReplicateForm:
    """The rows of every class of many replicates, without a view for each class."""

    def prepare(p: Predictions, *, group: str = "mean", convention: str = "review") -> InBlocks | None:
        if p.y.ndim == 2 or p.fractional:
            return None
        confidence = p.p.max(axis=1)
        gaps = [(p.top == k) - confidence for k in range(p.k)]

        def values(w: Array, y: Any) -> Array:
            inside = [np.where(y == k, w, 0.0) for k in range(p.k)]
            size = np.stack([x.sum(axis=-1) for x in inside], axis=-1)
            total = np.stack([x @ gap for x, gap in zip(inside, gaps, strict=True)], axis=-1)
            found: Array = _SIGNS[convention] * _of_classes(ratio(total, size), size, group)
            return found

        return InBlocks(lambda y: values(p.weight, y), lambda w: values(w, p.y))

    return ReplicateForm(prepare, whole=True)


@metric(
    "wsmcs",
    range_with=lambda options, k: (-float(k), float(k)) if options.get("group") == "sum" else (-1.0, 1.0),
    lenses=("true-class",),
    default_lens="true-class",
    binary_lens="true-class",
    combine=_weigh_groups,
    replicate=_of_true_classes(),
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

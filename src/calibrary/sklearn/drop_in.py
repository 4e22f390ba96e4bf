"""Functions with the names, arguments and numbers of scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, warn_once, whole
from calibrary.data.checks import as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.data.predictions import predictions
from calibrary.diagnostics.reliability import reliability_bins
from calibrary.grouping import automatic_bins
from calibrary.metrics.point.brier import brier_score


def calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    pos_label: Any = None,
    n_bins: int | str = 5,
    strategy: str = "uniform",
    sample_weight: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed frequency and mean prediction of every bin that has rows, as ``sklearn.calibration.calibration_curve``.

    ``strategy`` is "uniform" (bins of equal width) or "quantile" (bins of equal count). With ``n_bins="auto"`` each bin
    has about ten expected events and ten expected non-events (2 to 15 bins). ``sample_weight``, which scikit-learn's
    function does not have, counts a row of weight 2 as two rows; with "quantile", weights must be whole numbers. Text
    labels need ``pos_label``. For counts, limits and several classes use :func:`calibrary.reliability_bins`.

    Examples
    --------
    >>> from calibrary.sklearn import calibration_curve
    >>> observed, predicted = calibration_curve([0, 0, 1, 1], [0.1, 0.3, 0.35, 0.9], n_bins=2)
    >>> observed.round(3).tolist(), predicted.round(3).tolist()
    ([0.333, 1.0], [0.25, 0.9])
    """
    refuse_misaligned(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight)
    y, _ = positive(y_true, pos_label)
    bins = reliability_bins(
        y, y_prob, sample_weight=sample_weight, **bins_of(n_bins, strategy, y, y_prob, sample_weight)
    )
    occupied = bins.count > 0
    return bins.outcome[occupied], bins.confidence[occupied]


def bins_of(n_bins: Any, strategy: str, y: Any, y_prob: Any, sample_weight: Any) -> dict[str, Any]:
    """scikit-learn's words for bins as options of a metric."""
    one_of("strategy", strategy, ("uniform", "quantile"))
    if isinstance(n_bins, str):
        one_of("n_bins", n_bins, ("auto",))
        checked = predictions(y, y_prob, sample_weight=sample_weight)
        n_bins = automatic_bins(checked.c, checked.w)
    return {"n_bins": whole("n_bins", n_bins), "strategy": strategy}


def positive(y_true: Any, pos_label: Any) -> tuple[NDArray[np.intp], Any]:
    """Whether each label is the positive one, and that label: 1 for labels in {0, 1} or {-1, 1}, else as given."""
    y = as_array(y_true, "y_true").ravel()
    found = np.unique(y).tolist()
    if len(found) > 2:
        raise RefusedError(f"y_true has {len(found)} classes: Only binary classification is supported, {found[:5]}")
    if pos_label is None and not (set(found) <= {0, 1} or set(found) <= {-1, 1}):
        names = ", ".join(map(repr, found))
        raise RefusedError(
            f"y_true takes value in {{{names}}} and pos_label is not specified: either make y_true take value in "
            "{0, 1} or {-1, 1} or pass pos_label explicitly"
        )
    chosen = 1 if pos_label is None else pos_label
    if len(found) == 2 and chosen not in found:
        raise RefusedError(f"pos_label={chosen!r} is not a valid label: It should be one of {found}")
    return (y == chosen).astype(np.intp), chosen


def brier_score_loss(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale_by_half: str | bool = "auto",
) -> float:
    """The Brier score on scikit-learn's scale, as ``sklearn.metrics.brier_score_loss``.

    The squared distance of a row is halved for two classes and not for several (``scale_by_half="auto"``), or always
    (True), or never (False). Columns are in the sorted order of ``labels``, or of the labels in ``y_true``, as in
    scikit-learn. :func:`calibrary.brier_score` divides by the number of classes and takes columns in the order given.
    Before version 0.4 ``cal.brier_score_loss`` was that function, so the first call with several classes warns.

    Examples
    --------
    >>> from calibrary.sklearn import brier_score_loss
    >>> round(brier_score_loss(["a", "c", "b"], [[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.3, 0.6, 0.1]]), 4)
    0.2133
    """
    if not isinstance(scale_by_half, bool | np.bool_):
        one_of("scale_by_half", scale_by_half, ("auto",))
    refuse_misaligned(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    p, y = as_array(y_proba, "y_proba"), as_array(y_true, "y_true")
    several = p.ndim == 2 and p.shape[1] > 2
    if several and isinstance(scale_by_half, str):
        warn_once(
            f"brier_score_loss of {p.shape[1]} classes is on scikit-learn's scale, {p.shape[1]} times "
            "calibrary.brier_score, which it was before version 0.4; scale_by_half=False asks for this scale without a "
            "warning"
        )
    halved = not several if isinstance(scale_by_half, str) else scale_by_half
    if p.ndim == 1 or p.shape[1] == 1:
        if pos_label is None and y.dtype.kind in "iuf":
            pos_label = max(1, y.max())  # the larger label, and 1 if all labels are 0 or -1
        y, p, named = positive(y, pos_label)[0], p.ravel(), None
    else:
        named = None if y.ndim == 2 else _sorted_labels(y if labels is None else labels, labels)
    return float(brier_score(y, p, labels=named, sample_weight=sample_weight, scale="half" if halved else "sum"))


def _sorted_labels(found: Any, given: Sequence[Any] | None) -> list[Any]:
    names: list[Any] = np.unique(np.asarray(found)).tolist()
    if given is not None and list(given) != names:
        warnings.warn(
            f"Labels passed were {list(given)}. But this function assumes labels are ordered lexicographically. Pass "
            f"the ordered labels={names} and ensure that the columns of y_prob correspond to this ordering.",
            UserWarning,
            stacklevel=3,
        )
    return names

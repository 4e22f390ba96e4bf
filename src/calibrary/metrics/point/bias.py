"""Overall bias: whether mean prediction and event frequency agree, overall or per class."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.metrics.machinery.declare import CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.literature import cited

_GLOBAL: dict[str, Any] = {
    "family": "point",
    "measures": "bias",
    "proper": "dataset",
    "lenses": ALL_LENSES,
    "default_lens": "full",
    "symmetric": True,
    "cost": "O(NK)",
    "use": "Use this bias as a first check of whether the average prediction is right (calibration in the large).",
    "avoid": "Errors of different rows cancel, so a value of 0 does not mean that the model is calibrated.",
}
_NO_SCORE = Correction(
    "proper",
    "Table 2 lists propriety as unknown",
    "the value is not an average over rows: it is a function of two means, and it is perfect for any "
    "predictions with the right mean",
)
_RATIO: dict[str, Any] = {
    "family": "point",
    "measures": "bias",
    "range": (0.0, math.inf),
    "perfect": 1.0,
    "better": "perfect",
    "tail": "two-sided",
    "proper": "no",
    "cost": "O(N)",
    "use": "Use this ratio in clinical validation: it compares the total of predicted and of observed events.",
    "avoid": "A ratio of 1 does not mean that the model is calibrated, because errors cancel, and the ratio does "
    "not rank models. With few events the ratio is noisy: compute its interval.",
    "corrections": (
        _NO_SCORE,
        Correction("perfect value", "the ratio is 0 if errors cancel (Table 2)", "the ratio is 1 if errors cancel"),
    ),
}


@metric(
    "gsb",
    sound=False,
    complete=True,
    square="yes",
    row=6,
    fractional="rows",
    range=(0.0, 1.0),
    range_note="the range is [0, 1] for two classes and [0, 2/K] for more; with scale='sum' it is [0, 2]",
    range_with=lambda options, k: (0.0, 2.0 if options.get("scale") == "sum" else 1.0),
    residual_only=True,
    stacks="weights",
    cells=CellFacts("exact", (5e-18, 2e-19)),
    reads_cells=True,
    equation="(10)",
    references=cited("galbraith2011"),
    corrections=(
        _NO_SCORE,
        Correction("(10)", "c_i and y_i are printed without a class index", "the symbols are c_ik and y_ik"),
        Correction(
            "equivalence",
            "the bias is equivalent to ECE with one bin",
            "it is equivalent to the square of ECE with one bin; MDCA is the one-bin error",
        ),
    ),
    **_GLOBAL,
)
def global_squared_bias(view: Predictions, *, scale: str = "1/K", **common: Unpack[Common]) -> float:
    r"""Squared difference between mean prediction and class frequency.

    .. math:: \frac{1}{K} \sum_k (\bar c_k - \bar y_k)^2

    Parameters
    ----------
    scale : "1/K" or "sum"
        "sum" omits the division by the number of classes.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.global_squared_bias([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0044
    """
    one_of("scale", scale, ("1/K", "sum"))
    return as_number(np.square(_class_bias(view)).mean(axis=-1)) * (1 if scale == "1/K" else view.k)


@metric(
    "mdca",
    sound=False,
    complete=True,
    differentiable=True,
    row=7,
    fractional="rows",
    aliases=("dca",),
    range_note="the range is [0, 1] for two classes and [0, 2/K] for more",
    residual_only=True,
    stacks="weights",
    cells=CellFacts("exact", (1e-16, 3e-17)),
    reads_cells=True,
    equation="(11)",
    references=cited("hebbalaguppe2022"),
    corrections=(_NO_SCORE,),
    **_GLOBAL,
)
def multiclass_difference_of_confidence_and_accuracy(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Absolute difference between mean prediction and class frequency, averaged over classes.

    .. math:: \frac{1}{K} \sum_k |\bar c_k - \bar y_k|

    This is the class-wise calibration error with one bin. With the top-label lens the value is |mean confidence -
    accuracy|.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.multiclass_difference_of_confidence_and_accuracy([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0667
    """
    return as_number(np.abs(_class_bias(view)).mean(axis=-1))


@metric(
    "eo",
    smooth=True,
    imbalance="keeps",
    parameter_free=True,
    familiar=True,
    row=8,
    fractional="binary",
    aliases=(
        "e_o",
        "expected_over_observed",
        "EO ratio",
        "expected to observed",
        "expected to observed ratio",
        "expected to observed (EO) ratio",
    ),
    sign="a value above 1 means that too many events were predicted (over-confident with the top-label "
    "lens); a value below 1 means too few",
    law="expected over observed",
    cells=CellFacts("exact", (1e-15, 7e-16)),
    overall={"": "mean"},
    equation="(12)",
    references=cited("steyerberg2019"),
    **_RATIO,
)
def expected_observed_ratio(view: Predictions, *, inverse: bool = False, **common: Unpack[Common]) -> float:
    r"""Ratio of expected to observed events: how many times more events were predicted than occurred.

    .. math:: \frac{\sum_i c_i}{\sum_i y_i}

    The ratio is infinite if no event was observed. With the class-wise lens the value is the mean of K ratios;
    ``average=None`` gives each ratio. :func:`observed_expected_interval` gives an interval.

    Parameters
    ----------
    inverse : bool
        Return observed over expected instead.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_observed_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.9
    """
    return ratio(view.sum(view.y), view.sum(view.c)) if inverse else ratio(view.sum(view.c), view.sum(view.y))


@metric(
    "oe",
    name="observed/expected ratio",
    smooth=True,
    section="3.5",
    fractional="binary",
    aliases=(
        "o_e",
        "observed_over_expected",
        "OE ratio",
        "observed to expected",
        "observed to expected ratio",
        "observed to expected (OE) ratio",
    ),
    sign="a value below 1 means that too many events were predicted (over-confident with the top-label "
    "lens); a value above 1 means too few",
    law="observed over expected",
    cells=CellFacts("exact", (1e-15, 7e-16)),
    overall={"": "mean"},
    equation="inverse of (12)",
    references=cited("steyerberg2019"),
    **_RATIO,
)
def observed_expected_ratio(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Ratio of observed to expected events: how many times more events occurred than were predicted.

    .. math:: \frac{\sum_i y_i}{\sum_i c_i}

    The ratio is infinite if no event was expected and some occurred. :func:`observed_expected_interval` gives an
    interval.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.observed_expected_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    1.1111
    """
    return ratio(view.sum(view.y), view.sum(view.c))


# -- shared functions ---------------------------------------------------------------------------------


def _class_bias(view: Predictions) -> Array:
    if view.binary:
        return np.asarray(view.mean(view.residual))[..., None]
    bias: Array = view.mean(view.p) - view.class_share
    return bias


def ratio(above: float, below: float) -> float:
    if below > 0:
        with np.errstate(over="ignore"):
            return float(above / below)
    if above > 0:
        return math.inf
    return undefined("no event was expected and none observed, so their ratio is undefined")

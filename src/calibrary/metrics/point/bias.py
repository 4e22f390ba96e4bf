"""Global bias: do predictions and outcomes agree on the whole, or per class?"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
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
    "use": "First look: is the average prediction right (calibration in the large)?",
    "avoid": "Errors of different rows cancel: 0 does not mean calibrated.",
}
_NO_SCORE = Correction(
    "proper", "unknown", "no score of rows: a function of two means, perfect for any predictions with the right mean"
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
    "use": "Clinical validation: total predicted against total observed events.",
    "avoid": "1 does not mean calibrated, errors cancel, and it does not rank models; "
    "with few events the ratio is noisy: ask for its interval.",
    "corrections": (_NO_SCORE, Correction("perfect value", "0 if errors cancel (Table 2)", "1 if errors cancel")),
}


@metric(
    "gsb",
    sound=False,
    complete=True,
    square="yes",
    row=6,
    fractional="rows",
    range=(0.0, 1.0),
    range_note="[0, 1] for two classes, [0, 2/K] for more; [0, 2] with scale='sum'",
    range_with=lambda options, k: (0.0, 2.0 if options.get("scale") == "sum" else 1.0),
    residual_only=True,
    cells=CellFacts("exact", (5e-18, 2e-19)),
    reads_cells=True,
    equation="(10)",
    references=cited("galbraith2011"),
    corrections=(
        _NO_SCORE,
        Correction("(10)", "c_i and y_i without a class index", "c_ik and y_ik"),
        Correction("equivalence", "equivalent to ECE with one bin", "to its square; MDCA is the one-bin error"),
    ),
    **_GLOBAL,
)
def global_squared_bias(view: Predictions, *, scale: str = "1/K", **common: Unpack[Common]) -> float:
    r"""Squared difference between mean prediction and class frequency.

    .. math:: \frac{1}{K} \sum_k (\bar c_k - \bar y_k)^2

    Parameters
    ----------
    scale : "1/K" or "sum"
        "sum" leaves the division by the number of classes out.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.global_squared_bias([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0044
    """
    one_of("scale", scale, ("1/K", "sum"))
    return float(np.square(_class_bias(view)).mean()) * (1 if scale == "1/K" else view.k)


@metric(
    "mdca",
    sound=False,
    complete=True,
    differentiable=True,
    row=7,
    fractional="rows",
    aliases=("dca",),
    range_note="[0, 1] for two classes, [0, 2/K] for more",
    residual_only=True,
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

    The class-wise calibration error with one bin. Through the top-label lens it is |mean confidence - accuracy|.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.multiclass_difference_of_confidence_and_accuracy([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0667
    """
    return float(np.abs(_class_bias(view)).mean())


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
    sign="above 1: too many events predicted (over-confident through the top-label lens); below 1: too few",
    law="expected over observed",
    cells=CellFacts("exact", (1e-15, 7e-16)),
    overall={"": "mean"},
    equation="(12)",
    references=cited("steyerberg2019"),
    **_RATIO,
)
def expected_observed_ratio(view: Predictions, *, inverse: bool = False, **common: Unpack[Common]) -> float:
    r"""Expected over observed events: how many times too many were predicted.

    .. math:: \frac{\sum_i c_i}{\sum_i y_i}

    Infinite when nothing was observed. Through the class-wise lens the mean of K ratios; ``average=None`` gives
    each. An interval: :func:`observed_expected_interval`.

    Parameters
    ----------
    inverse : bool
        Observed over expected instead.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_observed_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.9
    """
    return ratio(view.sum(view.y), view.sum(view.c)) if inverse else ratio(view.sum(view.c), view.sum(view.y))


@metric(
    "oe",
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
    sign="below 1: too many events predicted (over-confident through the top-label lens); above 1: too few",
    law="observed over expected",
    cells=CellFacts("exact", (1e-15, 7e-16)),
    overall={"": "mean"},
    equation="inverse of (12)",
    references=cited("steyerberg2019"),
    **_RATIO,
)
def observed_expected_ratio(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Observed over expected events: how many times more happened than predicted.

    .. math:: \frac{\sum_i y_i}{\sum_i c_i}

    Infinite when none was expected and some happened. An interval: :func:`observed_expected_interval`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.observed_expected_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    1.1111
    """
    return ratio(view.sum(view.y), view.sum(view.c))


# -- what they lean on ------------------------------------------------------------------------------


def _class_bias(view: Predictions) -> Array:
    if view.binary:
        return np.atleast_1d(view.mean(view.residual))
    bias: Array = view.mean(view.p) - view.class_share
    return bias


def ratio(above: float, below: float) -> float:
    if below > 0:
        with np.errstate(over="ignore"):
            return float(above / below)
    if above > 0:
        return math.inf
    return undefined("no event was expected and none observed, so their ratio is undefined")

"""Global bias: do predictions and outcomes agree on the whole, or per class?"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary._errors import one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES, Lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.metrics.declare import ENTRIES, Common, Correction, metric
from calibrary.metrics.measure import views_of
from calibrary.question import Question

__all__ = [
    "RatioInterval",
    "expected_observed_ratio",
    "global_squared_bias",
    "multiclass_difference_of_confidence_and_accuracy",
    "observed_expected_interval",
    "observed_expected_ratio",
]

_GLOBAL: dict[str, Any] = {
    "family": "point",
    "proper": "dataset",
    "lenses": ALL_LENSES,
    "default_lens": "full",
    "symmetric": True,
    "cost": "O(NK)",
    "use": "First look: is the average prediction right (calibration in the large)?",
    "avoid": "Errors of different rows cancel: 0 does not mean calibrated.",
}
_STEYERBERG = "Steyerberg (2019), Clinical prediction models"
_RATIO: dict[str, Any] = {
    "family": "point",
    "range": (0.0, math.inf),
    "perfect": 1.0,
    "better": "perfect",
    "tail": "two-sided",
    "proper": "no",
    "cost": "O(N)",
    "use": "Clinical validation: total predicted against total observed events.",
    "avoid": "1 does not mean calibrated, errors cancel; with few events the ratio is noisy: ask for its interval.",
    "corrections": (Correction("perfect value", "can be zero if errors cancel", "can be one if errors cancel"),),
}


@metric(
    "gsb",
    row=6,
    range=(0.0, 1.0),
    range_note="[0, 1] for two classes, [0, 2/K] for more; [0, 2] with scale='sum'",
    equation="(10)",
    corrections=(
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
    row=7,
    aliases=("dca",),
    range_note="[0, 1] for two classes, [0, 2/K] for more",
    equation="(11)",
    references=("Hebbalaguppe et al. (2022), A stitch in time saves nine: a train-time regularizing loss",),
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
    row=8,
    aliases=("e_o", "expected_over_observed"),
    sign="above 1: too many events predicted (over-confident through the top-label lens); below 1: too few",
    equation="(12)",
    references=(_STEYERBERG,),
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
    return _ratio(view.sum(view.y), view.sum(view.c)) if inverse else _ratio(view.sum(view.c), view.sum(view.y))


@metric(
    "oe",
    aliases=("o_e", "observed_over_expected"),
    sign="below 1: too many events predicted (over-confident through the top-label lens); above 1: too few",
    equation="inverse of (12)",
    references=(_STEYERBERG,),
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
    return _ratio(view.sum(view.y), view.sum(view.c))


class RatioInterval(NamedTuple):
    """A ratio with the ends of its confidence interval."""

    ratio: Any
    low: Any
    high: Any


def observed_expected_interval(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence_level: float = 0.95,
    inverse: bool = False,
    weight_type: str = "frequency",
    sample_weight: Any = None,
    lens: str | Lens = "auto",
    r: int | None = None,
    labels: Any = None,
    pos_label: Any = None,
) -> RatioInterval:
    r"""Observed over expected events with a confidence interval, symmetric on the log scale.

    .. math:: \log(O/E) \pm z \sqrt{(1 - O/N) / O}

    Parameters
    ----------
    y_true, y_prob, sample_weight, lens, r, labels, pos_label
        As in :func:`observed_expected_ratio`; a lens with several views gives arrays.
    confidence_level : float
    inverse : bool
        Expected over observed instead.
    weight_type : "frequency" or "importance"
        Weights count copies of rows, or weigh them (variance with squared weights).

    Examples
    --------
    >>> import calibrary as cal
    >>> tuple(round(x, 3) for x in cal.observed_expected_interval([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.5]))
    (0.87, 0.326, 2.317)
    """
    from scipy.special import ndtri

    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level={confidence_level!r} must lie between 0 and 1")
    checked = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    views = views_of(ENTRIES["oe"], checked, Question(lens=lens, r=r))
    z = float(ndtri(0.5 + confidence_level / 2))
    found = np.array([_interval(view, z, weight_type) for view in views.views])
    if inverse:
        with np.errstate(divide="ignore"):
            found = 1.0 / found[:, [0, 2, 1]]
    return RatioInterval(*(found.T if views.several else map(float, found[0])))


# -- what they lean on ------------------------------------------------------------------------------


def _class_bias(view: Predictions) -> Array:
    if view.binary:
        return np.atleast_1d(view.mean(view.residual))
    bias: Array = view.mean(view.p) - view.class_share
    return bias


def _ratio(above: float, below: float) -> float:
    if below > 0:
        with np.errstate(over="ignore"):
            return float(above / below)
    if above > 0:
        return math.inf
    return undefined("no event was expected and none observed, so their ratio is undefined")


def _interval(view: Predictions, z: float, weight_type: str) -> tuple[float, float, float]:
    v = view.variance_weight(weight_type, "an interval")
    observed = float(view.sum(view.y))
    ratio = _ratio(observed, view.sum(view.c))
    if observed == 0 or not math.isfinite(ratio):
        return ratio, undefined("the interval of a ratio needs observed and expected events"), math.nan
    # sum w (y - mean)^2 / O^2 = (1 - O/N)/O, written so that importance weights enter squared
    spread = z * math.sqrt(float(v @ (view.y - observed / view.total) ** 2)) / observed
    return ratio, ratio * math.exp(-spread), ratio * math.exp(spread)

"""Net benefit: true positives less false positives at the exchange rate of the threshold."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary._errors import one_of, undefined
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Array, Predictions
from calibrary.lookup import Common, metric
from calibrary.metrics.point.rows import ROW_SCORE, Score, reduced

__all__ = ["net_benefit"]


@metric(
    "net_benefit",
    **{**ROW_SCORE, "lenses": BINARY_LENSES, "default_lens": "top-label", "cost": "O(N)"},
    name="net benefit",
    aliases=("decision curve value", "net benefit at a threshold"),
    status="emerging",
    since="0.2",
    range=(-math.inf, 1.0),
    range_note="at most the prevalence; at most 1 with standardized=True",
    better="higher",
    sign="true positives per row, less false ones at the threshold's exchange rate; treating nobody is 0",
    proper="proper",
    equation="TP/N - FP/N t/(1-t), acting where c >= t",
    references=(
        "Vickers, Elkin (2006), Decision curve analysis: a novel method for evaluating prediction models",
        "Vickers, van Calster, Steyerberg (2019), A simple, step-by-step guide to interpreting decision curve analysis",
    ),
    use="Would acting on the model at the threshold in use do more good than acting on nobody or on everybody?",
    avoid="One threshold says nothing about others: draw plots.plot_decision, with both strategies that need no model.",
)
def net_benefit(
    view: Predictions,
    *,
    threshold: float = 0.5,
    standardized: bool = False,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""What acting on the model at a threshold is worth, in true positives per row.

    .. math:: \frac{TP}{N} - \frac{FP}{N} \frac{t}{1-t}, \qquad \text{acting where } c \ge t

    Acting at t says that one true positive is worth (1-t)/t false ones. Acting on nobody is worth 0, acting on
    everybody the prevalence less (1 - prevalence) t / (1-t): a model is useful where it exceeds both.

    Parameters
    ----------
    threshold : float
        Between 0 and 1, both excluded.
    standardized : bool
        Divide by the prevalence, so that 1 is the best possible.
    reduction : "mean" or "none"
        One number, or one per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]
    >>> round(cal.net_benefit(y, p, threshold=0.3), 4)
    0.3571
    """
    t = checked_threshold(threshold)
    rows = benefit_rows(view, t)
    if not standardized:
        return reduced(view, rows, reduction)
    one_of("reduction", reduction, ("mean",))
    positive = float(view.mean(view.y))
    return float(view.mean(rows)) / positive if positive else undefined(_NOBODY)


_NOBODY = "the standardized net benefit is undefined: no row has the event, so that there is nothing to gain"


def benefit_rows(view: Predictions, t: float) -> Array:
    """What acting at t is worth on every row: 1 for a true positive, -t/(1-t) for a false one."""
    acts = view.c >= t
    rows: Array = np.where(acts, np.where(view.y == 1, 1.0, -t / (1.0 - t)), 0.0)
    return rows


def checked_threshold(threshold: Any) -> float:
    """One threshold inside (0, 1), or a sentence."""
    if not (np.ndim(threshold) == 0 and 0.0 < float(threshold) < 1.0):
        raise ValueError(
            f"threshold={threshold!r} must be one number between 0 and 1, both excluded; for a curve over several use "
            "calibrary.decision_curve"
        )
    return float(threshold)

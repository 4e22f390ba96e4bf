"""Point family (rows 1-22 of Table 2): scores of single predictions, averaged."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from calibrary.catalogue import Common, Correction, metric
from calibrary.errors import one_of
from calibrary.lens import ALL_LENSES
from calibrary.predictions import Predictions

__all__ = ["brier_score"]


@metric(
    "bs",
    family="point",
    row=1,
    aliases=("mean_squared_error", "quadratic_score"),
    range=(0.0, 2.0),
    range_note="[0, 1] for two classes; [0, 2/K] by default, [0, 2] with scale='sum'",
    perfect=None,
    tail="two-sided",
    sign="lower is better; 0 needs certain and correct predictions",
    proper="strictly",
    lenses=ALL_LENSES,
    default_lens="full",
    symmetric=True,
    cost="O(NK)",
    equation="(5)",
    references=("Brier (1950), Verification of forecasts expressed in terms of probability",),
    use="Compare models on the same data: rewards calibration and discrimination together.",
    avoid="Do not read it as calibration alone: a calibrated but vague model scores badly.",
    corrections=(Correction("range", "always in [0, 1]", "true, but for K > 2 the maximum is 2/K"),),
)
def brier_score(view: Predictions, *, scale: str = "1/K", **common: Unpack[Common]) -> float:
    r"""Mean squared distance between predicted probabilities and what happened.

    .. math:: \frac{1}{N K} \sum_i \sum_k (c_{ik} - y_{ik})^2

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        Divide the squared distance of a row by the number of classes (the review), by nothing (Brier's 1950
        form, scikit-learn's for several classes), or by two. For two classes "1/K" and "half" are (c - y)^2.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.brier_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0467
    """
    one_of("scale", scale, ("1/K", "sum", "half"))
    if view.binary:
        total = 2.0 * view.mean(view.residual**2)
    else:
        # |c|^2 - 2 c_y + 1, without building the label matrix
        total = view.mean(np.einsum("nk,nk->n", view.p, view.p) - 2.0 * view.p_true + 1.0)
    return float(total / {"1/K": view.k, "sum": 1, "half": 2}[scale])

"""When the large-sample distribution of a test has the nominal level: rules with which tests are declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrary.data.predictions import Predictions

#: Whether the large-sample distribution is reliable on a view with these options. True: for any sample. False: for
#: none, so labels are redrawn.
Trust = bool | Callable[[Predictions, Mapping[str, Any]], bool]

#: Number of fully uncertain rows (probability 1/2) that a large-sample distribution needs. Measured on calibrated
#: predictions (uniform, Beta(.3, .3), Beta(30, 1), Beta(200, 1), Beta(1, 60); 140 to 400 samples each) tests at 5%
#: reject from here on 2 to 7%: Cox 4-6, Spiegelhalter 4-8, cumulative 1-7; with half as many up to 17 (kernels), 13
#: (Wald) and 12 (Cox).
UNCERTAIN_ROWS = 50.0


def uncertain_rows(view: Predictions) -> float:
    """Effective number of rows with probability 1/2: the sum of 4 c (1 - c), for whole vectors of 2 (1 - sum p^2)."""
    if view.binary:
        return float(view.sum(4.0 * view.c * (1.0 - view.c)))
    return float(view.sum(2.0 * (1.0 - np.einsum("nk,nk->n", view.p, view.p))))


def enough_uncertain(least: float = UNCERTAIN_ROWS) -> Callable[[Predictions, Mapping[str, Any]], bool]:
    """The rule that requires enough rows with an uncertain outcome."""
    return lambda view, options: uncertain_rows(view) >= least

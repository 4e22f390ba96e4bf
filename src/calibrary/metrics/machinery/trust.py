"""When the large-sample law of a test keeps its level: the rules that tests are declared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrary.data.predictions import Predictions

#: Is the law to be trusted on a view with these options? True: on any sample. False: on none, so labels are redrawn.
Trust = bool | Callable[[Predictions, Mapping[str, Any]], bool]

#: Rows like a coin's toss that a large-sample law needs. Measured on calibrated predictions (uniform, Beta(.3, .3),
#: Beta(30, 1), Beta(200, 1), Beta(1, 60); 140 to 400 samples each) tests at 5% reject from here on 2 to 7%: Cox 4-6,
#: Spiegelhalter 4-8, cumulative 1-7; with half as many up to 17 (kernels), 13 (Wald) and 12 (Cox).
UNCERTAIN_ROWS = 50.0


def uncertain_rows(view: Predictions) -> float:
    """How many coin tosses the rows are worth: the sum of 4 c (1 - c), of whole vectors that of 2 (1 - sum p^2)."""
    if view.binary:
        return float(view.sum(4.0 * view.c * (1.0 - view.c)))
    return float(view.sum(2.0 * (1.0 - np.einsum("nk,nk->n", view.p, view.p))))


def enough_uncertain(least: float = UNCERTAIN_ROWS) -> Callable[[Predictions, Mapping[str, Any]], bool]:
    """The rule that asks for enough rows whose outcome the predictions leave open."""
    return lambda view, options: uncertain_rows(view) >= least

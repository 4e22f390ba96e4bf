"""The formulas that estimate a model's performance on new rows from its refits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import means

#: The probability that a row is in a bootstrap sample: 1 - 1/e.
IN_SAMPLE = 1.0 - np.exp(-1.0)


class Corrected(NamedTuple):
    """The columns of the table: means over the refits, and corrected values."""

    training: Array
    test: Array
    optimism: Array
    corrected: Array


def optimism(apparent: Array, training: Array, test: Array) -> Corrected:
    """Harrell's correction: the apparent value minus the mean optimism of the refits."""
    known = ~(np.isnan(training) | np.isnan(test))
    training, test = np.where(known, training, np.nan), np.where(known, test, np.nan)
    shown, true = means(training), means(test)
    return Corrected(shown, true, shown - true, apparent - (shown - true))


def point_632(apparent: Array, training: Array, outside: Array) -> Corrected:
    """Efron's .632 estimate: 0.368 of the apparent value plus 0.632 of the value on rows that were not drawn."""
    out = means(outside)
    corrected = (1.0 - IN_SAMPLE) * apparent + IN_SAMPLE * out
    return Corrected(means(training), out, apparent - corrected, corrected)


def point_632_plus(apparent: Array, training: Array, outside: Array, uninformed: Array) -> Corrected:
    """Efron and Tibshirani's .632+ estimate, with more weight for rows not drawn if the model is over-fitted.

    ``uninformed`` is the value if predictions and outcomes were independent.
    """
    out = means(outside)
    span = uninformed - apparent
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.clip(np.where(span == 0.0, 0.0, (out - apparent) / span), 0.0, 1.0)
    limited = apparent + np.where(span >= 0.0, np.minimum(out - apparent, span), np.maximum(out - apparent, span))
    weight = IN_SAMPLE / (1.0 - (1.0 - IN_SAMPLE) * rate)
    corrected = (1.0 - weight) * apparent + weight * limited
    return Corrected(means(training), out, apparent - corrected, corrected)


def uninformed(p: Predictions) -> Predictions:
    """The data in which every prediction has every outcome, weighted by the outcome's share (no information)."""
    share, k = p.class_share, p.k
    rows = np.tile(np.arange(p.n), k)
    made = p.subset(rows, np.repeat(np.arange(k), p.n), p.probability[rows], classes=p.class_names)
    made.w = np.repeat(share, p.n) * np.tile(p.weight, k)
    kept = np.flatnonzero(made.w > 0.0)
    return made if len(kept) == made.n else made.part(kept)


def logistic_emax(intercept: float, slope: float) -> float:
    """The largest distance between p and its logistic recalibration with this intercept and slope."""
    if not (np.isfinite(intercept) and np.isfinite(slope)):
        return float("nan")
    grid = np.linspace(0.0, 1.0, 2001)[1:-1]
    return float(np.abs(grid - expit(intercept + slope * logit(grid))).max())

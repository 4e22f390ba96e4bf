"""The formulas that estimate a model's performance on new rows from its refits, and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import alpha_of, means, quantiles
from calibrary.inference.result import ConfidenceInterval

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


def no_ends(n: int) -> ConfidenceInterval:
    return ConfidenceInterval(np.full(n, np.nan), np.full(n, np.nan))


def of_errors(
    apparent: Array, training: Array, test: Array, level: float, laws: Sequence[str] = ()
) -> ConfidenceInterval:
    r"""The interval of the value on new rows, from the errors of the refits' apparent values.

    The error of a refit's apparent value is its difference from the refit's value on the original rows. It estimates
    the error of the model's apparent value, which is its difference from the true value. The quantiles of these errors
    are subtracted from the apparent value: :math:`[\theta - q_{1-\alpha/2}, \theta - q_{\alpha/2}]`. The errors vary
    even if the apparent values are constant, such as the slope, intercept and O/E of a maximum likelihood fit.

    For the refits the original sample is the population, and the fitted model is the truth. Its signal is too strong,
    because it includes the optimism. ``laws`` says for each value how its errors depend on the signal:
    "logit" (the area under the ROC curve) computes them on the log odds, where they depend on it the least;
    "signal" (the slope of a maximum likelihood fit) widens them, see :func:`_signal`.
    """
    tail = alpha_of(level) / 2.0
    laws = laws or [""] * len(apparent)
    found = [
        _LAWS[law](float(own), mine, other, tail)
        for law, own, mine, other in zip(laws, apparent, training.T, test.T, strict=True)
    ]
    ends = np.array(found).reshape(-1, 2)
    return ConfidenceInterval(ends[:, 0], ends[:, 1])


def _plain(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    low, high = _tails(training - test, tail)
    return apparent - high, apparent - low


def _logit(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    """The interval of a share, computed on its log odds; without transformation if a value is 0 or 1."""
    values = np.concatenate(([apparent], training, test))
    if np.nanmin(values) <= 0.0 or np.nanmax(values) >= 1.0:
        return _plain(apparent, training, test, tail)
    low, high = _plain(float(logit(apparent)), logit(training), logit(test), tail)
    return float(expit(low)), float(expit(high))


def _signal(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    r"""The interval of the calibration slope, for the signal without the optimism.

    The variance of a slope is inversely proportional to the signal, the likelihood-ratio statistic of the model. The
    refits have the signal of the fitted model, of which only the share :math:`c`, the corrected slope, is real (van
    Houwelingen and le Cessie 1990). The deviations of the refits' errors from their mean are therefore multiplied by
    :math:`1/\sqrt c`. For a model that was not fitted by maximum likelihood (apparent slope not 1) they are not
    changed.
    """
    errors = training - test
    mean = float(np.nanmean(errors)) if not np.isnan(errors).all() else np.nan
    real = min(apparent - mean, 1.0)
    if not (abs(apparent - 1.0) <= _LIKELIHOOD_FIT and real >= _LEAST_SIGNAL):
        return _plain(apparent, training, test, tail)
    low, high = mean + (_tails(errors, tail) - mean) / np.sqrt(real)
    return apparent - high, apparent - low


#: The tolerance for an apparent slope of 1 (maximum likelihood), and the smallest share of real signal.
_LIKELIHOOD_FIT, _LEAST_SIGNAL = 0.01, 0.2
_LAWS = {"": _plain, "logit": _logit, "signal": _signal}


def _tails(errors: Array, tail: float) -> Array:
    """The lower and upper quantiles at the ranks tail (B + 1); the extremes if B is small."""
    known = errors[~np.isnan(errors)]
    if len(known) < 2:
        return np.full(2, np.nan)
    rank = max(tail * (len(known) + 1) - 1.0, 0.0) / (len(known) - 1)
    return quantiles(known, [rank, 1.0 - rank])


# -- summaries of all refits -------------------------------------------------------------------------


@dataclass(frozen=True)
class ValidationCurve:
    """The calibration curve of the model, and corrected for optimism, on a grid of predicted probabilities.

    Attributes
    ----------
    grid : predicted probabilities
    apparent, corrected : frequency of the event at the grid, on the model's own rows and corrected
    optimism : their difference
    refits : the curve of every refit on the original rows, one per row; NaN outside its range of predictions
    """

    grid: Array
    apparent: Array
    optimism: Array
    corrected: Array
    refits: Array = field(repr=False)

    @property
    def mean_absolute_error(self) -> float:
        """The mean distance between the corrected curve and the diagonal, over the grid."""
        return float(np.nanmean(np.abs(self.corrected - self.grid)))


@dataclass(frozen=True)
class Instability:
    """How much the predictions of the same rows change if the model is fitted to other samples of the same population.

    Attributes
    ----------
    apparent : the model's prediction for each row
    predictions : the predictions of the refits, one refit per row
    by_row : mean absolute difference between refits and model, for each row
    overall : the mean of ``by_row``
    low, high : limits that contain 95% of the refits' predictions, for each row
    """

    apparent: Array
    predictions: Array = field(repr=False)
    by_row: Array
    overall: float
    low: Array
    high: Array

    def changed(self, threshold: float) -> Array:
        """For each row, the share of refits that put it on the other side of a threshold.

        A saved file stores the refits' predictions for some rows only; for other rows the share is NaN.
        """
        if not (isinstance(threshold, int | float | np.number) and 0.0 <= threshold <= 1.0):
            raise RefusedError(f"threshold={threshold!r} must be a probability: a number from 0 to 1")
        share: Array = ((self.predictions >= threshold) != (self.apparent >= threshold)).mean(axis=0)
        return np.where(np.isnan(self.predictions).all(axis=0), np.nan, share)

    def sentence_at(self, threshold: float) -> Sentence:
        """The share of rows that refits put on the other side of a threshold, in words."""
        share = self.changed(threshold)
        share = share[~np.isnan(share)]
        changed, often = float(share.mean()), float((share > 0.1).mean())
        text = (
            f"At the threshold {number(threshold)}, a refit puts {percent(changed)} of the rows on the other side; "
            f"{percent(often)} of the rows change sides in more than 10% of the refits."
        )
        return Sentence(text, measured(text, changed=changed, often=often))

"""Summaries of all refits of a model: the corrected calibration curve, and the instability of predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array


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

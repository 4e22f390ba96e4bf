"""Where would readings lie? Consistency resampling as what it is: a band of readings around a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array
from calibrary.inference.draw.null import as_redrawing
from calibrary.inference.draw.resampling import as_given, check_level, means, quantiles
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.metrics.machinery.declare import Result

__all__ = ["ReadingBand", "reading_band"]


@dataclass(frozen=True)
class ReadingBand(Result):
    """Between which values readings of a metric lie if the truth is known. Unpacks as ``low, high = band``.

    Attributes
    ----------
    estimate : the reading of these data
    low, high : quantiles of the readings, equally much beyond either
    mean : their mean
    inside : does the reading of these data lie between the ends?
    around : "calibrated predictions", or "the fitted map"
    confidence_level, method, n_failed : how it was made
    readings : all of them
    """

    estimate: Any
    low: Any
    high: Any
    mean: Any
    inside: Any
    around: str
    confidence_level: float
    method: str
    n_failed: Any
    readings: Array

    def __iter__(self) -> Any:
        yield self.low
        yield self.high

    @property
    def sentence(self) -> Sentence:
        """What a notebook says of one number; of several it says nothing."""
        if np.ndim(self.estimate):
            return Sentence("")
        told = measured(f"The value on these data is {number(self.estimate)}", value=self.estimate)
        band = (
            f"{percent(self.confidence_level)} of the values for {self.around} lie between {number(self.low)} and "
            f"{number(self.high)}, and their mean is {number(self.mean)}."
        )
        return Sentence.joined("; ", [told, Claim(band, "by chance", mean=self.mean, high=self.high)])


def reading_band(
    metric: Any,
    y_true: Any,
    y_prob: Any = None,
    *,
    calibration_map: Any = None,
    method: Any = "consistency",
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    weight_type: str = "frequency",
    workers: int | None = None,
    **options: Any,
) -> ReadingBand:
    """Between which values would the metric lie, were the model calibrated, or were a fitted map its truth?

    Consistency resampling: rows of predictions are drawn with replacement and given labels drawn from the predictions,
    or from the predictions after a calibration map. The band holds the readings of such data. It is not an interval of
    the true error, for which :func:`calibrary.interval` is: readings of an error are biased upwards, so the band around
    a fitted map lies too high. Measured (ECE, 500 rows, nominal 95%, 100 samples): it holds the true error of a
    calibrated model in 0% and of one with slope 0.8 in 2% of all samples; turned around the reading (the "basic"
    way) in 45 to 90%. What it does tell: whether a reading is unusual for the truth in question, and how much a reading
    would vary from one data set to the next.

    Parameters
    ----------
    metric : str or callable
        A metric's id, a function of calibrary, or any ``metric(y_true, y_prob)``.
    y_true, y_prob
        As for every metric; or matched detections.
    calibration_map : str, object or callable, optional
        The truth: a map fitted to the data ("isotonic", "platt", "beta", ...), an object with ``fit`` and ``predict``,
        or a function of the predictions. None: the predictions are calibrated.
    method : "consistency", "monte-carlo", or an object
        "monte-carlo" keeps the rows and draws labels only. An object holds its own settings.
    n_resamples : int
    confidence_level : float
        Share of the readings inside.
    rng : int, Generator or None
    weight_type : "frequency" or "importance"
    workers : int, optional
    **options
        ``sample_weight``, ``lens``, ``average``, ``r`` and the metric's own options.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, *_ = cal.datasets.review_example()
    >>> band = cal.reading_band("ece", y, p, rng=0)
    >>> round(band.estimate, 3), round(band.low, 3), round(band.high, 3), band.inside
    (0.108, 0.035, 0.077, False)
    >>> around = cal.reading_band("ece", y, p, calibration_map="isotonic", rng=0)
    >>> around.inside
    True
    """
    level = check_level(confidence_level)
    way = as_redrawing(method, n_resamples=n_resamples, rng=rng, calibration_map=calibration_map, workers=workers)
    sample, question = read_call(metric, y_true, y_prob, options, weight_type=weight_type, confidence_level=level)
    estimate, drawn = way.redraw([as_statistic(metric, sample, question, redrawn=way.keeps_rows)])
    drawn.say_failures()
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    low, high = np.array([quantiles(column, tails) for column in drawn.values.T]).T
    one = len(estimate) == 1
    return ReadingBand(
        as_given(estimate, one),
        as_given(low, one),
        as_given(high, one),
        as_given(means(drawn.values), one),
        as_given((low <= estimate) & (estimate <= high), one),
        way.around,
        level,
        way.name,
        as_given(drawn.n_failed, one),
        drawn.values[:, 0] if one else drawn.values,
    )

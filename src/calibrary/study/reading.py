"""What would this metric read on your predictions if they were perfectly calibrated?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrary.inference.test import test
from calibrary.lookup import catalogue


@dataclass(frozen=True)
class NullReading:
    """A metric's value beside what chance alone gives. Print it to read it.

    Attributes
    ----------
    name : the metric
    value : its value on your data
    expected, sd : mean and standard deviation on perfectly calibrated labels for your predictions
    upper : 95 % of the calibrated readings are below this
    excess : value - expected, the part that chance does not explain
    n : number of predictions
    """

    name: str
    value: float
    expected: float
    sd: float
    upper: float
    excess: float
    n: int

    def __str__(self) -> str:
        verdict = "above" if self.value > self.upper else "not above"
        return (
            f"{self.name} reads {self.value:.4f}. With these {self.n:,} predictions a perfectly calibrated model reads "
            f"{self.expected:.4f} on average, and below {self.upper:.4f} in 95 of 100 cases: yours is {verdict} that."
        )


def null_reading(
    metric: str, y_true: Any, y_prob: Any = None, *, n_resamples: int = 200, rng: Any = None, **options: Any
) -> NullReading:
    """Say what a metric would read if your predictions were perfectly calibrated.

    Labels are drawn anew from the predictions, ``n_resamples`` times; binned metrics read well above 0 even then,
    the more so the fewer predictions and the more bins there are.

    Parameters
    ----------
    metric : str
        A metric's id.
    y_true, y_prob : array-like
    n_resamples : int
        Number of redraws.
    rng : int, Generator or None
    **options
        Options of the metric.

    Examples
    --------
    >>> from calibrary.study import null_reading
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1, 0, 1] * 10, [0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] * 10
    >>> reading = null_reading("ece", y, p, rng=0)
    >>> 0.05 < reading.expected < reading.value
    True
    """
    found = test(
        catalogue[metric].key, y_true, y_prob, method="monte-carlo", n_resamples=n_resamples, rng=rng, **options
    )
    n = len(y_true)
    return NullReading(
        catalogue[metric].title,
        float(found.statistic),
        float(found.null_mean),
        float(found.null_sd),
        float(found.null.quantile(0.95)),
        float(found.excess),
        n,
    )

"""The value of a metric on your predictions by chance, if they were perfectly calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.moved import old_names
from calibrary.base.numbers import number
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.lookup import catalogue

__getattr__ = old_names(__name__)


@dataclass(frozen=True)
class ExpectedByChance:
    """A metric's value compared with its value by chance; print the result as a sentence.

    Attributes
    ----------
    name : the metric
    value : its value on your data
    expected, sd : mean and standard deviation on perfectly calibrated labels for your predictions
    lower, upper : 95 % of the values by chance lie between these; lower is -inf for an error, of which only
        large values are evidence against calibration
    excess : value - expected, the part that chance does not explain
    n : number of predictions, with their weights
    """

    name: str
    value: float
    expected: float
    sd: float
    lower: float
    upper: float
    excess: float
    n: int

    def __str__(self) -> str:
        one_sided = math.isinf(self.lower)
        usual = f"below {number(self.upper)}" if one_sided else f"between {number(self.lower)} and {number(self.upper)}"
        return (
            f"The {self.name} is {number(self.value)}, {self._place()} the range expected by chance. With these "
            f"{self.n:,} predictions a perfectly calibrated model would show {number(self.expected)} on average, "
            f"and a value {usual} in 95% of samples."
        )

    def _place(self) -> str:
        return "above" if self.value > self.upper else "below" if self.value < self.lower else "within"


NullReading = ExpectedByChance  # its name in 0.2, which pickles and imports may have


def expected_by_chance(
    metric: str,
    y_true: Any,
    y_prob: Any = None,
    *,
    part: str | None = None,
    n_resamples: int = 200,
    rng: Any = None,
    weight_type: str = "frequency",
    **options: Any,
) -> ExpectedByChance:
    """Compare a metric with its distribution by chance if your predictions were perfectly calibrated.

    Labels are redrawn from the predictions ``n_resamples`` times. Even then binned metrics are well above 0, especially
    with few predictions and many bins.

    Parameters
    ----------
    metric : str
        A metric's id.
    y_true, y_prob : array-like
    part : str, optional
        For a metric of several numbers, which of them: ``expected_by_chance("cis", y, p, part="slope")``.
    n_resamples : int
        Number of redraws.
    rng : int, Generator or None
    weight_type : "frequency" or "importance"
        Meaning of ``sample_weight``.
    **options
        Options of the metric.

    Examples
    --------
    >>> from calibrary.study import expected_by_chance
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1, 0, 1] * 10, [0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] * 10
    >>> found = expected_by_chance("ece", y, p, rng=0)
    >>> 0.05 < found.expected < found.value
    True
    """
    entry = catalogue[metric]
    sample, question = read_call(entry, y_true, y_prob, dict(options), weight_type=weight_type)
    found = MonteCarlo(n_resamples=n_resamples, rng=rng).test(entry, sample.data, question)
    place = _place_of(part, list(as_statistic(entry, sample, question).named), entry.id)
    value, expected, sd = (float(np.ravel(x)[place]) for x in (found.statistic, found.null_mean, found.null_sd))
    drawn = np.asarray(found.null.values).reshape(n_resamples, -1)[:, place]
    if found.alternative == "two-sided":
        lower, upper = np.nanquantile(drawn, (0.025, 0.975))
    else:
        lower, upper = -math.inf, np.nanquantile(drawn, 0.95)
    name = entry.title if part is None else f"{entry.title} ({part})"
    n = round(sample.data.total)
    return ExpectedByChance(name, value, expected, sd, float(lower), float(upper), value - expected, n)


def _place_of(part: str | None, names: list[str], id: str) -> int:
    """The index of the requested value of the metric."""
    if part is None and len(names) == 1:
        return 0
    if part not in names:
        remedy = f"choose from {', '.join(map(repr, names))}" if len(names) > 1 else "it is one number: omit part"
        raise ValueError(f"{id} has no part {part!r}: {remedy}")
    return names.index(part)

"""``expected_by_chance``: a metric's value compared with its values on calibrated data with the same predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedCallError, one_of
from calibrary.base.moved import old_names
from calibrary.base.numbers import number, percent
from calibrary.data import is_data
from calibrary.data.asked import checks_options
from calibrary.data.checks import as_array
from calibrary.data.columns import takes_table
from calibrary.inference.draw.null import ALTERNATIVES, NullDistribution, as_redrawing
from calibrary.inference.draw.resampling import as_given, check_level, means, quantiles
from calibrary.inference.draw.statistic import as_statistic, entry_of, read_call
from calibrary.inference.result import Estimate
from calibrary.metrics.machinery.shown import CALIBRATED

__getattr__ = old_names(__name__)


@dataclass(frozen=True)
class ExpectedByChance(Estimate):
    """A metric's value compared with its values by chance. Unpacks as ``low, high``; ``print`` gives a sentence.

    The share ``level`` of the values by chance lies between ``low`` and ``high``; with the alternative "greater"
    ``low`` is -inf, with "less" ``high`` is inf. ``expected_by_chance`` is the mean of the values by chance, and
    ``draws`` are all of them. ``value`` is the one on these data, NaN without labels, and ``pvalue`` is
    (1 + number of values by chance at least as extreme) / (n_resamples + 1).

    Attributes
    ----------
    sd : standard deviation of the values by chance
    around : the true probabilities: "calibrated predictions", or "the fitted map"
    name, n : the metric, and the number of rows, with their weights
    alternative, n_failed : the side that counts as extreme, and the number of undefined draws
    """

    sd: Any = math.nan
    around: str = CALIBRATED
    alternative: str = "two-sided"
    n_failed: Any = 0
    name: str = ""
    n: int = 0

    def __post_init__(self) -> None:
        vars(self).update(pvalue=self.null.pvalue(self.value, self.alternative), sentence=self._in_words())

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        self.__post_init__()  # before 0.4 the p-value and the sentence were not kept

    @property
    def inside(self) -> Any:
        """Whether the value on these data lies between the ends."""
        found = (np.asarray(self.low) <= self.value) & (self.value <= np.asarray(self.high))
        return found if np.ndim(self.value) else bool(found)

    @property
    def excess(self) -> Any:
        """The value less the mean by chance: the part that chance does not explain."""
        return self.value - self.expected_by_chance

    @property
    def null(self) -> NullDistribution:
        """All values by chance as a distribution."""
        return NullDistribution(np.asarray(self.draws), self.method, self.n_failed)

    def quantile(self, q: Any) -> Any:
        """Quantiles of the values by chance."""
        return self.null.quantile(q)

    def __str__(self) -> str:
        return self.sentence or repr(self)

    def _in_words(self) -> Sentence:
        """The result in words for a metric with one value; empty for several values."""
        if np.ndim(self.value):
            return Sentence("")
        by_chance = self.around == CALIBRATED
        model = "a perfectly calibrated model" if by_chance else "a model whose true probabilities are the fitted map"
        ends = (
            f"below {number(self.high)}" if math.isinf(self.low)
            else f"above {number(self.low)}" if math.isinf(self.high)
            else f"between {number(self.low)} and {number(self.high)}"
        )  # fmt: skip
        given = "predictions" if not self.n else f"{self.n:,} predictions"
        range_ = f"With these {given} {model} would show {number(self.expected_by_chance)} on average, "
        range_ += f"and a value {ends} in {percent(self.level)} of samples."
        above = {} if math.isinf(self.high) or self.level < 0.95 else {"high": self.high}
        claims = Claim(range_, "by chance", mean=self.expected_by_chance, **above) if by_chance else range_
        if math.isnan(self.value):
            return Sentence.joined("", [claims])
        place = "above" if self.value > self.high else "below" if self.value < self.low else "within"
        said = f"The {self.name or 'value on these data'} is {number(self.value)}"
        where = f", {place} the range expected by chance. " if by_chance else f", {place} the range of the fitted map. "
        return Sentence.joined("", [measured(said, value=self.value), where, claims])


#: Names of 0.2 and 0.3, which pickles and imports may have.
ConsistencyBand = ReadingBand = NullReading = ExpectedByChance


@takes_table
@checks_options
def expected_by_chance(
    metric: Any,
    y_true: Any,
    y_prob: Any = None,
    *,
    method: Any = "monte-carlo",
    alternative: str | None = None,
    calibration_map: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    weight_type: str = "frequency",
    workers: int | None = None,
    **options: Any,
) -> ExpectedByChance:
    """Compare a metric with its values by chance if your predictions were perfectly calibrated.

    New labels are drawn from the predictions, as if these were calibrated. Most errors are still well above 0,
    especially with few rows and many bins. So an estimate is evidence of miscalibration only if it is unusual among
    these values.

    The range is not a confidence interval of the true error (use :func:`calibrary.interval`). Estimates of an error are
    too large on average, so the range around a fitted map lies too high. We measured its coverage (ECE, 500 rows,
    nominal 95%, 100 samples): the range around a fitted map contains the true error of a calibrated model in 0% of
    samples, and that of a model with slope 0.8 in 2%. If the range is reflected at the estimate, as in the "basic"
    bootstrap, it does so in 45% to 90%.

    Parameters
    ----------
    metric : str or callable
        A metric's id, a function of calibrary, or any ``metric(y_true, y_prob)``; "cis.slope" is one of the numbers of
        "cis".
    y_true, y_prob
        As for every metric; or matched detections. ``y_true=None`` if there are no labels yet.
    method : "monte-carlo", "consistency", MonteCarlo or Consistency
        "monte-carlo" redraws the labels from the predictions; "consistency" first draws rows of predictions with
        replacement, so that the values are those of new samples; an object holds its own settings.
    alternative : "greater", "less" or "two-sided", optional
        The side on which values are unusual. None: that of the metric, "greater" for an error; both sides around a
        ``calibration_map``.
    calibration_map : str, object or callable, optional
        Draw labels from the predictions transformed by this map instead: a name ("isotonic", "platt", ...) or an object
        with ``fit`` and ``predict``, fitted to the labels, or a function of the predictions.
    confidence_level : float
        Share of the values by chance inside the range.
    n_resamples : int
        Number of redraws.
    rng : int, Generator or None
        Seed or source of the one stream of random numbers.
    weight_type : "frequency" or "importance"
        With frequency weights every copy of a row is redrawn.
    workers : int, optional
        Threads; the values are the same for any number.
    **options
        ``sample_weight``, ``lens``, ``average``, ``r`` and the metric's own options.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, *_ = cal.datasets.review_example()
    >>> found = cal.expected_by_chance("ece", y, p, rng=0)
    >>> round(found.value, 3), round(found.expected_by_chance, 3), round(found.high, 3), found.inside
    (0.108, 0.054, 0.073, False)
    >>> around = cal.expected_by_chance("ece", y, p, method="consistency", calibration_map="isotonic", rng=0)
    >>> around.inside
    True
    """
    level = check_level(confidence_level)
    if alternative is not None:
        one_of("alternative", alternative, ALTERNATIVES)
    way = as_redrawing(method, n_resamples=n_resamples, rng=rng, calibration_map=calibration_map, workers=workers)
    if y_true is None and is_data(y_prob):
        y_true, y_prob = y_prob, None
    unlabeled = y_true is None
    if unlabeled:
        if way.calibration_map is not None and not callable(way.calibration_map):
            raise RefusedCallError(
                f"calibration_map={way.calibration_map!r} must be fitted to labels, and there are none: pass y_true, "
                "or a function of the predictions"
            )
        y_true = np.zeros(len(as_array(y_prob, "y_prob")), dtype=np.intp)
    sample, question = read_call(metric, y_true, y_prob, options, weight_type=weight_type, confidence_level=level)
    entry, statistic = entry_of(metric), as_statistic(metric, sample, question, redrawn=way.keeps_rows)
    estimate, drawn = way.redraw([statistic])
    drawn.say_failures()
    if unlabeled:
        estimate = np.full_like(estimate, math.nan)
    tail = alternative or way.alternative or (statistic.tail if way.around == CALIBRATED else "two-sided")
    lower, upper = {"greater": (None, level), "less": (1 - level, None)}.get(tail, ((1 - level) / 2, (1 + level) / 2))
    one = len(estimate) == 1
    null = NullDistribution(drawn.values[:, 0] if one else drawn.values, way.name, as_given(drawn.n_failed, one))

    def end(q: float | None, otherwise: float) -> Any:
        ends = [otherwise if q is None else quantiles(column, (q,))[0] for column in drawn.values.T]
        return as_given(np.array(ends), one)

    return ExpectedByChance(
        as_given(estimate, one),
        end(lower, -math.inf),
        end(upper, math.inf),
        level,
        expected_by_chance=as_given(means(drawn.values), one),
        method=way.name,
        draws=null.values,
        sd=null.sd,
        around=way.around,
        alternative=tail,
        n_failed=null.n_failed,
        name="" if entry is None else entry.title,
        n=round(sample.data.total),
    )

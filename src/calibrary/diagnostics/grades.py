"""Observed against expected events: a test for each risk grade and for many at once, and the ratio's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.base.markup import html_table
from calibrary.base.numbers import number, pvalue_cell
from calibrary.base.text import in_columns
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.inference.draw.resampling import check_level
from calibrary.inference.methods.asymptotic import observed_expected_ends
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.metrics.bins.t_cal import debiased_plugin_estimator
from calibrary.metrics.machinery.declare import Common, TestResult
from calibrary.metrics.point.bias import observed_expected_ratio, ratio

ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True)
class GradeTests:
    """Tests of calibration for each risk grade, one row for each.

    Attributes
    ----------
    grade : the grades, in their order
    n, events : numbers of rows and of events of each grade
    predicted, observed : mean predicted probability and share of events
    jeffreys : p-value of Jeffreys' test
    binomial : p-value of the exact binomial test
    jeffreys_adjusted, binomial_adjusted : the p-values adjusted for the number of grades (Holm)
    alternative : the side that was tested
    """

    grade: tuple[Any, ...]
    n: NDArray[np.int64]
    events: NDArray[np.int64]
    predicted: Array
    observed: Array
    jeffreys: Array
    binomial: Array
    jeffreys_adjusted: Array
    binomial_adjusted: Array
    alternative: str = field(default="two-sided")

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The heading and the cells of the printed table."""
        head = ["grade", "rows", "events", "predicted", "observed", "Jeffreys p", "adjusted", "binomial p", "adjusted"]
        columns = zip(
            self.grade, self.n.tolist(), self.events.tolist(), self.predicted, self.observed, self.jeffreys,
            self.jeffreys_adjusted, self.binomial, self.binomial_adjusted, strict=True,
        )  # fmt: skip
        body = [
            [str(g), f"{n:,}", f"{k:,}", number(p), number(o), *map(pvalue_cell, tests)]
            for g, n, k, p, o, *tests in columns
        ]
        return head, body

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per grade."""
        import pandas as pd

        names = ("grade", "n", "events", "predicted", "observed", "jeffreys", "jeffreys_adjusted", "binomial")
        return pd.DataFrame({name: getattr(self, name) for name in (*names, "binomial_adjusted")})

    def __repr__(self) -> str:
        head, body = self.cells()
        return "\n".join(in_columns([head, *body]))

    def _repr_html_(self) -> str:
        return html_table(*self.cells())


@checks_options
def grade_tests(
    y_true: Any, y_prob: Any = None, grades: Any = None, *, alternative: str = "two-sided", **checked: Any
) -> GradeTests:
    """Test each risk grade separately: Jeffreys' test and the exact binomial test, with Holm's adjustment.

    The predicted probability of a grade is the mean over its rows. Jeffreys' p-value is the tail of
    Beta(k + 1/2, n - k + 1/2) at that probability; validators of credit ratings use the alternative "greater",
    in which events are more frequent than predicted.

    Parameters
    ----------
    y_true, y_prob : as in :func:`calibrary.predictions`, of two classes
    grades : array-like of shape (N,)
        The grade of each row; by default every distinct probability is a grade.
    alternative : "two-sided", "greater" or "less"
        "greater": events are more frequent than predicted.
    **checked : ``sample_weight`` (counts of rows), ``labels``, ``pos_label``, ``percent``

    Returns
    -------
    GradeTests
        Prints as a table.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0] * 95 + [1] * 5 + [0] * 80 + [1] * 20
    >>> found = cal.grade_tests(y, [0.02] * 100 + [0.2] * 100, ["A"] * 100 + ["B"] * 100, alternative="greater")
    >>> found.jeffreys.round(4), found.binomial.round(4)
    (array([0.0286, 0.49  ]), array([0.0508, 0.5398]))
    """
    one_of("alternative", alternative, ALTERNATIVES)
    given = predictions(y_true, y_prob, **checked)
    p = given if given.binary else given.through(as_lens("binary")).views[0]
    p.counts("grade_tests")
    names = p.c if grades is None else p.align(grades, "grades")
    found, place = np.unique(names, return_inverse=True)
    place = place.ravel()
    n, events = (np.bincount(place, weights=x).astype(np.float64) for x in (p.weight, p.weight * p.y))
    predicted = np.bincount(place, weights=p.weight * p.c) / n
    jeffreys = _jeffreys(events, n, predicted, alternative)
    binomial = _binomial(events, n, predicted, alternative)
    adjusted = [np.asarray(adjust_pvalues(x, "holm")) for x in (jeffreys, binomial)]
    return GradeTests(
        tuple(found.tolist()), n.astype(np.int64), events.astype(np.int64), predicted, events / n, jeffreys, binomial,
        adjusted[0], adjusted[1], alternative,
    )  # fmt: skip


def _jeffreys(k: Array, n: Array, p: Array, alternative: str) -> Array:
    from scipy.special import betainc

    below: Array = betainc(k + 0.5, n - k + 0.5, p)  # small where events are more frequent than predicted
    if alternative == "greater":
        return below
    return 1.0 - below if alternative == "less" else np.minimum(1.0, 2.0 * np.minimum(below, 1.0 - below))


def _binomial(k: Array, n: Array, p: Array, alternative: str) -> Array:
    from scipy.special import bdtr, bdtrc

    from calibrary.numerics.laws import two_sided_pvalue

    counts, sizes = k.astype(np.int64), n.astype(np.int64)
    if alternative == "two-sided":
        return np.asarray(two_sided_pvalue(counts, sizes, p), dtype=np.float64)
    if alternative == "less":
        return np.asarray(bdtr(counts, sizes, p), dtype=np.float64)
    return np.where(counts == 0, 1.0, bdtrc(np.maximum(counts - 1, 0), sizes, p))


@dataclass(frozen=True)
class MultipleBinomialResult(TestResult):
    """One exact binomial test per distinct confidence.

    Attributes
    ----------
    statistic, pvalue : the smallest p-value; the smallest p-value times the number of tests (Bonferroni)
    confidence, n, positives, pvalues : one entry per distinct confidence
    """

    confidence: Array = field(default_factory=lambda: np.empty(0))
    n: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    positives: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    pvalues: Array = field(default_factory=lambda: np.empty(0))


@diagnostic(debiased_plugin_estimator)
def multiple_binomial_test(views: Views, **common: Unpack[Common]) -> MultipleBinomialResult:
    """Test calibration of a model with few distinct outputs: an exact binomial test at each, with Bonferroni.

    Parameters
    ----------
    lens : str or Lens
        "binary" for two classes and "top-label" for more, unless given.

    Returns
    -------
    MultipleBinomialResult

    Examples
    --------
    >>> import calibrary as cal
    >>> result = cal.multiple_binomial_test([0, 0, 0, 1, 1, 0, 1, 1], [0.2] * 4 + [0.8] * 4)
    >>> result.pvalue
    1.0
    """
    from calibrary.numerics.laws import two_sided_pvalue

    view = only_view(views, "this test")
    if not view.binary:
        raise RefusedError("lens='full' has no single probability to test: use 'binary' or 'top-label'")
    view.counts("multiple_binomial_test")
    ties = view.ties
    n, k = ties.w.astype(np.int64), ties.wy.astype(np.int64)
    pvalues = two_sided_pvalue(k, n, ties.c)
    smallest = float(pvalues.min())
    return MultipleBinomialResult(smallest, min(1.0, len(n) * smallest), ties.c, n, k, pvalues)


class RatioInterval(NamedTuple):
    """A ratio with the ends of its confidence interval."""

    ratio: Any
    low: Any
    high: Any


@diagnostic(observed_expected_ratio)
def observed_expected_interval(
    views: Views,
    *,
    confidence_level: float = 0.95,
    inverse: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> RatioInterval:
    r"""Observed over expected events with a confidence interval.

    The interval contains the ratios of all true probabilities that the data do not reject: the predictions with their
    log odds shifted by one number, for which the number of events is Poisson binomial. It therefore excludes 1 if the
    number of events is too far from its expectation for *these* predictions, and it has a positive width even if every
    row or none is an event. If the squared residuals are larger than the shifted predictions allow, as for
    over-confident models, the interval is wider by that excess.

    Parameters
    ----------
    confidence_level : float
    inverse : bool
        The ratio of expected to observed events instead.
    weight_type : "frequency" or "importance"
        Weights are numbers of equal rows, or relative importances (the variance then has squared weights).

    Notes
    -----
    The usual interval log(O/E) -+ z sqrt((1 - O/N) / O) assumes that all predictions are equal: in simulations it
    excludes 1 for 59% of calibrated models with predictions close to 1 (Beta(200, 1), 100 rows), and for 0.1% of those
    with U-shaped predictions. The coverage of this interval is in ``docs/uncertainty.md``.

    Examples
    --------
    >>> import calibrary as cal
    >>> tuple(round(x, 3) for x in cal.observed_expected_interval([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.5]))
    (0.87, 0.196, 1.542)
    """
    level = check_level(confidence_level)
    found = np.array([_interval(view, level, weight_type) for view in views.views])
    if inverse:
        with np.errstate(divide="ignore"):
            found = 1.0 / found[:, [0, 2, 1]]
    return RatioInterval(*(found.T if views.several else map(float, found[0])))


def _interval(view: Predictions, level: float, weight_type: str) -> tuple[float, float, float]:
    oe = ratio(float(view.sum(view.y)), view.sum(view.c))
    if not math.isfinite(oe):
        return oe, undefined("the interval of a ratio needs a positive number of expected events"), math.nan
    return oe, *observed_expected_ends(view, level, weight_type)

"""The null distribution of any metric: its values by chance if the predictions are calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings, one_of
from calibrary.base.numbers import float_or_array, in_repr
from calibrary.data import Data
from calibrary.data.checks import Array, as_floats
from calibrary.data.sample import Sample, sample_of
from calibrary.inference.draw.cells import (
    MANY_A_CELL,
    PILOT,
    cell_problem,
    celled,
    grids_for,
    on_cells,
    values_agree,
)
from calibrary.inference.draw.resampling import (
    Replicated,
    as_given,
    check_resamples,
    difference,
    means,
    monte_carlo_error,
    quantiles,
    slack,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic, as_statistic, redrawn
from calibrary.lookup import catalogue
from calibrary.maps import mapped
from calibrary.metrics.machinery.declare import METHODS, TESTS, Entry, Result, TestResult, refuse_settings_beside
from calibrary.metrics.machinery.shown import CALIBRATED
from calibrary.numerics.draw import generator
from calibrary.question import Question

ALTERNATIVES = ("greater", "less", "two-sided")


@dataclass(frozen=True)
class NullDistribution(Result):
    """The values of a metric on data redrawn from the predictions.

    Attributes
    ----------
    values : (n_resamples,) array, or (n_resamples, n_numbers) for a metric of several numbers
    method : "monte-carlo" or "consistency"
    n_failed : number of replicates on which the metric is undefined
    """

    values: Array
    method: str
    n_failed: Any = 0

    @property
    def mean(self) -> Any:
        return float_or_array(means(self.values))

    @property
    def sd(self) -> Any:
        return float_or_array(standard_errors(self.values))

    def quantile(self, q: Any) -> Any:
        """Quantiles by linear interpolation."""
        if self.values.ndim == 1:
            return float_or_array(quantiles(self.values, q))
        return np.stack([quantiles(column, q) for column in self.values.T], axis=-1)

    def pvalue(self, observed: Any, alternative: str = "greater") -> Any:
        """p-value of an observed value: (1 + number at least as extreme) / (n_resamples + 1)."""
        columns = self.values.reshape(len(self.values), -1)
        return as_given(pvalues(np.atleast_1d(observed), columns, alternative), self.values.ndim == 1)


@dataclass(frozen=True)
class MonteCarloResult(TestResult):
    """Test of calibration by redrawing labels from the predictions.

    Attributes
    ----------
    statistic, pvalue : the metric; (1 + number of redraws at least as extreme) / (n_resamples + 1), never 0. A metric
        with several values has one p-value: the largest value, in standard deviations from its null mean, is
        compared with the largest of every redraw; for "cis" also the offset with slope 1, because intercept and slope
        of few events may vary so much that they hide it
    pvalues : the p-value of each value by itself, for a metric with several values
    standard_error : Monte Carlo error of the p-value
    expected_by_chance, null_sd : the metric on calibrated predictions with these confidences, mean and deviation
    excess : statistic - expected_by_chance, the part that chance does not explain
    null : the whole null distribution, with ``quantile``
    alternative, method, n_resamples, n_failed : the settings, and the number of undefined replicates
    path : what was drawn: "rows", or "cells" of rows with nearly equal confidence (the statistic then uses cells too)
    around : the probabilities of the redrawn labels: "calibrated predictions", or "the fitted map"
    """

    standard_error: Any
    expected_by_chance: Any
    null_sd: Any
    excess: Any
    null: NullDistribution
    alternative: str
    method: str
    n_resamples: int
    n_failed: Any
    path: str = "rows"
    pvalues: Any = None
    around: str = CALIBRATED

    @property
    def null_distribution(self) -> NullDistribution:
        """The array of null values, named as in scipy's results."""
        return self.null

    def __repr__(self) -> str:
        numbers = ("statistic", "pvalue", "standard_error", "expected_by_chance", "null_sd", "excess")
        shown = ", ".join(f"{name}={in_repr(getattr(self, name))}" for name in numbers)
        return f"MonteCarloResult({shown}, alternative={self.alternative!r}, method={self.method!r})"


@dataclass(frozen=True)
class MonteCarlo:
    """Test by redrawing the labels from the predictions: ``method=MonteCarlo(n_resamples=9999, rng=0)``.

    Parameters
    ----------
    n_resamples : int
        Number of redraws; the smallest p-value is 1 / (n_resamples + 1).
    rng : int, Generator or None
        Seed or source of the one stream of random numbers.
    alternative : "greater", "less", "two-sided" or None
        The tail that is evidence against calibration; None is the metric's default.
    calibration_map : str, object or callable, optional
        Draw labels from the predictions transformed by this map: a name, an object with ``fit`` and ``predict``, or a
        function.
    workers : int, optional
        Threads; the values are the same for any number.
    """

    n_resamples: int = 999
    rng: Any = None
    alternative: str | None = None
    calibration_map: Any = None
    workers: int | None = None

    name: ClassVar[str] = "monte-carlo"
    #: Whether only labels are redrawn, so that no row occurs twice.
    keeps_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_resamples(self.n_resamples, self.workers)
        if self.alternative is not None:
            one_of("alternative", self.alternative, ALTERNATIVES)

    def test(self, entry: Entry, data: Data, question: Question) -> MonteCarloResult:
        """The test of one metric."""
        drawn_from = data.drawn_by(entry.lens_for(data, question))
        statistic = as_statistic(entry, sample_of(drawn_from, question.weight_type), question, redrawn=self.keeps_rows)
        tail = self.alternative or statistic.tail
        if self.keeps_rows and self.calibration_map is None:
            cells = cell_problem(statistic, self.n_resamples, generator(self.rng, "labels"))
            if cells is not None:
                drawn = cells.draw(None, self.n_resamples)
                return summarized(np.array([cells.observed]), drawn, tail, self.name, "cells")
            table = celled(statistic) or _on_large_cells(statistic)
            if table is not None:
                _, drawn = self.redraw([table.when_redrawn()])
                drawn.say_failures()
                return replace(
                    summarized(table.observed, drawn, tail, self.name, "cells"), statistic=float(statistic.observed[0])
                )
        beside = catalogue[TESTS[entry.id].beside] if entry.id in TESTS and TESTS[entry.id].beside else None
        more = [] if beside is None else [as_statistic(beside, statistic.sample, question, redrawn=self.keeps_rows)]
        observed, drawn = self.redraw([statistic, *more])
        k = len(statistic.observed)
        found = replace(drawn, values=drawn.values[:, :k])
        found.say_failures()
        made = replace(summarized(observed[:k], found, tail, self.name), around=self.around)
        return replace(made, pvalue=joint_pvalue(observed, drawn.values, tail)) if more else made

    @property
    def around(self) -> str:
        """The name of the probabilities from which labels are drawn."""
        return CALIBRATED if self.calibration_map is None else "the fitted map"

    def redraw(self, statistics: list[Statistic]) -> tuple[Array, Replicated]:
        """The values of all statistics on the sample and on shared redrawn samples, one column for each value."""
        for statistic in statistics:
            entry = statistic.entry
            if entry is not None and not entry.null:
                why = entry.null_note or "labels cannot be redrawn"
                raise RefusedError(f"{entry.id} has no null distribution: {why}")
        sample = statistics[0].sample
        truth = None if self.calibration_map is None else _mapped(self.calibration_map, sample)
        scheme = self._scheme(sample, truth, {s.link for s in statistics})
        return redrawn(statistics, scheme, self.n_resamples, generator(self.rng, "labels"), self.workers)

    def _scheme(self, sample: Sample, truth: Array | None, links: set[str]) -> Any:
        return sample.null(truth, links)


@dataclass(frozen=True)
class Consistency(MonteCarlo):
    """Test by consistency resampling: rows of predictions are drawn with replacement first, then their labels."""

    name: ClassVar[str] = "consistency"
    keeps_rows: ClassVar[bool] = False

    def _scheme(self, sample: Sample, truth: Array | None, links: set[str]) -> Any:
        return sample.consistency(truth)


METHODS.update({"monte-carlo": MonteCarlo, "consistency": Consistency})


def _on_large_cells(statistic: Statistic) -> Statistic | None:
    """The metric on cells of so many rows that drawing the label of each would take long, if its value is the same."""
    n = statistic.sample.p.n
    tested = TESTS.get(statistic.name)
    if n < MANY_A_CELL or statistic.undrawable or (tested is not None and tested.beside):
        return None
    tables = (on_cells(statistic, grid, {}) for grid in grids_for(n))
    return next((table for table in tables if table is not None and _agree(statistic, table)), None)


def _agree(rows: Statistic, cells: Statistic) -> bool:
    """Whether the values differ by little, compared with a few draws of labels, which have a stream of their own."""
    if np.allclose(rows.observed, cells.observed, rtol=1e-9, atol=0.0, equal_nan=True):
        return True
    with collected_warnings():
        drawn = MonteCarlo(PILOT, generator(0, "pilot")).redraw([cells.when_redrawn()])[1]
    return values_agree(rows.observed, cells.observed, drawn.values)


def as_redrawing(method: Any, **settings: Any) -> MonteCarlo:
    """The method of redrawing from its name or as an object, which has its own settings."""
    if isinstance(method, MonteCarlo):
        refuse_settings_beside(method, settings)
        return method
    one_of("method", str(method).replace("_", "-"), tuple(METHODS))
    return METHODS[str(method).replace("_", "-")](**settings)


def _mapped(calibration_map: Any, sample: Sample) -> Array:
    if callable(calibration_map) and not hasattr(calibration_map, "fit"):
        return as_floats(calibration_map(sample.p.probability), "calibration_map")
    return mapped(calibration_map, sample.p)


def pvalues(observed: Array, values: Array, alternative: str, of_all: bool = False) -> Array:
    """The Monte Carlo p-value of each column, from its replicates that are defined, or ``of_all`` replicates."""
    one_of("alternative", alternative, ALTERNATIVES)
    n = np.full(len(observed), len(values)) if of_all else (~np.isnan(values)).sum(axis=0)
    upper = (1.0 + (values >= observed - slack(observed)).sum(axis=0)) / (n + 1.0)
    lower = (1.0 + (values <= observed + slack(observed)).sum(axis=0)) / (n + 1.0)
    if alternative == "two-sided":
        p: Array = np.minimum(1.0, 2.0 * np.minimum(upper, lower))
    else:
        p = upper if alternative == "greater" else lower
    return np.where(np.isnan(observed) | (n == 0), np.nan, p)


def joint_pvalue(observed: Array, values: Array, alternative: str) -> float:
    """One p-value for several values: the most extreme value is compared with the most extreme of every redraw.

    Values are standardized by their mean and standard deviation over the redraws. An undefined redraw is never extreme,
    also where nearly all are undefined or equal: such values are compared one by one, and the smallest p-value is
    multiplied by their number, and by 2 beside values that vary.
    """
    spread, known = standard_errors(values), ~np.isnan(observed)
    tested = np.isfinite(spread) & (spread > 1e-12 * np.abs(means(values))) & known
    each = np.ones(0)
    if (known & ~tested).any():
        each = pvalues(observed[known & ~tested], values[:, known & ~tested], alternative, of_all=True)
    alone = float(min(1.0, len(each) * each.min())) if len(each) else float("nan")
    if not tested.any():
        return alone
    z = (np.vstack([observed, values]) - means(values))[:, tested] / spread[tested]
    away = np.abs(z) if alternative == "two-sided" else z if alternative == "greater" else -z
    largest = np.where(np.isnan(away), -np.inf, away).max(axis=1)
    joint = float((1.0 + np.sum(largest[1:] >= largest[0] - slack(largest[0]))) / (len(values) + 1.0))
    return min(1.0, 2.0 * min(alone, joint)) if alone < 1.0 else joint


def summarized(
    observed: Array, drawn: Replicated, alternative: str, method: str, path: str = "rows"
) -> MonteCarloResult:
    """The test result from observed values and their null replicates."""
    values = drawn.values
    one = values.shape[1] == 1
    each = pvalues(observed, values, alternative)
    p = each if one else np.array([joint_pvalue(observed, values, alternative)])
    drawn_of = (~np.isnan(values)).sum(axis=0) if one else np.array([len(values)])
    null = NullDistribution(values[:, 0] if one else values, method, as_given(drawn.n_failed, one))
    return MonteCarloResult(
        as_given(observed, one),
        float(p[0]),
        standard_error=float(monte_carlo_error(p, drawn_of)[0]),
        expected_by_chance=null.mean,
        null_sd=null.sd,
        excess=as_given(difference(observed, means(values)), one),
        null=null,
        alternative=alternative,
        method=method,
        n_resamples=len(values),
        n_failed=null.n_failed,
        path=path,
        pvalues=None if one else each,
    )

"""Intervals and p-values of many metrics at once, on shared draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrary._errors import one_of
from calibrary.data.predictions import Array, Predictions
from calibrary.inference import bootstrap
from calibrary.inference.multiplicity import ADJUSTMENTS, adjust_pvalues, step_down_min_p
from calibrary.inference.null import redraw
from calibrary.inference.resampling import Sample, check_level, check_resamples, means, quantiles, standard_errors
from calibrary.inference.statistic import Statistic, as_statistic, flat
from calibrary.lookup import Entry, catalogue


def infer_many(
    p: Predictions,
    rows: list[Any],
    chosen: list[tuple[Entry, dict[str, Any]]],
    looking: dict[str, Any],
    *,
    matches: Any = None,
    intervals: bool = True,
    tests: bool = True,
    primary: str | None = None,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    adjust: str | None = None,
    rng: Any = None,
    weight_type: str = "frequency",
    workers: int | None = None,
) -> list[Any]:
    """Fill intervals and p-values into the rows of an evaluation, all metrics on the same draws.

    Parameters
    ----------
    p : Predictions
    rows : list
        One dataclass for each number of each metric, in the order of ``chosen``, with fields ``low``, ``high``,
        ``standard_error``, ``pvalue``, ``pvalue_adjusted``, ``null_mean``, ``null_high`` and ``primary`` to fill in.
    chosen : list of (Entry, own options)
    looking : dict
        ``lens``, ``average`` and ``r``.
    matches : optional
        Matched detections; then images are resampled.
    primary : str, optional
        The metric chosen in advance: its p-value is not adjusted.
    adjust : "min-p" (default), "holm", "bonferroni", "bh" or "by"
        How p-values are adjusted for the number of metrics.
    n_resamples, confidence_level, rng, weight_type, workers
        As for :func:`calibrary.interval`.

    Returns
    -------
    list
        New rows. A metric without a null distribution keeps ``pvalue=None``.
    """
    check_resamples(n_resamples)
    check_level(confidence_level)
    adjust = adjust or "min-p"
    one_of("adjust", adjust, ("min-p", *ADJUSTMENTS))
    sample = Sample(p, weight_type, matches)
    asked = [(entry, options if entry.family == "detection" else {**looking, **options}) for entry, options in chosen]
    statistics = [as_statistic(entry, options, sample) for entry, options in asked]
    # one generator for both: intervals first, then redrawn labels
    generator = np.random.default_rng(rng)
    columns = _columns(statistics, sample)
    if sum(map(len, columns)) != len(rows):
        raise ValueError(f"{len(rows)} rows were given for {sum(map(len, columns))} numbers")
    if intervals:
        rows = _with_intervals(rows, statistics, columns, sample, n_resamples, confidence_level, generator, workers)
    if tests:
        tested = [
            (as_statistic(entry, options, sample, redrawn=True), where)
            for (entry, options), where in zip(asked, columns, strict=True)
            if entry.null
        ]
        if tested:
            rows = _with_tests(rows, tested, sample, n_resamples, generator, adjust, primary, workers)
    if primary is not None:
        chosen_id = catalogue[primary].id
        rows = [replace(row, primary=True) if row.id == chosen_id else row for row in rows]
    return rows


def _columns(statistics: list[Statistic], sample: Sample) -> list[range]:
    """Where each statistic's numbers stand among all numbers."""
    columns, start = [], 0
    for statistic in statistics:
        n = len(flat(statistic.on_sample(sample), statistic.entry))
        columns.append(range(start, start + n))
        start += n
    return columns


def _with_intervals(
    rows: list[Any],
    statistics: list[Statistic],
    columns: list[range],
    sample: Sample,
    n_resamples: int,
    level: float,
    rng: Any,
    workers: int | None,
) -> list[Any]:
    estimate, drawn = bootstrap.resample(statistics, sample, n_resamples, rng, workers)
    low, high = bootstrap.ends(estimate, drawn.values, "basic", level)
    error = standard_errors(drawn.values)
    ranges = [s.range for s, where in zip(statistics, columns, strict=True) for _ in where]
    filled = []
    for j, row in enumerate(rows):
        ends = np.clip((low[j], high[j]), *ranges[j])
        filled.append(replace(row, low=float(ends[0]), high=float(ends[1]), standard_error=float(error[j])))
    return filled


def _with_tests(
    rows: list[Any],
    tested: list[tuple[Statistic, range]],
    sample: Sample,
    n_resamples: int,
    rng: Any,
    adjust: str,
    primary: str | None,
    workers: int | None,
) -> list[Any]:
    observed, drawn = redraw([s for s, _ in tested], sample, "monte-carlo", n_resamples, rng, workers=workers)
    tails = [s.tail for s, columns in tested for _ in columns]
    where = [j for _, columns in tested for j in columns]
    raw, adjusted = step_down_min_p(observed, drawn.values, tails)
    if adjust != "min-p":
        adjusted = adjust_pvalues(raw, adjust)
    first = None if primary is None else catalogue[primary].id
    center = means(drawn.values)
    high = [quantiles(column, 0.95) for column in drawn.values.T]
    filled = list(rows)
    for j, p, q, mean, top in zip(where, raw, adjusted, center, high, strict=True):
        filled[j] = replace(
            rows[j],
            pvalue=_or_none(p),
            pvalue_adjusted=_or_none(p if rows[j].id == first else q),
            null_mean=_or_none(mean),
            null_high=_or_none(top),
        )
    return filled


def _or_none(x: Array | float) -> float | None:
    return None if np.isnan(x) else float(x)

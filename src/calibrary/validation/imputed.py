"""Validation over completed data sets: optimism is corrected within each, and the corrected values are pooled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.data.checks import Array, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.inference.methods.scales import poolable, scale_of
from calibrary.inference.verbs.imputed import check_sizes, imputation_numbers, rubin
from calibrary.lookup import catalogue
from calibrary.validation.corrections import Instability, ValidationCurve
from calibrary.validation.measures import USUAL
from calibrary.validation.procedure import as_rows, count_of, rows_of
from calibrary.validation.result import EMAX_LOGISTIC, Validation, ValidationRow, table_rows

#: Corrected frequencies are kept this far from 0 and 1, where the log odds are infinite.
_LEAST = 1e-6


def data_sets(X: Any, y: Any, imputations: Any, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """X, y and the other columns of each completed data set: stacked rows with its number, or lists with ``True``."""
    if imputations is True:
        if not isinstance(X, list | tuple):
            raise RefusedCallError(
                "imputations=True needs X as a list of tables, one for each completed data set; for stacked rows pass "
                "imputations= the number of each row's data set"
            )
        several = isinstance(y, list | tuple) and len(y) == len(X) and np.ndim(y[0]) == 1
        check_sizes([count_of(as_rows(one)) for one in X])
        for table, labels in zip(X, y if several else [y] * len(X), strict=True):
            yield {"X": table, "y": labels, **columns}
        return
    refuse_misaligned(X=X, y=y, imputations=imputations)
    table = as_rows(X)
    n = count_of(table)
    of = imputation_numbers(imputations, n, f"X has {n:,} rows")
    named = {"y": y, **columns}
    arrays = {name: as_array(given, name) for name, given in named.items() if np.ndim(given) or name == "y"}
    for name, given in arrays.items():
        if len(given) != n:
            raise RefusedError(f"{name} has {len(given):,} rows and X has {n:,}: pass one for each row")
    names, number_of, sizes = np.unique(of, return_inverse=True, return_counts=True)
    check_sizes(sizes.tolist())
    for i in range(len(names)):
        rows = np.flatnonzero(number_of.ravel() == i)
        yield {"X": rows_of(table, rows), **columns, **{name: given[rows] for name, given in arrays.items()}}


def poolable_metrics(metrics: Any) -> Any:
    """The metrics, all of which can be pooled; of the default those that can."""
    if metrics is None:
        return [name for name in USUAL if not _grows(name)]
    for name in [metrics] if isinstance(metrics, str) else list(metrics):
        if not catalogue[name].fields:
            poolable(name, "averaged over imputations")
    return metrics


def _grows(name: str) -> bool:
    entry = catalogue[name]
    return entry.key != "auroc" and entry.key != "oe" and bool(entry.no_interval or entry.at_its_end)


def pooled_validation(each: Sequence[Validation]) -> Validation:
    """One result of several: corrected values by Rubin's rules, and the curve point by point on the log odds."""
    first, several = each[0], range(len(each[0].table))
    rows = [_pooled([one.table[j] for one in each], first) for j in several if first.table[j].metric != EMAX_LOGISTIC]
    counts = ("n_refits", "n_failed", "seconds_refitting", "seconds_measuring")
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in each) for name in counts}
    failure, table = next((one.failure for one in each if one.failure), ""), table_rows(rows)
    pooled = replace(first, table=table, imputations=len(each), failure=failure, predictions=None, refits=None, **sums)
    if first.unstable:
        pooled.__dict__["curve"] = _curve([one.curve for one in each])
        pooled.__dict__["instability"] = _instability([one.instability for one in each])
    return pooled


def _pooled(rows: Sequence[ValidationRow], whole: Validation) -> ValidationRow:
    """One value over the data sets.

    The distance from the corrected value to each end of its interval gives one variance within the data sets, so that
    an interval that is not symmetric stays so.
    """
    key = rows[0].metric
    scale = scale_of(key)

    def on_scale(column: str) -> Array:
        with np.errstate(all="ignore"):
            found: Array = scale.to(np.array([getattr(row, column) for row in rows]))
        return found

    corrected = on_scale("value")
    bad = np.flatnonzero(~np.isfinite(corrected))
    if len(bad):
        value = rows[bad[0]].value
        raise RefusedError(
            f"imputations: {key} cannot be pooled, because in data set {bad[0] + 1} of {len(rows)} its corrected value "
            f"is {value:g}"
        )
    apparent, training, test, middle = (
        float(scale.back(on_scale(name).mean())) for name in ("apparent", "training", "test", "value")
    )
    z = float(scipy.special.ndtri(0.5 + whole.confidence_level / 2.0))
    ends = []
    for name, sign in (("low", -1.0), ("high", 1.0)):
        inside = ((on_scale(name) - corrected) / z) ** 2
        found = rubin(corrected, inside, whole.n - 1, scale.name)
        half = float(scipy.special.stdtrit(found.df, 0.5 + whole.confidence_level / 2.0)) * found.standard_error
        ends.append(float(scale.back(found.estimate_on_scale + sign * half)) if math.isfinite(half) else math.nan)
    return replace(
        rows[0], apparent=apparent, training=training, test=test, optimism=apparent - middle, value=middle,
        low=ends[0], high=ends[1],
    )  # fmt: skip


def _curve(curves: Sequence[ValidationCurve]) -> ValidationCurve:
    """The mean curve on the part of the predictions that all data sets have."""
    low, high = max(c.grid[0] for c in curves), min(c.grid[-1] for c in curves)
    grid = np.linspace(low, high, len(curves[0].grid))

    def mean(name: str) -> Array:
        lines = np.array([np.interp(grid, c.grid, getattr(c, name)) for c in curves])
        return np.asarray(scipy.special.expit(scipy.special.logit(np.clip(lines, _LEAST, 1.0 - _LEAST)).mean(axis=0)))

    apparent, corrected = mean("apparent"), mean("corrected")
    refits = [np.interp(grid, c.grid, line, np.nan, np.nan) for c in curves for line in c.refits]
    return ValidationCurve(grid, apparent, apparent - corrected, corrected, np.array(refits))


def _instability(each: Sequence[Instability]) -> Instability:
    """The rows of all data sets side by side, with as many refits as every data set has."""
    fewest = min(len(one.predictions) for one in each)
    apparent, by_row, low, high = (
        np.concatenate([getattr(one, name) for one in each]) for name in ("apparent", "by_row", "low", "high")
    )
    predictions = np.hstack([one.predictions[:fewest] for one in each])
    return Instability(apparent, predictions, by_row, float(np.mean([one.overall for one in each])), low, high)

"""Adjustment of several p-values from one data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of, warn
from calibrary.data.checks import Array, as_floats
from calibrary.inference.draw.resampling import slack

ADJUSTMENTS = ("holm", "bonferroni", "bh", "by")
#: The methods that compare with the most extreme metric of every redraw.
STEP_DOWN = ("max-t", "min-p")


def adjust_pvalues(pvalues: Any, method: str = "holm") -> Array:
    """Adjust p-values for having tested several hypotheses; compare the result with the level as usual.

    Parameters
    ----------
    pvalues : array-like
        The p-values; NaN (no test) stays NaN and is not counted.
    method : "holm", "bonferroni", "bh" or "by"
        Holm and Bonferroni bound the probability of any false rejection (Holm is never less powerful).
        Benjamini-Hochberg bounds the expected share of false rejections among all rejections under positive
        dependence, Benjamini-Yekutieli under any dependence.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.adjust_pvalues([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    one_of("method", method, ADJUSTMENTS)
    p = as_floats(pvalues, "pvalues")
    if p.ndim != 1:
        raise RefusedError(f"pvalues has {p.ndim} dimensions: pass a list of p-values")
    bad = np.flatnonzero((p < 0.0) | (p > 1.0))
    if len(bad):
        raise RefusedError(f"pvalues[{bad[0]}] = {p[bad[0]]:g} is outside [0, 1]")
    known = np.flatnonzero(~np.isnan(p))
    m = len(known)
    order = known[np.argsort(p[known], kind="stable")]
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        stepped = m * p[order]
    elif method == "holm":
        stepped = np.maximum.accumulate((m - rank + 1) * p[order])
    else:
        factor = m * np.sum(1.0 / rank) if method == "by" else float(m)
        stepped = np.minimum.accumulate((factor / rank * p[order])[::-1])[::-1]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def rank_pvalues(observed: Array, values: Array, alternatives: list[str]) -> Array:
    """Monte Carlo p-value of the observed row (first) and of every replicate, column by column.

    Each value is ranked among the replicates and the observed one, in the column's own tail. NaN is never extreme.
    """
    table = np.vstack([observed, values])
    ranks = np.empty_like(table)
    for j, alternative in enumerate(alternatives):
        one_of("alternative", alternative, ("greater", "less", "two-sided"))
        x = table[:, j]
        upper, lower = _share_above(x), _share_above(-x)
        both = np.minimum(1.0, 2.0 * np.minimum(upper, lower))
        ranks[:, j] = {"greater": upper, "less": lower, "two-sided": both}[alternative]
    return ranks


def _share_above(x: Array) -> Array:
    """For each value, the share of values at least as large; values that differ by rounding only count as equal."""
    known = np.sort(x[~np.isnan(x)])
    below = np.searchsorted(known, x - slack(x), side="left")
    return np.where(np.isnan(x), 1.0, (len(known) - below) / max(1, len(known)))


def step_down_max_t(observed: Array, values: Array, alternatives: list[str]) -> tuple[Array, Array]:
    """Raw and adjusted p-values of several metrics tested on the same redraws, by the largest standardized value.

    Each metric is standardized by its mean and standard deviation over the redraws, in its own tail.
    The most extreme one is compared with the most extreme of every replicate, the next with the most extreme of the
    remaining metrics, and so on (Westfall and Young). Unlike ranks, standardized values distinguish
    moderate from extreme deviations, so that a table of many metrics can reject with few draws. The smallest adjusted
    p-value is 1 / (n_resamples + 1), and none is below the metric's unadjusted p-value.

    Parameters
    ----------
    observed : (m,) array
    values : (n_resamples, m) array
        The same redraws for every column. Infinite values are beyond every finite one.
    alternatives : list of "greater", "less" or "two-sided"
        The tail of each metric.

    Returns
    -------
    raw, adjusted : (m,) arrays
        NaN for a metric that is undefined on the data or on all redraws, or is constant: such a metric is not tested
        and not counted.
    """
    raw = rank_pvalues(observed, values, alternatives)[0]
    table = _standardized(np.vstack([observed, values]), alternatives)
    z, drawn = table[0], table[1:]
    tested = np.flatnonzero(~np.isnan(z))
    order = tested[np.argsort(-z[tested], kind="stable")]
    largest = np.maximum.accumulate(drawn[:, order][:, ::-1], axis=1)[:, ::-1]
    hits = (largest >= z[order] - slack(z[order])).sum(axis=0)
    adjusted = np.full(len(raw), np.nan)
    stepped = np.maximum.accumulate((1.0 + hits) / (len(values) + 1.0))
    adjusted[order] = np.maximum(stepped, raw[order])
    return np.where(np.isnan(adjusted), np.nan, raw), adjusted


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def _standardized(table: Array, alternatives: list[str]) -> Array:
    """Deviations from the null mean in null standard deviations, in each column's tail; the first row is the data.

    A failed redraw is never extreme. In a column without spread, any value other than the constant is infinite.
    """
    drawn = np.where(np.isfinite(table[1:]), table[1:], np.nan)
    z = np.empty_like(table)
    for j, alternative in enumerate(alternatives):
        known = drawn[~np.isnan(drawn[:, j]), j]
        if not len(known) or np.isnan(table[0, j]):
            z[:, j] = np.nan
            continue
        away = table[:, j] - known.mean()
        away = {"greater": away, "less": -away, "two-sided": np.abs(away)}[alternative]
        spread = known.std(ddof=1) if len(known) > 1 else 0.0
        if spread <= slack(known.mean()):
            same = np.abs(away) <= slack(known.mean())
            z[:, j] = np.nan if same[0] else np.where(same, 0.0, np.sign(away) * np.inf)
        else:
            z[:, j] = away / spread
        z[1:, j] = np.where(np.isnan(table[1:, j]) & ~np.isnan(z[0, j]), -np.inf, z[1:, j])
    return z


def step_down_min_p(observed: Array, values: Array, alternatives: list[str]) -> tuple[Array, Array]:
    """Raw and adjusted p-values of several metrics tested on the same redraws (Westfall and Young).

    The smallest p-value is compared with the smallest p-value of every replicate, the next with the smallest of
    the remaining metrics, and so on: the draws contain the dependence between metrics, for which
    Holm must assume the worst case.

    Parameters
    ----------
    observed : (m,) array
    values : (n_resamples, m) array
        The same redraws for every column.
    alternatives : list of "greater", "less" or "two-sided"
        The tail of each metric.

    Returns
    -------
    raw, adjusted : (m,) arrays
        NaN for a metric that is undefined on the data or on all redraws: it is not tested and not counted. Infinite
        values are ranked like others.
    """
    ranks = rank_pvalues(observed, values, alternatives)
    raw, drawn = ranks[0], ranks[1:]
    tested = np.flatnonzero(~np.isnan(observed) & ~np.isnan(values).all(axis=0))
    order = tested[np.argsort(raw[tested], kind="stable")]
    # smallest p-value of each replicate among the remaining columns
    smallest = np.minimum.accumulate(drawn[:, order][:, ::-1], axis=1)[:, ::-1]
    hits = (smallest <= raw[order] + slack(raw[order])).sum(axis=0)
    adjusted = np.full(len(raw), np.nan)
    # a metric that failed on some redraws has fewer ranks, which never makes its p-value smaller
    adjusted[order] = np.maximum.accumulate(np.maximum((1.0 + hits) / (len(values) + 1.0), raw[order]))
    untested = np.isnan(adjusted)
    return np.where(untested, np.nan, raw), adjusted


def warn_if_powerless(adjust: str, n_metrics: int, n_resamples: int, alpha: float) -> None:
    """Warn if there are too few draws for any metric to be rejected."""
    smallest = {"max-t": 1.0, "bh": 1.0, "by": float(np.sum(1.0 / np.arange(1, n_metrics + 1)))}
    times = smallest.get(adjust, float(n_metrics))
    if times / (n_resamples + 1) >= alpha:
        other = "" if adjust == "max-t" else ", or adjust='max-t'"
        warn(
            f"adjust={adjust!r} cannot reject any of {n_metrics} metrics with n_resamples={n_resamples}: use at least "
            f"{int(times / alpha + 1e-9)}{other}"
        )

"""Many p-values from one data set: how small must the smallest be?"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary._errors import one_of
from calibrary.data.checks import Array, as_floats
from calibrary.inference.resampling import slack

ADJUSTMENTS = ("holm", "bonferroni", "bh", "by")


def adjust_pvalues(pvalues: Any, method: str = "holm") -> Array:
    """Adjust p-values for having tested several hypotheses; compare the result with the level as usual.

    Parameters
    ----------
    pvalues : array-like
        NaN (no test) stays NaN and does not count.
    method : "holm", "bonferroni", "bh" or "by"
        Holm and Bonferroni bound the chance of any false alarm (Holm is never weaker). Benjamini-Hochberg bounds
        the share of false alarms among the alarms, under positive dependence; Benjamini-Yekutieli under any.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.adjust_pvalues([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    one_of("method", method, ADJUSTMENTS)
    p = as_floats(pvalues, "pvalues")
    if p.ndim != 1:
        raise ValueError(f"pvalues has {p.ndim} dimensions: pass a list of p-values")
    bad = np.flatnonzero((p < 0.0) | (p > 1.0))
    if len(bad):
        raise ValueError(f"pvalues[{bad[0]}] = {p[bad[0]]:g} is outside [0, 1]")
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
    """For each value, the share of values at least as large; rounding does not separate equal ones."""
    known = np.sort(x[~np.isnan(x)])
    below = np.searchsorted(known, x - slack(x), side="left")
    share: Array = np.where(np.isnan(x), 1.0, (len(known) - below) / max(1, len(known)))
    return share


def step_down_min_p(observed: Array, values: Array, alternatives: list[str]) -> tuple[Array, Array]:
    """Raw and adjusted p-values of several metrics tested on the same redraws (Westfall and Young).

    The smallest p-value is compared with the smallest p-value of every replicate, the next with the smallest of
    the remaining metrics, and so on: the dependence between metrics, which Holm must assume the worst of, is in
    the draws.

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
        NaN for a metric that has no value, or none on any redraw: it was not tested and does not count. Infinite
        values are ranked like others.
    """
    ranks = rank_pvalues(observed, values, alternatives)
    raw, drawn = ranks[0], ranks[1:]
    tested = np.flatnonzero(~np.isnan(observed) & ~np.isnan(values).all(axis=0))
    order = tested[np.argsort(raw[tested], kind="stable")]
    # smallest p-value of each replicate among the columns that are still in
    smallest = np.minimum.accumulate(drawn[:, order][:, ::-1], axis=1)[:, ::-1]
    hits = (smallest <= raw[order] + slack(raw[order])).sum(axis=0)
    adjusted = np.full(len(raw), np.nan)
    # a metric that failed on some redraws is ranked among fewer, and never gains by it
    adjusted[order] = np.maximum.accumulate(np.maximum((1.0 + hits) / (len(values) + 1.0), raw[order]))
    untested = np.isnan(adjusted)
    return np.where(untested, np.nan, raw), adjusted

"""Gaps of many resamples: where bins do not depend on the data, rows are put in them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.grouping import Edges, EqualWidth, Grouping, as_grouping, norm_order, power_mean
from calibrary.predictions import Array, Predictions


def on_fixed_bins(norm: float) -> Callable[..., Any]:
    """The ``resampled`` of a norm of the gaps; None for bins that follow the data. ``norm`` is the default."""
    usual = norm

    def prepare(
        view: Predictions,
        *,
        norm: float | str = usual,
        aggregate: str = "power",
        distance: str = "tv",
        binning: str | Grouping = "width",
        **options: Any,
    ) -> Callable[[Array | None, Any], float] | None:
        grouping = as_grouping(binning, **options)
        if not view.binary or distance != "tv" or not isinstance(grouping, EqualWidth | Edges):
            return None
        p = norm_order(norm)
        total_in_bins = _summing(view, grouping)
        gap, w = view.residual, view.w

        def value(new_w: Array | None, new_y: Any) -> float:
            weight = w if new_w is None else new_w
            step = gap if new_y is None else new_y - view.c
            residual = np.abs(total_in_bins(step if weight is None else weight * step))
            if p == 1.0:
                return float(residual.sum() / (view.total if new_w is None else new_w.sum()))
            size = total_in_bins(view.weight if weight is None else weight)
            used = size > 0.0
            return power_mean(residual[used] / size[used], size[used] / size.sum(), p)

        return value

    return prepare


def _summing(view: Predictions, grouping: Grouping) -> Callable[[Array], Array]:
    """The function that sums a value per row over every non-empty bin."""
    groups = grouping.groups(view)
    if not view.ascending:
        index, n = groups.index, len(groups)
        return lambda x: np.bincount(index, x, minlength=n).astype(np.float64, copy=False)
    starts = np.concatenate(([0], np.cumsum(groups.count)[:-1]))
    return lambda x: np.add.reduceat(x, starts)

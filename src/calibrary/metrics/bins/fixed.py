"""Gaps of many resamples: where bins do not depend on the data, rows are put in them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.data.predictions import Array, Predictions
from calibrary.grouping import Edges, EqualWidth, Grouping, as_grouping, norm_order, power_mean


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
        in_bins = _membership(view, grouping)
        gap_in_bins = in_bins.copy()
        gap_in_bins.data *= view.residual[in_bins.indices]

        def value(new_w: Array | None, new_y: Any) -> float:
            weight = view.weight if new_w is None else new_w
            gap = gap_in_bins @ weight if new_y is None else in_bins @ (weight * (new_y - view.c))
            residual = np.abs(gap)
            if p == 1.0:
                return float(residual.sum() / (view.total if new_w is None else new_w.sum()))
            size = in_bins @ weight
            used = size > 0.0
            return power_mean(residual[used] / size[used], size[used] / size.sum(), p)

        return value

    return prepare


def _membership(view: Predictions, grouping: Grouping) -> Any:
    """Sparse matrix (bins, rows) of ones: times a value for each row it gives the sum over every non-empty bin."""
    from scipy.sparse import csr_array

    index = grouping.groups(view).index
    return csr_array((np.ones(view.n), (index, np.arange(view.n))))

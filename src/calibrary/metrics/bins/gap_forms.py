"""Fast computation of norms of bin gaps: from plain arrays, for many resamples, and from counts per cell."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrary.data.checks import CHUNK, Array
from calibrary.data.predictions import Predictions
from calibrary.grouping import (
    Edges,
    EqualWidth,
    Grouping,
    absolute_sum,
    as_grouping,
    norm_order,
    power_mean,
    power_means,
)
from calibrary.metrics.machinery.forms import CellCounts, CellForm, InBlocks, ReplicateForm, each_row
from calibrary.metrics.machinery.one_pass import plain_arrays

_FIFTEEN = EqualWidth(15)


# -- plain arrays -----------------------------------------------------------------------------------


def direct_error(y: Any, c: Any, **others: Any) -> float | None:
    """The expected calibration error with its default options, computed from plain arrays; None for any other input."""
    if others or not plain_arrays(y, c):
        return None
    from calibrary.numerics.compiled.width_bins import add_residuals

    total = np.zeros(15)
    for first in range(0, len(c), CHUNK):
        part = total if len(c) <= CHUNK else np.zeros(15)
        if not add_residuals(c, y, _FIFTEEN.edges_, True, first, min(first + CHUNK, len(c)), part):
            return None
        if part is not total:
            total += part
    return absolute_sum(total) / len(c)


# -- replicates -------------------------------------------------------------------------------------


def gaps_of_replicates(usual: float) -> ReplicateForm:
    """Norms of the gaps of many resamples, for bins that do not depend on the data: rows are assigned to bins once."""

    def prepare(
        view: Predictions,
        *,
        norm: float | str = usual,
        aggregate: str = "power",
        distance: str = "tv",
        binning: str | Grouping | ArrayLike = "width",
        **options: Any,
    ) -> InBlocks | None:
        grouping = as_grouping(binning, **options)
        if not view.binary or distance != "tv" or not isinstance(grouping, EqualWidth | Edges):
            return None
        p = norm_order(norm)
        total_in = functools.partial(np.bincount, grouping.groups(view).index)
        size_as_given = total_in(view.weight)

        def with_weights(new_w: Array) -> float:
            gap = np.abs(total_in(new_w * view.residual))
            if p == 1.0:
                return float(gap.sum() / new_w.sum())
            size = total_in(new_w)
            used = size > 0.0
            return power_mean(gap[used] / size[used], size[used] / size.sum(), p)

        index, n_bins = grouping.groups(view).index, len(size_as_given)
        used = size_as_given > 0.0
        size, share = size_as_given[used], size_as_given[used] / size_as_given.sum()

        member = np.zeros((view.n, n_bins))
        member[np.arange(view.n), index] = view.weight
        expected = view.c @ member

        def many(new_y: Any) -> Array:
            gap = np.abs(np.asarray(new_y, dtype=np.float64) @ member - expected)
            if p == 1.0:
                return np.array(gap.sum(axis=1) / view.total)
            return power_means(gap[:, used] / size, share, p)

        return InBlocks(many, each_row(with_weights))

    return ReplicateForm(prepare)


# -- cells ------------------------------------------------------------------------------------------

_BIN_OPTIONS = ("n_bins", "closed", "edges", "strategy", "mass_rule")


def gaps_of_cells(usual: float, binning: str = "width") -> CellForm:
    """Norms of the gaps from counts of events per cell: every bin is a set of whole cells and is formed once."""

    def value(cells: CellCounts, options: Mapping[str, Any]) -> Callable[[Array], Array]:
        assert cells.bin is not None
        p = norm_order(options.get("norm", usual))
        expected = cells.n * cells.c
        member = np.zeros((len(cells.n), int(cells.bin.max()) + 1))
        member[np.arange(len(cells.n)), cells.bin] = 1.0
        size = cells.n @ member
        used = size > 0.0
        share = size[used] / size.sum()

        def norms(counts: Array) -> Array:
            gap = np.abs((counts - expected) @ member)[:, used] / size[used]
            return power_means(gap, share, p)

        return norms

    def grouping(options: Mapping[str, Any]) -> Any:
        given = {name: options[name] for name in _BIN_OPTIONS if name in options}
        return as_grouping(options.get("binning", binning), **given)

    return CellForm(value, ("norm", "binning", *_BIN_OPTIONS), grouping)

"""The data of reliability diagrams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic
from calibrary.grouping import Groups, group
from calibrary.grouping.named import refuse_idle_bins
from calibrary.metrics.bins.bin_options import BinnedKeywords
from calibrary.metrics.bins.expected import expected_calibration_error
from calibrary.metrics.machinery.declare import Result


@dataclass(frozen=True)
class ReliabilityBins(Result):
    """The bins of a reliability diagram, with one entry per non-empty bin.

    Attributes
    ----------
    lower, upper : edges of the bin (NaN for groups that are not intervals)
    weight, count : total weight, and number of rows
    confidence, outcome : mean confidence and mean label
    standard_error : standard error of the outcome, sqrt(outcome (1 - outcome) / weight)
    """

    lower: Array
    upper: Array
    weight: Array
    count: Indices
    confidence: Array
    outcome: Array
    standard_error: Array

    def __len__(self) -> int:
        return len(self.count)

    @classmethod
    def of(cls, groups: Groups) -> ReliabilityBins:
        """The table of these groups of rows."""
        nowhere = np.full(len(groups), np.nan)
        outcome = groups.label
        return cls(
            nowhere if groups.lower is None else groups.lower,
            nowhere if groups.upper is None else groups.upper,
            groups.weight,
            groups.count,
            groups.confidence,
            outcome,
            np.sqrt(outcome * (1.0 - outcome) / groups.weight),
        )

    @property
    def gap(self) -> Array:
        """Outcome minus confidence."""
        return self.outcome - self.confidence

    @property
    def roof(self) -> Array:
        """Tilted-roof segments, one row (left, height there, right, height there) per bin: slope one, through
        (confidence, outcome)."""
        return np.column_stack([self.lower, self.lower + self.gap, self.upper, self.upper + self.gap])

    def table(self) -> dict[str, Array]:
        """The columns by name, ready for ``pandas.DataFrame``."""
        names = ("lower", "upper", "weight", "count", "confidence", "outcome", "standard_error")
        return {name: getattr(self, name) for name in names}


@diagnostic(expected_calibration_error)
def reliability_bins(
    views: Views,
    **binning: Unpack[BinnedKeywords],
) -> Any:
    """Mean confidence and outcome of every bin: the data of a reliability diagram and of the ECE.

    Parameters
    ----------
    **binning
        ``binning``, ``n_bins``, ``closed``, ``mass_rule``, ``edges``, ``points_per_bin`` and ``strategy`` as in
        :func:`calibrary.expected_calibration_error`.

    Returns
    -------
    ReliabilityBins
        Or, for a lens with several views such as "class-wise", a dict of them by class.

    Examples
    --------
    >>> import calibrary as cal
    >>> bins = cal.reliability_bins([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2)
    >>> bins.outcome, bins.confidence.round(2)
    (array([0., 1.]), array([0.2 , 0.75]))
    """
    refuse_idle_bins(binning)
    tables = [ReliabilityBins.of(group(view, **binning)) for view in views.views]
    return dict(zip(views.keys, tables, strict=True)) if views.several else tables[0]

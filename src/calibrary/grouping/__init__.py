"""How cases are put in groups: small objects that every ``binning=`` argument takes.

``EqualMass(10).fit(c).assign(c)`` gives the bin of each confidence; ``group(view, "mass", n_bins=10)`` the groups
with their weights, mean confidences and mean labels.
"""

from __future__ import annotations

from calibrary.grouping.cross_validated import CrossValidated, bins_of_map
from calibrary.grouping.edges import (
    Edges,
    EqualArea,
    EqualMass,
    EqualWidth,
    Grouping,
    Intervals,
    PointsPerBin,
    RandomIntervals,
    UniqueValues,
)
from calibrary.grouping.given import UserGroups
from calibrary.grouping.groups import Groups, VectorGroups, norm_order, power_mean
from calibrary.grouping.mean_split import MeanSplit
from calibrary.grouping.named import as_grouping, group
from calibrary.grouping.sweep import MonotonicSweep

__all__ = [
    "CrossValidated",
    "Edges",
    "EqualArea",
    "EqualMass",
    "EqualWidth",
    "Grouping",
    "Groups",
    "Intervals",
    "MeanSplit",
    "MonotonicSweep",
    "PointsPerBin",
    "RandomIntervals",
    "UniqueValues",
    "UserGroups",
    "VectorGroups",
    "as_grouping",
    "bins_of_map",
    "group",
    "norm_order",
    "power_mean",
]

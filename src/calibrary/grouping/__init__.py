"""How cases are put in groups: small objects that every ``binning=`` argument takes.

``EqualMass(10).fit(c).assign(c)`` gives the bin of each confidence; ``group(view, "mass", n_bins=10)`` the groups
with their weights, mean confidences and mean labels.
"""

from __future__ import annotations

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
from calibrary.grouping.named import as_grouping, group
from calibrary.grouping.sweep import MonotonicSweep

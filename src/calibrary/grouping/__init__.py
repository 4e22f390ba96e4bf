"""How rows are put in groups: small objects that every ``binning=`` argument accepts.

``EqualMass(10).fit(c).assign(c)`` gives the bin of each confidence; ``group(view, "mass", n_bins=10)`` the groups
with their weights, mean confidences and mean labels.
"""

from calibrary.base.moved import imported as _imported
from calibrary.grouping.adaptive import BlockPAVA, MeanSplit, MonotonicSweep
from calibrary.grouping.cross_validated import ROOFS, CrossValidated, bins_of_map, roof_of
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
from calibrary.grouping.groups import Groups, VectorGroups, absolute_sum, norm_order, power_mean, power_means
from calibrary.grouping.named import as_grouping, automatic_bins, group
from calibrary.grouping.proximity import ProximityCells, SimplexCells
from calibrary.grouping.segments import UserGroups
from calibrary.grouping.soft import SoftBins
from calibrary.grouping.windows import Windows, nearest_windows, sliding_windows

__all__ = _imported(globals())


def __dir__() -> list[str]:
    return sorted(__all__)

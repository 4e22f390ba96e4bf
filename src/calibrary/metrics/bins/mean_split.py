"""Maximum-variance mean-split calibration error (row 32)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.grouping import MeanSplit
from calibrary.grouping.groups import pair_scale
from calibrary.metrics.bins.bin_options import range_of_distance
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import InBlocks, ReplicateForm
from calibrary.numerics.runs import run_starts


def _in_the_same_bins() -> ReplicateForm:
    """Bins that depend on the confidences and not on the labels, so that redrawn labels use the same bins."""

    def prepare(
        view: Predictions, *, min_count: int = 100, min_leaf: int = 1, split: str = "mean", distance: str = "tv"
    ) -> InBlocks | None:
        if not view.binary:
            return None
        index = MeanSplit(min_count, min_leaf, split).groups(view).index
        order = np.argsort(index, kind="stable")
        start = run_starts(index[order])
        c, w, scale = view.c[order], view.weight[order], pair_scale(distance) / view.total

        def many(y: Any) -> Array:
            found: Array = np.abs(np.add.reduceat(w * (y[:, order] - c), start, axis=1)).sum(axis=1) * scale
            return found

        return InBlocks(many)

    return ReplicateForm(prepare, labels_only=True)


@metric(
    "mvms",
    renamed={"min_size": "min_count"},
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    default_lens="full",
    replicate=_in_the_same_bins(),
)
def mean_split_calibration_error(
    view: Predictions,
    *,
    min_count: int = 100,
    min_leaf: int = 1,
    split: str = "mean",
    distance: str = "tv",
    **common: Unpack[Common],
) -> float:
    r"""Average distance between mean probabilities and class frequencies over bins that adapt to the data.

    Rows are split at the mean of the coordinate with the largest variance until fewer than ``min_count`` remain:

    .. math:: \sum_b p_b\, d(\bar c_b, \bar y_b)

    Parameters
    ----------
    min_count : int
        Nodes with fewer rows are not split.
    min_leaf : int
        A split that would leave fewer rows on one side is not carried out.
    split : "mean" or "median"
    distance : "tv", "l1" or "l2"
        Half the sum of absolute differences, the sum, or the Euclidean distance.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.mean_split_calibration_error(y, p, min_count=3), 4)
    0.225
    """
    return MeanSplit(min_count, min_leaf, split).groups(view).gap_norm(1, distance)

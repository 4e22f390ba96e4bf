"""Grouping loss: the loss that no metric of labels and confidences can detect.

Rows of equal confidence may have different true probabilities: if c = 0.5 for every row, and the true probability is
0.1 for half of them and 0.9 for the others, a model is calibrated and still far from the true probabilities. The
variance of the true probabilities at equal confidence is the grouping loss; groups of rows (known groups, or leaves of
trees fitted to the features) give a lower bound of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, undefined, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import UserGroups, group, nearest_windows
from calibrary.metrics.bins.bin_options import BINNING, BinnedKeywords
from calibrary.metrics.machinery.declare import metric
from calibrary.numerics.draw import shuffled


class GroupingLoss(NamedTuple):
    """``loss`` is ``uncorrected`` minus ``bias`` (chance) minus ``induced`` (spread of confidences within a bin)."""

    loss: float
    uncorrected: float
    bias: float
    induced: float


@metric("grouping_loss", extra_options=BINNING)
def grouping_loss(
    view: Predictions,
    *,
    groups: Any = None,
    features: Any = None,
    n_groups: int = 2,
    rng: Any = 0,
    **options: Unpack[BinnedKeywords],
) -> GroupingLoss:
    r"""Lower bound of the squared error that is due to different true probabilities of rows of equal confidence.

    .. math:: \sum_{b,r} \frac{n_{br}}{N} \big(h(\bar y_b) - h(\bar y_{br})\big) - \text{bias} - \text{induced},
              \qquad h(p) = 2p(1-p)

    The sum is over bins b of confidence and groups r within the bins. ``bias`` is the value that groups of these sizes
    have by chance; ``induced`` is the part from different confidences within one bin, estimated by a nearest-neighbour
    curve. Groups with a single row are left out.

    Parameters
    ----------
    groups : array-like of shape (N,)
        The group of every row: any hashable value that does not depend on the label.
    features : array-like of shape (N, d), optional
        In place of ``groups``: in every bin a tree with ``n_groups`` leaves is fitted to a random half of the rows, and
        its leaves are the groups of the other half, on which the loss is computed. This needs scikit-learn.
    n_groups : int
        Number of leaves per bin.
    rng : int, Generator or None
        Generator or seed for the random halves.

    Returns
    -------
    GroupingLoss
        ``loss``, ``uncorrected``, ``bias`` and ``induced``.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> c = np.full(400, 0.5)
    >>> kind = np.arange(400) % 2
    >>> y = np.arange(400) % 20 < np.where(kind == 1, 18, 2)
    >>> round(cal.grouping_loss(y, c, groups=kind).loss, 3)
    0.32
    """
    if (groups is None) == (features is None):
        raise RefusedError(
            "groups and features exclude each other: pass either groups=, the group of every row, or features=, from "
            "which groups are learned"
        )
    bins = group(view, **options)
    if features is None:
        cells = UserGroups(groups).groups(view).index
        return _measured(view, bins.index, cells)
    judged, cells = _learned_cells(view, bins.index, features, whole("n_groups", n_groups, least=2), rng)
    rest = view.subset(judged, view.y[judged], view.c[judged])
    return _measured(rest, bins.index[judged], cells)


def _measured(view: Predictions, bin: Indices, cell: Indices) -> GroupingLoss:
    pair, member = np.unique(np.column_stack([bin, cell]), axis=0, return_inverse=True)
    n, positive = _sums(view, member.ravel(), len(pair))
    kept = n > 1.0  # with a single row, chance and grouping loss cannot be separated
    if not kept.any():
        return GroupingLoss(
            undefined("no group has two rows, so the grouping loss is undefined: pass larger groups"), *[np.nan] * 3
        )
    n, rate, of_bin = n[kept], positive[kept] / n[kept], np.unique(pair[kept, 0], return_inverse=True)[1]
    size = np.bincount(of_bin, n)
    mean = np.bincount(of_bin, n * rate) / size
    total = float(size.sum())
    uncorrected = float(np.dot(n, _entropy(mean)[of_bin] - _entropy(rate))) / total
    chance = np.dot(n, _entropy(rate) / (n - 1.0)) - np.dot(size, _entropy(mean) / (size - 1.0))
    bias, induced = float(chance) / total, _induced(view, bin)
    return GroupingLoss(uncorrected - bias - induced, uncorrected, bias, induced)


def _sums(view: Predictions, index: Indices, size: int) -> tuple[Array, Array]:
    """Weight and weighted labels of every cell."""
    n = np.bincount(index, view.w, size).astype(np.float64)
    return n, np.bincount(index, view.y if view.w is None else view.w * view.y, size).astype(np.float64)


def _entropy(p: Array) -> Array:
    return 2.0 * p * (1.0 - p)


def _induced(view: Predictions, bin: Indices) -> float:
    """Variance within the bins of the rate at each confidence, estimated from the nearest tenth of the rows."""
    k = max(int(min(2000.0, 0.1 * view.total)), 1)
    windows = nearest_windows(view, k - 1) if k > 1 else None
    at = np.searchsorted(view.ties.c, view.c)
    curve = (view.ties.wy / view.ties.w if windows is None else windows.label)[at]
    _, index = np.unique(bin, return_inverse=True)
    w = view.weight
    size = np.bincount(index, w)
    mean, entropy = (np.bincount(index, w * x) / size for x in (curve, _entropy(curve)))
    return float(np.dot(size, _entropy(mean) - entropy) / view.total)


# -- groups learned from features --------------------------------------------------------------------


def _learned_cells(view: Predictions, bin: Indices, features: Any, n_groups: int, rng: Any) -> tuple[Indices, Indices]:
    """The half of the rows that is evaluated, and the leaf of each row in the tree of its bin."""
    x = np.asarray(view.align(features, "features"), dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    learning = np.zeros(view.n, dtype=bool)
    learning[shuffled(view.n, rng, "halves")[: view.n // 2]] = True
    judged, cell = [], []
    for b in np.unique(bin):
        learn, judge = np.flatnonzero((bin == b) & learning), np.flatnonzero((bin == b) & ~learning)
        judged.append(judge)
        cell.append(leaf_of_each(x, view, learn, judge, n_groups))
    return np.concatenate(judged), np.concatenate(cell)


def leaf_of_each(x: Array, view: Predictions, learn: Indices, judge: Indices, n_groups: int) -> NDArray[np.intp]:
    """The leaf of every evaluated row in a tree fitted to others; one leaf for all if there is nothing to fit."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise ImportError(
            "learning groups from features needs scikit-learn: pip install 'calibrary[sklearn]'"
        ) from error
    if len(learn) < n_groups or not len(judge):
        return np.zeros(len(judge), dtype=np.intp)
    tree = DecisionTreeRegressor(
        min_samples_leaf=len(learn) // n_groups, max_leaf_nodes=max(n_groups, 2), random_state=0
    )
    tree.fit(x[learn], view.y[learn], sample_weight=view.weight[learn])
    return tree.apply(x[judge])

"""Test-based calibration error (row 45): the share of predictions that a test against their bin's labels rejects."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.grouping import Edges, EqualWidth, Grouping, Groups, as_grouping
from calibrary.grouping.edges import whole
from calibrary.grouping.pava import BlockPAVA
from calibrary.metrics.machinery.declare import Looked, metric

_STRATEGIES = {"width": "uniform", "mass": "quantile"}


@metric(
    "tce",
    renamed={"n_min": "min_count"},
    range_with=lambda options, k: (0.0, 100.0 if options.get("percent") else 1.0),
    lenses=("binary", "top-label", "class-wise"),
)
def test_based_calibration_error(
    view: Predictions,
    *,
    alpha: float = 0.05,
    strategy: str | None = None,
    binning: str | Grouping | ArrayLike | None = None,
    min_count: int = 10,
    n_max: float = 1000,
    last_bin: str = "atom",
    n_bins: int = 10,
    percent: bool = False,
    **common: Unpack[Looked],
) -> float:
    r"""Share of predictions that an exact binomial test of their bin's labels rejects.

    A bin with k positives among n rows rejects a confidence c in it when :math:`p(k, n, c) \le \alpha`, where p is the
    two-sided p-value of ``scipy.stats.binomtest`` (the probability of all outcomes no likelier than k).

    Parameters
    ----------
    alpha : float
        Significance level of each test.
    strategy : "pava-bc", "pava", "quantile" or "uniform"
        Bins by isotonic pooling with limits on their size (the default), by isotonic pooling without limits, of equal
        count, or of equal width (closed left).
    binning : str or grouping object, optional
        Another name for ``strategy``: "width" is "uniform", "mass" is "quantile"; or any grouping object.
    min_count, n_max : int
        Smallest and largest number of rows in a bin of "pava-bc".
    last_bin : "atom", "released" or "strict"
        How the last bin of "pava-bc" is closed; see :class:`calibrary.grouping.pava.BlockPAVA`.
    n_bins : int
        Number of bins of "quantile" and "uniform".
    percent : bool
        Multiply the value by 100, as the inventors do.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0] * 30 + [1] * 10, [0.7] * 20 + [0.3] * 20
    >>> cal.test_based_calibration_error(y, c)
    0.5
    """
    groups = _bins(view, strategy, binning, min_count, n_max, last_bin, n_bins)
    share = float(np.dot(groups.share, rejected_share(groups, alpha)))
    return 100.0 * share if percent else share


test_based_calibration_error.__test__ = False  # type: ignore[attr-defined]  # a metric, not a test of pytest's


def rejected_share(groups: Groups, alpha: float) -> Array:
    """Share of each group's confidences that an exact two-sided binomial test on its labels rejects."""
    from calibrary.numerics.laws.binomial import rejected

    if not 0.0 < alpha < 1.0:
        raise RefusedError(f"alpha={alpha!r} must be between 0 and 1")
    view = groups.view
    if view.w is not None:
        view.counts("a binomial test")
    n = np.rint(groups.weight).astype(np.int64)
    k = np.rint(groups.label * groups.weight).astype(np.int64)
    if groups.lower is None:
        index, p, w = groups.index, view.c, view.w
    else:  # intervals are runs of the sorted rows
        index, p, w = np.repeat(np.arange(len(groups)), groups.count), view.sorted.c, view.sorted.w
    low, high = _rejected_outside(k, n, alpha)
    decision = (p < low[index]) | (p > high[index])
    rest = np.flatnonzero(~decision)
    decision[rest] = rejected(index[rest], k, n, p[rest], alpha)
    return np.bincount(index, decision if w is None else w * decision, minlength=len(groups)) / groups.weight


def _rejected_outside(k: NDArray[np.int64], n: NDArray[np.int64], alpha: float) -> tuple[Array, Array]:
    """For every group, an interval outside of which a confidence is certainly rejected, whatever its exact p-value.

    With D = KL(k/n || p), a tail that ends at k has probability at most exp(-nD), and the likelihood of k is at most
    exp(-nD) / sqrt(2 pi k (1 - k/n)). The other tail begins at an outcome no likelier than k, and by Stirling's bounds
    its probability is at most sqrt(2n) times as large. This bound grows towards k/n, so the end points can be bisected;
    every step errs on the safe side, and a few steps are enough.
    """
    rate = k / n
    spread = np.maximum(2.0 * np.pi * k * (1.0 - rate), 1.0)
    enough = np.log((1.0 + np.sqrt(2.0 * n / spread)) / (alpha * (1.0 - 1e-6))) / n
    ends = []
    for end in (0.0, 1.0):
        outside, inside = np.full(len(k), end), rate
        for _ in range(12):
            middle = 0.5 * (outside + inside)
            with np.errstate(divide="ignore", invalid="ignore"):
                divergence = scipy.special.rel_entr(rate, middle) + scipy.special.rel_entr(1.0 - rate, 1.0 - middle)
            far = divergence > enough
            outside, inside = np.where(far, middle, outside), np.where(far, inside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def _bins(
    view: Predictions,
    strategy: str | None,
    binning: str | Grouping | ArrayLike | None,
    n_min: int,
    n_max: float,
    last_bin: str,
    n_bins: int,
) -> Groups:
    if strategy is not None and binning is not None:
        raise RefusedError(f"strategy={strategy!r} and binning={binning!r} mean the same: pass one of them")
    if not isinstance(binning, str | None):
        return as_grouping(binning).groups(view)
    if strategy is None:
        strategy = "pava-bc" if binning is None else _STRATEGIES.get(binning, binning)
    one_of("strategy", strategy, ("pava-bc", "pava", "quantile", "uniform"))
    if strategy == "uniform":
        return EqualWidth(n_bins, "left").groups(view)
    if strategy == "quantile":
        return _equal_counts(view, whole("n_bins", n_bins))
    if strategy == "pava":
        n_min, n_max = 0, np.inf
    return BlockPAVA(n_min, n_max, last_bin).groups(view)


def _equal_counts(view: Predictions, n_bins: int) -> Groups:
    """Ranks cut at floor(bN/B), as the inventors do; tied rows go to the bin of the first of them."""
    below = np.cumsum(view.ties.w) - view.ties.w
    cuts = np.arange(1, n_bins) * int(view.total) // n_bins
    first = np.searchsorted(below, cuts)  # first group of tied rows in each bin
    first = np.unique(first[(first > 0) & (first < len(below))])
    inner: Array = view.ties.c[first]
    return Edges(np.concatenate(([-1.0], inner, [2.0])), "left").groups(view)

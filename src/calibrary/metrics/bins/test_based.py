"""Test-based calibration error (row 45): the share of predictions that the labels of their bin reject."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.catalogue import Common, Correction, metric
from calibrary.errors import one_of
from calibrary.grouping import Edges, EqualWidth, Grouping, Groups
from calibrary.grouping.edges import whole
from calibrary.grouping.pava import BlockPAVA
from calibrary.predictions import Array, Predictions

__all__ = ["test_based_calibration_error"]

_STRATEGIES = {"width": "uniform", "mass": "quantile"}


@metric(
    "tce",
    family="bin",
    row=45,
    perfect=None,
    range_note="[0, 100] with percent=True",
    sign="share of rejected predictions: about alpha, or less, for a calibrated model; larger is worse",
    lenses=("binary", "top-label", "class-wise"),
    cost="O(N log N)",
    equation="section 4.12",
    references=("Matsubara, Tax, Mudd, Guy (2023), TCE: a test-based approach to measuring calibration error",),
    use="Read off which share of the predictions is incompatible with the data, in units that mean something.",
    avoid="There is no overall p-value; and with wide bins and large N even a calibrated model is rejected.",
    weights_note="whole numbers only",
    corrections=(
        Correction("range", "[0, 1]", "the inventors report percent, [0, 100]: percent=True gives theirs"),
        Correction("alpha", "confidence level", "it is the significance level"),
        Correction("hypothesis test", "yes", "one per bin; there is no overall null distribution or p-value"),
    ),
)
def test_based_calibration_error(
    view: Predictions,
    *,
    alpha: float = 0.05,
    strategy: str | None = None,
    binning: str | Grouping | None = None,
    n_min: int = 10,
    n_max: float = 1000,
    last_bin: str = "atom",
    n_bins: int = 10,
    percent: bool = False,
    **common: Unpack[Common],
) -> float:
    r"""Share of predictions that an exact binomial test of their bin's labels rejects.

    A bin with k of n positives rejects a confidence c in it when :math:`p(k, n, c) \le \alpha`, p being the
    two-sided p-value (every outcome no likelier than k) of ``scipy.stats.binomtest``.

    Parameters
    ----------
    alpha : float
        Significance level of each test.
    strategy : "pava-bc", "pava", "quantile" or "uniform"
        Bins by isotonic pooling with limits on their size (the default), without limits, of equal count, or of
        equal width (closed left).
    binning : str or grouping object, optional
        Another word for ``strategy``: "width" is "uniform", "mass" is "quantile"; or any grouping object.
    n_min, n_max : int
        Smallest and largest bins of "pava-bc".
    last_bin : "atom", "released" or "strict"
        How the last bin of "pava-bc" is closed; see :class:`calibrary.grouping.pava.BlockPAVA`.
    n_bins : int
        Bins of "quantile" and "uniform".
    percent : bool
        Multiply by 100, as the inventors do.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0] * 30 + [1] * 10, [0.7] * 20 + [0.3] * 20
    >>> cal.test_based_calibration_error(y, c)
    0.5
    """
    groups = _bins(view, strategy, binning, n_min, n_max, last_bin, n_bins)
    share = float(groups.view.mean(rejections(groups, alpha)))
    return 100.0 * share if percent else share


test_based_calibration_error.__test__ = False  # type: ignore[attr-defined]  # a metric, not a test of pytest's


def rejections(groups: Groups, alpha: float) -> NDArray[np.bool_]:
    """Which rows' confidences the labels of their group reject, by an exact two-sided binomial test."""
    from calibrary.numerics.binomial import rejected

    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must be between 0 and 1")
    groups.view.counts("a binomial test")
    n = np.rint(groups.weight).astype(np.int64)
    k = np.rint(groups.label * groups.weight).astype(np.int64)
    return rejected(groups.index, k, n, groups.view.c, alpha)


def _bins(
    view: Predictions,
    strategy: str | None,
    binning: str | Grouping | None,
    n_min: int,
    n_max: float,
    last_bin: str,
    n_bins: int,
) -> Groups:
    if isinstance(binning, Grouping):
        return binning.groups(view)
    if strategy is None:
        strategy = "pava-bc" if binning is None else _STRATEGIES.get(binning, binning)
    elif binning is not None:
        raise ValueError(f"strategy={strategy!r} and binning={binning!r} mean the same: pass one of them")
    one_of("strategy", strategy, ("pava-bc", "pava", "quantile", "uniform"))
    view = _in_order(view)
    if strategy == "uniform":
        return EqualWidth(n_bins, "left").groups(view)
    if strategy == "quantile":
        return _equal_counts(view, whole("n_bins", n_bins))
    if strategy == "pava":
        n_min, n_max = 0, np.inf
    return BlockPAVA(n_min, n_max, last_bin).groups(view)


def _in_order(view: Predictions) -> Predictions:
    """The rows in ascending order of confidence, so that the bin of every row needs no further sort."""
    s = view.sorted
    ordered = Predictions(s.y.astype(np.intp), s.c, s.w)
    ordered.ascending = True
    return ordered


def _equal_counts(view: Predictions, n_bins: int) -> Groups:
    """Ranks cut at floor(bN/B), as the inventors do; tied rows go where the first of them falls."""
    below = np.cumsum(view.ties.w) - view.ties.w
    cuts = np.arange(1, n_bins) * int(view.total) // n_bins
    first = np.searchsorted(below, cuts)  # first tie group of each bin
    first = np.unique(first[(first > 0) & (first < len(below))])
    inner: Array = view.ties.c[first]
    return Edges(np.concatenate(([-1.0], inner, [2.0])), "left").groups(view)

"""A binned calibration map is fitted to the test set, and the error is its distance from the diagonal (row 33)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.predictions import Predictions
from calibrary.grouping import ROOFS, CrossValidated, Grouping, bins_of_map, roof_of
from calibrary.metrics.machinery.declare import Common, metric


@metric("ece_fott", renamed={"alpha": "norm"})
def fit_on_the_test_calibration_error(
    view: Predictions,
    *,
    n_bins: int | str = "cv",
    base: str = "mass",
    roof: str = "tilted",
    norm: float = 1,
    empty: str = "zero",
    max_bins: int = 40,
    cv: int = 10,
    tolerance: float = 0.0,
    folds: str = "shuffle",
    rng: Any = 1,
    binning: str | None = None,
    **common: Unpack[Common],
) -> float:
    r"""Mean distance from the diagonal of a binned calibration map whose number of bins is cross-validated.

    .. math:: \frac1N \sum_i |\hat y(c_i) - c_i|^\alpha

    With ``roof="tilted"`` and :math:`\alpha = 1` this is the ECE of the chosen bins; with ``roof="flat"`` it is the
    label-binned error to the power alpha.

    Parameters
    ----------
    n_bins : int or "cv"
        Number of bins, or the one in 1..``max_bins`` that minimises the squared error on held-out folds.
    base : "mass" or "width"
        Bins of equal mass or of equal width; ``binning`` means the same.
    roof : "tilted", "flat" or "free"
        The map within a bin: c + mean label - mean confidence, or the mean label, or the least-squares line clipped to
        [0, 1] (the inventors' whole family of piecewise linear maps with jumps).
    norm : float
        Power of the distance; no root is taken.
    empty : "zero" or "identity"
        The prediction on the held-out fold for a bin without training rows: 0 (the authors' code), or the confidence c.
    max_bins, cv : int
    tolerance : float
        With 0.001, the smallest number of bins whose score is within 0.1 % of the best (the authors' second variant).
    folds : "shuffle" or "rank"
        Folds are shuffled as scikit-learn does with seed ``rng``, or assigned by rank, which does not depend on row
        order.
    rng : int or Generator
    binning : "mass" or "width", optional

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.fit_on_the_test_calibration_error(y, p, n_bins=2, base="width"), 4)
    0.225
    """
    if not norm > 0:
        raise RefusedError(f"norm={norm!r} must be above 0")
    base = base if binning is None else binning
    one_of("roof", roof, ROOFS)
    one_of("empty", empty, ("zero", "identity"))
    if isinstance(n_bins, str):
        one_of("n_bins", n_bins, ("cv",))
        bins: Grouping = CrossValidated(
            base, roof=roof, empty=empty, max_bins=max_bins, cv=cv, tolerance=tolerance, folds=folds, rng=rng
        )
    else:
        bins = bins_of_map(base, n_bins)
    groups = bins.groups(view)
    if roof == "tilted":
        return float(np.dot(groups.share, np.abs(groups.gap) ** norm))
    c = view.sorted.c
    if roof == "free":
        offset, slope = (np.repeat(x, groups.count) for x in roof_of(groups, roof))
        return float(np.mean(np.abs(np.clip(offset + slope * c, 0.0, 1.0) - c) ** norm))
    return float(np.mean(np.abs(np.repeat(groups.label, groups.count) - c) ** norm))

"""Piecewise maps over bins: constant (flat), of slope one (tilted) or of any slope (free)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.grouping import ROOFS, CrossValidated, bins_of_map, roof_of
from calibrary.maps.base import CalibrationMap


class Binned(CalibrationMap):
    """A map that is one straight piece per bin of confidence.

    Parameters
    ----------
    n_bins : int or "cv"
        Number of bins, or "cv" to choose it by cross-validation (:class:`calibrary.grouping.CrossValidated`, which
        explains ``max_bins``, ``cv``, ``tolerance``, ``folds`` and ``rng``).
    base : "mass" or "width"
        Equal-mass bins that start at their smallest confidence, or equal-width bins; all left-closed.
    roof : "tilted", "flat" or "free"
        c + mean label - mean confidence of the bin; or its mean label; or its least-squares line, clipped to [0, 1]
        (the family of piecewise linear maps with jumps, of which the other two are the cases of slope 1 and 0).
    empty : "zero" or "identity"
        The value of the map in a bin without data: 0 (the authors' code), or c itself.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("bins", n_bins=2, base="width").fit([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9])
    >>> curve([0.2, 0.7]).round(3)
    array([0.  , 0.95])
    """

    def __init__(
        self,
        n_bins: int | str = "cv",
        base: str = "mass",
        roof: str = "tilted",
        empty: str = "zero",
        *,
        max_bins: int = 40,
        cv: int = 10,
        tolerance: float = 0.0,
        folds: str = "shuffle",
        rng: Any = 1,
    ) -> None:
        one_of("base", base, ("mass", "width"))
        one_of("roof", roof, ROOFS)
        one_of("empty", empty, ("zero", "identity"))
        if isinstance(n_bins, str):
            one_of("n_bins", n_bins, ("cv",))
        self.n_bins = n_bins if isinstance(n_bins, str) else whole("n_bins", n_bins)
        self.base, self.roof, self.empty = base, roof, empty
        self.choice = {"max_bins": max_bins, "cv": cv, "tolerance": tolerance, "folds": folds, "rng": rng}

    def _learn(self, view: Predictions) -> None:
        n = self.n_bins
        if isinstance(n, str):
            if view.counted:
                raise RefusedError(
                    "n_bins='cv' puts rows in folds, but each of these rows represents many predictions: pass a "
                    "number of bins"
                )
            n = CrossValidated(self.base, roof=self.roof, empty=self.empty, **self.choice).fit_view(view).n_bins_
        self.chosen_ = n
        self.bins_ = bins_of_map(self.base, n).fit_view(view)
        groups = self.bins_.groups(view)
        self.n_bins_ = self.bins_.n_bins_
        self.offset_ = np.zeros(self.n_bins_)
        self.slope_ = np.full(self.n_bins_, 1.0 if self.empty == "identity" else 0.0)
        self.offset_[groups.position], self.slope_[groups.position] = roof_of(groups, self.roof)

    def for_refit(self) -> Self:
        again = super().for_refit()
        again.n_bins = self.chosen_
        return again

    def _evaluate(self, c: Array) -> Array:
        inside = self.bins_.assign(c)
        height: Array = self.offset_[inside] + self.slope_[inside] * c
        return np.clip(height, 0.0, 1.0) if self.roof == "free" else height

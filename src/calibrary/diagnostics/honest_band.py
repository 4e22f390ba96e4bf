"""A band that contains the whole calibration curve with a guaranteed probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.metrics.curve.honest import honest_bounds, honest_error
from calibrary.metrics.machinery.declare import Common, Result


@dataclass(frozen=True)
class HonestBand(Result):
    """A simultaneous confidence band for the calibration curve.

    Attributes
    ----------
    scores : distinct confidences, ascending
    lower, upper : the band at these confidences
    confidence_level, n : the level, and the number of rows
    """

    scores: Array
    lower: Array
    upper: Array
    confidence_level: float
    n: float

    def at(self, c: Any) -> tuple[Array, Array]:
        """The band at other confidences: a lower bound also holds at higher confidences, an upper bound at lower."""
        place = np.asarray(c, dtype=np.float64)
        lower = np.append(0.0, self.lower)[np.searchsorted(self.scores, place, side="right")]
        upper = np.append(self.upper, 1.0)[np.searchsorted(self.scores, place, side="left")]
        return lower, upper

    @property
    def certified(self) -> float:
        """An upper bound on the error of every stated confidence."""
        away = np.maximum(np.abs(self.lower - self.scores), np.abs(self.upper - self.scores))
        return float(away.max())

    @property
    def words(self) -> str:
        """The upper bound of the error as a sentence for a report."""
        return (
            f"no probability is off by more than {number(self.certified)}, with {percent(self.confidence_level)} "
            "confidence, if the event is more frequent where its stated probability is higher"
        )


@diagnostic(honest_error)
def honest_band(
    views: Views, *, confidence_level: float = 0.95, digits: Any = "auto", **common: Unpack[Common]
) -> HonestBand:
    """A band that contains the whole calibration curve with at least the confidence level, for any number of rows.

    The band assumes only that the outcomes are independent and that the event's frequency does not decrease with the
    confidence; it needs no smoothing, resampling or asymptotics. It combines exact binomial bounds for all runs of
    adjacent confidences (Bonferroni): the lower bound of a run applies from its end on, the upper bound up to its
    beginning. Where the diagonal lies outside the band, the predictions are not calibrated.

    Parameters
    ----------
    confidence_level, digits
        As in :func:`calibrary.honest_error`.

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel (2023), Honest calibration assessment for binary outcome predictions.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0] * 18 + [1] * 2 + [0] * 4 + [1] * 16, [0.1] * 20 + [0.8] * 20
    >>> band = cal.honest_band(y, c)
    >>> band.lower.round(3).tolist(), band.upper.round(3).tolist()
    ([0.007, 0.514], [0.366, 0.959])
    """
    view = only_view(views, "a band")
    lower, upper = honest_bounds(view, confidence_level, digits)
    return HonestBand(view.ties.c, lower, upper, confidence_level, view.total)

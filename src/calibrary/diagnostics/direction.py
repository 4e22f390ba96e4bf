"""Tests of over- and under-confidence, separately, from the two parts of the ECE (section 4.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import bounded, whole
from calibrary.base.numbers import number, pvalue
from calibrary.data.checks import Array
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.grouping import Groups, group
from calibrary.inference.draw.bands import on_labels
from calibrary.metrics.bins.bin_options import Bins
from calibrary.metrics.bins.expected import expected_calibration_error
from calibrary.metrics.machinery.declare import Result

#: Above this many rows, the rows of a bin are redrawn together.
_MANY_ROWS = 20_000


@dataclass(frozen=True)
class ConfidenceDirection(Result):
    """The over-confident and the under-confident part of the ECE, each with a test.

    Attributes
    ----------
    over, under : the parts of the ECE from bins whose confidence is too high and too low; ECE is their sum
    ece, esce : over + under, and under - over: |ESCE| < ECE exactly where both parts are positive
    over_pvalue, under_pvalue : probability that a calibrated model with these confidences has as large a part
    finding : the parts with evidence at ``level``: "over-confident", "under-confident", "mixed" (both, in different
        places) or "none"
    """

    over: float
    under: float
    ece: float
    esce: float
    over_pvalue: float
    under_pvalue: float
    finding: str
    level: float

    @property
    def sentence(self) -> Sentence:
        """The direction for which there is evidence, in words; a part that chance explains is not called absent."""
        words = {
            "over-confident": "There is evidence of over-confidence at some confidences, and none of under-confidence",
            "under-confident": "There is evidence of under-confidence at some confidences, and none of over-confidence",
            "mixed": "There is evidence of over-confidence at some confidences and of under-confidence at others",
            "none": "There is no evidence of over- or under-confidence",
        }
        said = (
            f"{words[self.finding]} ({pvalue(self.over_pvalue)} for over-confidence, {pvalue(self.under_pvalue)} for "
            f"under-confidence). Of an ECE of {number(self.ece)}, {number(self.over)} comes from bins whose confidence "
            f"is too high and {number(self.under)} from bins whose confidence is too low."
        )
        found = {"over-confident": ("over",), "under-confident": ("under",), "mixed": ("over", "under")}
        evidence = (Claim(said, f"{way}-confident somewhere") for way in found.get(self.finding, ()))
        parts = Claim(said, "parts add up", over=self.over, under=self.under, whole=self.ece)
        return Sentence(said, *evidence, parts, measured(said, over=self.over, under=self.under))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the sentence states, each with its rule."""
        return self.sentence.claims

    def __str__(self) -> str:
        return self.sentence


@diagnostic(expected_calibration_error)
def confidence_direction(
    views: Views, *, n_resamples: int = 999, confidence_level: float = 0.95, rng: Any = 0, **options: Unpack[Bins]
) -> ConfidenceDirection:
    r"""Test whether a model is over-confident, under-confident, or both at different confidences.

    .. math:: ECE = \sum_b p_b (\bar c_b - \bar y_b)^+ + \sum_b p_b (\bar y_b - \bar c_b)^+, \qquad
              ESCE = \sum_b p_b (\bar y_b - \bar c_b)

    If :math:`|ESCE| < ECE`, both parts are positive. By chance both are almost always positive, so each part is
    compared with that of a calibrated model: labels are drawn from the confidences, with the same bins. Above 20,000
    rows the labels of a bin are drawn together from its mean confidence, which makes their variance slightly larger.

    Parameters
    ----------
    n_resamples : int
    confidence_level : float
        Joint level of the two tests: each has half of the significance level.
    rng : int, Generator or None

    Returns
    -------
    ConfidenceDirection

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, *_ = cal.datasets.review_example()
    >>> cal.confidence_direction(y, p).finding
    'over-confident'
    """
    view = only_view(views, "a direction")
    groups = group(view, **options)
    over, under = _parts(groups, groups.residual[None])
    draws = bounded("n_resamples", whole("n_resamples", n_resamples))
    drawn = (_redrawn_by_bins if view.n > _MANY_ROWS else _redrawn)(groups, draws, rng)
    null_over, null_under = _parts(groups, drawn)
    over_p, under_p = (
        float((1 + np.sum(null >= seen - 1e-12)) / (draws + 1))
        for null, seen in ((null_over, over[0]), (null_under, under[0]))
    )
    limit = (1.0 - confidence_level) / 2.0
    kinds = {(True, True): "mixed", (True, False): "over-confident", (False, True): "under-confident"}
    finding = kinds.get((over_p <= limit, under_p <= limit), "none")
    a, b = float(over[0]), float(under[0])
    return ConfidenceDirection(a, b, a + b, b - a, over_p, under_p, finding, confidence_level)


def _parts(groups: Groups, residual: Array) -> tuple[Array, Array]:
    """The negative and the positive part of the sum of gaps, for each row of residuals."""
    total = groups.view.total
    return -np.minimum(residual, 0.0).sum(axis=1) / total, np.maximum(residual, 0.0).sum(axis=1) / total


def _redrawn_by_bins(groups: Groups, draws: int, rng: Any) -> Array:
    """As :func:`_redrawn`, with the rows of a bin drawn together from its mean confidence; never less variable."""
    view = groups.view
    weight = np.ones(view.n) if view.w is None else view.counts("redrawing labels")
    n = np.bincount(groups.index, weight, minlength=len(groups))
    expected = np.bincount(groups.index, weight * view.c, minlength=len(groups))
    mean = np.clip(expected / np.maximum(n, 1.0), 0.0, 1.0)
    return on_labels(lambda events: events - expected, n.astype(np.int64), mean, draws, rng)


def _redrawn(groups: Groups, draws: int, rng: Any) -> Array:
    """Sums of label minus confidence in every group, for labels drawn from the confidences."""
    view = groups.view
    copies = None if view.w is None else view.counts("redrawing labels").astype(np.int64)
    expected = view.c if copies is None else copies * view.c

    def sums(events: NDArray[Any]) -> Array:
        return np.bincount(groups.index, events - expected, minlength=len(groups)).astype(np.float64)

    return on_labels(sums, copies, view.c, draws, rng)

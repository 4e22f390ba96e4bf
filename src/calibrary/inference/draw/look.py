"""The rows of the overall test: one binary view of the data, with weights and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.data import Data
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.data.sample import sample_of
from calibrary.data.views import Views
from calibrary.lookup import catalogue
from calibrary.maps.base import logit
from calibrary.question import Question

#: The number of points on the probability scale at which the smooth error is computed.
PLACES = 100


@dataclass(frozen=True)
class Look:
    """The rows of the overall test.

    Attributes
    ----------
    view, lens : the one binary view, and the lens that gives it
    c, w, v : confidence, weight, and the weight in variances
    unit : the unit of each row; None if rows are independent
    p, classes : the predictions of all classes and their sums, if there are several classes
    importance : whether weights are relative importances rather than numbers of equal rows
    """

    view: Predictions
    lens: str
    c: Array
    w: Array
    v: Array
    unit: Indices | None
    p: Predictions | None
    classes: Classes | None
    importance: bool

    @property
    def residual(self) -> Array:
        return self.w * (self.view.y - self.c)

    @property
    def total(self) -> float:
        return float(self.w.sum())

    @property
    def spread(self) -> Array:
        """Variance of each row's label."""
        return self.c * (1.0 - self.c)

    @property
    def design_effect(self) -> float:
        """The variance of the sum of residuals by units, divided by its variance for independent rows."""
        assert self.unit is not None
        return float((np.bincount(self.unit, self.residual) ** 2).sum()) / (float(self.v @ self.spread) or 1.0)

    @property
    def place(self) -> Indices:
        return place_of(self.c)

    @property
    def lean(self) -> Array:
        """The linear weights of the residuals for slope, mean and Spiegelhalter's z, one column each."""
        inside = (self.c > 0.0) & (self.c < 1.0)
        odds = np.where(inside, logit(np.where(inside, self.c, 0.5)), 0.0)
        weight = self.v * self.spread
        middle = float(weight @ odds) / (weight.sum() or 1.0)
        # rows of probability 0 or 1 have no log odds and are left out, as in Cox's slope
        slope = np.where(inside, odds - middle, 0.0)
        return np.column_stack([slope, np.ones_like(self.c), 1.0 - 2.0 * self.c])


def place_of(c: Array) -> Indices:
    return np.minimum((c * PLACES).astype(np.intp), PLACES - 1)


@dataclass(frozen=True)
class Classes:
    """For each class: observed count, expected count and sum of squares; ``scale`` is the weight of one row."""

    names: tuple[Any, ...]
    occurred: Array
    expected: Array
    variance: Array
    scale: Array

    @property
    def trials(self) -> Array:
        """The number of trials of the binomial distribution with the same mean and variance."""
        mean, variance = self.expected / self.scale, self.variance / self.scale**2
        with np.errstate(divide="ignore", invalid="ignore"):
            n = mean / np.maximum(1.0 - variance / mean, 1e-9)
        return np.where(mean > 0.0, np.maximum(np.rint(n), np.ceil(mean)), 1.0)


# -- the view --------------------------------------------------------------------------------------


def headline_view(p: Predictions, question: Question) -> tuple[Predictions, str]:
    """The one binary view that the overall test, the sentences and the figures use, and its lens."""
    views, lens = _one_view(p, question)
    return views.views[0], lens


def _one_view(p: Predictions, question: Question) -> tuple[Views, str]:
    """The view of the question's lens if that is a single binary view, else the top label."""
    usual = "binary" if p.k == 2 else "top-label"
    lens = as_lens(usual) if question.lens == "auto" else as_lens(question.lens, question.r)
    views = p.through(lens)
    if views.several or not views.views[0].binary:
        lens = as_lens("top-label")
        views = p.through(lens)
    return views, lens.name


def look_at(data: Data, question: Question) -> Look:
    """The rows of the overall test for these data: the binary view with weights and units."""
    importance = question.weight_type == "importance"
    sample = sample_of(data, question.weight_type)
    own = sample.own_view(importance)
    if own is not None:
        view, image = own
        v = view.weight**2 if importance else view.weight
        return Look(view, str(data.own_view), view.c, view.weight, v, image, None, None, importance)
    p = sample.p
    views, lens = _one_view(p, question)
    # two rows of a state with different labels share one confidence, as in cumulative metrics
    view = views.read_by(catalogue["ecce_mad"], {}).views[0]
    v = view.variance_weight(question.weight_type, "the decision")
    unit = sample.unit
    if lens == "pooled":  # the classes of one row form a unit
        case = np.repeat(np.arange(p.n), p.k)
        unit = case if unit is None else unit[case]
    elif unit is None and (view.fractional or p.y.ndim == 2):
        unit = np.arange(
            view.n
        )  # labels that are shares, or several per row, cannot be redrawn: the signs of residuals are flipped
    classes = _classes(p, view, importance) if lens == "top-label" and p.y.ndim == 1 and not p.fractional else None
    return Look(view, lens, view.c, view.weight, v, unit, p if classes else None, classes, importance)


def _classes(p: Predictions, view: Predictions, importance: bool) -> Classes | None:
    """The observed and expected number of rows of each class."""
    if p.n_predictions != p.n or abs(view.total - p.total) > 1e-9 * p.total:  # a state stores counts for each class
        views = p.through(as_lens("class-wise")).views
        if len(views) != p.k or any(abs(one.total - view.total) > 1e-9 * view.total for one in views):
            return None
        sums = [(one.sum(one.y), one.sum(one.c), one.sum(one.c * (1.0 - one.c))) for one in views]
        occurred, expected, variance = (np.array(column, dtype=np.float64) for column in zip(*sums, strict=True))
        return Classes(p.classes, occurred, expected, variance, np.ones(p.k))
    w = p.weight
    occurred, expected = p.class_share * p.total, w @ p.p
    squares = expected - np.einsum("n,nk,nk->k", w, p.p, p.p)
    if not importance:
        return Classes(p.classes, occurred, expected, squares, np.ones(p.k))
    variance = w**2 @ p.p - np.einsum("n,nk,nk->k", w**2, p.p, p.p)
    scale = np.where(squares > 0.0, variance / np.where(squares > 0.0, squares, 1.0), 1.0)
    return Classes(p.classes, occurred, expected, variance, scale)

"""Dependent rows (of one patient, prompt or period): the null distribution flips the residuals of whole units.

Labels cannot be redrawn one by one if the outcomes of a unit depend on each other. But if the predictions are
calibrated, a norm of averaged residuals has nearly the same distribution when the signs of whole units are drawn at
random, which preserves the dependence inside a unit. The scale of the flipped sums, and their tails with few units, are
given in ``draw/unit_law.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.inference.draw.null import ALTERNATIVES, MonteCarloResult, summarized
from calibrary.inference.draw.resampling import (
    Replicated,
    check_resamples,
    replicate,
)
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.unit_law import laws_of, unit_signs, widest
from calibrary.inference.methods.studentized import why_not as studentized_refuses
from calibrary.inference.methods.triangle import Triangle, triangle_result
from calibrary.inference.result import IntervalResult
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.measure import combined, each_view, views_of
from calibrary.numerics.draw import generator


def flips(statistic: Statistic, n_resamples: int, rng: Any) -> Replicated:
    """The metric with random signs for the residuals of whole units, scaled as in ``draw/unit_law.py``."""
    sample, why = statistic.sample, why_not_flipped(statistic)
    if why:
        known = ", ".join(e.id for e in ENTRIES.values() if e.residual_only and e.familiar)
        raise RefusedError(f"{why}; use one of {known}")
    laws = laws_of(statistic)
    law = widest(laws)
    law.say_few()
    value = _with_residuals(statistic, [one.stretch for one in laws])
    return replicate(unit_signs(sample, law), value, len(statistic.observed), n_resamples, generator(rng, "signs"), 1)


def why_not_flipped(statistic: Statistic) -> str:
    """The reason why the metric has no test with units; empty if it is a function of residuals."""
    if statistic.entry is not None and statistic.entry.residual_only:
        return ""
    return (
        f"{statistic.name} has no test with units: the test flips the signs of a unit's residuals, and this metric is "
        "not a function of residuals"
    )


def _with_residuals(statistic: Statistic, stretch: list[float] | None = None) -> Callable[[Array], Array]:
    """The metric's values if each row's residual is multiplied by a factor, and by its view's ``stretch``."""
    entry, question, p = statistic.entry, statistic.question, statistic.sample.p
    assert entry is not None
    views = views_of(entry, p, question)
    if any(view.n != p.n or not view.binary for view in views.views):
        raise RefusedError(
            f"{entry.id} through this lens has no residual for each row: with units use lens='top-label'"
        )
    sorted_views = [_ascending(view) for view in views.views]
    form = entry.replicate
    paths = [None if form is None else form.prepare(view, **question.options) for view, _ in sorted_views]

    each = stretch or [1.0] * len(sorted_views)

    def value(signs: Array) -> Array:
        labels = [_flipped(view, s * signs[order]) for s, (view, order) in zip(each, sorted_views, strict=True)]
        if all(path is not None for path in paths):
            values: list[Any] = [path(None, y) for path, y in zip(paths, labels, strict=True) if path is not None]
            return statistic.flat(combined(entry, values, views, question))
        new = tuple(_labeled(view, y) for (view, _), y in zip(sorted_views, labels, strict=True))
        there = Views(new, views.keys, views.prevalence, views.several, views.n_classes, views.skips_undefined)
        return statistic.flat(combined(entry, each_view(entry.formula, there, question), there, question))

    return value


def _ascending(view: Predictions) -> tuple[Predictions, Any]:
    """The view sorted by confidence, with an order that does not depend on the labels."""
    order = np.argsort(view.c, kind="stable")
    return _labeled(view.subset(order, view.y[order], view.c[order], origin=view.origin), view.y[order]), order


def _flipped(view: Predictions, signs: Array) -> Array:
    """Labels (other than 0 and 1) whose residuals are multiplied by these factors."""
    result: Array = view.c + signs * view.residual
    return result


def _labeled(view: Predictions, y: Any) -> Predictions:
    child = Predictions(y, view.c, view.w, rows=view.rows, n_input=view.n_input, origin=view.origin)
    child.ascending, child.seen_through = True, view.seen_through
    return child


Units = Triangle  # the name in version 0.2, which pickles and imports may use


def units_result(
    statistic: Statistic, null: Replicated, drawn: Replicated, confidence_level: float, clip: bool, note: str
) -> IntervalResult:
    """The interval from flipped residuals and resampled units."""
    law = widest(laws_of(statistic))
    return triangle_result(
        statistic, statistic.observed, null, drawn, confidence_level, clip, path="units", note=note, law=law
    )


_FLIPPED = "the residuals of whole units change sign at random, and units are resampled"
JACKKNIFE = "one unit at a time is left out (jackknife)"


def unit_way(statistic: Statistic) -> tuple[str, str]:
    """The method that "auto" selects for a metric with units, and why."""
    why = "whole units are resampled"
    if not statistic.one_sided:
        return ("studentized", JACKKNIFE) if not studentized_refuses(statistic) else ("basic", why)
    if statistic.entry is not None and statistic.entry.residual_only:
        return "triangle", _FLIPPED
    why += "; the metric is not a function of residuals, so the interval may miss a true value near perfect"
    return "basic", why


def unit_test(
    statistic: Statistic, n_resamples: int = 999, rng: Any = None, alternative: str | None = None
) -> MonteCarloResult:
    """Test of calibration with units, by flipping the signs of the residuals of whole units."""
    check_resamples(n_resamples)
    tail = statistic.tail if alternative is None else alternative
    one_of("alternative", tail, ALTERNATIVES)
    drawn = flips(statistic, n_resamples, rng)
    drawn.say_failures()
    return summarized(statistic.observed, drawn, tail, "flips")

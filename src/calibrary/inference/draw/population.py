"""The true value of a metric if the true probabilities are known: labels are replaced by their probabilities.

Every row is written once for each possible label, weighted by the probability of that label: q and 1 - q for two
classes. Weights are whole numbers in the millions, so that a metric that subtracts the noise of single labels (a
debiased square, a mean over pairs of distinct rows) subtracts almost nothing, and the result is its target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from calibrary.base.errors import collected_warnings
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.inference.draw.statistic import Statistic
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.measure import combined, each_view, measure, views_of
from calibrary.question import Question

#: The total weight of a row; weights are whole numbers.
_COPIES = 1e6
#: The largest number of entries (rows times labels times classes) of the table.
_MOST_NUMBERS = 30_000_000
#: Lenses whose views have every row, independent of the labels, with one outcome each.
_PAIRS = ("binary", "top-label", "class-wise", "rth", "within-top-r", "cumulative")


class NoPopulationError(ValueError):
    """The true value of the metric cannot be computed from known true probabilities."""


def population(statistic: Statistic, truth: Array) -> Array:
    """The true values of the metric if labels had the probabilities ``truth``, given the predictions."""
    value: Callable[[Array], Any] = statistic.remember("population", lambda: _prepared(statistic))
    with collected_warnings(), np.errstate(all="ignore"):
        return statistic.flat(value(truth))


def _prepared(statistic: Statistic) -> Callable[[Array], Any]:
    """The metric as a function of true probabilities: everything else is computed once."""
    entry = statistic.entry
    if entry is not None and (entry.weights == "none" or not entry.of_labels):
        raise NoPopulationError(f"{entry.id} takes no weights, so its true value cannot be computed")
    if entry is None and statistic.listed:
        raise NoPopulationError(f"{statistic.name} takes no sample_weight, so its true value cannot be computed")
    question, share = _scaled_up(statistic), _share(statistic)
    if entry is not None and (entry.combine is not None or question.average is not None):
        with collected_warnings(), np.errstate(all="ignore"):
            views = views_of(entry, statistic.sample.p, question)
            lens = entry.lens_for(statistic.sample.p, question)
        if lens.name in _PAIRS and all(view.binary and view.n == len(share) for view in views.views):
            return _of_pairs(entry, statistic.sample.p, question, views, share)
    return lambda truth: _of_all(statistic, truth, question, share)


def _of_pairs(entry: Entry, p: Predictions, question: Question, views: Views, share: Array) -> Callable[[Array], Any]:
    """The metric on each view, in which every row has both outcomes."""
    plain = p.binary and p.probability.ndim == 1 and len(views.views) == 1 and views.views[0] is p

    def outcomes() -> Iterator[list[Array]]:
        """For each label that all rows might have: the outcomes of the rows in every view."""
        for k in range(p.k):
            yield [view.y for view in views_of(entry, p.relabeled(np.full(p.n, k, dtype=np.intp)), question).views]

    few = not plain and p.n * p.k * len(views.views) <= _MOST_NUMBERS
    known = [[y.astype(bool) for y in each] for each in outcomes()] if few else []

    def value(truth: Array) -> Any:
        if plain:
            chances = [truth]
        else:
            table = np.column_stack([1.0 - truth, truth]) if truth.ndim == 1 else truth
            chances = [np.zeros(p.n) for _ in views.views]
            for k, each in enumerate(known or outcomes()):
                for chance, y in zip(chances, each, strict=True):
                    chance += table[:, k] * y
        soft = tuple(_both(view, np.clip(q, 0.0, 1.0), share) for view, q in zip(views.views, chances, strict=True))
        for view in soft:
            view.seen_through = views.views[0].seen_through
        prevalence = views.prevalence
        if len(prevalence) == len(chances):
            prevalence = np.array([np.average(q, weights=share) for q in chances])
        there = Views(soft, views.keys, prevalence, views.several, views.n_classes, views.skips_undefined)
        return combined(entry, each_view(entry.formula, there, question), there, question)

    return value


def _of_all(statistic: Statistic, truth: Array, question: Question, share: Array) -> Any:
    """Compute the metric on the data in which every row has every label."""
    p = statistic.sample.p
    table = np.column_stack([1.0 - truth, truth]) if truth.ndim == 1 else truth
    if p.n * p.k * (1 if p.binary else p.k) > _MOST_NUMBERS:
        raise NoPopulationError(
            f"a table of {p.n:,} rows with each of {p.k} labels is too large to compute the true value"
        )
    row = np.repeat(np.arange(p.n), p.k)
    weight = _whole(table.ravel() * np.repeat(share, p.k))
    kept = np.flatnonzero(weight > 0.0)
    row, y = row[kept], np.tile(np.arange(p.k), p.n)[kept]
    every = p.subset(row, y, p.probability[row], classes=p.class_names, origin=p.origin)
    every.w = weight[kept]
    if statistic.entry is None:
        return statistic.of(every)
    return measure(statistic.entry, every, question)


def _share(statistic: Statistic) -> Array:
    """The relative weight of each row, with mean 1."""
    p = statistic.sample.p
    return p.weight * (p.n / p.total)


def _both(view: Predictions, q: Array, share: Array) -> Predictions:
    """Every row of a view with both outcomes, weighted by their probabilities."""
    weight = _whole(np.concatenate([(1.0 - q) * share, q * share]))
    kept = np.flatnonzero(weight > 0.0)
    row, y = kept % view.n, (kept >= view.n).astype(np.intp)
    both = view.subset(row, y, view.probability[row], classes=view.class_names, origin=view.origin)
    both.w = weight[kept]
    return both


def _whole(weight: Array) -> Array:
    return np.rint(_COPIES * weight)


def _scaled_up(statistic: Statistic) -> Question:
    """The question, changed to frequency weights."""
    question = statistic.question
    if statistic.entry is not None and "weight_type" in statistic.entry.options:
        question = replace(question, options={**question.options, "weight_type": "frequency"})
    return question

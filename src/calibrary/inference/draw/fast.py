"""Compute a metric on replicates without constructing each replicate's predictions.

A replicate differs from the sample only in the weights or the labels of its rows. A *path* computes what does not
change (sorting, grouping, row losses) once, and then returns the value for new weights or labels of the same rows. A
metric declares its path as ``replicate=``; means of row losses have one here. This file applies the lens and averages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Block, Scheme
from calibrary.data.views import Views
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.forms import InBlocks, ReplicateForm  # noqa: F401 - InBlocks: where 0.2 had it
from calibrary.metrics.machinery.measure import combined, measure, views_of
from calibrary.question import Question

#: A function of a block of replicates, which returns one row of values for each.
Path = Callable[[Block], Array]


#: Up to this many classes, row losses are tabulated for every possible label.
_MOST_LABELS = 12


def fast(entry: Entry, question: Question, scheme: Scheme, observed: Array) -> Path | None:
    """A fast function with the same values as computing the metric on each replicate, or None.

    ``observed`` is the value on the sample.
    """
    if entry.replicate is not None:
        # the original order is tried first; a path that needs ascending order returns None and gets sorted rows
        return _prepared(entry, question, scheme, scheme.rows, "row_weights", "row_labels") or _prepared(
            entry, question, scheme, scheme.base, "weights", "labels"
        )
    if entry.means_rows and not {"reduction", "skill"} & set(question.options):
        return _mean_of_rows(entry, question, scheme, observed)
    return None


# -- means of row losses: a dot product -------------------------------------------------------------


def _mean_of_rows(entry: Entry, question: Question, scheme: Scheme, observed: Array) -> Path | None:
    rows = scheme.rows
    views = views_of(entry, rows, question)
    plain = isinstance(question.average, str) and question.average in ("auto", "uniform", "macro")
    if views.several and not (plain and all(view.n == rows.n for view in views.views)):
        return None  # the average over views is not a mean over rows, or its weights change with the replicate
    losses = _losses(entry, question, rows)
    # consistency resampling uses other rows: every row with every label
    value = observed if scheme.unsorted is not None else measure(entry, rows, question)
    if losses is None or (not scheme.relabels and not np.allclose(rows.mean(losses), value, rtol=1e-9)):
        return None  # some losses are infinite, or the score is not a mean over rows
    if not scheme.relabels:
        return _weighted_mean(losses, rows)
    if rows.k > _MOST_LABELS:
        return None
    table = [_losses(entry, question, rows.relabeled(np.full(rows.n, k))) for k in range(rows.k)]
    if any(each is None for each in table):
        return None
    return _mean_by_label(np.array(table), rows)


def _losses(entry: Entry, question: Question, p: Predictions) -> Array | None:
    """The loss of every row, or None if the metric is not a mean of row losses."""
    with np.errstate(all="ignore"):
        each = np.asarray(measure(entry, p, question.with_options(reduction="none")), dtype=np.float64)
    return each if each.shape == (p.n,) and np.isfinite(each).all() else None


def _weighted_mean(losses: Array, rows: Predictions) -> Path:
    def means(block: Block) -> Array:
        if rows.w is None and all(one.drawn is not None for one in block.replicates):
            # indexing with the drawn rows is faster than counting them
            return np.array([[losses.take(one.drawn).mean()] for one in block.replicates])
        w = block.row_weights
        return np.asarray(np.einsum("rn,n->r", w, losses) / w.sum(axis=1))[:, None]

    return means


def _mean_by_label(table: Array, rows: Predictions) -> Path:
    share, every = rows.weight / rows.total, np.arange(rows.n)

    def means(block: Block) -> Array:
        y = block.row_labels
        each = np.where(y == 1, table[1], table[0]) if rows.k == 2 else table[y, every]
        return np.asarray(np.einsum("rn,n->r", each, share))[:, None]

    return means


# -- declared forms -------------------------------------------------------------------------------


def _prepared(
    entry: Entry, question: Question, scheme: Scheme, rows: Predictions, weights: str, labels: str
) -> Path | None:
    """The metric's declared path, prepared for these rows."""
    form = entry.replicate
    assert form is not None
    if form.whole:
        return _of_whole(form, question, scheme.relabels, rows, attrgetter(labels), attrgetter(weights))
    lens, views = entry.lens_for(rows, question), views_of(entry, rows, question)
    if any(view.n != rows.n for view in views.views):
        return None
    if form.combine is not None and views.several:
        if question.average is None:
            return None  # the form's values are for its own ``combine`` only
        entry = replace(entry, own=replace(entry.code, combine=form.combine))
    if not scheme.relabels:
        return _with_weights(entry, question, views, attrgetter(weights))
    as_drawn = rows.binary if lens.name == "binary" else lens.name == "full" and len(views.views) == 1
    if lens.name == "class-wise" and not rows.binary:
        return _class_by_class(entry, question, views, attrgetter(labels))
    if not (as_drawn or lens.name == "top-label"):
        return None
    values, drawn = form.prepare(views.views[0], **question.options), attrgetter(labels)
    if values is None:
        return None
    seen: Callable[[Any], Any] = (lambda y: y) if as_drawn else functools.partial(np.equal, rows.top)
    return lambda block: _as_rows(values.many(seen(drawn(block))))


def _of_whole(
    form: ReplicateForm, question: Question, relabels: bool, rows: Predictions, labels: Any, weights: Any
) -> Path | None:
    """The path of a metric that reads the whole predictions."""
    values = None if question.average is None else form.prepare(rows, **question.options)
    if values is None or values.weighted is None:
        return None
    many, weighted = values.many, values.weighted
    return lambda block: _as_rows(many(labels(block)) if relabels else weighted(weights(block)))


def _as_rows(numbers: Array) -> Array:
    """An array with one row of values for each replicate."""
    return numbers[:, None] if numbers.ndim == 1 else numbers


def _each_combined(entry: Entry, columns: list[Array], views: Views, question: Question) -> Array:
    """The values of all views of every replicate, combined: one row for each replicate."""
    if not views.several:
        return _as_rows(columns[0])
    return np.stack([np.atleast_1d(combined(entry, list(row), views, question)) for row in np.transpose(columns)])


def _class_by_class(entry: Entry, question: Question, views: Views, labels: Callable[[Any], Any]) -> Path | None:
    form = entry.replicate
    assert form is not None
    if form.labels_only or _by_prevalence(question) or entry.fields:
        return None  # classes share one kernel, weights depend on the labels, or each class has its own result
    each = [form.prepare(view, **question.options) for view in views.views]
    classes = [(k, values) for k, values in zip(views.keys, each, strict=True) if values is not None]
    if len(classes) < len(each):
        return None

    def path(block: Block) -> Array:
        y = labels(block)
        return _each_combined(entry, [values.many(y == k) for k, values in classes], views, question)

    return path


def _by_prevalence(question: Question) -> bool:
    return isinstance(question.average, str) and question.average in ("prevalence", "weighted")


def _with_weights(entry: Entry, question: Question, views: Views, weights: Callable[[Any], Array]) -> Path | None:
    form = entry.replicate
    assert form is not None
    if form.labels_only or (views.several and (entry.fields or _by_prevalence(question))):
        return None  # weights by prevalence differ between replicates
    each = [form.prepare(view, **question.options) for view in views.views]
    known = [values.weighted for values in each if values is not None and values.weighted is not None]
    if len(known) < len(each):
        return None

    def path(block: Block) -> Array:
        w = weights(block)
        return _each_combined(entry, [weighted(w) for weighted in known], views, question)

    return path

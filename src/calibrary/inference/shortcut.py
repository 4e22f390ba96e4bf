"""Values on replicates without building their predictions, where a metric's structure allows it.

A replicate differs from the sample only in the weights or the labels of its rows. A mean of row losses is then
one dot product, and a metric that says how it depends on weights and labels (``Entry.resampled``) prepares
sorting and grouping once. Every shortcut is tried on one made-up replicate first, and used only if it gives
what the metric itself gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from calibrary._errors import CalibrationWarning
from calibrary.data.lens import Views
from calibrary.data.predictions import Array, Predictions
from calibrary.inference.resampling import Replicate, Scheme
from calibrary.lookup import Entry

Way = Callable[[Replicate], Array]

#: Row losses are tabulated for every possible label up to this many classes.
_MOST_LABELS = 12


def shortcut(entry: Entry, options: dict[str, Any], scheme: Scheme, plain: Way) -> Way | None:
    """A faster function with the same values as ``plain``, or None."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", CalibrationWarning)
        for find in (_prepared, _row_losses):
            try:
                way = find(entry, options, scheme)
                if way is not None and _agrees(way, plain, scheme):
                    return way
            except (ValueError, ArithmeticError):
                continue
    return None


def _agrees(way: Way, plain: Way, scheme: Scheme) -> bool:
    row = np.arange(scheme.base.n)
    if scheme.relabels:
        tried = Replicate(scheme.base, order=scheme.order, y=(row * 7 // 3) % scheme.base.k)
    else:
        tried = Replicate(scheme.base, order=scheme.order, w=lambda: scheme.rows.weight * ((row * 5 + 1) % 3))
    return bool(np.allclose(way(tried), plain(tried), rtol=1e-9, atol=1e-12))


def _row_losses(entry: Entry, options: dict[str, Any], scheme: Scheme) -> Way | None:
    """Means of row losses: the losses once, then a dot product for each replicate."""
    if "reduction" not in entry.options or "reduction" in options:
        return None
    rows = scheme.rows

    def losses(p: Predictions) -> Array:
        each = np.asarray(entry.measure(p, **options, reduction="none"), dtype=np.float64)
        if each.shape != (p.n,) or not np.isfinite(each).all():
            raise ValueError("no finite loss for each row")
        return each

    if not scheme.relabels:
        return _mean_of_losses(losses(rows), rows)
    if rows.k > _MOST_LABELS:
        return None
    table = np.array([losses(rows.relabelled(np.full(rows.n, k))) for k in range(rows.k)])
    if rows.k == 2:
        return lambda replicate: np.array([rows.mean(np.where(replicate.row_labels == 1, table[1], table[0]))])
    every = np.arange(rows.n)
    return lambda replicate: np.array([rows.mean(table[replicate.row_labels, every])])


def _mean_of_losses(losses: Array, rows: Predictions) -> Way:
    def mean(replicate: Replicate) -> Array:
        if replicate.drawn is not None and rows.w is None:
            # taking the drawn rows is cheaper than counting them
            return np.array([losses.take(replicate.drawn).mean()])
        w: Any = replicate.row_weights
        return np.array([np.einsum("n,n", w, losses) / w.sum()])

    return mean


def _prepared(entry: Entry, options: dict[str, Any], scheme: Scheme) -> Way | None:
    """Metrics that know how they depend on the weights and labels of fixed rows.

    They are offered the rows as they came; those that need them in ascending order answer None and get them so.
    """
    if entry.resampled is None:
        return None
    return _prepared_on(scheme.rows, "row_weights", "row_labels", entry, options, scheme) or _prepared_on(
        scheme.base, "weights", "labels", entry, options, scheme
    )


def _prepared_on(
    rows: Predictions, weights: str, labels: str, entry: Entry, options: dict[str, Any], scheme: Scheme
) -> Way | None:
    assert entry.resampled is not None
    own = {name: value for name, value in options.items() if name not in ("lens", "average", "r")}
    lens = entry.lens_for(rows, options.get("lens", "auto"), options.get("r"))
    views = rows.through(lens)
    if any(view.n != rows.n for view in views.views):
        return None
    if not scheme.relabels:
        return _prepared_views(entry, options, views, own, attrgetter(weights))
    if lens.name not in ("binary", "top-label") or (lens.name == "binary" and not rows.binary):
        return None
    value, drawn = entry.resampled(views.views[0], **own), attrgetter(labels)
    if value is None:
        return None
    if lens.name == "binary":
        return lambda replicate: np.array([value(None, drawn(replicate))])
    top = rows.top
    return lambda replicate: np.array([value(None, np.equal(drawn(replicate), top))])


def _prepared_views(
    entry: Entry,
    options: dict[str, Any],
    views: Views,
    own: dict[str, Any],
    weights: Callable[[Replicate], Array],
) -> Way | None:
    assert entry.resampled is not None
    each = [entry.resampled(view, **own) for view in views.views]
    if any(value is None for value in each):
        return None
    if not views.several:
        return lambda replicate: np.array([each[0](weights(replicate), None)])
    average = options.get("average", "uniform")
    combine = entry.combine
    if isinstance(average, str) and average not in ("uniform", "macro", "max"):
        return None  # weights by prevalence change with the replicate

    def value(replicate: Replicate) -> Array:
        values = [value(weights(replicate), None) for value in each]
        if combine is not None and average is not None:
            return np.array([combine(values, views, average, own)])
        return np.atleast_1d(views.average(np.array(values), average))

    return value

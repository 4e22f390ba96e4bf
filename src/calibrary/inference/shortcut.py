"""Values on replicates without building their predictions, where a metric's structure allows it.

A replicate differs from the sample only in the weights or the labels of its rows. A mean of row losses is then
one dot product, and a metric that says how it depends on weights and labels (``Entry.resampled``) prepares
sorting and grouping once. Every shortcut is tried on one made-up replicate first, and used only if it gives
what the metric itself gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.catalogue import Entry
from calibrary.errors import CalibrationWarning
from calibrary.inference.resampling import Replicate, Scheme
from calibrary.lens import Views
from calibrary.predictions import Array, Predictions

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
        tried = Replicate(scheme.base, y=(row * 7 // 3) % scheme.base.k)
    else:
        tried = Replicate(scheme.base, w=lambda: scheme.base.weight * ((row * 5 + 1) % 3))
    return bool(np.allclose(way(tried), plain(tried), rtol=1e-9, atol=1e-12))


def _row_losses(entry: Entry, options: dict[str, Any], scheme: Scheme) -> Way | None:
    """Means of row losses: the losses once, then a dot product for each replicate."""
    if "reduction" not in entry.options or "reduction" in options:
        return None
    base = scheme.base

    def losses(p: Predictions) -> Array:
        rows = np.asarray(entry.measure(p, **options, reduction="none"), dtype=np.float64)
        if rows.shape != (p.n,) or not np.isfinite(rows).all():
            raise ValueError("no finite loss for each row")
        return rows

    if not scheme.relabels:
        return _mean_of_losses(losses(base), scheme)
    if base.k > _MOST_LABELS:
        return None
    table = np.array([losses(base.relabelled(np.full(base.n, k))) for k in range(base.k)])
    if base.k == 2:
        return lambda replicate: np.array([base.mean(np.where(replicate.labels, table[1], table[0]))])
    row = np.arange(base.n)
    return lambda replicate: np.array([base.mean(table[replicate.labels, row])])


def _mean_of_losses(losses: Array, scheme: Scheme) -> Way:
    def counted(replicate: Replicate) -> Array:
        return np.array([np.einsum("n,n", replicate.weights, losses) / replicate.weights.sum()])

    if scheme.order is None or scheme.base.w is not None:
        return counted
    by_row = np.empty_like(losses)
    by_row[scheme.order] = losses

    def drawn(replicate: Replicate) -> Array:
        # taking the drawn rows is cheaper than counting them
        return counted(replicate) if replicate.drawn is None else np.array([by_row.take(replicate.drawn).mean()])

    return drawn


def _prepared(entry: Entry, options: dict[str, Any], scheme: Scheme) -> Way | None:
    """Metrics that know how they depend on the weights and labels of fixed rows."""
    if entry.resampled is None:
        return None
    own = {name: value for name, value in options.items() if name not in ("lens", "average", "r")}
    base = scheme.base
    lens = entry.lens_for(base, options.get("lens", "auto"), options.get("r"))
    views = base.through(lens)
    if any(view.n != base.n for view in views.views):
        return None
    if scheme.relabels:
        if lens.name not in ("binary", "top-label") or (lens.name == "binary" and not base.binary):
            return None
        value = entry.resampled(views.views[0], **own)
        if value is None:
            return None
        if lens.name == "binary":
            return lambda replicate: np.array([value(None, replicate.labels)])
        top = base.top
        return lambda replicate: np.array([value(None, np.equal(replicate.labels, top))])
    return _prepared_views(entry, options, views, own)


def _prepared_views(entry: Entry, options: dict[str, Any], views: Views, own: dict[str, Any]) -> Way | None:
    assert entry.resampled is not None
    each = [entry.resampled(view, **own) for view in views.views]
    if any(value is None for value in each):
        return None
    if not views.several:
        return lambda replicate: np.array([each[0](replicate.weights, None)])
    average = options.get("average", "uniform")
    combine = entry.combine
    if isinstance(average, str) and average not in ("uniform", "macro", "max"):
        return None  # weights by prevalence change with the replicate

    def value(replicate: Replicate) -> Array:
        values = [value(replicate.weights, None) for value in each]
        if combine is not None and average is not None:
            return np.array([combine(values, views, average, own)])
        return np.atleast_1d(views.average(np.array(values), average))

    return value

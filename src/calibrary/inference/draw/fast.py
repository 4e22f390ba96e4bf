"""Every fast resampling path: values on replicates without building their predictions.

A replicate differs from the sample only in the weights or the labels of its rows. A path prepares what does not change
(sorting, grouping, row losses) once, and then gives the value for new weights or labels of the same rows. Paths are
registered here by the id of their metric; the tests hold each of them to the metric itself, over random weights and
labels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.sample import Replicate, Scheme
from calibrary.data.views import Views
from calibrary.grouping import Edges, EqualWidth, Grouping, as_grouping, norm_order, power_mean
from calibrary.kernels import PairShape, pair_values
from calibrary.metrics.cumulative.averaged_two_bin import area_of, stretches
from calibrary.metrics.kernel.pairs import options_of_pairs, pair_kernel
from calibrary.metrics.kernel.residual import smoothed_size
from calibrary.metrics.machinery.declare import Entry
from calibrary.metrics.machinery.measure import combined, measure, views_of
from calibrary.numerics.sums.diffusion import Diffusion
from calibrary.question import Question

#: ``value(w, y)``: the metric with other weights (zeros allowed) or labels of the rows; None is unchanged.
Value = Callable[[Array | None, Any], float]
#: ``prepare(view, **options)`` gives a Value, or None where these options or rows have no fast path.
Prepare = Callable[..., Value | None]
Path = Callable[[Replicate], Array]


@dataclass(frozen=True)
class InBlocks:
    """A Value, or a Path, that also reads new labels of many replicates at once: ``many`` of (replicates, rows)."""

    one: Callable[..., Any]
    many: Callable[[Any], Array]

    def __call__(self, *arguments: Any) -> Any:
        return self.one(*arguments)


#: Metrics whose path is for new labels alone: the width of their kernel changes with the rows.
_LABELS_ONLY = ("skce_b", "skce_uq")
#: Up to this many rows a kernel between all pairs is held in memory.
_FEW_PAIRED = 4000
#: How exactly the width of smECE is looked for on a replicate.
_ENOUGH = 1e-10
#: Row losses are tabulated for every possible label up to this many classes.
_MOST_LABELS = 12

PATHS: dict[str, Prepare] = {}


def fast_path(*ids: str, **settings: Any) -> Callable[[Callable[..., Prepare]], Callable[..., Prepare]]:
    """Register what ``make(**settings)`` gives as the fast path of these metrics."""

    def register(make: Callable[..., Prepare]) -> Callable[..., Prepare]:
        for id in ids:
            PATHS[id] = make(**settings)
        return make

    return register


def fast(entry: Entry, question: Question, scheme: Scheme, observed: Array) -> Path | None:
    """A faster function with the same values as measuring each replicate, or None.

    ``observed`` is the value on the sample.
    """
    if entry.id in PATHS:
        # rows as they came first; paths that need them in ascending order answer None and get them so
        return _prepared(entry, question, scheme, scheme.rows, "row_weights", "row_labels") or _prepared(
            entry, question, scheme, scheme.base, "weights", "labels"
        )
    if "reduction" in entry.options and not {"reduction", "skill"} & set(question.options):
        return _mean_of_rows(entry, question, scheme, observed)
    return None


# -- means of row losses: a dot product -------------------------------------------------------------


def _mean_of_rows(entry: Entry, question: Question, scheme: Scheme, observed: Array) -> Path | None:
    rows = scheme.rows
    views = views_of(entry, rows, question)
    plain = isinstance(question.average, str) and question.average in ("auto", "uniform", "macro")
    if views.several and not (plain and all(view.n == rows.n for view in views.views)):
        return None  # the average over views is no mean over rows, or its weights change with the replicate
    losses = _losses(entry, question, rows)
    # consistency resampling has rows of its own: every row with every label
    value = observed if scheme.unsorted is not None else measure(entry, rows, question)
    if losses is None or (not scheme.relabels and not np.allclose(rows.mean(losses), value, rtol=1e-9)):
        return None  # infinite losses, or a score that is no mean of rows
    if not scheme.relabels:
        return _weighted_mean(losses, rows)
    if rows.k > _MOST_LABELS:
        return None
    table = [_losses(entry, question, rows.relabelled(np.full(rows.n, k))) for k in range(rows.k)]
    if any(each is None for each in table):
        return None
    return _mean_by_label(np.array(table), rows)


def _losses(entry: Entry, question: Question, p: Predictions) -> Array | None:
    """The loss of every row, or None where there is none for each."""
    with np.errstate(all="ignore"):
        each = np.asarray(measure(entry, p, question.with_options(reduction="none")), dtype=np.float64)
    return each if each.shape == (p.n,) and np.isfinite(each).all() else None


def _weighted_mean(losses: Array, rows: Predictions) -> Path:
    def mean(replicate: Replicate) -> Array:
        if replicate.drawn is not None and rows.w is None:
            # taking the drawn rows is cheaper than counting them
            return np.array([losses.take(replicate.drawn).mean()])
        w: Any = replicate.row_weights
        return np.array([np.einsum("n,n", w, losses) / w.sum()])

    return mean


def _mean_by_label(table: Array, rows: Predictions) -> Path:
    if rows.k == 2:
        return lambda replicate: np.array([rows.mean(np.where(replicate.row_labels == 1, table[1], table[0]))])
    every = np.arange(rows.n)
    return lambda replicate: np.array([rows.mean(table[replicate.row_labels, every])])


# -- registered paths -------------------------------------------------------------------------------


def _prepared(
    entry: Entry, question: Question, scheme: Scheme, rows: Predictions, weights: str, labels: str
) -> Path | None:
    """The registered path on these rows, whose new weights and labels a replicate has under these names."""
    lens, views = entry.lens_for(rows, question), views_of(entry, rows, question)
    if any(view.n != rows.n for view in views.views):
        return None
    if not scheme.relabels:
        return _with_weights(entry, question, views, attrgetter(weights))
    as_drawn = rows.binary if lens.name == "binary" else lens.name == "full" and len(views.views) == 1
    if lens.name == "class-wise" and not rows.binary:
        return _class_by_class(entry, question, views, attrgetter(labels), rows is scheme.rows)
    if not (as_drawn or lens.name == "top-label"):
        return None
    value, drawn = PATHS[entry.id](views.views[0], **question.options), attrgetter(labels)
    if value is None:
        return None
    seen: Callable[[Any], Any] = (lambda y: y) if as_drawn else functools.partial(np.equal, rows.top)

    def one(replicate: Replicate) -> Array:
        return np.array([value(None, seen(drawn(replicate)))])

    if isinstance(value, InBlocks) and rows is scheme.rows:
        many = value.many
        return InBlocks(one, lambda y: many(seen(y)))
    return one


def _class_by_class(
    entry: Entry, question: Question, views: Views, labels: Callable[[Replicate], Any], as_they_came: bool
) -> Path | None:
    if entry.id in _LABELS_ONLY or _by_prevalence(question):
        return None  # one kernel for all classes, or weights that change with the labels
    each = [PATHS[entry.id](view, **question.options) for view in views.views]
    if any(value is None for value in each):
        return None
    classes = list(zip(views.keys, each, strict=True))

    def together(values: list[Any]) -> Array:
        return np.atleast_1d(combined(entry, values, views, question))

    def one(replicate: Replicate) -> Array:
        y = labels(replicate)
        return together([value(None, y == k) for k, value in classes if value])

    def many(y: Any) -> Array:
        columns = [value.many(y == k) for k, value in classes if isinstance(value, InBlocks)]
        return np.array([together(list(row))[0] for row in np.transpose(columns)])

    one_number = question.average is not None
    return InBlocks(one, many) if as_they_came and one_number and isinstance(each[0], InBlocks) else one


def _by_prevalence(question: Question) -> bool:
    return isinstance(question.average, str) and question.average in ("prevalence", "weighted")


def _with_weights(entry: Entry, question: Question, views: Views, weights: Callable[[Replicate], Array]) -> Path | None:
    if entry.id in _LABELS_ONLY:
        return None
    each = [PATHS[entry.id](view, **question.options) for view in views.views]
    if any(value is None for value in each):
        return None
    if views.several and _by_prevalence(question):
        return None  # weights by prevalence change with the replicate

    def value(replicate: Replicate) -> Array:
        w = weights(replicate)
        return np.atleast_1d(combined(entry, [one(w, None) for one in each if one], views, question))

    return value


@fast_path("ece", usual=1)
@fast_path("mce", usual=np.inf)
def _gaps_in_fixed_bins(usual: float) -> Prepare:
    """Norms of the gaps, where bins do not depend on the data: rows are put in them once."""

    def prepare(
        view: Predictions,
        *,
        norm: float | str = usual,
        aggregate: str = "power",
        distance: str = "tv",
        binning: str | Grouping = "width",
        **options: Any,
    ) -> Value | None:
        grouping = as_grouping(binning, **options)
        if not view.binary or distance != "tv" or not isinstance(grouping, EqualWidth | Edges):
            return None
        p = norm_order(norm)
        total_in = functools.partial(np.bincount, grouping.groups(view).index)
        size_as_given = total_in(view.weight)

        def value(new_w: Array | None, new_y: Any) -> float:
            weight = view.weight if new_w is None else new_w
            gap = np.abs(total_in(weight * (view.residual if new_y is None else new_y - view.c)))
            if p == 1.0:
                return float(gap.sum() / (view.total if new_w is None else new_w.sum()))
            size = size_as_given if new_w is None else total_in(weight)
            used = size > 0.0
            return power_mean(gap[used] / size[used], size[used] / size.sum(), p)

        index, n_bins = grouping.groups(view).index, len(size_as_given)
        used = size_as_given > 0.0
        size, share = size_as_given[used], size_as_given[used] / size_as_given.sum()

        def many(new_y: Any) -> Array:
            cell = index + n_bins * np.arange(len(new_y))[:, None]
            step = view.weight * (new_y - view.c)
            gap = np.abs(np.bincount(cell.ravel(), step.ravel(), n_bins * len(new_y))).reshape(len(new_y), n_bins)
            if p == 1.0:
                return np.array(gap.sum(axis=1) / view.total)
            return np.array([power_mean(each / size, share, p) for each in gap[:, used]])

        return InBlocks(value, many)

    return prepare


@fast_path("ecce_mad", size=lambda high, low: np.maximum(high, -low))
@fast_path("ecce_r", size=lambda high, low: np.maximum(high, 0.0) - np.minimum(low, 0.0))
def _extremes_of_the_walk(size: Callable[[Any, Any], Any]) -> Prepare:
    """Kolmogorov-Smirnov and Kuiper: order and ties are found once."""

    def prepare(view: Predictions, *, ties: str = "aggregate", rng: Any = None) -> Value | None:
        if ties != "aggregate":
            return None
        order = None if view.ascending else view.order
        last = np.append(view.ties.start[1:], view.n) - 1
        tied = len(last) < view.n
        w, gap = view.w, view.residual

        def value(new_w: Array | None, new_y: Any) -> float:
            step = gap if new_y is None else new_y - view.c
            weight = w if new_w is None else new_w
            step = step if weight is None else step * weight
            walk = walked(step)
            total = view.total if new_w is None else new_w.sum()
            return float(size(walk.max(), walk.min())) / float(total)

        def walked(step: Array) -> Array:
            walk = np.cumsum(step if order is None else step[..., order], axis=-1)
            return walk[..., last] if tied else walk

        def many(new_y: Any) -> Array:
            walk = walked(new_y - view.c if w is None else (new_y - view.c) * w)
            return np.array(size(walk.max(axis=1), walk.min(axis=1)) / view.total)

        return InBlocks(value, many)

    return prepare


@fast_path("atb")
def _area_of_the_walk() -> Prepare:
    """Averaged two-bin error: order, ties and the stretches between scores are found once."""

    def prepare(view: Predictions, *, norm: float = 2, debias: bool = False, root: bool = False) -> Value | None:
        if debias:
            return None
        order, start, wide = view.order, view.ties.start, stretches(view.ties.c)

        def value(new_w: Array | None, new_y: Any) -> float:
            step = view.residual if new_y is None else new_y - view.c
            weight = view.w if new_w is None else new_w
            step = np.add.reduceat((step if weight is None else step * weight)[order], start)
            found = area_of(step, wide, view.total if new_w is None else float(new_w.sum()), norm)
            return found ** (1.0 / norm) if root else found

        def many(new_y: Any) -> Array:
            step = new_y - view.c if view.w is None else (new_y - view.c) * view.w
            step = np.add.reduceat(step[:, order], start, axis=1) if len(start) < view.n else step[:, order]
            below = np.zeros((len(step), len(wide)))
            np.cumsum(step, axis=1, out=below[:, 1:])
            below /= view.total
            above = below[:, -1:] - below
            found = np.asarray((np.abs(below) ** norm + np.abs(above) ** norm) @ wide)
            return found ** (1.0 / norm) if root else found

        return InBlocks(value, many)

    return prepare


@fast_path("smece")
def _smoothed_residuals() -> Prepare:
    """smECE: sorted rows are put on the grid once."""

    def prepare(
        view: Predictions, *, sigma: float | None = None, bandwidth: float | None = None, grid: int | None = None
    ) -> Value | None:
        if not view.ascending:
            return None
        w, gap, start = view.w, view.residual, view.ties.start
        flow = Diffusion(view.c, gap, ascending=True)

        def value(new_w: Array | None, new_y: Any) -> float:
            weight = w if new_w is None else new_w
            step = gap if new_y is None else new_y - view.c
            r = (step if weight is None else weight * step) / (view.total if new_w is None else new_w.sum())
            width = bandwidth if sigma is None else sigma
            unsmoothed = lambda: float(np.abs(np.add.reduceat(r, start)).sum())  # noqa: E731
            return smoothed_size(flow.carrying(r), width, grid, unsmoothed, _ENOUGH if grid is None else 1e-14)

        return value

    return prepare


@fast_path("skce_b", distinct=False)
@fast_path("skce_uq", distinct=True)
def _held_kernel(distinct: bool) -> Prepare:
    """Squared kernel errors of whole vectors: the kernel between all pairs is made once, and labels change."""

    def prepare(
        view: Predictions, *, kernel: PairShape = "laplace", matrix: Any = None, **options: Any
    ) -> Value | None:
        if view.k == 2 or view.n > _FEW_PAIRED or matrix is not None or options.get("weight_type") == "importance":
            return None  # two classes lie on a line, where a draw costs a pass anyway
        from scipy.spatial.distance import cdist

        compare = pair_kernel(view, kernel, **options_of_pairs(options))
        tv = compare.metric == "tv"
        distance = cdist(view.p, view.p, "cityblock" if tv else "euclidean") * (0.5 if tv else 1.0)
        similar, w, rows = pair_values(compare.name, distance, compare.width), view.weight, np.arange(view.n)

        def value(new_w: Array | None, new_y: Any) -> float:
            residual = -view.p
            residual[rows, np.asarray(new_y, dtype=np.intp)] += 1.0
            residual *= w[:, None]
            total = float(np.einsum("nk,nk->", similar @ residual, residual))
            if not distinct:
                return max(total, 0.0) / view.total**2
            own = float(np.sum(residual**2 / w[:, None]))
            return (total - own) / (view.total**2 - view.total)

        return value

    return prepare

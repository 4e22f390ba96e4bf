"""The statistic that is computed on every replicate: a metric with its options, or a user's function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, collected_warnings
from calibrary.base.moved import old_names
from calibrary.base.once import once
from calibrary.data import as_data
from calibrary.data.checks import Array, as_array
from calibrary.data.predictions import Predictions
from calibrary.data.sample import Sample, sample_of
from calibrary.data.stacked import Block, Replicate, Scheme
from calibrary.data.views import Views
from calibrary.inference.draw.resampling import (
    Path,
    Replicated,
    as_given,
    difference,
    keep_fault,
    means,
    one_by_one,
    or_nan,
    replicate,
    standard_errors,
)
from calibrary.inference.draw.waiting import WATCHED
from calibrary.inference.ranges import ANYWHERE, range_of
from calibrary.inference.result import IntervalResult
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import Entry, default_of
from calibrary.metrics.machinery.measure import combined, measure, numbers, views_of, with_bins
from calibrary.question import Question

__getattr__ = old_names(__name__)

#: The seed of metrics that use random numbers themselves, the same in every replicate.
_INNER_SEED = 0


@dataclass(frozen=True)
class Statistic:
    """One metric, prepared to be computed on a sample and its replicates.

    ``of`` is a function of data. ``listed`` says that the metric needs the rows of a replicate one by one instead of
    weighted; ``data_type`` is the type of data it takes, and ``link`` the definition of "calibrated" that it uses.
    """

    name: str
    of: Callable[[Any], Any]
    sample: Sample
    question: Question
    entry: Entry | None = None
    listed: bool = False
    data_type: str = "predictions"
    link: str = "threshold"
    given_perfect: float | None = None

    @once
    def value(self) -> Any:
        """The value on the sample in the metric's own form; computed once."""
        return self.of(self.sample.data)

    @once
    def named(self) -> dict[str, float]:
        """The values on the sample by name."""
        return numbers(self.value, self._fields)

    @property
    def observed(self) -> Array:
        """The values on the sample as an array."""
        return np.array(list(self.named.values()))

    def on(self, replicate: Replicate) -> Array:
        """The values on one replicate."""
        return self.flat(self.of(replicate.read(self.data_type, self.listed, self.link)))

    def flat(self, value: Any) -> Array:
        """A value of the metric as an array of numbers."""
        if type(value) is float:
            return np.array([value])
        return np.array(list(numbers(value, self._fields).values()))

    @property
    def _fields(self) -> tuple[tuple[str, float | None], ...]:
        return () if self.entry is None else self.entry.fields

    def remember(self, key: str, make: Callable[[], Any]) -> Any:
        """A quantity that depends on the rows and the settings alone; computed once."""
        if key not in self._memory:
            self._memory[key] = make()
        return self._memory[key]

    @once
    def _memory(self) -> dict[str, Any]:
        return {}

    def path(self, scheme: Scheme) -> tuple[Path, bool]:
        """The values on replicates of this scheme, and whether several together are faster than one by one.

        It is prepared once for the same rows.
        """
        rows = (scheme.relabels, scheme.base, scheme.unsorted)
        last = self._memory.get("path")
        if last is None or any(a is not b for a, b in zip(last[0], rows, strict=True)):
            last = self._memory["path"] = rows, self._path(scheme)
        return last[1]

    def _path(self, scheme: Scheme) -> tuple[Path, bool]:
        entry, found = self.entry, None
        if entry is not None and entry.of_labels and self.question.by is None:
            # where only labels change and no row has a weight, the rows are listed as they are
            as_they_are = scheme.relabels and scheme.rows.w is None and entry.order_free
            found = fast(entry, self.question, scheme, self.observed) if as_they_are or not self.listed else None
        return found or one_by_one(self.on), found is not None

    def when_redrawn(self) -> Statistic:
        """The statistic for replicates in which only labels change, so that more can be computed in advance."""
        if self.entry is None or self.entry.fixed is None:
            return self
        return self.remember("redrawn", self._of_redrawn)

    def _of_redrawn(self) -> Statistic:
        assert self.entry is not None
        question = _fixed(self.entry, replace(self.question, fixed={}), self.sample, redrawn=True)
        entry = self.entry
        same = replace(self, question=question, of=lambda data: measure(entry, data, question))
        same.__dict__["value"] = self.value  # the chosen options depend on the confidences only
        return same

    # -- properties on which intervals and p-values depend -----------------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """The possible range of the value with these options; unlimited for callables and metrics of several values."""
        return ANYWHERE if self.entry is None else range_of(self.entry, self.question, self.sample.data)

    @property
    def perfect_value(self) -> float | None:
        """The value of a calibrated model with these options; None if there is none, or for several values."""
        if self.entry is None:
            return self.given_perfect
        if self.entry.fields or self.entry.perfect is None:
            return None
        if self.entry.perfect == self.entry.range[0]:  # the end of the range depends on the options
            return self.range[0] if np.isfinite(self.range[0]) else self.entry.perfect
        return self.entry.perfect

    @property
    def perfect(self) -> float:
        """The value of a calibrated model; an error if the metric has none."""
        value = self.perfect_value
        if value is None:
            raise RefusedError(f"{self.name} has no perfect value")
        return value

    @property
    def one_sided(self) -> bool:
        """Whether the metric is an error that grows in one direction from its perfect value."""
        return self.perfect_value is not None and self.tail != "two-sided"

    @property
    def square(self) -> bool:
        """Whether the metric is a squared norm with these options."""
        if self.entry is None:
            return False
        options = self.question.options
        rooted = bool(options.get("root"))
        if self.entry.square == "option":
            return bool(options.get("squared")) or (options.get("norm", 1) in (2, "l2") and not rooted)
        return self.entry.square == "yes" and not rooted and options.get("norm", 2) in (2, "l2")

    @once
    def undrawable(self) -> str:
        """The reason why labels cannot be drawn from the predictions; empty if they can."""
        try:
            self.sample.p.check_redrawing()
        except RefusedError as error:
            return str(error)
        return ""

    @property
    def at_its_end(self) -> bool:
        """Whether the perfect value is an end of the range, so that estimates are biased away from it."""
        return self.entry is not None and self.entry.at_its_end

    @property
    def tail(self) -> str:
        """The tail of the null distribution that is evidence against calibration."""
        return "greater" if self.entry is None else self.entry.tail


# -- the result of a method --------------------------------------------------------------------------


_NO_WIDTH = "every resample gives the same value: an interval without width does not say how far off the truth may be"


def interval_result(
    statistic: Statistic,
    observed: Array,
    ends: tuple[Array, Array],
    level: float,
    method: str,
    clip: bool,
    drawn: Replicated | None = None,
    **facts: Any,
) -> IntervalResult:
    """The interval of a metric: ends inside its range, a number for a metric of one value; of the draws the summary."""
    one = len(observed) == 1
    if clip:
        ends = tuple(np.clip(end, *statistic.range) for end in ends)  # type: ignore[assignment]
    numbers: dict[str, Any] = {"value": observed, "low": ends[0], "high": ends[1]}
    if drawn is not None:
        bias = difference(means(drawn.values), observed)
        numbers |= {"standard_error": standard_errors(drawn.values), "bias": bias, "n_failed": drawn.n_failed}
        facts = {"draws": drawn.values[:, 0] if one else drawn.values, "n_resamples": len(drawn.values), **facts}
        if np.isclose(ends[0], ends[1], rtol=1e-9, atol=0.0).any():
            facts["note"] = _NO_WIDTH
    numbers |= {name: facts.pop(name) for name in ("standard_error", "pvalue", "expected_by_chance") if name in facts}
    given = {name: as_given(np.asarray(x), one) if np.ndim(x) else x for name, x in numbers.items()}
    return IntervalResult(level=level, method=method, parts=() if one else tuple(statistic.named), **given, **facts)


def refuse(statistic: Statistic, method: str, why: str) -> None:
    """Refuse a method that does not work for the metric, with the reason, if there is one."""
    if why:
        raise RefusedError(f"method={method!r} does not work for {statistic.name}: {why}")


# -- making statistics ------------------------------------------------------------------------------


def entry_of(metric: Any) -> Entry | None:
    """The catalogue entry of an id, an entry or a public metric function; None for any other callable."""
    entry = catalogue[metric] if isinstance(metric, str) else getattr(metric, "entry", metric)
    if isinstance(entry, Entry):
        return entry
    if not callable(metric):
        raise RefusedCallError(
            f"metric={metric!r}: pass a metric's id, a function of calibrary, or a callable metric(y, p)"
        )
    return None


def read_call(
    metric: Any, y_true: Any, y_prob: Any, keywords: dict[str, Any], **settings: Any
) -> tuple[Sample, Question]:
    """Parse the arguments of ``interval``, ``test`` or ``compare`` into data and a question.

    ``keywords`` are the options of the data, the lens and the metric; ``units`` or ``blocks`` define dependent rows.
    """
    entry = entry_of(metric)
    keywords = dict(keywords)
    units, blocks = keywords.pop("units", None), keywords.pop("blocks", None)
    if entry is None:
        data = as_data(y_true, y_prob, keywords)
        question = Question(options=keywords, **settings)
    else:
        data = entry.read(y_true, y_prob, keywords)
        data.read_as(entry.data_type, entry.id)
        question = with_bins(entry, data, entry.question_of(keywords).changed(**settings))
        entry.say_change(data, question)
        data = data.drawn_by(entry.lens_for(data, question))
    return sample_of(data.in_units(units, blocks), question.weight_type), question


def as_statistic(
    metric: Any, sample: Sample, question: Question, *, redrawn: bool = False, perfect: float | None = None
) -> Statistic:
    """Make a statistic from an id, a catalogue entry, a public metric function or any callable.

    ``redrawn`` says that only labels will change, so that no row occurs twice; ``perfect`` is the value of a callable
    if the predictions are calibrated.
    """
    entry = entry_of(metric)
    if entry is None:
        return replace(_of_callable(metric, sample, question), given_perfect=perfect)
    if perfect is not None:
        raise RefusedCallError(
            f"perfect={perfect!r} is only for your own functions: {entry.id} has a fixed perfect value"
        )
    name, question = entry.key, with_bins(entry, sample.data, entry.settled(question))
    entry, options = entry.specialized(question.options)
    question = question.changed(options=options)
    if default_of(entry.formula, "rng") is None:
        question = question.with_options(rng=_INNER_SEED)
    listed = entry.weights != "repetition"
    listed = listed or not entry.order_free
    if "weight_type" in entry.options and sample.p.w is not None:
        question = question.with_options(**{"weight_type": sample.weight_type, **question.options})
        # counts of drawn rows are frequency weights
        listed = sample.weight_type != "frequency"
    link = question.options.get("link", "threshold") if entry.link == "option" else entry.link
    link = link if isinstance(link, str) else "function"
    question = _fixed(entry, question, sample, redrawn)
    return Statistic(
        name, lambda data: measure(entry, data, question), sample, question, entry, listed, entry.data_type, link
    )


def _fixed(entry: Entry, question: Question, sample: Sample, redrawn: bool) -> Question:
    """The question with data-dependent options fixed on the original data, for each view of the lens.

    If labels are ``redrawn``, only options that do not depend on the labels are fixed.
    """
    if entry.fixed is None or question.by is not None or len(sample.data.versions) > 1:
        return question
    views = views_of(entry, sample.data, question)
    if redrawn and not _same_confidences(entry, views, sample, question):
        return question
    chosen = {
        key: entry.fixed(view, **question.options, redrawn=redrawn)
        for key, view in zip(views.keys, views.views, strict=True)
    }
    return question.changed(fixed=chosen)


def _same_confidences(entry: Entry, views: Views, sample: Sample, question: Question) -> bool:
    """Whether this lens computes its confidences without the labels."""
    if not entry.of_labels:
        return True
    p = sample.p
    others = views_of(entry, p.relabeled((p.y + 1) % p.k), question)
    return len(views.views) == len(others.views) and all(
        np.array_equal(a.probability, b.probability) for a, b in zip(views.views, others.views, strict=True)
    )


def _of_callable(metric: Callable[..., Any], sample: Sample, question: Question) -> Statistic:
    """The statistic of a user's ``metric(y_true, y_prob, **options)``.

    Options with one entry per prediction are resampled with the rows. A metric that accepts ``sample_weight`` gets
    counts, any other gets repeated rows.
    """
    p = sample.p
    options = question.options
    following = {name: value for name, value in options.items() if _per_row(name, value, p)}
    constant = {name: value for name, value in options.items() if name not in following}
    weighted = _takes_weights(metric)
    if p.w is not None and not weighted:
        raise RefusedError(
            "sample_weight was given but the metric has no sample_weight argument: add the argument, or repeat rows"
        )
    names = None if p.class_names is None else np.array(p.classes)

    def of(data: Any) -> Any:
        seen = data.read_as("predictions", "metric")
        extra = {name: seen.align(value, name) for name, value in following.items()}
        if weighted and seen.w is not None:
            extra["sample_weight"] = seen.w
        y = seen.y if names is None else names[seen.y]
        return metric(y, seen.probability, **constant, **extra)

    return Statistic(getattr(metric, "__name__", "metric"), of, sample, question, listed=not weighted)


def _takes_weights(metric: Callable[..., Any]) -> bool:
    try:
        return "sample_weight" in inspect.signature(metric).parameters
    except (TypeError, ValueError):
        return False


def _per_row(name: str, value: Any, p: Predictions) -> bool:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return False
    array = as_array(value, name)
    rows = len(array) if array.ndim else 0
    if name in ("features", "groups"):
        p.align(array, name)  # refuses another number of rows
    return rows == p.n_input


# -- several at once --------------------------------------------------------------------------------


def redrawn(
    statistics: list[Statistic], scheme: Scheme, n_resamples: int, rng: np.random.Generator, workers: int | None = None
) -> tuple[Array, Replicated]:
    """The values of all statistics on the sample and on the same replicates, one column for each value.

    A user's function, which may not be thread-safe, has one worker unless more are requested.
    """
    faults: dict[str, str] = {}
    observed = np.concatenate([s.observed for s in statistics])
    ours = "" if any(s.entry is None for s in statistics) else statistics[0].name
    path, in_blocks = together(statistics, scheme, faults), True
    if len(statistics) == 1:  # one statistic raises an error where it fails, which is the reason that is shown
        path, in_blocks = statistics[0].path(scheme)
    workers = 1 if workers is None and not ours else workers
    return observed, replicate(
        scheme, path, len(observed), n_resamples, rng, workers, in_blocks=in_blocks, ours=ours, faults=faults
    )


def together(statistics: list[Statistic], scheme: Scheme, faults: dict[str, str]) -> Path:
    """The values of all statistics side by side, NaN where one fails; bugs of this library are put into faults."""
    paths = [s.path(scheme) for s in statistics]

    def values(block: Block) -> Array:
        watch, columns = WATCHED.get(), []
        for s, (path, in_blocks) in zip(statistics, paths, strict=True):
            failed = functools.partial(keep_fault, s.name, faults)
            columns.append(or_nan(path, block, len(s.observed), failed, in_blocks))
            if watch is not None:
                watch.drew(columns[-1].size)
        return np.hstack(columns)

    return values


# -- fast paths: weights or labels of the same rows ---------------------------------------------------

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
    return _mean_of_rows(entry, question, scheme, observed) if entry.means_rows else None


# -- means of row losses: a dot product -------------------------------------------------------------


def _mean_of_rows(entry: Entry, question: Question, scheme: Scheme, observed: Array) -> Path | None:
    rows = scheme.rows
    views = views_of(entry, rows, question)
    plain = isinstance(question.average, str) and question.average in ("auto", "uniform", "macro")
    if views.several and not (plain and all(view.n == rows.n for view in views.views)):
        return None  # the average over views is not a mean over rows, or its weights change with the replicate
    losses = row_losses(entry, question, rows)
    if losses is None:
        return None
    # consistency resampling uses other rows: every row with every label
    value = observed if scheme.unsorted is not None else measure(entry, rows, question)
    if not scheme.relabels and not np.allclose(rows.mean(losses), value, rtol=1e-9):
        return None  # the score is not a mean over rows
    if not scheme.relabels:
        return _weighted_mean(losses, rows)
    if rows.k > _MOST_LABELS:
        return None
    table = [row_losses(entry, question, rows.relabeled(np.full(rows.n, k))) for k in range(rows.k)]
    if any(each is None for each in table):
        return None
    return _mean_by_label(np.array(table), rows)


def row_losses(entry: Entry, question: Question, p: Predictions) -> Array | None:
    """The loss of every row; None if the metric is not a mean of row losses, or if one is infinite."""
    if not entry.means_rows or {"reduction", "skill"} & set(question.options):
        return None
    with collected_warnings(), np.errstate(all="ignore"):
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
    """The metric's declared form, prepared for these rows, which reads new labels or new weights of a block."""
    form = entry.replicate
    assert form is not None
    read = attrgetter(labels if scheme.relabels else weights)
    of = form.of_labels if scheme.relabels else form.of_weights
    if form.whole:
        whole = None if question.average is None else of(rows, question.options)
        return None if whole is None else lambda block: _as_rows(whole(read(block)))
    lens, views = entry.lens_for(rows, question), views_of(entry, rows, question)
    if any(view.n != rows.n for view in views.views):
        return None
    if form.combine is not None and views.several:
        if question.average is None:
            return None  # the form's values are for its own ``combine`` only
        entry = replace(entry, own=replace(entry.code, combine=form.combine))
    as_drawn = rows.binary if lens.name == "binary" else lens.name == "full" and len(views.views) == 1
    if scheme.relabels and (as_drawn or lens.name == "top-label"):
        one = of(views.views[0], question.options)
        top = None if as_drawn else rows.top
        return None if one is None else lambda block: _as_rows(one(read(block) if top is None else read(block) == top))
    if form.labels_only or (scheme.relabels and (lens.name != "class-wise" or rows.binary)):
        return None  # the classes share one kernel, or their rows change with the labels
    if (views.several or scheme.relabels) and (entry.fields or _by_prevalence(question)):
        return None  # each class has its own result, or weights that depend on the replicate
    each = [value for view in views.views if (value := of(view, question.options)) is not None]
    if len(each) < len(views.views):
        return None

    def path(block: Block) -> Array:
        new = read(block)
        seen = [new == k for k in views.keys] if scheme.relabels else [new] * len(each)
        columns = [value(x) for value, x in zip(each, seen, strict=True)]
        if not views.several:
            return _as_rows(columns[0])
        return np.stack([np.atleast_1d(combined(entry, list(row), views, question)) for row in np.transpose(columns)])

    return path


def _as_rows(numbers: Array) -> Array:
    """An array with one row of values for each replicate."""
    return numbers[:, None] if numbers.ndim == 1 else numbers


def _by_prevalence(question: Question) -> bool:
    return isinstance(question.average, str) and question.average in ("prevalence", "weighted")

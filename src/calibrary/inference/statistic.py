"""What is measured on every replicate: a catalogue metric with its lens and options, or any callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrary._errors import suggest
from calibrary.data.lens import Views
from calibrary.data.predictions import Array, Predictions, as_array, predictions
from calibrary.inference.resampling import Replicate, Sample, Scheme
from calibrary.inference.shortcut import shortcut
from calibrary.lookup import Entry, catalogue

#: Metrics that are random themselves see the same random numbers in every replicate.
_INNER_SEED = 0
_LOOKING = ("lens", "average", "r")


@dataclass(frozen=True)
class Statistic:
    """One metric, made ready to be measured on replicates of a sample.

    ``measure`` takes predictions (or matched detections). ``kind`` says in which form the metric takes a
    replicate: "counted" (weighted rows), "listed" (rows written out) or "matches" (detections). ``options`` are
    the keywords of ``entry.measure``, if it is a metric of the catalogue.
    """

    name: str
    measure: Callable[[Any], Any]
    entry: Entry | None = None
    kind: str = "counted"
    link: str = "threshold"
    options: dict[str, Any] = field(default_factory=dict)

    def on(self, replicate: Replicate) -> Array:
        """The value on one replicate, as a flat array of one or several numbers."""
        if self.kind == "matches":
            found = replicate.matches(self.link)
            rows = self.entry is not None and self.entry.weights != "repetition"
            return flat(self.measure(found.repeated() if rows else found), self.entry)
        return flat(self.measure(replicate.counted if self.kind == "counted" else replicate.listed), self.entry)

    def on_sample(self, sample: Sample) -> Any:
        """The value on the sample itself, as the metric gives it."""
        return self.measure(sample.found if self.kind == "matches" else sample.p)

    def parts(self, sample: Sample) -> tuple[str, ...]:
        """Names of the numbers."""
        value = self.on_sample(sample)
        return _names(value, self.entry) or tuple(str(i) for i in range(np.size(value)))

    # -- facts that decide how an interval or a p-value is read -----------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """Where the value can lie; unlimited for callables and metrics of several numbers."""
        return (-np.inf, np.inf) if self.entry is None or self.entry.fields else self.entry.range

    @property
    def at_its_end(self) -> bool:
        """Is the perfect value an end of the range, so that estimates are biased away from it?"""
        return self.entry is not None and self.entry.perfect is not None and self.entry.perfect in self.range

    @property
    def tail(self) -> str:
        """The side of the null distribution that counts against calibration."""
        return "greater" if self.entry is None else self.entry.tail


def _names(value: Any, entry: Entry | None) -> tuple[str, ...]:
    if entry is not None and entry.fields and not isinstance(value, np.ndarray):
        return tuple(name for name, _ in entry.fields)
    return tuple(getattr(value, "_fields", ()))


def flat(value: Any, entry: Entry | None) -> Array:
    """A float, array, named tuple or result object as a flat array of numbers."""
    names = _names(value, entry)
    if names:
        return np.array([float(getattr(value, name)) for name in names])
    return np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel()


# -- making statistics ------------------------------------------------------------------------------


def as_sample(metric: Any, y_true: Any, y_prob: Any, keywords: dict[str, Any], weight_type: str) -> Sample:
    """Take the data keywords out of ``keywords`` and check the sample they describe."""
    entry = entry_of(metric)
    if entry is not None:
        y_true, y_prob = entry.prepared(y_true, y_prob, keywords)
    found = y_true if hasattr(y_true, "n_images") else None
    p = predictions(
        y_true,
        y_prob,
        sample_weight=keywords.pop("sample_weight", None),
        labels=keywords.pop("labels", None),
        pos_label=keywords.pop("pos_label", None),
    )
    return Sample(p, weight_type, found)


def entry_of(metric: Any) -> Entry | None:
    """The catalogue entry of an id, an entry or a public metric function; None for any other callable."""
    entry = catalogue[metric] if isinstance(metric, str) else getattr(metric, "entry", metric)
    if isinstance(entry, Entry):
        if entry.function is None:
            raise NotImplementedError(f"{entry.id} ({entry.name}) is planned and not built yet")
        return entry
    if not callable(metric):
        raise TypeError(f"metric={metric!r}: pass a metric's id, a function of calibrary, or a callable metric(y, p)")
    return None


def as_statistic(metric: Any, options: dict[str, Any], sample: Sample, *, redrawn: bool = False) -> Statistic:
    """A statistic from an id, a catalogue entry, a public metric function or any callable.

    ``redrawn`` says that only labels will change, so that rows are never drawn twice.
    """
    entry = entry_of(metric)
    if entry is None:
        return _of_callable(metric, options, sample.p)
    for name in options:
        if name not in entry.options and name not in _LOOKING:
            raise TypeError(f"{entry.id} has no option {name!r}: {suggest(name, [*entry.options, *_LOOKING])}")
    fixed = dict(options)
    own = inspect.signature(entry.core or len).parameters.get("rng")
    if own is not None and own.default is None:
        fixed["rng"] = _INNER_SEED
    if entry.family == "detection":
        return _of_detections(entry, fixed, sample, redrawn)
    kind = "counted" if entry.weights == "repetition" and entry.order_free else "listed"
    if "weight_type" in entry.options and sample.p.w is not None:
        fixed.setdefault("weight_type", sample.weight_type)
        # counts of drawn rows are frequencies, which importance weights would not be
        kind = "counted" if sample.weight_type == "frequency" else "listed"
    measure = _frozen(entry, fixed, sample.p, redrawn) or (lambda data: entry.measure(data, **fixed))
    return Statistic(entry.id, measure, entry, kind, options=fixed)


def _of_detections(entry: Entry, options: dict[str, Any], sample: Sample, redrawn: bool) -> Statistic:
    if sample.found is None:
        raise ValueError(f"{entry.id} needs matched detections: pass a Matches object")
    if entry.frozen is not None:
        # units are images or redrawn detections, each counted by itself
        found = sample.found.repeated() if redrawn else sample.found
        options = {**options, **entry.frozen(found, **options, redrawn=redrawn)}
    link = entry.null_link(options)  # type: ignore[attr-defined]  # detection entries know what calibrated means
    return Statistic(entry.id, lambda found: entry.measure(found, **options), entry, "matches", link)


def _frozen(
    entry: Entry, options: dict[str, Any], p: Predictions, redrawn: bool
) -> Callable[[Predictions], Any] | None:
    """The metric with options chosen once, for each view of the lens, on the original data.

    If labels are ``redrawn``, only options that do not depend on them.
    """
    if entry.frozen is None or entry.core is None:
        return None
    looking = {name: options[name] for name in ("lens", "r") if name in options}
    own = {name: value for name, value in options.items() if name not in _LOOKING}
    core, average = entry.core, options.get("average", "uniform")
    lens = entry.lens_for(p, **looking)
    views = p.through(lens)
    if redrawn and not _same_confidences(views, p.relabelled((p.y + 1) % p.k).through(lens)):
        return None
    chosen = {
        key: {**own, **entry.frozen(view, **own, redrawn=redrawn)}
        for key, view in zip(views.keys, views.views, strict=True)
    }

    def measure(data: Predictions) -> Any:
        seen = data.through(entry.lens_for(data, **looking))
        values = [core(view, **chosen.get(key, own)) for key, view in zip(seen.keys, seen.views, strict=True)]
        if not seen.several:
            return values[0]
        if entry.combine is not None and average is not None:
            return entry.combine(values, seen, average, own)
        return seen.average(np.array(values), average)

    return measure


def _same_confidences(views: Views, others: Views) -> bool:
    """Does the lens show the same confidences whatever the labels?"""
    return len(views.views) == len(others.views) and all(
        np.array_equal(a.probability, b.probability) for a, b in zip(views.views, others.views, strict=True)
    )


def _of_callable(metric: Callable[..., Any], options: dict[str, Any], p: Predictions) -> Statistic:
    """The statistic of a user's ``metric(y_true, y_prob, **options)``.

    Options with one entry per prediction follow the rows of each replicate. A metric that takes
    ``sample_weight`` is given counts, otherwise rows are written out.
    """
    following = {name: value for name, value in options.items() if _per_row(name, value, p)}
    constant = {name: value for name, value in options.items() if name not in following}
    weighted = _takes_weights(metric)
    if p.w is not None and not weighted:
        raise ValueError("sample_weight was given but the metric has no sample_weight argument: add it, or repeat rows")
    names = None if p._classes is None else np.array(p.classes)

    def measure(data: Predictions) -> Any:
        extra = {name: data.align(value, name) for name, value in following.items()}
        if weighted and data.w is not None:
            extra["sample_weight"] = data.w
        y = data.y if names is None else names[data.y]
        return metric(y, data.probability, **constant, **extra)

    return Statistic(getattr(metric, "__name__", "metric"), measure, None, "counted" if weighted else "listed")


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
    if name in ("features", "groups") and rows != p.n_input:
        raise ValueError(f"{name} has {rows} rows but y_true has {p.n_input}: give one row per prediction")
    return rows == p.n_input


# -- several at once --------------------------------------------------------------------------------


def together(
    statistics: list[Statistic], sample: Sample, scheme: Scheme, careful: bool = False
) -> tuple[Array, Callable[[Replicate], Array]]:
    """All numbers of all statistics on the sample, and the function that gives them on a replicate.

    Where there are several (or ``careful``), one that fails on a replicate gives NaN there and leaves the others
    alone; a single one may raise.
    """
    observed = [flat(s.on_sample(sample), s.entry) for s in statistics]
    ways = [_way(s, scheme) for s in statistics]
    if len(ways) == 1 and not careful:
        return observed[0], ways[0]

    def value(replicate: Replicate) -> Array:
        return np.concatenate([_or_nan(way, replicate, len(o)) for way, o in zip(ways, observed, strict=True)])

    return np.concatenate(observed), value


def safe_workers(statistics: list[Statistic], workers: int | None) -> int | None:
    """One worker for callables of the user's, which may not be made for threads, unless asked otherwise."""
    return 1 if workers is None and any(s.entry is None for s in statistics) else workers


def _way(statistic: Statistic, scheme: Scheme) -> Callable[[Replicate], Array]:
    if statistic.kind != "counted" or statistic.entry is None:
        return statistic.on
    return shortcut(statistic.entry, statistic.options, scheme, statistic.on) or statistic.on


def _or_nan(way: Callable[[Replicate], Array], replicate: Replicate, n: int) -> Array:
    try:
        return way(replicate)
    except Exception:
        return np.full(n, np.nan)

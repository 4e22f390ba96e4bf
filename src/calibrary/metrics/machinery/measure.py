"""Lens, formula, average: the one place where a metric is computed on data, as a whole or for every part of them.

Metrics, tests, bootstraps, tables and figures all use this file. A metric is a formula of one view; this file applies
the formula to the views of the lens that the question names, and combines the values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, collected_warnings, warn
from calibrary.base.numbers import float_or_array
from calibrary.data import Data
from calibrary.data.views import Views
from calibrary.grouping import automatic_bins
from calibrary.metrics.machinery.entry import Entry
from calibrary.question import PLAIN, Question

Array = NDArray[np.float64]


def measure(entry: Entry, data: Data, question: Question = PLAIN) -> Any:
    """The metric on data, as the question specifies: a number, an array with one value per view, or a result object."""
    if entry.settings:
        data, question = entry.seen(data), entry.settled(question)
    question = with_bins(entry, data, question)
    if question.by is not None:
        whole = question.changed(by=None)
        return over_parts(entry, data, question.by, lambda part: numbers(measure(entry, part, whole), entry.fields))
    if shows_itself(entry, data, question):  # fast path, because thousands of resamples use it
        return entry.formula(data, **question.options)
    versions = data.versions
    if len(versions) > 1:  # the same boxes matched at several thresholds: the value is the mean over thresholds
        mean = np.mean([measure(entry, version, question) for version in versions], axis=0)
        return mean if mean.ndim else float(mean)
    views = views_of(entry, data, question)
    if entry.id in views.known and not question.options:
        return views.known[entry.id]
    return combined(entry, each_view(entry.formula, views, question), views, question)


def with_bins(entry: Entry, data: Data, question: Question) -> Question:
    """The question with the number of bins of all these rows in place of ``n_bins="auto"``.

    It is chosen where the question is made, so that parts and resamples of the rows have the same number.
    """
    if not automatic(question.options):
        return question
    if entry.data_type != "predictions":
        raise RefusedError(f"{entry.id} has no bins of one confidence per row: n_bins='auto' needs a number here")
    seen, asked = entry.seen(data), entry.settled(question)
    views = seen.through(entry.lens_for(seen, asked)).views
    if len(views) != 1 or not getattr(views[0], "binary", False):
        raise RefusedError(
            "n_bins='auto' counts the expected events of one confidence per row: pass a number of bins, or use "
            "lens='binary' or 'top-label'"
        )
    return question.with_options(n_bins=automatic_bins(views[0].c, views[0].w))


def automatic(options: Mapping[str, Any]) -> bool:
    """Whether these options leave the number of bins to the data."""
    return isinstance(options.get("n_bins"), str) and options["n_bins"] == "auto"


def said_bins(options: Mapping[str, Any], used: Question) -> str:
    """The number of bins that was used in place of ``n_bins="auto"``, for a note."""
    return f"n_bins='auto': {used.options['n_bins']} bins" if automatic(options) and "n_bins" in used.options else ""


def shows_itself(entry: Entry, data: Data, question: Question) -> bool:
    """Whether the lens would show these binary predictions unchanged, with nothing to choose or to combine."""
    return (
        entry.of_plain_predictions
        and data.plain
        and isinstance(question.lens, str)
        and question.lens in ("auto", "binary")
        and question.r is None
        and not question.fixed
        and (entry.weights != "none" or not data.weighted)
    )


def views_of(entry: Entry, data: Data, question: Question) -> Views:
    """The views that the metric is computed on: the data in the metric's format, through the lens of the question."""
    if question.by is not None:
        raise RefusedError("by= splits the rows for a metric only: for a test or a table pass the rows of one part")
    seen, question = entry.seen(data), entry.settled(question)
    if entry.weights == "none" and seen.weighted:
        raise RefusedError(f"{entry.id} does not take sample_weight: {entry.weights_note or 'leave it out'}")
    lens = entry.lens_for(seen, question)
    seen.check_labels(entry, lens)
    views: Views = seen.through(lens)
    return views.read_by(entry, question.options)


def each_view(formula: Callable[..., Any], views: Views, question: Question) -> list[Any]:
    """The value of a formula for every view; ``question.fixed`` may contain options for each view."""
    options, fixed = question.options, question.fixed
    values = []
    for key, view in zip(views.keys, views.views, strict=True):
        values.append(formula(view, **{**options, **fixed.get(key, {})} if fixed else options))
        views.done_with(view)
    return values


def combined(entry: Entry, values: list[Any], views: Views, question: Question) -> Any:
    """One value combined from the values of all views."""
    if not views.several:
        return values[0]
    average = usual_average(entry, question)
    if entry.combine is not None and average is not None:
        return entry.combine(values, views, average, question.options)
    if values and not isinstance(values[0], float | int | np.number | np.ndarray):
        return tuple(values)
    return views.average(np.array(values), average)


def usual_average(entry: Entry, question: Question) -> Any:
    """How several views are combined: as the question specifies, otherwise by the metric's own default."""
    if not (isinstance(question.average, str) and question.average == "auto"):
        return question.average
    # "micro" pools classes, but a lens with several views has not pooled them
    return "uniform" if entry.default_average == "micro" else entry.default_average


# -- one number or several --------------------------------------------------------------------------


def numbers(value: Any, fields: tuple[tuple[str, float | None], ...] = ()) -> dict[str, float]:
    """A float, array, named tuple, result object or tuple of them as numbers by name.

    A single float has the empty name; numbers of an array are named "0", "1", ...; those of a result object have the
    names of ``fields`` (or of the named tuple), preceded by the index of the view if there are several: "2.slope".
    """
    if isinstance(value, Parts):
        return value.named()
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        named = [(str(i), numbers(v, fields)) for i, v in enumerate(value)]
        return {".".join(filter(None, (i, name))): x for i, part in named for name, x in part.items()}
    names = () if isinstance(value, np.ndarray) else tuple(f for f, _ in fields) or getattr(value, "_fields", ())
    if names:
        many = {name: np.asarray(getattr(value, name), dtype=np.float64) for name in names}
        if all(x.ndim == 0 for x in many.values()):
            return {name: float(x) for name, x in many.items()}
        # a vector lens gives an array in each field: one number for each class and field
        return {f"{name}.{k}": float(x) for name, xs in many.items() for k, x in enumerate(np.atleast_1d(xs))}
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return {"": float(array)}
    return {str(i): float(x) for i, x in enumerate(array.ravel())}


def perfect_of(name: str, entry: Entry) -> float | None:
    """The perfect value of one of a metric's numbers."""
    ideal: Mapping[str, float | None] = dict(entry.fields)
    return next((ideal[part] for part in name.split(".") if part in ideal), entry.perfect)


@dataclass(frozen=True)
class Parts:
    """The value of a metric for every part, and summaries; ``float`` of it is the plain mean over parts.

    Parts without a value (NaN) are left out of the summaries. A metric of several numbers has one column for each in
    ``values``, and summaries are arrays.

    Attributes
    ----------
    id : the metric
    keys : the value of the ``by`` column in each part
    values : one value per part
    sizes : total weight of each part
    names : of the numbers, for a metric of several
    ideal, better : the value of a calibrated model (None: depends on the data), and which direction is better
    """

    id: str
    keys: tuple[Hashable, ...]
    values: Array
    sizes: Array
    names: tuple[str, ...] = ()
    ideal: float | None = field(default=None, repr=False)
    better: str = field(default="lower", repr=False)

    def __float__(self) -> float:
        return float(self.mean)

    @property
    def mean(self) -> Any:
        """Plain mean over the parts: every part has the same weight."""
        return self._summary(np.nanmean)

    @property
    def weighted_mean(self) -> Any:
        """Mean over the parts, weighted by their size."""
        weight = self.sizes.reshape(-1, *[1] * (self.values.ndim - 1)) * ~np.isnan(self.values)
        return float_or_array(np.nansum(weight * self.values, axis=0) / weight.sum(axis=0))

    @property
    def median(self) -> Any:
        return self._summary(np.nanmedian)

    @property
    def max(self) -> Any:
        return self._summary(np.nanmax)

    @property
    def min(self) -> Any:
        return self._summary(np.nanmin)

    def quantile(self, q: Any) -> Any:
        """Quantiles over the parts, by linear interpolation."""
        return self._summary(lambda values, axis: np.nanquantile(values, q, axis=axis))

    @property
    def worst(self) -> tuple[Hashable, float]:
        """The worst part and its value: the part with the largest error or the lowest score."""
        if self.names:
            raise RefusedError(f"{self.id} has several numbers, {', '.join(self.names)}: choose a column of values")
        if self.better == "higher":
            badness = -self.values
        elif self.better == "perfect" and self.ideal is not None:
            badness = np.abs(self.values - self.ideal)
        else:
            badness = self.values
        i = int(np.nanargmax(badness))
        return self.keys[i], float(self.values[i])

    def named(self) -> dict[str, float]:
        """The means by name: a single mean has the empty name."""
        return dict(zip(self.names or ("",), np.atleast_1d(self.mean).tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return {
            "id": self.id, "keys": list(self.keys), "values": self.values.tolist(), "sizes": self.sizes.tolist(),
            "names": list(self.names), "mean": np.asarray(self.mean).tolist(),
            "median": np.asarray(self.median).tolist(), "max": np.asarray(self.max).tolist(),
        }  # fmt: skip

    def _summary(self, of: Callable[..., Any]) -> Any:
        return float_or_array(of(self.values, axis=0))


def over_parts(facts: Any, data: Any, by: Any, value: Callable[[Any], dict[str, float]]) -> Parts:
    """``value`` of every part of the data; parts without a value are NaN, and repeated warnings are given once."""
    parts = data.parts(by)
    found: list[dict[str, float]] = []
    undefined: list[str] = []
    cautions: list[str] = []
    for _, part in parts:
        with collected_warnings() as messages:
            try:
                found.append(value(part))
            except RefusedError as error:  # too few rows for this metric
                messages.insert(0, str(error))
                found.append({})
        known = found[-1] and not np.isnan(list(found[-1].values())).any()
        (cautions if known else undefined).extend(messages[:1])
    names = next((tuple(each) for each in found if each), ())
    values = np.array([[each.get(name, np.nan) for name in names] for each in found])
    none = np.isnan(values).any(axis=1) if names else np.ones(len(parts), dtype=bool)
    if none.all():
        raise RefusedError(f"{facts.id} has no value in any of {len(parts)} parts; the first: {[*undefined, 'nan'][0]}")
    if none.any():
        why = f": {undefined[0]}" if undefined else ""
        warn(f"{int(none.sum())} of {len(parts)} parts have no value and are left out of the summaries{why}")
    if cautions:
        warn(f"in {len(cautions)} of {len(parts)} parts: {cautions[0]}")
    one = names == ("",)
    return Parts(
        facts.id, tuple(key for key, _ in parts), values[:, 0] if one else values,
        np.array([float(part.size) for _, part in parts]), () if one else names, facts.perfect, facts.better,
    )  # fmt: skip

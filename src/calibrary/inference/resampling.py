"""Random replicates of predictions: one stream of random numbers, any number of workers.

The stream is fixed by what is drawn for each replicate, in order (so a seed gives the same replicates on one
worker or many):

- bootstrap: ``i = rng.integers(0, N, N)``; the rows become counts, so that nothing is copied or sorted again;
- null labels: ``u = rng.random(N)``; label 1 where ``u < c``, or the first class whose cumulative probability
  exceeds u;
- consistency: the indices first, then the uniforms.
"""

from __future__ import annotations

import copy
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary._errors import CalibrationWarning, one_of, warn
from calibrary._once import once
from calibrary.data.predictions import Array, Indices, Predictions

#: Fewer units than this are not worth a second thread: Python itself, which runs on one core, dominates.
_THREADS_FROM = 20_000
#: Above this many copies of rows, null labels are drawn as counts instead of one by one.
_MOST_COPIES = 5_000_000


# -- one replicate ----------------------------------------------------------------------------------


class Replicate:
    """One random copy of a sample, in the form a metric can use.

    It gives the rows of the sample new weights (zeros among them) or new labels: ``row_weights`` and ``row_labels``
    as the rows came, None if they are unchanged; ``weights`` and ``labels`` in the order of ``base``, which holds row
    ``order[i]`` at place i. ``counted`` is the replicate as weighted rows, ``listed`` as rows written out in drawn
    order, and ``drawn`` the rows that were drawn, if that is all there is to it.
    """

    def __init__(
        self,
        base: Predictions,
        *,
        order: Indices | None = None,
        w: Callable[[], Array] | None = None,
        y: NDArray[Any] | None = None,
        drawn: Indices | None = None,
        listed: Callable[[], Predictions] | None = None,
        matches: Callable[[str], Any] | None = None,
    ) -> None:
        self.base = base
        self.drawn = drawn
        self.row_labels = y
        self._order = order
        self._w = w
        self._listed = listed
        self._matches = matches

    @once
    def row_weights(self) -> Array | None:
        return None if self._w is None else self._w()

    @once
    def weights(self) -> Array:
        return self.base.weight if self.row_weights is None else self._ordered(self.row_weights)

    @once
    def labels(self) -> NDArray[Any]:
        return self.base.y if self.row_labels is None else self._ordered(self.row_labels).astype(np.intp, copy=False)

    def _ordered(self, x: NDArray[Any]) -> NDArray[Any]:
        return x if self._order is None else x.take(self._order)

    @once
    def counted(self) -> Predictions:
        p = self.base if self.row_labels is None else self.base.relabelled(self.labels)
        return p if self._w is None else p.reweighted(self.weights)

    @once
    def listed(self) -> Predictions:
        return self.counted if self._listed is None else self._listed()

    def matches(self, link: str) -> Any:
        """Matched detections of this replicate; ``link`` says what calibrated means to the metric."""
        if self._matches is None:
            raise TypeError("detection metrics need matched detections: pass a Matches object")
        return self._matches(link)


@dataclass(frozen=True)
class Scheme:
    """A way of making replicates: what one of them takes from the stream, and what is made of it.

    ``base`` holds the rows that every replicate gives new weights or, if ``relabels``, new labels; ``rows`` holds
    them as they came, and ``base`` has row ``order[i]`` at place i (None: they are the same).
    """

    draw: Callable[[np.random.Generator], Any]
    make: Callable[[Any], Any]
    base: Predictions
    relabels: bool = False
    order: Indices | None = None
    unsorted: Predictions | None = None

    @property
    def rows(self) -> Predictions:
        return self.base if self.unsorted is None else self.unsorted


# -- a sample and its replicates --------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Predictions (or matched detections) ready to be drawn from again and again.

    A unit is what is drawn: a row, a copy of a row where weights count copies, or an image with all its
    detections. ``base`` holds the rows in ascending order of confidence, so that no replicate needs sorting.
    """

    p: Predictions
    weight_type: str = "frequency"
    found: Any = None

    def __post_init__(self) -> None:
        one_of("weight_type", self.weight_type, ("frequency", "importance"))

    @once
    def order(self) -> Indices:
        """Ascending confidence (of the top label where there are several classes); ties keep their order."""
        return np.arange(self.p.n) if self.found is not None else _ascending(self.p)

    @once
    def base(self) -> Predictions:
        # predictions of detections know more than their rows, and stay as they are
        return self.p if self.found is not None else _in_order(self.p, self.order)

    @once
    def unit_row(self) -> Indices | None:
        """The row of each unit; None when units are rows (or images)."""
        if self.p.w is None or self.weight_type == "importance" or self.found is not None:
            return None
        return np.repeat(np.arange(self.p.n), self.p.counts("resampling"))

    @once
    def n_units(self) -> int:
        if self.found is not None:
            return int(self.found.n_images)
        return self.p.n if self.unit_row is None else len(self.unit_row)

    # -- the bootstrap --------------------------------------------------------------------------

    def bootstrap(self) -> Scheme:
        """Units drawn with replacement."""
        n = self.n_units
        order = None if self.found is not None else self.order
        return Scheme(lambda rng: rng.integers(0, n, n), self.of_units, self.base, order=order, unsorted=self.p)

    def of_units(self, drawn: Indices) -> Replicate:
        """The replicate made of these units."""
        if self.found is not None:
            return self._of_images(np.bincount(drawn, minlength=self.n_units))
        row = drawn if self.unit_row is None else self.unit_row[drawn]

        def weights() -> Array:
            w = np.bincount(row, minlength=self.p.n).astype(np.float64)
            if self.p.w is not None and self.unit_row is None:
                w *= self.p.w
            return w

        return Replicate(self.base, order=self.order, w=weights, drawn=row, listed=lambda: self.written_out(row))

    def _of_images(self, counts: NDArray[Any]) -> Replicate:
        found = self.found
        times = counts[found.image]
        return Replicate(
            self.base,
            w=lambda: times * self.p.weight,
            listed=lambda: found.reweighted(counts.astype(np.float64)).repeated().as_predictions(),
            matches=lambda link: found.reweighted(counts.astype(np.float64)),
        )

    def written_out(self, row: Indices, y: NDArray[Any] | None = None) -> Predictions:
        """These rows one by one; copies of a weighted row count once each."""
        p = self.p
        child = p.subset(row, p.y[row] if y is None else y, p.probability[row], classes=p._classes, origin=p.origin)
        if self.unit_row is not None:
            child.w = None
        return child

    # -- the null distribution ------------------------------------------------------------------

    def null(self, truth: Array | None = None, link: str = "threshold") -> Scheme:
        """Labels redrawn from the predictions (or from ``truth``), every copy of a row by itself; the rest fixed."""
        if self.found is not None:
            return self._null_detections(link)
        if self.unit_row is not None and self.n_units > _MOST_COPIES:
            return self._null_counts(truth)
        units = self.p if self.unit_row is None else self.written_out(self.unit_row)
        chance = _chance(units, truth, self.unit_row)
        order = self.order if self.unit_row is None else _ascending(units)
        base = self.base if self.unit_row is None else _in_order(units, order)

        def make(u: Array) -> Replicate:
            y = drawn_labels(u, chance)
            return Replicate(base, order=order, y=y, listed=lambda: units.relabelled(y.astype(np.intp)))

        return Scheme(lambda rng: rng.random(units.n), make, base, relabels=True, order=order, unsorted=units)

    def _null_counts(self, truth: Array | None) -> Scheme:
        # so many copies that labels are drawn per row: how many of its copies get each class
        chance = _chance(self.p, truth, None)
        table = np.column_stack([1.0 - chance, chance]) if chance.ndim == 1 else chance
        table = table / table.sum(axis=1, keepdims=True)
        copies = self.p.counts("redrawing labels")
        both = self.every_label

        def make(drawn: NDArray[Any]) -> Replicate:
            return Replicate(both, w=lambda: drawn[self.order].ravel().astype(np.float64))

        return Scheme(lambda rng: rng.multinomial(copies, table), make, both)

    @once
    def every_label(self) -> Predictions:
        """Each row of ``base`` with each label in turn, to be weighted by how often a draw has it."""
        k = self.p.k
        row = np.repeat(np.arange(self.p.n), k)
        both = _in_order(self.base, row)
        both.y = np.tile(np.arange(k), self.p.n)
        both.w = None
        return both

    def _null_detections(self, link: str) -> Scheme:
        found = self.found.repeated()
        p = found.as_predictions()

        def draw(rng: np.random.Generator) -> Any:
            # both links use the same uniforms; the identity link then takes more from the stream
            kinds = {}
            if "threshold" in link:
                kinds["threshold"] = found.null_draw(copy.deepcopy(rng) if "identity" in link else rng, "threshold")
            if "identity" in link:
                kinds["identity"] = found.null_draw(rng, "identity")
            return kinds

        def make(kinds: dict[str, Any]) -> Replicate:
            y = (kinds.get("threshold") or kinds["identity"]).correct.astype(np.intp)
            return Replicate(p, y=y, matches=lambda link: kinds[link])

        return Scheme(draw, make, p, relabels=True)

    def consistency(self, truth: Array | None = None) -> Scheme:
        """Consistency resampling: units drawn with replacement first, then their labels."""
        if self.found is not None:
            raise ValueError("method='consistency' is for predictions; detections have method='monte-carlo'")
        chance = _chance(self.p, truth, None)
        n, k, inverse = self.n_units, self.p.k, np.empty(self.p.n, dtype=np.intp)
        inverse[self.order] = np.arange(self.p.n)

        def draw(rng: np.random.Generator) -> tuple[Indices, Array]:
            return rng.integers(0, n, n), rng.random(n)

        def make(drawn: tuple[Indices, Array]) -> Replicate:
            row = drawn[0] if self.unit_row is None else self.unit_row[drawn[0]]
            y = drawn_labels(drawn[1], chance[row]).astype(np.intp)

            def weights() -> Array:
                w = np.bincount(inverse[row] * k + y, minlength=self.p.n * k).astype(np.float64)
                if self.p.w is not None and self.unit_row is None:
                    w *= np.repeat(self.base.weight, k)
                return w

            return Replicate(self.every_label, w=weights, listed=lambda: self.written_out(row, y))

        return Scheme(draw, make, self.every_label)


def _ascending(p: Predictions) -> Indices:
    return np.argsort(p.probability if p.binary else p.probability.max(axis=1), kind="stable")


def _in_order(p: Predictions, order: Indices) -> Predictions:
    taken = p.subset(order, p.y[order], p.probability[order], classes=p._classes, origin=p.origin)
    taken.ascending = p.binary
    return taken


def _chance(p: Predictions, truth: Array | None, rows: Indices | None) -> Array:
    """The probabilities labels are drawn from: the predictions, or what a calibration map makes of them."""
    if truth is None:
        return p.probability
    chance = truth if rows is None else truth[rows]
    if chance.shape != p.probability.shape or not ((chance >= 0.0) & (chance <= 1.0)).all():
        raise ValueError(
            f"calibration_map gave shape {chance.shape} for predictions of shape {p.probability.shape}: it must "
            "return one probability in [0, 1] for each"
        )
    return chance


def drawn_labels(u: Array, chance: Array) -> NDArray[Any]:
    """Labels from uniform numbers: True where u < c; with several classes the first whose cumulative sum exceeds u."""
    if chance.ndim == 1:
        return u < chance
    below: NDArray[np.intp] = (np.cumsum(chance, axis=1)[:, :-1] <= u[:, None]).sum(axis=1, dtype=np.intp)
    return below


# -- many replicates --------------------------------------------------------------------------------


@dataclass
class Replicated:
    """Values of one or several numbers on each replicate: (n_resamples, n_numbers), NaN where it failed."""

    values: Array
    failure: str = ""

    @property
    def n_failed(self) -> NDArray[np.intp]:
        """Failed replicates of each number."""
        count: NDArray[np.intp] = np.isnan(self.values).sum(axis=0)
        return count

    def say_failures(self) -> None:
        """Warn if a replicate failed, with the first reason."""
        worst = int(self.n_failed.max(initial=0))
        if worst:
            why = f": {self.failure}" if self.failure else ""
            warn(f"{worst} of {len(self.values)} replicates gave no number and were left out{why}")


def replicate(
    scheme: Scheme,
    value: Callable[[Any], Array],
    n_numbers: int,
    n_resamples: int,
    rng: Any,
    workers: int | None = None,
) -> Replicated:
    """Draw ``n_resamples`` times from one stream and evaluate each replicate, on several threads if that helps.

    Drawing is done in turn, under a lock, so that replicate b sees the same random numbers whatever the number
    of workers; evaluating runs side by side. A replicate that raises counts as failed.
    """
    generator = np.random.default_rng(rng)
    result = Replicated(np.full((n_resamples, n_numbers), np.nan))
    turn, stop = threading.Lock(), threading.Event()
    left = iter(range(n_resamples))
    progress = _Progress(n_resamples, "redrawing labels" if scheme.relabels else "resampling")

    def work(report: bool) -> None:
        while not stop.is_set():
            with turn:
                b = next(left, None)
                if b is None:
                    return
                drawn = scheme.draw(generator)
            try:
                with np.errstate(all="ignore"):
                    result.values[b] = value(scheme.make(drawn))
            except Exception as error:
                result.failure = result.failure or f"{type(error).__name__}: {error}"
            progress.done(report)

    helpers = [
        threading.Thread(target=work, args=(False,), daemon=True) for _ in range(_workers(workers, scheme.base.n) - 1)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            for helper in helpers:
                helper.start()
            work(True)
        except BaseException:
            stop.set()  # Ctrl-C: nobody starts another replicate
            raise
        finally:
            for helper in helpers:
                helper.join()
            progress.close()
    if result.failure and np.isnan(result.values).all():
        raise ValueError(f"every replicate failed; the first: {result.failure}")
    return result


def _workers(workers: int | None, n_units: int) -> int:
    if workers is None:
        return min(2, os.cpu_count() or 1) if n_units >= _THREADS_FROM else 1
    if workers < 1:
        raise ValueError(f"workers={workers}: pass at least 1, or None to choose")
    return int(workers)


class _Progress:
    """A progress bar on stderr, shown only on a terminal and only when it will take more than two seconds."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.count = 0
        self.began = monotonic()
        self.bar: Any = None
        self.wanted = sys.stderr.isatty()

    def done(self, report: bool) -> None:
        self.count += 1
        if not (report and self.wanted):
            return
        elapsed = monotonic() - self.began
        if self.bar is None and elapsed > 0.3 and elapsed * self.total > 2.0 * self.count:
            from rich.console import Console
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(self.what, total=self.total)
            self.bar.start()
        if self.bar is not None:
            self.bar.update(self.task, completed=self.count)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


# -- summaries of replicates ------------------------------------------------------------------------


# Replicates may be infinite (a log loss of a certain prediction that failed): sums of them are infinite, differences
# of two infinities NaN, and neither is worth a warning.


@np.errstate(invalid="ignore", over="ignore")
def means(values: Array) -> Array:
    """Mean of each column over the replicates that gave a number; NaN where none did."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.sum(values, axis=0, where=known) / np.maximum(n, 1), np.nan)


@np.errstate(invalid="ignore", over="ignore")
def standard_errors(values: Array) -> Array:
    """Standard deviation of each column, ddof 1, over the replicates that gave a number; NaN if one is infinite."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    squares = np.sum((values - means(values)) ** 2, axis=0, where=known)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)


@np.errstate(invalid="ignore", over="ignore")
def quantiles(values: Array, q: Any) -> Array:
    """Quantiles of the numbers by linear interpolation.

    Infinite values are ranked like others; between a number and an infinity lies that infinity, between the two
    infinities nothing (NaN).
    """
    x = np.sort(values[~np.isnan(values)])
    if not len(x):
        return np.full(np.shape(q), np.nan)
    at = np.asarray(q, dtype=np.float64) * (len(x) - 1)
    low = np.floor(at).astype(np.intp)
    high = np.minimum(low + 1, len(x) - 1)
    between = x[low] + (x[high] - x[low]) * (at - low)
    return np.where(x[low] == x[high], x[low], np.where(at == low, x[low], between))


def slack(x: Any) -> Any:
    """How far values may differ by rounding alone and count as equal: 1e-12, relative above 1."""
    size = np.abs(x)
    return 1e-12 * np.where(np.isfinite(size), np.maximum(1.0, size), 0.0)


@np.errstate(invalid="ignore", over="ignore")
def difference(a: Array, b: Array) -> Array:
    """a - b; NaN where both are the same infinity."""
    return a - b


# -- options every kind of inference checks the same way --------------------------------------------


def check_resamples(n_resamples: int) -> int:
    if not (isinstance(n_resamples, int | np.integer) and n_resamples >= 1):
        raise ValueError(f"n_resamples={n_resamples!r}: pass a whole number of at least 1 (999 is usual)")
    return int(n_resamples)


def check_level(confidence_level: float) -> float:
    if not (isinstance(confidence_level, int | float | np.number) and 0.0 < confidence_level < 1.0):
        raise ValueError(f"confidence_level={confidence_level!r} is outside (0, 1): 0.95 is usual")
    return float(confidence_level)


def monte_carlo_error(pvalue: Array, n_resamples: Any) -> Array:
    """Standard error of a Monte Carlo p-value."""
    error: Array = np.sqrt(pvalue * (1.0 - pvalue) / (n_resamples + 1.0))
    return error


def as_given(values: NDArray[Any], scalar: bool) -> Any:
    """A float where the metric is one number, else the array."""
    return values if not scalar else values[0].item() if len(values) else math.nan

"""Draw many replicates of a sample from one stream of random numbers, evaluate them in parallel, and summarize them."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import FAULT, RefusedError, bounded, collected_warnings, warn
from calibrary.base.forked import Forked, can_fork
from calibrary.data.asked import check_asked, share
from calibrary.data.checks import Array
from calibrary.data.stacked import Block, Scheme
from calibrary.inference.draw.waiting import ProgressBar, WorkDone

#: With fewer units than this, a second thread does not help, because most time is spent in Python itself; nor does it
#: for many metrics with fewer than the second number, whose short array operations wait for each other.
_THREADS_FROM, _THREADS_OF_MANY_FROM = 20_000, 50_000
#: The most random numbers in a block of replicates; with more rows than this, replicates are evaluated one by one.
_IN_BLOCKS = 1 << 18
#: Seconds of work from which copies of the process share it.
_WORTH_COPIES = 1.0
#: The fewest blocks, independent of the workers, because the last digit of a value may depend on its block.
_SHARES = 4


Work = WorkDone  # the name in version 0.2, which pickles and imports may use


# -- many replicates --------------------------------------------------------------------------------


@dataclass
class Replicated:
    """The values on each replicate: an array (n_resamples, n_numbers), NaN where the metric failed."""

    values: Array
    failure: str = ""

    @property
    def n_failed(self) -> NDArray[np.intp]:
        """The number of failed replicates for each value."""
        return np.isnan(self.values).sum(axis=0)

    def say_failures(self) -> None:
        """Warn if a replicate failed, with the first reason."""
        worst = int(self.n_failed.max(initial=0))
        if worst:
            why = f": {self.failure}" if self.failure else ""
            warn(f"{worst} of {len(self.values)} replicates have no value and were left out{why}")


#: A function of a block of replicates, which returns one row of values for each of them.
Path = Callable[[Block], Array]


def one_by_one(value: Callable[[Any], Any]) -> Path:
    """The path of a function of one replicate."""
    return lambda block: np.stack([np.atleast_1d(value(one)) for one in block.replicates])


def or_nan(
    path: Path, block: Block, n_numbers: int, failed: Callable[[Exception], None], in_blocks: bool = True
) -> Array:
    """The values on each replicate of a block, together if possible, else one by one; NaN where that ``failed``."""
    found = np.full((len(block), n_numbers), np.nan)
    try:
        if in_blocks or len(block) == 1:
            found[:] = path(block)
            return found
    except Exception as error:
        if len(block) == 1:
            failed(error)
            return found
    # evaluating one by one shows which replicate fails
    return np.vstack([or_nan(path, Block([one]), n_numbers, failed) for one in block.replicates])


def replicate(
    scheme: Scheme,
    path: Path,
    n_numbers: int,
    n_resamples: int,
    rng: np.random.Generator,
    workers: int | None = None,
    *,
    in_blocks: bool = True,
    ours: str = "",
    faults: MutableMapping[str, str] | None = None,
) -> Replicated:
    """Draw ``n_resamples`` replicates from one stream and evaluate each, on several cores if that is faster.

    Replicates are drawn one after the other, so that each gets the same random numbers for any number of workers;
    they are evaluated in parallel. A replicate on which the metric raises an error counts as failed.

    ``in_blocks`` says whether something is gained by evaluating several replicates together. ``ours`` is the name of
    what is evaluated, unless it calls a user's function; ``faults`` collects bugs of this library by name.
    """
    workers = os.cpu_count() if workers == -1 else workers
    faults = {} if faults is None else faults
    result = Replicated(np.full((n_resamples, n_numbers), np.nan))
    size = max(1, _IN_BLOCKS // max(scheme.base.n, 1)) if in_blocks else 1
    size = min(size, -(-n_resamples // _SHARES))
    blocks = [list(range(b, min(b + size, n_resamples))) for b in range(0, n_resamples, size)]
    progress = ProgressBar(n_resamples, "redrawing labels" if scheme.relabels else "resampling", n_numbers)

    def failed(error: Exception) -> None:
        result.failure = result.failure or f"{type(error).__name__}: {error}"
        if ours:
            keep_fault(ours, faults, error)

    def evaluate(places: list[int], drawn: Any) -> None:
        result.values[places] = or_nan(path, Block(drawn, scheme), n_numbers, failed)

    draw = functools.partial(scheme.draws, rng)

    processes = _processes(workers, bool(ours), len(blocks) - 1)
    try:
        if processes > 1:  # the first block shows whether copies of the process would save more than they cost
            began = monotonic()
            _on_threads(1, blocks[:1], draw, evaluate, progress)
            blocks, processes = blocks[1:], processes if (monotonic() - began) * len(blocks) > _WORTH_COPIES else 1
        if processes > 1:
            _in_processes(processes, blocks, draw, evaluate, result, faults, progress)
        else:
            _on_threads(_workers(workers, scheme.base.n, n_numbers), blocks, draw, evaluate, progress)
    finally:
        progress.close()
    if result.failure and np.isnan(result.values).all():
        raise RefusedError(f"every replicate failed; the first: {result.failure}")
    say_faults(faults)
    return result


#: A function that evaluates the replicates at these indices.
Evaluate = Callable[[list[int], Any], None]


def _on_threads(
    threads: int, blocks: list[list[int]], draw: Callable[[int], Any], evaluate: Evaluate, progress: ProgressBar
) -> None:
    """Draw the blocks one after the other and evaluate them in parallel threads."""
    turn, stop = threading.Lock(), threading.Event()
    left = iter(blocks)

    def work(report: bool) -> None:
        with (
            collected_warnings(),
            np.errstate(all="ignore"),
        ):  # for this thread: warnings of a metric about a replicate are not shown
            while not stop.is_set():
                with turn:
                    places = next(left, [])
                    drawn = draw(len(places))
                if not places:
                    return
                evaluate(places, drawn)
                progress.done(report, len(places))

    helpers = [threading.Thread(target=work, args=(False,), daemon=True) for _ in range(threads - 1)]
    try:
        for helper in helpers:
            helper.start()
        work(True)
    except BaseException:
        stop.set()  # after Ctrl-C no further replicate is started
        raise
    finally:
        for helper in helpers:
            helper.join()


def _processes(workers: int | None, ours: bool, blocks: int) -> int:
    """The number of processes to start: as many as the user requested, but only for the library's own metrics.

    A process with several threads cannot be forked safely, and a user's function may not tolerate forking; in both
    cases the workers are threads.
    """
    if workers is None or workers < 2 or not ours:
        return 1
    return min(int(workers), blocks) if can_fork() else 1


def _in_processes(
    processes: int,
    blocks: list[list[int]],
    draw: Callable[[int], Any],
    evaluate: Evaluate,
    result: Replicated,
    faults: MutableMapping[str, str],
    progress: ProgressBar,
) -> None:
    """Every process draws all blocks, so that all use the same random numbers, and evaluates a share of them."""

    def share(number: int) -> list[int]:
        mine: list[int] = []
        with collected_warnings(), np.errstate(all="ignore"):
            for k, places in enumerate(blocks):
                drawn = draw(len(places))
                if k % processes == number:
                    evaluate(places, drawn)
                    mine += places
                if number == 0:
                    progress.done(True, len(places), elsewhere=k % processes != number)
        return mine

    def answer(number: int) -> tuple[list[int], Array, str, Mapping[str, str]]:
        mine = share(number)
        return mine, result.values[mine], result.failure, faults

    with ExitStack() as open_:
        children = [open_.enter_context(Forked(functools.partial(answer, k))) for k in range(1, processes)]
        share(0)
        for child in children:
            mine, values, failure, theirs = child.result()
            result.values[mine] = values
            result.failure = result.failure or failure
            faults.update({name: error for name, error in theirs.items() if name not in faults})


def keep_fault(name: str, faults: MutableMapping[str, str], error: Exception) -> None:
    """Note an error that no input explains, for :func:`say_faults`."""
    if not isinstance(error, RefusedError):
        faults.setdefault(name, f"{type(error).__name__}: {error}")


def say_faults(faults: Mapping[str, str]) -> None:
    """Warn about bugs of this library that occurred on resamples."""
    for name, error in faults.items():
        warn(f"{name} failed on some resamples, which were left out: {FAULT}: {error}")


#: More values than this are those of a table, not of one metric or a pair.
_FEW_VALUES = 4


def _workers(workers: int | None, n_units: int, n_numbers: int) -> int:
    if workers is None:
        least = _THREADS_FROM if n_numbers <= _FEW_VALUES else _THREADS_OF_MANY_FROM
        return min(2, os.cpu_count() or 1) if n_units >= least else 1
    if workers < 1:
        raise RefusedError(f"workers={workers}: pass at least 1, or None to choose")
    return int(workers)


# -- summaries of replicates ------------------------------------------------------------------------


# Replicates may be infinite (a log loss of a certain prediction that failed): sums of them are infinite, differences
# of two infinities are NaN, and neither needs a warning.


@np.errstate(invalid="ignore", over="ignore")
def means(values: Array) -> Array:
    """Mean of each column over the defined replicates; NaN if there is none."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.sum(values, axis=0, where=known) / np.maximum(n, 1), np.nan)


@np.errstate(invalid="ignore", over="ignore")
def standard_errors(values: Array) -> Array:
    """Standard deviation of each column (ddof 1) over the defined replicates; NaN if one is infinite."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    squares = np.sum((values - means(values)) ** 2, axis=0, where=known)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)


@np.errstate(invalid="ignore", over="ignore")
def quantiles(values: Array, q: Any) -> Array:
    """Quantiles by linear interpolation.

    Infinite values are ranked like others. Interpolation between a number and an infinity gives that infinity, between
    the two infinities NaN.
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
    """The largest difference by rounding at which values count as equal: 1e-12, relative above 1."""
    size = np.abs(x)
    return 1e-12 * np.where(np.isfinite(size), np.maximum(1.0, size), 0.0)


@np.errstate(invalid="ignore", over="ignore")
def difference(a: Array, b: Array) -> Array:
    """The difference a - b; NaN if both are the same infinity."""
    return a - b


# -- options every kind of inference checks the same way --------------------------------------------


def check_resamples(n_resamples: int, workers: int | None = None) -> int:
    if not (isinstance(n_resamples, int | np.integer) and n_resamples >= 1):
        raise RefusedError(f"n_resamples={n_resamples!r}: pass a whole number of at least 1 (999 is usual)")
    check_asked({"workers": workers})
    return bounded("n_resamples", int(n_resamples))


def least_draws(alpha: float) -> int:
    """The smallest number of draws for which a p-value of ``alpha`` is possible."""
    return int(np.ceil(1.0 / alpha - 1e-9)) - 1


def check_draws(n_resamples: int, alpha: float) -> int:
    """Warn if there are too few draws for a p-value of ``alpha``."""
    n = check_resamples(n_resamples)
    least = least_draws(alpha)
    if n < least:
        raise RefusedError(
            f"n_resamples={n} is too few for the level {1.0 - alpha:g}: no p-value could be below {alpha:g}; "
            f"use at least {least} (999 is usual)"
        )
    return n


def check_level(confidence_level: float, n_resamples: int | None = None) -> float:
    """The level of intervals, and whether so many draws are enough for it."""
    share("confidence_level", confidence_level, usual=0.95)
    if n_resamples is not None:
        check_draws(n_resamples, alpha_of(confidence_level))
    return float(confidence_level)


def alpha_of(confidence_level: float) -> float:
    """The level of the test that corresponds to an interval: exactly 0.1 for 0.9, without rounding error."""
    return round(1.0 - confidence_level, 12)


def monte_carlo_error(pvalue: Array, n_resamples: Any) -> Array:
    """Standard error of a Monte Carlo p-value."""
    return np.sqrt(pvalue * (1.0 - pvalue) / (n_resamples + 1.0))


def as_given(values: NDArray[Any], scalar: bool) -> Any:
    """A float if the metric is a single value, else the array."""
    return values if not scalar else values[0].item() if len(values) else math.nan

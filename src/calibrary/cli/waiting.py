"""A bar for work that takes longer than a moment, with the time left from its first second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from calibrary.cli.read import PredictionFile
from calibrary.cli.shared import err
from calibrary.inference.draw.resampling import WATCHED, WorkDone

#: Seconds that a report took on one core of a usual machine: rows (as powers of ten), two classes, ten classes.
_ROWS, _TWO, _TEN = (2.0, 3.0, 4.3, 5.0, 6.0), (8.0, 12.0, 22.0, 30.0, 45.0), (10.0, 15.0, 60.0, 80.0, 120.0)
#: The part of it that no draws would take.
_VALUES = 0.25


#: Who shows how far the work is, in the place of a bar on a terminal: from its pieces and its expected seconds.
WATCHER: ContextVar[Callable[[int, float], WorkDone] | None] = ContextVar("WATCHER", default=None)


def expected_seconds(n: int, k: int, models: int, draws: int) -> float:
    """About how long it takes, from measured times."""
    two, ten = (float(np.interp(np.log10(max(n, 1)), _ROWS, times)) for times in (_TWO, _TEN))
    one = two if k == 2 else ten * max(1.0, k / 10.0) ** 0.5
    return models * one * (_VALUES + (1.0 - _VALUES) * draws / 199.0)


def seconds_left(done: float, elapsed: float, expected: float) -> float:
    """What is left of the work, at the pace so far; at first at the pace that was measured elsewhere."""
    if done <= 0.0:
        return expected
    trust = min(2.0 * done, 1.0)
    return (1.0 - done) * ((1.0 - trust) * expected + trust * elapsed / done)


class _Left(ProgressColumn):
    """How long it will still take."""

    def __init__(self, work: WorkDone, expected: float) -> None:
        super().__init__()
        self.work, self.expected = work, expected

    def render(self, task: Task) -> Text:
        left = seconds_left(self.work.done, task.elapsed or 0.0, self.expected)
        return Text(f"about {_in_words(left)} left" if left >= 1.0 else "nearly done", style="dim")


class _Done(BarColumn):
    """A bar that the work moves."""

    def __init__(self, work: WorkDone) -> None:
        super().__init__(bar_width=30)
        self.work = work

    def render(self, task: Task) -> Any:
        task.completed = self.work.done
        return super().render(task)


def _in_words(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90.0 else f"{seconds:.0f} s"


@contextmanager
def waiting(what: str, found: PredictionFile, draws: int, quiet: bool, pieces: int | None = None) -> Iterator[WorkDone]:
    """Show a bar while the work within is done, on a terminal only; it leaves no trace.

    ``pieces`` are the parts of the work, one a model unless given; what is yielded is shown when one is done.
    """
    parts = len(found.models) if pieces is None else pieces
    watcher = WATCHER.get()
    if watcher is None and (quiet or not err.is_terminal):
        yield WorkDone(parts)
        return
    expected = expected_seconds(len(found.y), len(found.classes), len(found.models), draws)
    work = WorkDone(parts) if watcher is None else watcher(parts, expected)
    watched = WATCHED.set(work)
    try:
        if watcher is not None:
            yield work
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), _Done(work), _Left(work, expected))
        # what is printed meanwhile goes where it belongs, also where standard output is no terminal
        with Progress(*columns, console=err, transient=True, redirect_stdout=False) as bar:
            bar.add_task(what, total=1.0)
            work.hide = bar.stop
            yield work
    finally:
        WATCHED.reset(watched)

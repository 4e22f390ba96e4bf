"""A progress bar with the remaining time, for work that takes more than a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from calibrary.cli.shared import err
from calibrary.inference.draw.waiting import WATCHED, WorkDone, left_in_words, seconds_left
from calibrary.tables.layout import PredictionFile

#: Measured seconds of a report on one usual core: log10 of the rows, seconds for two classes, for ten classes.
_ROWS, _TWO, _TEN = (2.0, 3.0, 4.3, 5.0, 6.0), (8.0, 12.0, 22.0, 30.0, 45.0), (10.0, 15.0, 60.0, 80.0, 120.0)
#: The share of that time that does not depend on the number of draws.
_VALUES = 0.25


#: A function that shows the progress instead of the terminal's bar; it gets the number of pieces and the seconds.
WATCHER: ContextVar[Callable[[int, float], WorkDone] | None] = ContextVar("WATCHER", default=None)


def expected_seconds(n: int, k: int, models: int, draws: int) -> float:
    """The approximate duration in seconds, interpolated from measured times."""
    two, ten = (float(np.interp(np.log10(max(n, 1)), _ROWS, times)) for times in (_TWO, _TEN))
    one = two if k == 2 else ten * max(1.0, k / 10.0) ** 0.5
    return models * one * (_VALUES + (1.0 - _VALUES) * draws / 199.0)


class _Left(ProgressColumn):
    """The column of the progress bar that shows the remaining time."""

    def __init__(self, work: WorkDone, expected: float) -> None:
        super().__init__()
        self.work, self.expected = work, expected

    def render(self, task: Task) -> Text:
        left = seconds_left(self.work.done, task.elapsed or 0.0, self.expected)
        return Text(left_in_words(left), style="dim")


class _Done(BarColumn):
    """A progress bar that counts finished pieces."""

    def __init__(self, work: WorkDone) -> None:
        super().__init__(bar_width=30)
        self.work = work

    def render(self, task: Task) -> Any:
        task.completed = self.work.done
        return super().render(task)


@contextmanager
def waiting(what: str, found: PredictionFile, draws: int, quiet: bool, pieces: int | None = None) -> Iterator[WorkDone]:
    """Show a progress bar during the block, on a terminal only; the bar is removed at the end.

    ``pieces`` is the number of parts of the work, by default one per model; call the yielded function after each part.
    """
    parts = len(found.models) if pieces is None else pieces
    watcher = WATCHER.get()
    if watcher is None and (quiet or not err.is_terminal):
        yield WorkDone(parts)
        return
    expected = expected_seconds(len(found.y), len(found.classes), parts, draws)
    work = WorkDone(parts) if watcher is None else watcher(parts, expected)
    watched = WATCHED.set(work)
    try:
        if watcher is not None:
            yield work
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), _Done(work), _Left(work, expected))
        # text printed meanwhile goes to its own stream, even if standard output is not a terminal
        with Progress(*columns, console=err, transient=True, redirect_stdout=False) as bar:
            bar.add_task(what, total=1.0)
            work.hide = bar.stop
            yield work
    finally:
        WATCHED.reset(watched)

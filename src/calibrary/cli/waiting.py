"""A bar for work that takes longer than a moment, with the time left from its first second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from calibrary.cli.options import err
from calibrary.cli.read import PredictionFile
from calibrary.inference.resampling import WATCHED

#: Seconds that a report took on one core of a usual machine: rows (as powers of ten), two classes, ten classes.
_ROWS, _TWO, _TEN = (2.0, 3.0, 4.3, 5.0, 6.0), (8.0, 12.0, 25.0, 35.0, 60.0), (10.0, 15.0, 60.0, 80.0, 120.0)
#: The part of it that no draws would take.
_VALUES = 0.25


def expected_seconds(n: int, k: int, models: int, draws: int) -> float:
    """About how long it takes, from measured times."""
    two, ten = (float(np.interp(np.log10(max(n, 1)), _ROWS, times)) for times in (_TWO, _TEN))
    one = two if k == 2 else ten * max(1.0, k / 10.0) ** 0.5
    return models * one * (_VALUES + (1.0 - _VALUES) * draws / 199.0)


class _Left(ProgressColumn):
    """How long it will still take."""

    def render(self, task: Task) -> Text:
        left = (task.total or 0.0) - (task.elapsed or 0.0)
        said = f"about {_in_words(left)} left" if left > 1.0 else "a moment longer than expected"
        return Text(said, style="dim")


class _Done(BarColumn):
    """A bar that time moves."""

    def render(self, task: Task) -> Any:
        task.completed = min(task.elapsed or 0.0, 0.98 * (task.total or 1.0))
        return super().render(task)


def _in_words(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90.0 else f"{seconds:.0f} s"


@contextmanager
def waiting(what: str, found: PredictionFile, draws: int, quiet: bool) -> Iterator[None]:
    """Show a bar while the work within is done, on a terminal only; it leaves no trace."""
    if quiet or not err.is_terminal:
        yield
        return
    total = expected_seconds(len(found.y), len(found.classes), len(found.models), draws)
    watched = WATCHED.set(True)
    try:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), _Done(bar_width=30), _Left())
        with Progress(*columns, console=err, transient=True) as bar:
            bar.add_task(what, total=total)
            yield
    finally:
        WATCHED.reset(watched)

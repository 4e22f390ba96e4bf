"""Run all refits of a validation, in one or several processes, with a progress bar, and count failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedError, extra, warn
from calibrary.base.numbers import counted, percent
from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.waiting import ProgressBar
from calibrary.validation.procedure import Procedure, Refit

#: The rows to fit with their weights, and the rows to predict (None: all rows).
Task = tuple[tuple[Indices, Array | None], Indices | None]
#: A larger share of failed refits than this gives a warning.
_MANY_FAILED = 0.05


@dataclass
class Tally:
    """The number of refits, of failed ones, the reason of the first failure, and the CPU time in seconds."""

    n: int = 0
    n_failed: int = 0
    failure: str = ""
    seconds: float = 0.0

    def add(self, made: Refit) -> Refit:
        self.n += 1
        self.seconds += made.seconds
        if made.probability is None:
            self.n_failed += 1
            self.failure = self.failure or made.failure
        return made

    @property
    def sentence(self) -> Sentence:
        """The number of failed refits and the first reason, in words; empty if none failed."""
        if not self.n_failed:
            return Sentence("")
        text = (
            f"{self.n_failed:,} of {counted(self.n, 'refit')} failed ({percent(self.n_failed / self.n)}) and were left "
            f"out; the first: {self.failure}"
        )
        return Sentence(text, measured(text, refits=self.n, failed=self.n_failed))

    def refuse_or_warn(self) -> None:
        """Raise an error if every refit failed, and a warning if many did."""
        if self.n and self.n_failed == self.n:
            raise RefusedError(f"every one of {counted(self.n, 'refit')} failed; the first: {self.failure}")
        if self.n_failed > _MANY_FAILED * self.n:
            warn(self.sentence)


@dataclass
class Runner:
    """Refit a procedure to many samples of the rows."""

    procedure: Procedure
    X: Any
    y: NDArray[Any]
    workers: int | None = None
    progress: bool | Callable[[int, int], Any] | None = None
    tally: Tally = field(default_factory=Tally)

    def __call__(self, tasks: Iterable[Task], total: int, what: str) -> Iterator[Refit]:
        """The refits in the order of the tasks."""
        bar = ProgressBar(total, what, shown=None if callable(self.progress) else self.progress)
        try:
            for done, made in enumerate(self._made(tasks), start=1):
                bar.done(True)
                if callable(self.progress):
                    self.progress(done, total)
                yield self.tally.add(made)
        finally:
            bar.close()

    def _made(self, tasks: Iterable[Task]) -> Iterator[Refit]:
        if self.workers in (None, 1):
            for fit, target in tasks:
                yield self.procedure.refit(self.X, self.y, fit, target)
            return
        with extra("sklearn", "refitting in several processes"):
            from joblib import Parallel, delayed
        refit = delayed(self.procedure.refit)
        parallel = Parallel(n_jobs=self.workers, return_as="generator")
        yield from parallel(refit(self.X, self.y, fit, target) for fit, target in tasks)

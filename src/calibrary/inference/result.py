"""The result of every verb that estimates a number: :class:`Estimate`, and that of ``interval``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from calibrary.base.claims import Sentence
from calibrary.metrics.machinery.declare import Result
from calibrary.metrics.machinery.shown import in_short

_UNSAID = Sentence("")
if TYPE_CHECKING:
    Number = Any  # or an array, if a metric has several values
else:
    Number = float  # what a saved file must have


class ConfidenceInterval(NamedTuple):
    """The two ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Estimate(Result):
    """An estimated number with what is known about its error. Unpacks as ``low, high = estimate``.

    What is unknown is NaN, or empty; the numbers are arrays if a metric has several values. Every result with an
    interval is an ``Estimate`` or holds some of them.

    Attributes
    ----------
    value, low, high : the estimated number and the ends of its interval
    level : the confidence level of the interval
    standard_error : of the value; NaN if the interval was inverted from tests, because its ends follow from no
        standard error
    pvalue : of the hypothesis that the result names
    expected_by_chance : the mean value if that hypothesis is true
    method, note : how the interval was made, and why or what else must be known
    sentence : the result in words
    draws : the values on the redrawn data
    """

    value: Number
    low: Number = float("nan")
    high: Number = float("nan")
    level: float = float("nan")
    standard_error: Number = float("nan")
    pvalue: Number = float("nan")
    expected_by_chance: Number = float("nan")
    method: str = ""
    note: str = ""
    sentence: Sentence = _UNSAID
    draws: Any = ()

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """The two ends, as in scipy's results."""
        return ConfidenceInterval(self.low, self.high)

    @property
    def bootstrap_distribution(self) -> Any:
        """The values on the redrawn data, as in scipy's results."""
        return self.draws

    def __iter__(self) -> Iterator[Any]:
        yield self.low
        yield self.high

    @classmethod
    def from_estimate(cls, found: Estimate, **more: Any) -> Self:
        """An estimate of this class with the fields of another one, and more of its own."""
        return cls(**{f.name: getattr(found, f.name) for f in fields(Estimate)} | more)

    def under(self, names: Iterable[str]) -> dict[str, Any]:
        """Fields under these names, new or old, for a file."""
        now = self._renamed()
        return {name: attrgetter(now.get(name, name))(self) for name in names}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """A state of an earlier version may have the numbers of an estimate that is held in fields of their own."""
        super().__setstate__(state)
        for new in {new.partition(".")[0] for new in self._renamed().values() if "." in new}:
            parts = {n.partition(".")[2]: vars(self).pop(n) for n in [*vars(self)] if n.startswith(f"{new}.")}
            ends = zip(("low", "high"), parts.pop("confidence_interval", ()), strict=False)
            vars(self).update({new: Estimate(**parts, **dict(ends))} if parts else {})

    def __repr__(self) -> str:
        """The known fields on one line; of long arrays the size."""
        named = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr and f.name != "sentence")
        return f"{type(self).__name__}({', '.join(f'{name}={_short(x)}' for name, x in named if _known(x))})"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else in_short(value)


def _known(value: Any) -> bool:
    if isinstance(value, float | np.ndarray):
        return bool(np.size(value)) and not bool(np.all(np.isnan(value)))
    return value is not None and value not in ("", ())


@dataclass(frozen=True)
class Listed(Estimate):
    """An estimate in a table: what was not requested is None, as in the table's file; undefined ends are NaN."""

    def __post_init__(self) -> None:
        stay = ("value", "low", "high") if self.method else ("value",)
        for name, x in vars(self).items():
            if name not in stay and isinstance(x, float) and x != x:
                object.__setattr__(self, name, None)


#: A number that was not estimated.
UNKNOWN = Estimate(float("nan"))


@dataclass(frozen=True)
class IntervalResult(Estimate):
    """A metric with its confidence interval: an :class:`Estimate`. Unpacks as ``low, high = result``.

    The p-value (inversion and triangle) is that of the hypothesis that the predictions are calibrated, on the same
    draws: the interval excludes the perfect value exactly if this p-value is at most 1 - level. The draws are those of
    rows, for inversion those of labels at the most plausible truth. The note has the reason for the method, if "auto"
    chose it, or the formula, if the method is "asymptotic".

    Attributes
    ----------
    bias : mean of the draws minus the value (inversion: minus the true error at the most plausible truth)
    n_resamples : number of draws
    n_failed : number of draws on which the metric is undefined; they were left out
    parts : names of the values, for a metric that has several
    jackknife : "", or what BCa's jackknife left out ("rows", "200 groups")
    path : what was drawn: "rows", or "cells" of rows with nearly equal confidence
    asymptotic_pvalue : p-value by the metric's own asymptotic formula, if it has one; the interval need not agree with
        this p-value
    rubin : how completed data sets were pooled, if ``imputations`` were given; else None
    """

    bias: Any = float("nan")
    n_resamples: int = 0
    n_failed: Any = 0
    parts: tuple[str, ...] = ()
    jackknife: str = ""
    path: str = "rows"
    asymptotic_pvalue: float = float("nan")
    rubin: Any = None

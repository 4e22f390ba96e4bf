"""The studied metrics: every metric of the catalogue that needs only labels and confidences, and user functions.

:func:`left_out` gives the reason for every metric that is not studied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.text import capital
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.inference.verbs.test import test
from calibrary.lookup import catalogue
from calibrary.lookup.study_findings import targets
from calibrary.metrics.machinery.declare import ENTRIES, Entry
from calibrary.metrics.machinery.measure import measure
from calibrary.question import PLAIN, Question

#: The usual binnings, whose choice changes the ECE.
BINNINGS = tuple((binning, n_bins) for binning in ("width", "mass") for n_bins in (5, 10, 20, 30, 50, 100))
#: The lenses for several classes in addition to each metric's own.
LENSES = ("top-label", "class-wise", "full")
#: The inputs that binary labels and confidences can provide.
_AT_HAND = {"order"}


@dataclass(frozen=True)
class Number:
    """One value of a metric in the study.

    Attributes
    ----------
    name : the name in tables; the id of a metric, with its field, binning or lens
    read : function from predictions to the value
    metric : the metric's id, or "" for a user's function
    better, ideal : which direction is better, and the perfect value
    kind : "metric", "binning", "lens" or "test" (a p-value)
    """

    name: str
    read: Callable[[Predictions], float]
    metric: str = ""
    better: str = "lower"
    ideal: float | None = 0.0
    kind: str = "metric"

    def error(self, values: Array) -> Array:
        """The values with the sign such that larger is worse."""
        if self.better == "lower":
            return values
        if self.better == "higher":
            return (0.0 if self.ideal is None else self.ideal) - values
        return np.abs(values - (self.ideal or 0.0))

    def __call__(self, predictions: Predictions) -> tuple[float, str]:
        """The value, and the reason if it is undefined."""
        try:
            with collected_warnings() as warned, np.errstate(all="ignore"):
                value = float(self.read(predictions))
        except ValueError as error:
            if self.metric and not isinstance(error, RefusedError):
                raise  # a bug; but a user's function may raise any error for an undefined value
            return np.nan, str(error)
        if not np.isfinite(value):
            return np.nan, warned[-1] if warned else f"it is {value}"
        return value, ""


def full_name(name: str) -> str:
    """The full name of a studied number with its settings; the name itself for a user's function.

    Examples
    --------
    >>> from calibrary.study.panel import full_name
    >>> full_name("ece, 5 width"), full_name("cis.slope")
    ('Expected calibration error, 5 bins of equal width', 'Cox intercept and slope, slope')
    """
    id, _, setting = name.partition(", ")
    metric, _, field = id.partition(".")
    if metric not in ENTRIES:
        return name
    setting = re.sub(r"^(\d+) (width|mass)$", r"\1 bins of equal \2", setting)
    return capital(", ".join(part for part in (ENTRIES[metric].name, field, setting) if part))


def left_out(entry: Entry) -> str:
    """The reason why a metric is not in the study; empty if it is."""
    if entry.data_type == "matches":
        return "it needs matched detections: study.portfolio simulates boxes"
    missing = [need for need in entry.needs if need not in _AT_HAND]
    if missing:
        return f"it needs {' and '.join(missing)}, and the study simulates only labels and confidences"
    if entry.covered:
        return f"it is another spelling of {entry.specialized({})[0].id}, which is studied"
    return ""


def studied() -> list[Entry]:
    """The metrics of the catalogue that are studied."""
    return [entry for entry in catalogue.values() if not left_out(entry)]


def binary_panel(metrics: Any = None, *, binnings: bool = True) -> list[Number]:
    """The values for binary predictions: of these metrics and functions, or of all."""
    found = [number for given in _named(metrics) for number in _numbers(*given)]
    return found + ([_binned(*each) for each in BINNINGS] if binnings and metrics is None else [])


def class_panel(metrics: Any = None) -> list[Number]:
    """The values for several classes: every metric with its own lens, and with three common lenses."""
    found = []
    for name, given in _named(metrics):
        found += _numbers(name, given)
        if isinstance(given, Entry) and not given.fields:
            others = [lens for lens in LENSES if lens in given.lenses and lens != given.default_lens]
            found += [_through(given, lens) for lens in others]
    return found


def test_panel(metrics: Any = None) -> list[Number]:
    """The p-values of the metrics that have their own test, by its default method."""
    return [
        _tested(given) for _, given in _named(metrics) if isinstance(given, Entry) and given.has_test and given.null
    ]


test_panel.__test__ = False  # type: ignore[attr-defined]  # tests of calibration, not of pytest's


def _named(metrics: Any) -> list[tuple[str, Entry | Callable[..., Any]]]:
    """Names, functions, or a mapping of names to either."""
    if metrics is None:
        return [(entry.id, entry) for entry in studied()]
    if isinstance(metrics, Mapping):
        return [(name, catalogue[given] if isinstance(given, str) else given) for name, given in metrics.items()]
    many: Iterable[Any] = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    found: list[tuple[str, Entry | Callable[..., Any]]] = []
    for given in many:
        if isinstance(given, str):
            entry = catalogue[given]
            if why := left_out(entry):
                raise RefusedError(f"{entry.id} cannot be studied: {why}")
            found.append((entry.key, entry))
        elif callable(given):
            found.append((getattr(given, "__name__", "own"), given))
        else:
            raise TypeError(f"metrics holds {given!r}: pass ids, functions of (y, p), or a mapping of names to either")
    return found


def _numbers(name: str, given: Entry | Callable[..., Any]) -> list[Number]:
    if not isinstance(given, Entry):
        return [Number(name, lambda p: given(p.y, p.probability))]
    found = targets(given)
    if not found[0].field:
        return [Number(name, _reading_of(given), given.id, given.better, given.perfect)]
    called = {t.field: name if len(found) == 1 else f"{name}.{t.field}" for t in found}
    return [Number(called[t.field], _field(given, t.field), given.id, t.better, t.ideal) for t in found]


def _reading_of(entry: Entry, question: Question = PLAIN) -> Callable[[Predictions], float]:
    return lambda p: _one(measure(entry, p, question))


def _one(value: Any) -> float:
    """A single number unchanged; the mean of several (one for each class)."""
    several = isinstance(value, np.ndarray | tuple) and len(np.shape(value)) > 0
    return float(np.mean([float(each) for each in value])) if several else float(value)


def _field(entry: Entry, field: str) -> Callable[[Predictions], float]:
    return lambda p: float(getattr(measure(entry, p), field))


def _binned(binning: str, n_bins: int) -> Number:
    question = PLAIN.with_options(binning=binning, n_bins=n_bins)
    entry = catalogue["ece"]
    return Number(f"ece, {n_bins} {binning}", _reading_of(entry, question), "ece", kind="binning")


def _through(entry: Entry, lens: str) -> Number:
    read = _reading_of(entry, PLAIN.changed(lens=lens))
    return Number(f"{entry.id}, {lens}", read, entry.id, entry.better, entry.perfect, "lens")


def _tested(entry: Entry) -> Number:
    def pvalue(p: Predictions) -> float:
        return float(test(entry.id, p, n_resamples=99, rng=0).pvalue)

    return Number(f"p of {entry.id}", pvalue, entry.id, "higher", None, "test")

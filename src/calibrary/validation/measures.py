"""The metrics that are computed for every refit, with their values in a fixed order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, collected_warnings
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.measure import measure, numbers
from calibrary.question import Question

_OF_FIT = ("calibration slope", "calibration intercept")
#: The default metrics: those that reports of prediction models usually contain.
USUAL = (*_OF_FIT, "oe", "ece", "smece", "ici", "emax", "bs", "scaled Brier score", "auroc", "nll")


#: The metrics that the summary sentence mentions, if they were computed.
SPOKEN = ("calibration slope", "auroc", "bs")


@dataclass(frozen=True)
class Measured:
    """One value of a metric: the metric, and the name of the value if it has several."""

    entry: Entry
    part: str = ""

    @property
    def key(self) -> str:
        return self.entry.key + (f".{self.part}" if self.part else "")


@dataclass(frozen=True)
class Measures:
    """Several metrics with their options, and the names of their values."""

    pairs: tuple[tuple[Entry, Question], ...]
    names: tuple[Measured, ...] = ()

    def of(self, p: Predictions) -> Array:
        """All values; NaN for a metric that is undefined on these data."""
        found: dict[str, float] = {}
        whole: dict[str, Any] = {}  # a fit that gives several values is computed once
        with collected_warnings(), np.errstate(all="ignore"):  # warnings of a metric about a resample are not shown
            for entry, question in self.pairs:
                try:
                    value = _value(entry, p, question, whole)
                except RefusedError:  # an undefined value on this resample is NaN, which the means ignore
                    continue
                found |= {Measured(entry, part).key: x for part, x in numbers(value, entry.fields).items()}
        return np.array([found.get(name.key, math.nan) for name in self.names])

    def named(self, p: Predictions) -> Measures:
        """The metrics with the names of their values on all rows; errors are raised."""
        names: list[Measured] = []
        with collected_warnings():
            for entry, question in self.pairs:
                names += [Measured(entry, part) for part in numbers(measure(entry, p, question), entry.fields)]
        return Measures(self.pairs, tuple(names))

    @property
    def laws(self) -> list[str]:
        """For each value, how its errors depend on the strength of the model's signal."""
        return [name.entry.refit_errors.get(name.part or name.entry.part or "", "") for name in self.names]

    def those(self, smooth: bool) -> Measures:
        """The metrics that the bootstrap can correct, or the others."""
        pairs = tuple(pair for pair in self.pairs if pair[0].smooth is smooth)
        return Measures(pairs, tuple(name for name in self.names if name.entry.smooth is smooth))


def _value(entry: Entry, p: Predictions, question: Question, whole: dict[str, Any]) -> Any:
    if not (entry.part and p.binary) or entry.settings or question.options:
        return measure(entry, p, question)
    if entry.id not in whole:
        whole[entry.id] = measure(catalogue[entry.id], p, question)
    return getattr(whole[entry.id], entry.part)


def chosen(metrics: Any, method: str) -> Measures:
    """The requested metrics; a mapping gives the options of each."""
    if metrics is None:
        usual = [catalogue[name] for name in USUAL]
        return Measures(tuple((e, Question()) for e in usual if not method.startswith("632") or not refusal_632(e)))
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Iterable):
        raise RefusedCallError(
            f"metrics={metrics!r}: pass the name of a metric, a list of names, or a mapping of names to options"
        )
    options = metrics if isinstance(metrics, Mapping) else {}
    found = [(catalogue[name], Question(options=dict(options.get(name, {})))) for name in metrics]
    if not found:
        raise RefusedError("metrics is empty: name at least one metric, or leave it out")
    for entry, _ in found:
        if entry.needs or entry.data_type != "predictions":
            needs = ", ".join(entry.needs) or "matched detections"
            raise RefusedError(f"{entry.key} cannot be validated by refitting: it needs {needs}")
        reason = refusal_632(entry) if method.startswith("632") else ""
        if reason:
            raise RefusedError(f"{entry.key} has no {method} estimate: {reason}")
    return Measures(tuple(found))


def refusal_632(entry: Entry) -> str:
    """The reason why the .632 estimates do not apply to a metric; empty if they do."""
    if not entry.smooth:
        return "on the few rows that a bootstrap sample leaves out, this metric is mostly noise; use method='cv'"
    if entry.measures == "ranking" or entry.part == "slope" or (entry.proper == "strictly" and not entry.settings):
        return ""
    return (
        "it is for strictly proper scores, the AUROC and the calibration slope, because permuted outcomes leave ratios "
        "and intercepts without a value of no information; use method='optimism'"
    )

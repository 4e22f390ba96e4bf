"""How often the default interval of a metric contained the true value, as the stored benchmark measured it.

``benchmarks/coverage.py --write`` creates the table; this file only reads it, so that ``calibrary explain`` can quote
it.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files

from calibrary.base.numbers import percent
from calibrary.metrics.machinery.declare import Entry


@dataclass(frozen=True)
class MeasuredCoverage:
    """Coverage of nominal 95% intervals over all settings (true model, lens, rows) that were simulated.

    Attributes
    ----------
    settings, samples : number of settings that were simulated, and number of samples in all of them
    mean : share of all samples whose interval contained the true value
    worst : the smallest share in any setting
    at : that setting in words
    worst_samples : number of samples in that setting
    """

    settings: int
    samples: int
    mean: float
    worst: float
    at: str
    worst_samples: int


@functools.cache
def _stored() -> dict[str, MeasuredCoverage]:
    text = files("calibrary.lookup").joinpath("coverage.json").read_text(encoding="utf-8")
    return {id: MeasuredCoverage(**row) for id, row in json.loads(text).items()}


def measured_coverage(id: str) -> MeasuredCoverage | None:
    """The measured coverage of a metric's default interval, or None."""
    return _stored().get(id)


def coverage_words(entry: Entry) -> str:
    """One sentence about a metric's default interval: the measured coverage, or that it was not measured.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.lookup.measured_coverage import coverage_words
    >>> coverage_words(cal.catalogue["honest_error"])[:5]
    'none:'
    """
    if entry.no_interval:
        return f"none: {entry.no_interval}"
    found = measured_coverage(entry.id)
    if found is None:
        return "the coverage of its default interval was not measured"
    many = f"{found.settings} settings" if found.settings > 1 else "one setting"
    return (
        f"the default 95% interval contained the true value in {percent(found.mean)} of {found.samples:,} samples of "
        f"{many}, and in {percent(found.worst)} of {found.worst_samples:,} in the worst setting ({found.at})"
    )

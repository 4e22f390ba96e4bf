"""Functions of 0.3 that another call replaces; they work as before until they are removed.

``calibrary.public.SUPERSEDED`` has the new call of each, which the warning gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.columns import takes_table
from calibrary.inference.draw.null import NullDistribution
from calibrary.inference.verbs.chance import ExpectedByChance
from calibrary.inference.verbs.chance import expected_by_chance as _expected_by_chance
from calibrary.inference.verbs.comparison import Comparison, compare
from calibrary.inference.verbs.verdict import Verdict, verdict
from calibrary.lookup.by_name import catalogue


def calibration_gain(metric: Any, y_true: Any, before: Any, after: Any, **options: Any) -> Comparison:
    """The gain of a recalibration: ``compare(metric, y_true, before, after)``."""
    return compare(metric, y_true, before, after, **options)


def null_distribution(metric: Any, y_prob: Any, **options: Any) -> NullDistribution:
    """The distribution of a metric by chance: ``expected_by_chance(metric, y_true, y_prob).null``."""
    return _expected_by_chance(metric, None, y_prob, **options).null


def consistency_band(metric: Any, y_true: Any, y_prob: Any = None, **options: Any) -> ExpectedByChance:
    """The range on both sides: ``expected_by_chance(..., method="consistency", alternative="two-sided")``."""
    asked = {"method": "consistency", "alternative": "two-sided", **options}
    return _expected_by_chance(metric, y_true, y_prob, **asked)


def expected_by_chance(
    metric: str, y_true: Any, y_prob: Any = None, *, part: str | None = None, n_resamples: int = 200, **options: Any
) -> ExpectedByChance:
    """As :func:`calibrary.expected_by_chance`, with ``part="slope"`` in place of the metric "cis.slope"."""
    entry = catalogue[metric]
    names = [name for name, _ in entry.fields]
    if part is not None and part not in names:
        remedy = f"choose from {', '.join(map(repr, names))}" if names else "it is one number: omit part"
        raise RefusedError(f"{entry.id} has no part {part!r}: {remedy}")
    named = metric if part is None else f"{entry.id}.{part}"
    found = _expected_by_chance(named, y_true, y_prob, n_resamples=n_resamples, **options)
    if np.ndim(found.value):
        raise RefusedError(f"{entry.id} has no part None: choose from {', '.join(map(repr, names))}")
    return found


@takes_table
def assert_calibrated(
    y_true: Any, y_prob: Any = None, *conditions: str, undecided: str = "pass", **options: Any
) -> tuple[Verdict, ...]:
    """Fail a test unless every condition holds: ``verdict(condition, y_true, y_prob).require()`` for each."""
    one_of("undecided", undecided, ("pass", "fail"))
    if not conditions or not all(isinstance(text, str) for text in conditions):
        raise RefusedError('assert_calibrated needs at least one condition: assert_calibrated(y, p, "ece<0.05")')
    answers = tuple(verdict(text, y_true, y_prob, undecided=undecided, **options) for text in conditions)
    lines = [answer.sentence for answer in answers if not answer.passed]
    if lines:
        raise AssertionError("\n".join(lines))
    return answers

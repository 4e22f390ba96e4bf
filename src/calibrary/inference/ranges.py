"""The possible range of a metric with its options, to which an interval is clipped."""

from __future__ import annotations

import math
from typing import Any

from calibrary.metrics.machinery.declare import Entry
from calibrary.question import Question

#: The range is unknown.
ANYWHERE = (-float("inf"), float("inf"))


def range_of(entry: Entry, question: Question, data: Any) -> tuple[float, float]:
    """The smallest and largest possible value of the metric on such data, with the options of this question.

    Unlimited for a metric of several values, because their ranges differ.
    """
    if entry.fields:
        return ANYWHERE
    if question.options.get("skill"):  # one minus a ratio of losses
        return -math.inf, 1.0
    if entry.range_with is None:
        return entry.range
    low, high = entry.range_with(question.options, data.read_as("predictions", entry.id).k)
    return float(low), float(high)

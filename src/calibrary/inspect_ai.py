"""Metrics for Inspect: the calibration of the confidences that a scorer writes, in addition to accuracy.

Use ``@scorer(metrics=[accuracy(), ece(), brier()])``; each metric returns its value and both ends of its interval. The
module needs Inspect (``pip install inspect-ai``); no other module of calibrary imports it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, metric

from calibrary.base.errors import collected_warnings, warn
from calibrary.inference.verbs.interval import interval
from calibrary.language.inspect_log import _VALUES, CONFIDENCE
from calibrary.language.log import LogError, as_fractions

__all__ = ["brier", "ece", "smece"]


def _pairs(scores: list[SampleScore], confidence: str | None) -> tuple[list[int], list[float]]:
    """Whether each answer is right, and the confidence in the score's metadata; scores without either are left out."""
    right, stated = [], []
    for one in scores:
        value, metadata = one.score.value, one.score.metadata or {}
        correct = _VALUES.get(value) if isinstance(value, str) else value if value in (0, 1) else None
        names = [confidence] if confidence is not None else [name for name in metadata if name.lower() in CONFIDENCE]
        right.append(correct)
        stated.append(metadata.get(names[0]) if names else None)
    try:
        sure, _ = as_fractions(stated, [one.sample_id for one in scores], "the confidence", "no calibration metric")
    except LogError as error:  # an error here would end the evaluation, after its samples were paid for
        warn(str(error))
        return [], []
    kept = [(int(y), c) for y, c in zip(right, sure, strict=True) if y is not None and c is not None]
    if len(kept) < len(scores):
        warn(
            f"{len(scores) - len(kept):,} of {len(scores):,} scores are left out: they have no confidence, or are "
            "neither right nor wrong"
        )
    return [y for y, _ in kept], [c for _, c in kept]


def _measured(id: str, scores: list[SampleScore], confidence: str | None) -> Mapping[str, float]:
    right, sure = _pairs(scores, confidence) if scores else ([], [])
    if len(right) < 2:
        return {id: math.nan, f"{id}_low": math.nan, f"{id}_high": math.nan}
    with collected_warnings():
        found = interval(id, right, sure, rng=0)
    return {id: float(found.value), f"{id}_low": float(found.low), f"{id}_high": float(found.high)}


def _of(id: str, confidence: str | None) -> Metric:
    def measure(scores: list[SampleScore]) -> Any:
        return _measured(id, scores, confidence)

    return measure


@metric
def ece(confidence: str | None = None) -> Metric:
    """Expected calibration error with its 95% interval; ``confidence`` names the field of the score's metadata."""
    return _of("ece", confidence)


@metric
def smece(confidence: str | None = None) -> Metric:
    """Smooth calibration error with its 95% interval; ``confidence`` names the field of the score's metadata."""
    return _of("smece", confidence)


@metric
def brier(confidence: str | None = None) -> Metric:
    """Brier score with its 95% interval; ``confidence`` names the field of the score's metadata."""
    return _of("bs", confidence)

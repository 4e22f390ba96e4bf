"""Soundness and completeness: the values of metrics near calibration and far from it (section 9.2), on examples.

The examples are whole populations, written as rows with weights: predictions within a known distance of calibrated
predictions, and predictions far from all calibrated ones. The facts of every entry must agree with its values there.
"""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

TINY = 1e-5


def population(*cells):
    """Labels, confidences and weights of 1500 rows for cells of (confidence, share of events, share of rows)."""
    rows = [
        (label, confidence, 1500 * share * weight)
        for confidence, events, weight in cells
        for label, share in ((1, events), (0, 1 - events))
        if share > 0
    ]
    y, c, w = zip(*rows, strict=True)
    return np.array(y), np.array(c), np.array(w)


def swapped(b):
    """Two confidences in the b-th of fifteen bins, each with the other's rate."""
    low, high = (b + 0.2) / 15, (b + 0.9) / 15
    return (low, high, 1 / 30), (high, low, 1 / 30)


#: Within 0.002 of calibrated predictions.
NEAR = {
    "a calibrated coin": population((0.4, 0.4, 1)),
    "a calibrated coin, moved a little towards its outcome": population((0.4 + TINY, 1, 0.4), (0.4 - TINY, 0, 0.6)),
    "a rare event called impossible": population((np.exp(-500.0), 0.002, 1)),
}
#: Further than 0.003 from every calibrated prediction.
FAR = {
    "errors that cancel": population((0.2, 0.8, 0.5), (0.8, 0.2, 0.5)),
    "errors that cancel within a bin": population(*(cell for b in range(15) for cell in swapped(b))),
    "a little above a half, and always right": population((0.51, 1, 1)),
    "even odds for what always happens": population((0.5, 1, 1)),
}
CLAIMED = [e for e in cal.catalogue.values() if e.sound is not None or e.complete is not None]


def badness(entry, data):
    """The distance of the metric from its best possible value."""
    best = entry.perfect
    if best is None:
        best = entry.range[1] if entry.better == "higher" else entry.range[0]
    y, c, w = data
    return abs(float(entry(y, c, sample_weight=w, lens="binary")) - best)


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("entry", CLAIMED, ids=lambda e: e.id)
def test_stated_relations_to_the_distance_hold_on_examples(entry):
    near, far = ({name: badness(entry, data) for name, data in kind.items()} for kind in (NEAR, FAR))
    if entry.complete:
        assert max(near.values()) < 0.03, near
    elif entry.complete is False:
        assert max(near.values()) > 0.1, near
    if entry.sound:
        assert min(far.values()) > 1e-3, far
    elif entry.sound is False:
        assert min(far.values()) < 1e-9, far


@pytest.mark.parametrize("kind", [NEAR, FAR], ids=["near", "far"])
def test_the_examples_are_as_far_as_they_claim(kind):
    for name, (y, c, w) in kind.items():
        distance = cal.compute("lower_distance", y, c, sample_weight=w)
        assert distance <= 0.0021 if kind is NEAR else distance >= 0.003, name


def test_soundness_and_completeness_are_stated():
    assert {e.id for e in cal.catalogue.values() if e.consistent} == {
        "sice", "smece", "lkce", "sce", "intce", "lower_distance",
    }  # fmt: skip
    assert (cal.catalogue["ece"].sound, cal.catalogue["ece"].complete) == (False, False)
    assert (cal.catalogue["nll"].sound, cal.catalogue["nll"].complete) == (True, False)
    strictly = [e for e in cal.catalogue.values() if e.proper == "strictly" and e.sound is not None]
    assert strictly
    assert all(e.sound for e in strictly), "every strictly proper score is sound"
    assert cal.catalogue["smece"].to_dict()["consistent"] is True
    assert cal.catalogue["bs"].robustness.startswith("sound, not complete")
    assert cal.catalogue["eo"].robustness == ""

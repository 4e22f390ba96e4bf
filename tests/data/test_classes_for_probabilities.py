"""Predictions that hold only 0 and 1 are the output of ``model.predict``: every metric warns of them."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.metrics.machinery.entry import ENTRIES
from each import each

WARNING = "y_prob contains only 0 and 1"
Y = np.arange(60) % 3 == 0
CLASSES = (np.arange(60) % 2).astype(float)


def warned(call, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(RefusedError):
            call(*data)
    return [str(w.message) for w in caught if WARNING in str(w.message)]


@each([id for id, entry in ENTRIES.items() if entry.data_type == "predictions"])
def test_every_metric_warns_of_classes(id):
    found = warned(ENTRIES[id].function, Y, CLASSES)
    assert len(found) >= 1
    assert "predict_proba" in found[0]


def test_the_compiled_pass_leaves_predicted_classes_to_the_computation_that_warns():
    y, c = np.tile(Y, 1000), np.tile(CLASSES, 1000)
    for _ in range(3):
        assert warned(cal.brier_score, y, c)
        assert warned(cal.expected_calibration_error, y, c)
        assert warned(cal.log_loss, y, np.stack([1 - c, c, 0 * c], axis=1).astype(float))


@pytest.mark.parametrize(
    "p",
    [
        np.where(np.arange(60) == 59, 0.5, CLASSES),  # one probability between
        np.ones(60),  # one number for all
        np.linspace(0, 1, 60),
        np.array([0.0, 1.0]),  # an example of two rows
    ],
)
def test_probabilities_are_taken_without_a_warning(p):
    assert not warned(cal.brier_score, Y[: len(p)], p)


def test_the_verbs_warn_too():
    assert warned(lambda y, p: cal.evaluate(y, p, metrics=["brier"]), Y, CLASSES)
    assert warned(lambda y, p: cal.interval("ece", y, p, n_resamples=20, rng=0), Y, CLASSES)

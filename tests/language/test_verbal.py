"""Confidences in text: what is understood, what is not, and that it is said."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.language import PHRASES, verbal_confidence

UNDERSTOOD = [
    ("7\nConfidence: 77%", 0.77), ("p = .8", 0.8), ("I am 90% sure.", 0.9), ("Confidence: 0.65", 0.65),
    ("confidence level is 80 percent", 0.8), ("**Confidence:** 95%", 0.95), ("Probability: 0.3.", 0.3),
    ("Confidence: 85", 0.85), ("Confidence: 100%", 1.0), ("confidence 0", 0.0), ("Confidence: 8/10", 0.8),
    ("Confidence: 9 out of 10", 0.9), ("I'm 75 % confident that it is 12.", 0.75), ("p: 1", 1.0),
    ("It is very likely Paris.", 0.9), ("It is likely Paris.", 0.7), ("That is UNLIKELY.", 0.2),
    ("Confidence: 70%. So 70% sure.", 0.7), ("The answer is 42 (p = 0.55)", 0.55), ("Confidence: 12.5%", 0.125),
    ("Confidence: 10", 0.1), ("Confidence (0-100): 85", 0.85), ("Confidence (0 to 1): 0.7", 0.7),
    ("Confidence: 0,9", 0.9), ("Confidence (0-10): 8", 0.8), ("Confidence (0-100): 1", 0.01),
    ("**Confidence (0–100):** 85", 0.85), ("Confidence on a scale from 0 to 100: 85", 0.85),
    ("Confidence: 7 on a scale of 0 to 10", 0.7), ("Confidence (0-100%): 85%", 0.85), ("Confidence: 1e-1", 0.1),
    ("Confidence: 0.9%", 0.009), ("Confidence: 1%", 0.01), ("Confidence: 85,5%", 0.855), ("Confidence: 0.9/1.0", 0.9),
    ("Confidence: 0.8 (80%)", 0.8), ("It is 20% likely", 0.2), ("No, I am 90% sure.", 0.9),
    ("I am confident (90%)", 0.9), ("Confidence: 80% because it is not Rome", 0.8),
    ("The 95% confidence interval is 0.2 to 0.8. Confidence: 70%", 0.7), ("Chelsea won (0-1). Confidence: 80%", 0.8),
    ('{"answer": "Paris", "confidence": 0.85, "n": 3}', 0.85), ("I am confident: 42 is the answer", 0.8),
    ("90% sure. " * 20, 0.9),
]  # fmt: skip
NOT_UNDERSTOOD = [
    ("The answer is 42.", "state no confidence"), ("", "state no confidence"), (None, "are missing"),
    ("Confidence: 80%. Well, 60% sure", "hold different confidences"), ("Confidence: 130%", "not a probability"),
    ("Confidence: 3", "not a probability"), ("not likely", "negate a phrase"), ("likely, or unlikely", "different"),
    ("50% of people are tall", "state no confidence"), ("p. 80 of the book", "no confidence"),
    ("p 80 of the book", "no confidence"), ("Confidence: 9.99", "not a probability"),
    ("Confidence: 50-60%", "a range"), ("p = 0.8 to 0.9", "a range"), ("80–90% sure", "a range"),
    ("Confidence: 0.8 ± 0.1", "a range"), ("between 60% and 90% sure", "a range"),
    ("Confidence: 80%, or rather 60% sure", "a second number"), ("Confidence: 70 80", "a second number"),
    ("I am 75% sure, maybe 80%", "a second number"), ("at least 90% sure", "a bound"),
    ("I am not 90% sure", "negate a confidence"), ("I'm not even 50% confident", "negate"),
    ("I'm not, I think, 90% sure", "negate"), ("I am 95% sure it is wrong", "negate"),
    ("error probability: 0.2", "negate"), ("Confidence: 80% that it isn't", "negate"),
    ("I can’t be certain", "negate a phrase"), ("It is likely wrong", "negate"),
    ("not at all confident", "negate a phrase"), ("I dont think it is likely", "negate"),
    ("less likely", "compare or modify"), ("ninety percent certain", "compare or modify"),
    ("a 95% confidence interval", "state no confidence"), ("at the 95% confidence level", "state no confidence"),
    ("Confidence (1-10): 7", "not a probability"), ("Confidence (0-100): 0.85", "not a probability"),
    ("Confidence (0-1): 85", "not a probability"), ("Confidence: 40/50", "not a probability"),
    ("Confidence: 1,000", "not a probability"), ("Confidence: 0-1", "no confidence"),
    ("Confidence: 90th percentile", "no confidence"), ("Confidence: 0.9‰", "no confidence"),
    ("Confidence: -0.5", "no confidence"), ("90% sure. " * 21, "more than 20 confidences"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), UNDERSTOOD)
def test_a_confidence_is_understood(text, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verbal_confidence([text])[0] == pytest.approx(value)


@pytest.mark.parametrize(("text", "why"), NOT_UNDERSTOOD)
def test_what_is_not_understood_is_nan_and_said(text, why):
    with pytest.warns(cal.CalibrationWarning, match=why):
        assert math.isnan(verbal_confidence([text])[0])


def test_one_warning_counts_what_was_missed():
    texts = ["Confidence: 50%", "no idea", None, "hm", "Confidence: 300%"]
    said = "4 texts of 5 give no confidence .NaN.: 2 state no confidence, the first at 1; 1 are missing, the first at 2"
    with pytest.warns(cal.CalibrationWarning, match=said) as caught:
        found = verbal_confidence(np.array(texts, dtype=object))
    assert len(caught) == 1
    assert np.isnan(found).tolist() == [False, True, True, True, True]


def test_words_can_be_given_or_left_out():
    assert verbal_confidence(["surely"], words={"surely": 0.99})[0] == 0.99
    with pytest.warns(cal.CalibrationWarning, match="state no confidence"):
        assert np.isnan(verbal_confidence(["very likely"], words={})).all()
    with pytest.raises(ValueError, match=r"words\['sure'\] = 2 is not a probability"):
        verbal_confidence(["a"], words={"sure": 2})
    assert all(0 < chance < 1 for chance in PHRASES.values())


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(TypeError, match="texts is one text"):
        verbal_confidence("Confidence: 50%")
    with pytest.raises(TypeError, match="texts holds 7"):
        verbal_confidence([7])


def test_a_bare_one_beside_bare_percentages_is_not_understood():
    with pytest.warns(cal.CalibrationWarning, match="1 state 1 without a unit beside percentages .*, the first at 1"):
        found = verbal_confidence(["Confidence: 85", "Confidence: 1", "Confidence: 1%"])
    assert found == pytest.approx([0.85, np.nan, 0.01], nan_ok=True)
    assert verbal_confidence(["Confidence: 0.85", "Confidence: 1"]).tolist() == [0.85, 1.0]


def test_long_hostile_text_takes_no_time():
    with pytest.warns(cal.CalibrationWarning):
        verbal_confidence(["confidence " * 20000 + "!", "1" * 50000, "confidence" + " :" * 50000, "90% sure " * 20000,
                           "very likely " * 20000, "0-1" * 20000, "(0 " * 20000, "not, " * 20000])  # fmt: skip

"""The embedded data sets: what they say of themselves is so, and they are the same every time."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal


def test_the_review_example_has_500_rows_below_the_diagonal():
    y, c, _, truth = cal.datasets.review_example()
    assert len(y) == 500
    assert (truth < c).all()
    np.testing.assert_allclose(truth, cal.datasets.overconfident_curve(c))
    again = cal.datasets.review_example()
    np.testing.assert_array_equal(y, again.y_true)
    # the labels follow the curve, and the truth is calibrated
    many = cal.datasets.review_example(20_000, rng=1)
    assert cal.compute("esce", many.y_true, many.truth) == pytest.approx(0, abs=0.01)
    assert cal.compute("ece", many.y_true, many.y_prob) == pytest.approx(0.1, abs=0.01)
    assert cal.test("spiegelhalter", many.y_true, many.truth).pvalue > 0.01


def test_ordinal_classes_are_five_and_the_truth_is_calibrated():
    y, p, _, truth = cal.datasets.ordinal()
    assert p.shape == truth.shape == (600, 5)
    assert set(y) == {0, 1, 2, 3, 4}
    np.testing.assert_allclose(p.sum(axis=1), 1)
    many = cal.datasets.ordinal(20_000, rng=2)
    shares = np.bincount(many.y_true) / 20_000
    np.testing.assert_allclose(shares, many.truth.mean(axis=0), atol=0.012)
    assert cal.ranked_probability_score(many.y_true, many.truth) < cal.ranked_probability_score(*many[:2])


def test_detections_are_the_files_of_the_demonstration():
    found = cal.datasets.detections()
    assert len(found) == 271
    assert 0 < cal.compute("d_ece", found) < 1

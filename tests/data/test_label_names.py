"""Names of classes beside columns without names: their order is an assumption, and it is said once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal

Y = ["dog", "cat", "eel", "cat"]
P = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0.5, 0.25, 0.25]])


def test_columns_without_names_are_taken_in_sorted_order_with_a_warning():
    with pytest.warns(cal.CalibrationWarning, match=r"sorted order, 'cat', 'dog', 'eel', .*pass labels=") as said:
        found = cal.predictions(Y, P)
    assert len(said) == 1
    assert found.y.tolist() == [1, 0, 2, 0]


def test_named_columns_and_named_labels_are_taken_without_a_word():
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cal.predictions(Y, P, labels=["dog", "cat", "eel"]).y.tolist() == [0, 1, 2, 1]
        assert cal.predictions(Y, pandas.DataFrame(P, columns=["dog", "cat", "eel"])).y.tolist()

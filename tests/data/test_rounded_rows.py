"""Rows of several classes that do not sum to 1: rounding is undone and said, everything else is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.checks import decimals_of


def _rows(n=400, k=10, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), n)
    return np.array([rng.choice(k, p=row) for row in p]), p


@pytest.mark.parametrize(
    ("decimals", "dtype"),
    [(2, np.float64), (3, np.float64), (4, np.float64), (6, np.float64), (2, np.float32), (4, np.float32)],
)
def test_rounded_rows_are_divided_by_their_sums_and_this_is_said(decimals, dtype):
    y, exact = _rows()
    p = np.round(exact, decimals).astype(dtype)
    given = p.copy()
    off = np.abs(p.sum(axis=1, dtype=np.float64) - 1.0) > (1.000001e-6 if dtype is np.float64 else 32 * 1.2e-7)
    assert off.any()
    with pytest.warns(cal.CalibrationWarning, match=rf"^{off.sum():,} of 400 rows .*rounding to {decimals} decimals"):
        found = cal.predictions(y, p)
    p = p.astype(np.float64)
    assert np.array_equal(found.probability[~off], p[~off])  # rows that sum to 1 keep every bit
    assert np.array_equal(found.probability[off], p[off] / p[off].sum(axis=1, keepdims=True))
    assert np.array_equal(given, p.astype(dtype))  # the caller's array is not changed


def test_exact_rows_keep_every_bit_without_a_word():
    y, p = _rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(cal.predictions(y, p).probability, p)


@pytest.mark.parametrize(
    ("row", "explained"),
    [
        ([0.33, 0.33, 0.33], True),  # 0.99, and three times half of 0.01 is 0.015
        ([0.34, 0.34, 0.33], True),
        ([0.34, 0.34, 0.34], False),
        ([0.32, 0.33, 0.33], False),
        ([0.3, 0.3, 0.4], True),
        ([0.3333, 0.3333, 0.3333], True),
        ([0.3333, 0.3333, 0.3332], False),
        ([0.3, 0.3, 0.3], False),  # three times half of 0.1 would be 0.15: rounding is never believed beyond 0.05
        ([1 / 3, 1 / 3, 0.33], False),  # not rounded
    ],
)
def test_half_a_unit_of_the_last_decimal_for_each_class(row, explained):
    p = np.tile(row, (6, 1))
    p[0] = [0.25, 0.25, 0.5]
    y = [0, 1, 2, 0, 1, 2]
    if explained:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            assert np.allclose(cal.predictions(y, p).probability.sum(axis=1), 1.0, atol=1e-12)
    else:
        with pytest.raises(cal.RefusedError, match=r"y_prob\[1\] sums to .*rescale=True"):
            cal.predictions(y, p)


def test_percentages_are_rounded_in_their_own_unit():
    y, exact = _rows(k=4)
    p = np.round(100.0 * exact, 1)
    with pytest.warns(cal.CalibrationWarning, match="divided by their sums"):
        found = cal.predictions(y, p, percent=True)
    assert np.allclose(found.probability.sum(axis=1), 1.0, atol=1e-6)
    p[3, 0] = min(100.0, p[3, 0] + 0.5)  # more than four half units of 0.1 percent
    with pytest.raises(cal.RefusedError, match=r"y_prob\[3\] sums to"):
        cal.predictions(y, p, percent=True)


@pytest.mark.parametrize("call", [cal.predictions, cal.brier_score, cal.expected_calibration_error, cal.evaluate])
def test_rescale_divides_every_row_in_every_front(call):
    y, p = _rows(k=3)
    wrong = p * np.linspace(0.5, 1.0, len(p))[:, None]
    with pytest.raises(cal.RefusedError, match="rescale=True"):
        call(y, wrong)
    more = {"metrics": ["bs", "ece"]} if call is cal.evaluate else {}
    with pytest.warns(cal.CalibrationWarning, match="did not sum to 1 and were divided by their sums"):
        found = call(y, wrong, rescale=True, **more)
    whole = call(y, p, **more)
    if call is cal.predictions:
        assert np.allclose(found.probability, whole.probability, atol=1e-12)
    elif call is cal.evaluate:
        assert [row.value for row in found] == pytest.approx([row.value for row in whole])
    else:
        assert found == pytest.approx(whole)


def test_a_row_of_zeros_cannot_be_rescaled_and_a_wrong_value_is_one_sentence():
    p = np.array([[0.2, 0.3, 0.4], [0.0, 0.0, 0.0]])
    with pytest.raises(cal.RefusedError, match=r"y_prob\[1\] contains only zeros"):
        cal.predictions([0, 1], p, rescale=True)
    with pytest.raises(cal.RefusedError, match="rescale='yes' must be True"):
        cal.predictions([0, 1], p, rescale="yes")


def test_one_hot_labels_with_rounded_rows_are_classes_and_not_several_labels():
    y, exact = _rows(k=3)
    p = np.round(exact, 2)
    hot = np.eye(3, dtype=int)[y]
    with pytest.warns(cal.CalibrationWarning, match="divided by their sums"):
        found = cal.predictions(hot, p)
    assert np.array_equal(found.y, y)
    shares = 0.5 * hot + 0.5 * hot[::-1]
    with pytest.warns(cal.CalibrationWarning, match="divided by their sums"):
        assert np.allclose(cal.predictions(shares, p).probability.sum(axis=1), 1.0)


def test_several_labels_at_once_are_still_no_rows_that_sum_to_one():
    rng = np.random.default_rng(1)
    p = np.round(rng.random((50, 3)), 2)
    y = (rng.random((50, 3)) < p).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(cal.predictions(y, p).probability, p)


@pytest.mark.parametrize(("values", "d"), [([0.0, 1.0], 0), ([0.5, 0.25], 2), ([0.123456, 0.1], 6), ([1 / 3], None)])
def test_decimals(values, d):
    assert decimals_of(np.array(values)) == d

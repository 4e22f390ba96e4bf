"""One to five rows: what they cannot show is not claimed, and what has no value says why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import ttest_rel

import calibrary as cal
from each import FULL, each, turn

SIZES = (1, 2, 3, 5)
CASES = [(n, labels) for n in SIZES for labels in ("no events", "only events", "both") if n > 1 or labels != "both"]


def of(n, labels):
    y = {"no events": np.zeros(n, int), "only events": np.ones(n, int), "both": np.arange(n) % 2}[labels]
    return y, np.linspace(0.2, 0.6, n)


@each([(e.id, case) for e in cal.catalogue.values() for case in (CASES if FULL else [turn(e.id, CASES)])])
def test_few_rows_give_a_reason_in_place_of_a_number(id, case):
    """The interval is not a point without a note, nor NaN without one; a comparison of so few rows rejects nothing."""
    y, p = of(*case)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = cal.interval(id, y, p, n_resamples=99, rng=0)
        except (ValueError, TypeError):
            return  # a sentence: other tests hold the words
        low, high = np.atleast_1d(found.low), np.atleast_1d(found.high)
        assert (np.isfinite(low) & np.isfinite(high) & (low < high)).all() or said or found.note, found
        said.clear()
        try:
            two = cal.compare(id, y, p, 0.9 * p, n_resamples=99, rng=0)
        except cal.RefusedError as error:
            assert "values here: compare models by one of them" in str(error)  # noqa: PT017
            return
    assert np.isnan([two.low, two.high, two.pvalue]).all() or two.method == "swap", two
    assert any("no difference can be shown with fewer than 6 rows" in str(w.message) for w in said)


@pytest.mark.parametrize("n", [6, 8, 9])
def test_a_difference_is_not_more_certain_than_the_signs_of_so_few_rows(n):
    y, p = of(n, "no events")
    assert cal.compare("bs", y, p, 0.9 * p, rng=0).pvalue == max(0.002, 2.0 ** (1 - n))


def test_student_t_allows_for_the_number_of_rows():
    y, p = of(4, "no events")
    a, b = p**2, (0.9 * p) ** 2
    assert cal.compare("bs", y, p, 0.9 * p, method="paired-t").pvalue == pytest.approx(ttest_rel(a, b).pvalue)
    with pytest.warns(cal.CalibrationWarning, match="and there are 1 here"):
        assert np.isnan(cal.compare("bs", [0], [0.2], [0.3], method="studentized").pvalue)


def test_one_row_has_no_interval_of_a_mean_and_an_interval_without_width_says_so():
    one = cal.interval("bs", [0], [0.2])
    assert one.value == pytest.approx(0.04)
    assert np.isnan([one.low, one.high]).all()
    assert "one row does not show" in one.note
    assert "without width" in cal.interval("aurc", [0, 1], [0.2, 0.6], lens="top-label", rng=0).note


def test_the_difference_of_two_infinite_values_is_said_to_be_undefined():
    with pytest.warns(cal.CalibrationWarning, match="eo is inf for the first model and inf for the second"):
        found = cal.compare("eo", np.zeros(9, int), np.linspace(0.2, 0.6, 9), np.linspace(0.1, 0.7, 9), rng=0)
    assert np.isnan(found.pvalue)


def test_a_metric_that_has_values_on_resampled_rows_alone_says_so():
    """Ten copies of a row are one row for min_count=, and resampling writes the copies out."""
    with pytest.warns(cal.CalibrationWarning, match="rbece is undefined on these rows, although it has values on"):
        found = cal.interval("rbece", [1, 1, 0], [0.2, 0.3, 0.4], sample_weight=[1, 50, 50], method="basic", rng=0)
    assert np.isnan(found.low)


def test_an_interval_without_width_decides_nothing():
    """Two rows in the right order have an AUROC of 1 in every resample that has one."""
    with pytest.warns(
        cal.CalibrationWarning, match=r"every resample gives the same value.*auroc>0.7 holds is undecided"
    ):
        found = cal.verdict("auroc>0.7", [0, 1], [0.2, 0.6], n_resamples=99, rng=0)
    assert found.status == "undecided"
    assert cal.verdict("auroc>0.7", [0, 1], [0.2, 0.6], n_resamples=99, rng=0, judged_by="estimate").status == "pass"

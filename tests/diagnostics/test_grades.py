"""Tests of risk grades: scipy's binomial test, the beta distribution, and Holm's adjustment."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calibrary as cal

RNG = np.random.default_rng(0)
GRADES = np.repeat(["A", "B", "C"], [200, 150, 50])
P = np.repeat([0.01, 0.05, 0.3], [200, 150, 50])
Y = (RNG.random(400) < np.repeat([0.01, 0.12, 0.3], [200, 150, 50])).astype(int)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_each_grade_is_tested_by_itself(alternative):
    found = cal.grade_tests(Y, P, GRADES, alternative=alternative)
    assert found.grade == ("A", "B", "C")
    for j, grade in enumerate("ABC"):
        rows = grade == GRADES
        k, n = int(Y[rows].sum()), int(rows.sum())
        expected = stats.binomtest(k, n, P[rows][0], alternative=alternative).pvalue
        assert found.binomial[j] == pytest.approx(expected, abs=1e-12)
        tail = stats.beta(k + 0.5, n - k + 0.5).cdf(P[rows][0])
        jeffreys = {"greater": tail, "less": 1 - tail, "two-sided": min(1, 2 * min(tail, 1 - tail))}[alternative]
        assert found.jeffreys[j] == pytest.approx(jeffreys, abs=1e-12)
    order = np.argsort(found.jeffreys)
    holm = np.minimum(np.maximum.accumulate(found.jeffreys[order] * [3, 2, 1]), 1)
    np.testing.assert_allclose(found.jeffreys_adjusted[order], holm)
    assert "Jeffreys" in repr(found)
    assert "<table>" in found._repr_html_()
    assert list(found.to_pandas().columns[:3]) == ["grade", "n", "events"]


def test_counts_are_copies_and_grades_may_be_the_probabilities():
    counts = 1 + np.arange(400) % 2
    weighted = cal.grade_tests(Y, P, GRADES, sample_weight=counts)
    written = cal.grade_tests(np.repeat(Y, counts), np.repeat(P, counts), np.repeat(GRADES, counts))
    np.testing.assert_allclose(weighted.binomial, written.binomial)
    np.testing.assert_allclose(cal.grade_tests(Y, P).binomial, cal.grade_tests(Y, P, GRADES).binomial)


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="alternative='up' is not known"):
        cal.grade_tests(Y, P, GRADES, alternative="up")
    with pytest.raises(ValueError, match="grades has 2 rows"):
        cal.grade_tests(Y, P, ["A", "B"])
    with pytest.raises(ValueError, match="count"):
        cal.grade_tests(Y, P, GRADES, sample_weight=np.full(400, 0.5))

"""Edges of ``ensemble`` and ``outside_rows``: rows by index, columns by name, few members and rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy

import calibrary as cal
from calibrary.base.errors import CalibrationWarning, RefusedError
from calibrary.secondorder.uncertainty import Scored, auroc

RNG = np.random.default_rng(5)
N = 120
M = RNG.uniform(0.1, 0.9, (N, 5))
Y = (RNG.random(N) < M.mean(axis=1)).astype(int)
FAST = {"n_resamples": 99, "rng": 0}
LABELS = [None if i % 4 == 0 else int(v) for i, v in enumerate(Y)]
P3 = RNG.dirichlet([1, 1, 1], N)
Y3 = np.array([RNG.choice(3, p=q) for q in P3])


# -- which rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["boolean", "string", "object"])
def test_missing_labels_of_pandas_are_rows_outside(dtype):
    values = {"boolean": [True, False], "string": ["yes", "no"], "object": [1, 0]}[dtype] + [pd.NA]
    positive = {"pos_label": "yes"} if dtype == "string" else {}
    found = cal.outside_rows(pd.Series(values * 40, dtype=dtype), M[:, 0], **positive, **FAST)
    assert (found.n, found.n_outside) == (80, 40)


# -- which columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["012", "abc"])
def test_columns_of_rows_outside_are_matched_by_name(names):
    named = [None if i % 4 == 0 else (int(v) if names == "012" else names[v]) for i, v in enumerate(Y3)]
    columns = list(names) if names == "abc" else [0, 1, 2]
    table = pd.DataFrame(P3, columns=columns)
    expected = cal.outside_rows(named, P3, **FAST)
    for order in (columns, [columns[2], columns[0], columns[1]]):
        found = cal.outside_rows(named, table[order], **FAST)
        assert (found.closed_error.value, found.detector.value) == pytest.approx(
            (expected.closed_error.value, expected.detector.value)
        )


def test_two_named_columns_are_matched_by_name():
    named = [None if v is None else ("yes" if v else "no") for v in LABELS]
    table = pd.DataFrame({"no": 1 - M[:, 0], "yes": M[:, 0]})
    found = [cal.outside_rows(named, table[order], **FAST) for order in (["no", "yes"], ["yes", "no"])]
    expected = cal.outside_rows(LABELS, M[:, 0], **FAST).closed_error.value
    assert [f.closed_error.value for f in found] == pytest.approx([expected, expected])


def test_columns_without_the_names_of_the_classes_are_refused():
    with pytest.raises(RefusedError, match="do not name the classes in y_true"):
        cal.outside_rows([None, *"abc" * 30], pd.DataFrame(P3[:91], columns=list("xyz")), **FAST)


# -- few members, few rows ---------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "share"), [(2, "50%"), (4, "75%")])
def test_few_draws_are_said_with_their_number(m, share):
    with pytest.warns(CalibrationWarning, match=f"y_prob has {m} members: draws of {m} show about {share} of"):
        cal.ensemble(Y, M[:, :m], **FAST)


@pytest.mark.filterwarnings("error::calibrary.CalibrationWarning")
def test_nothing_is_said_of_enough_draws_and_of_a_mixture():
    cal.ensemble(Y, M, **FAST)
    cal.ensemble(Y, M[:, :2], members="mixture", **FAST)


def test_m_draws_show_the_share_of_the_disagreement_that_is_said():
    """The mean variance over M draws is (M - 1)/M of that of the distribution, here 1/12 of (b - a)^2."""
    p = np.random.default_rng(0).uniform(0.3, 0.7, (20_000, 2, 1))
    from calibrary.secondorder.uncertainty import variance_parts

    assert variance_parts(p)[:, 2].mean() == pytest.approx(0.5 * 0.4**2 / 12, rel=0.03)


def test_no_evidence_is_not_claimed_without_a_test():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3):
        p = rng.uniform(0.1, 0.9, (n, 5))
        found = cal.ensemble((rng.random(n) < p.mean(axis=1)).astype(int), p, **FAST)
        if math.isnan(found.mean.pvalue):
            assert "too few for a test of the mean" in found.mean.sentence
            assert "no evidence against the mean" not in found.mean.sentence
            return
    raise AssertionError("no sample is without a test: choose other rows")


def test_one_row_outside_says_nothing_of_the_others():
    p = np.concatenate([M[:40, 0], [0.2]])
    found = cal.outside_rows([*Y[:40].tolist(), None], p, **FAST).outside_confidence
    assert (found.value, found.low, found.high) == (0.8, 0.0, 1.0)


def test_the_interval_of_a_mean_confidence_stays_among_probabilities():
    found = cal.outside_rows([*Y[:40].tolist(), None, None], np.concatenate([M[:40, 0], [0.05, 0.45]]), **FAST)
    assert 0.0 <= found.outside_confidence.low < found.outside_confidence.high <= 1.0


# -- DeLong's interval -------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [np.ones(10), np.full(10, 3.0), np.array([1.0, 2, 1, 4, 1, 1, 3, 1, 0.5, 1])])
def test_the_interval_of_the_area_is_de_long_s_with_student_s_quantile(w):
    """Variances of the placements with n - 1, and as many degrees of freedom as the smaller group has, minus one."""
    found, others = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.0, 1.5, 2.5, 3.0, 4.5, 0.5])
    above = np.array([[float(x > z) for z in others] for x in found])
    v, w = w[:4] / w[:4].sum(), w[4:] / w[4:].sum()
    area = v @ above @ w
    # each row moves the area by its share times the distance of its placement
    variance = 4 / 3 * np.sum((v * (above @ w - area)) ** 2) + 6 / 5 * np.sum((w * (v @ above - area)) ** 2)
    n1, n0 = 1 / np.sum(v**2), 1 / np.sum(w**2)
    half = scipy.stats.t(min(n1, n0) - 1).ppf(0.975) * math.sqrt(variance) / (area * (1 - area))
    odds = math.log(area / (1 - area))
    expected = [area, *(1 / (1 + math.exp(-(odds + side * half))) for side in (-1, 1))]
    z = (area - 0.5) / math.sqrt((n1 + n0 + 1) / (12 * n1 * n0))  # Mann and Whitney, without ties
    tested = 2 * scipy.stats.norm.sf(abs(z))
    assert auroc(Scored("s", found, others, 5 * v, 7 * w), 0.95) == pytest.approx((*expected, tested))

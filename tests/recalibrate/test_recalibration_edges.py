"""Edges of recalibration: columns of other rows are refused by every method of a map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.recalibrate.segments import segment_names

RNG = np.random.default_rng(3)
N = 200
P = pd.Series(RNG.uniform(0.05, 0.95, N))
Y = pd.Series((RNG.random(N) < P).astype(int))
SITE = pd.Series(np.where(np.arange(N) % 2, "a", "b"))


@pytest.mark.parametrize("gone", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_segment_is_a_segment_and_a_missing_label_is_refused(gone):
    assert segment_names(np.array(["a", gone, 2.5], dtype=object)).tolist() == ["a", "missing", "2.5"]
    labels = Y.astype(object)
    labels[3] = gone
    with pytest.raises(RefusedError, match="y holds missing labels"):
        cal.Recalibrator("platt").fit(P, labels)


def moved(column):
    return column.sample(frac=1, random_state=1)


def test_the_map_of_other_rows_was_another_map():
    """The same columns in one order: the index of both is the same again, and the map is that of the first call."""
    order = RNG.permutation(N)
    same = cal.Recalibrator("platt").fit(P.iloc[order], Y.iloc[order]).transform([0.9])
    assert same == pytest.approx(cal.Recalibrator("platt").fit(P, Y).transform([0.9]))


@pytest.mark.parametrize("verb", ["transform", "predict_proba", "predict"])
def test_segments_with_another_index_are_refused_where_a_map_is_applied(verb):
    map = cal.Recalibrator("platt", by="site").fit(P, Y, by=SITE)
    assert len(getattr(map, verb)(P, by=SITE)) == N
    with pytest.raises(RefusedError, match="by and p have different indexes"):
        getattr(map, verb)(P, by=moved(SITE))


def test_fit_transform_refuses_other_rows():
    with pytest.raises(RefusedError, match="y and p have different indexes"):
        cal.Recalibrator("platt").fit_transform(P, moved(Y))

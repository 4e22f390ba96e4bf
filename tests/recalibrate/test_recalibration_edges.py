"""Edges of recalibration: columns of other rows are refused, masked arrays too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrary as cal
from calibrary.base.errors import RefusedError

RNG = np.random.default_rng(3)
N = 200
P = pd.Series(RNG.uniform(0.05, 0.95, N))
Y = pd.Series((RNG.random(N) < P).astype(int))
SITE = pd.Series(np.where(np.arange(N) % 2, "a", "b"))
COLUMNS = {"y": Y, "sample_weight": pd.Series(np.ones(N)), "units": pd.Series(np.arange(N) // 2), "by": SITE}
NEW = pd.Series(RNG.uniform(0.05, 0.95, N))


def moved(column):
    return column.sample(frac=1, random_state=1)


def test_the_map_of_other_rows_was_another_map():
    """The same columns in one order: the index of both is the same again, and the map is that of the first call."""
    order = RNG.permutation(N)
    same = cal.Recalibrator("platt").fit(P.iloc[order], Y.iloc[order]).transform([0.9])
    assert same == pytest.approx(cal.Recalibrator("platt").fit(P, Y).transform([0.9]))


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("verb", ["fit", "judge", "score"])
def test_columns_with_another_index_are_refused(verb, name):
    if verb == "score" and name == "units":
        return  # score has no units
    given = {"y": Y, "by": SITE, name: COLUMNS[name]}
    map = cal.Recalibrator("platt", by="site").fit(NEW, Y, by=SITE)
    given[name] = moved(given[name])
    with pytest.raises(RefusedError, match=f"{name} and p have different indexes"):
        getattr(map, verb)(P, **given)


@pytest.mark.parametrize("verb", ["transform", "predict_proba", "predict"])
def test_segments_with_another_index_are_refused_where_a_map_is_applied(verb):
    map = cal.Recalibrator("platt", by="site").fit(P, Y, by=SITE)
    assert len(getattr(map, verb)(P, by=SITE)) == N
    with pytest.raises(RefusedError, match="by and p have different indexes"):
        getattr(map, verb)(P, by=moved(SITE))


def test_fit_transform_refuses_other_rows():
    with pytest.raises(RefusedError, match="y and p have different indexes"):
        cal.Recalibrator("platt").fit_transform(P, moved(Y))


@pytest.mark.parametrize("name", ["y_prob", "sample_weight", "units", "folds"])
def test_columns_of_a_gain_with_another_index_are_refused(name):
    given = {"y_prob": P, "folds": 5, "units": pd.Series(np.arange(N))}
    given |= {"sample_weight": pd.Series(np.ones(N))} if name == "sample_weight" else {}
    given |= {"folds": pd.Series(np.arange(N) % 5)} if name == "folds" else {}
    cal.recalibration_gain(Y, maps="platt", **given)
    given[name] = moved(given[name])
    with pytest.raises(RefusedError, match=f"{name} and y_true have different indexes"):
        cal.recalibration_gain(Y, maps="platt", **given)


@pytest.mark.parametrize("name", ["p", "y", "sample_weight", "units", "by"])
def test_a_masked_array_is_refused(name):
    given = {key: np.asarray(column) for key, column in COLUMNS.items()} | {"p": P.to_numpy()}
    given[name] = np.ma.array(given[name], mask=np.zeros(N, dtype=bool))
    given[name][3] = np.ma.masked
    with pytest.raises(RefusedError, match=rf"{name}\[3\] is masked"):
        cal.Recalibrator("platt", by="site").fit(given.pop("p"), **given)
